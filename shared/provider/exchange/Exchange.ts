/**
 * Makes one HTTP exchange with a provider and feeds the answer to a reader: streams as they arrive, other answers once complete, with
 * back-pressure from the client. An error status fails the exchange.
 */
import { Cause, type Clock, Effect, Exit, Option, Redacted, Tracer } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"
import { isReported, type Usage } from "../../contract/Usage.ts"
import * as TraceParent from "../../telemetry/TraceParent.ts"
import * as Endpoint from "../transport/Endpoint.ts"
import * as EstimatedUsage from "../call/EstimatedUsage.ts"
import type { Call } from "../call/Protocol.ts"
import * as Prefill from "../dialects/openai/Prefill.ts"
import * as UsageSum from "../../contract/UsageSum.ts"
import type { GuardedFetch } from "../transport/GuardedFetch.ts"
import { contentTypeOf, type ResponseHeaders } from "../transport/ResponseHeaders.ts"
import type { Sink } from "../transport/Sink.ts"
import type { Secrets } from "../transport/Secrets.ts"
import type { ExchangeControl, Receiver, Upstream } from "../transport/Upstream.ts"
import { type AnswerReader, isFailure, type Read, wrongForm } from "./AnswerReader.ts"
import * as ResponseMetadata from "./ResponseMetadata.ts"
import type { HttpProtocol, Outgoing } from "./HttpProtocol.ts"
import * as ProviderError from "./ProviderError.ts"

/** The services that an exchange needs. */
export interface ExchangeTools {
  readonly upstream: Upstream["Service"]
  readonly secrets: Secrets["Service"]
}

/** The services of an exchange, with the guard for URLs in requests and answers. */
export interface GuardedTools extends ExchangeTools {
  readonly guard: GuardedFetch["Service"]
}

export interface ExchangeOptions extends ExchangeTools {
  readonly authorize: HttpProtocol<never>["authorize"]
  readonly call: Pick<Call, "continues" | "endpoint" | "onCut">
  readonly sink: Sink
  readonly request: Outgoing
  /** Makes the reader. `secrets`: texts that no error may reveal. `account`: the account at the provider. */
  readonly reader: (secrets: ReadonlyArray<string>, account: () => string, clock: Clock.Clock) => AnswerReader
}

/** The header with which most providers expect their key. */
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

export const exchange = (options: ExchangeOptions): Effect.Effect<Usage | undefined, JobError> =>
  Fiberless.suspend((run) =>
    Fiberless.flatMap(
      Endpoint.keyOf(options.call.endpoint, options.secrets),
      (key) => exchangeIn(run, Option.isSome(key) ? Redacted.value(key.value) : undefined, options)
    )
  )

const exchangeIn = (
  { clock, span, tracer }: Fiberless.Run,
  key: string | undefined,
  { authorize, call: { continues, endpoint, onCut }, reader: makeReader, request, sink, upstream }: ExchangeOptions
): Effect.Effect<Usage | undefined, JobError> => {
  const secrets = [key ?? "", endpoint.provider.baseUrl ?? ""]
  const reader = makeReader(secrets, () => Endpoint.accountOf(endpoint, key), clock)
  const answer = new Delivery(endpoint.name, sink, reader)
  const body = request.body && continues ? Prefill.mark(request.body, continues) : request.body
  const exchanged = upstream.exchange({
    provider: endpoint.name,
    method: body === undefined ? "GET" : "POST",
    address: Endpoint.addressOf(endpoint, request.path),
    headers: headersOf(request, key === undefined ? undefined : authorize(key), span),
    ...(body === undefined ? {} : { body }),
    ...Endpoint.timeoutsOf(endpoint, request),
    timedOut: (phase) => Endpoint.timedOut(endpoint, phase, request)
  }, (control) => answer.receiver(control))
  /** Estimates the usage. Called only if the provider has reported none, because it reads all texts. */
  const estimate = (): Effect.Effect<Usage> | undefined => {
    const textBytes = answer.reader.textBytes?.()
    return body === undefined || request.noEstimate === true || textBytes === undefined
      ? undefined
      : EstimatedUsage.ofBody(body, textBytes)
  }
  const finished = Fiberless.flatMap(exchanged, () => answer.finish(secrets, estimate))
  return Fiberless.matchExit(finished, (exit) => {
    if (Exit.isSuccess(exit)) {
      // only if spans are exported
      if (span?._tag === "Span" && tracer !== Tracer.nativeTracer) ResponseMetadata.annotate(span, answer.reader.ends())
      return exit
    }
    if (onCut === undefined || !answer.hasBegun) return exit
    const usage = answer.reader.usage()
    if (isReported(usage)) {
      onCut(usage)
      return exit
    }
    // the work for a client that disconnects is metered; a failed answer is not
    const estimated = Cause.hasInterruptsOnly(exit.cause) ? estimate() : undefined
    return estimated === undefined ? exit : Effect.flatMap(estimated, (usage) => {
      onCut(usage)
      return exit
    })
  })
}

/** The headers as names and values, alternating. */
const headersOf = (
  { body, contentType, headers, streams }: Outgoing,
  credentials: Readonly<Record<string, string>> | undefined,
  span: Tracer.AnySpan | undefined
): ReadonlyArray<string> => {
  const all = ["accept", streams ? "text/event-stream" : "application/json"]
  if (body !== undefined) all.push("content-type", contentType)
  for (const each of [credentials, headers]) for (const name in each) all.push(name, each[name] ?? "")
  if (span !== undefined) all.push("traceparent", TraceParent.format(span))
  return all
}

/** Maximum number of bytes of a stream to hold back before its first content. */
const maxStartBytes = 64 * 1024

const eventStream = "text/event-stream"

/** Maximum number of blank bytes before those that show whether an answer is a stream. Servers send blank lines while a model thinks. */
const maxBlankBytes = 64 * 1024

/** Whether these bytes may be the beginning of a field of an event, which more bytes will show. */
const mayBecomeEvent = (text: string): boolean =>
  ["data:", "event:", "id:", "retry:"].some((field) => field.startsWith(text))

/** The delivery of one answer from the provider to the sink. */
class Delivery {
  readonly #provider: string
  readonly #sink: Sink
  reader: AnswerReader
  #status = 0
  #headers: ResponseHeaders = {}
  #contentType = "application/json"
  #kind: "error" | "stream" | "whole" | "passing" = "whole"
  /** The bytes before those that show whether the answer is a stream; `undefined` once that is known. */
  #first: Array<Uint8Array> | undefined
  /** The bytes of a whole answer, or the pieces of a stream before its first content. */
  #held: Array<Uint8Array> = []
  #heldBytes = 0
  #mayHold = 0
  /** Whether the stream has had content, so that its pieces are no longer held back. */
  #hasContent = false
  /** Why the answer cannot be read, if only its end has shown that. */
  #failure: JobError | undefined

  constructor(provider: string, sink: Sink, reader: AnswerReader) {
    this.#provider = provider
    this.#sink = sink
    this.reader = reader
  }

  /** Whether an answer has begun that is passed on before it is complete. */
  get hasBegun(): boolean {
    return this.#kind === "stream" || this.#kind === "passing"
  }

  receiver(control: ExchangeControl): Receiver {
    return {
      onHead: (status, headers) => {
        this.#status = status
        this.#headers = headers
        this.#contentType = contentTypeOf(headers) ?? this.#contentType
        if (status < 200 || status >= 300) this.#kind = "error"
        else if (this.reader.inForm === undefined) this.#setForm(this.#isLabelledStream)
        else this.#first = []
      },
      onData: (chunk) => {
        if (this.#first === undefined) return this.#onData(chunk, control)
        this.#first.push(chunk)
        this.#decideForm(control)
      }
    }
  }

  get #isLabelledStream(): boolean {
    return this.#contentType.includes(eventStream)
  }

  /** Looks for the form in the first bytes. `control` is absent at the end of the answer. */
  #decideForm(control: ExchangeControl | undefined): void {
    const first = Buffer.concat(this.#first ?? [])
    const seen = first.toString("latin1", 0, maxBlankBytes).trimStart()
    // a comment is an event of a stream that the client gets
    const isStream = /^(?:data|event|id|retry)?:/.test(seen) ? true : /^[{[]/.test(seen) ? false : undefined
    if (isStream === undefined && control !== undefined && mayBecomeEvent(seen) && first.length < maxBlankBytes) return
    this.#first = undefined
    if (isStream !== undefined && isStream !== this.#isLabelledStream) {
      this.#contentType = isStream ? eventStream : "application/json"
    }
    const form = this.#isLabelledStream
    const reader = this.reader.inForm?.(form)
    if (reader === undefined) {
      const failure = ProviderFailed.malformed(this.#provider, wrongForm(form))
      if (control === undefined) this.#failure = failure
      else control.fail(failure)
      return
    }
    this.reader = reader
    this.#setForm(form)
    if (first.length === 0) return
    if (control === undefined) this.#hold(first)
    else this.#onData(first, control)
  }

  #setForm(isStream: boolean): void {
    if (this.reader.push !== undefined && isStream) this.#kind = "stream"
    else this.#mayHold = this.reader.holdBytes(this.#contentType)
  }

  #onData(chunk: Uint8Array, control: ExchangeControl): void {
    switch (this.#kind) {
      case "stream":
        return this.#onStream(chunk, control)
      case "error":
        if (this.#heldBytes < ProviderError.maxErrorBytes) this.#hold(chunk)
        return
      case "whole":
        this.#hold(chunk)
        if (this.#heldBytes > this.#mayHold) this.#release(control)
        return
      case "passing":
        return this.#pass(chunk, control)
    }
  }

  /** Writes the end of the answer and returns its usage. Fails if the answer is incomplete. */
  finish(
    secrets: ReadonlyArray<string>,
    estimate: () => Effect.Effect<Usage> | undefined
  ): Effect.Effect<Usage | undefined, JobError> {
    if (this.#kind === "error") {
      const body = Buffer.concat(this.#held).toString()
      return Effect.flatMap(
        ProviderError.fromAnswer(this.#provider, this.#status, this.#headers, body, secrets),
        Effect.fail
      )
    }
    if (this.#first !== undefined) this.#decideForm(undefined)
    if (this.#failure !== undefined) return Effect.fail(this.#failure)
    const read = this.#end(this.#kind)
    if (isFailure(read)) return Effect.fail(read)
    const usage = this.reader.usage()
    const estimated = isReported(usage) ? undefined : estimate()
    if (estimated !== undefined) return Effect.map(estimated, (usage) => this.#last(read, usage))
    return Effect.succeed(this.#last(read, usage))
  }

  #end(kind: "stream" | "whole" | "passing"): Read {
    switch (kind) {
      case "stream":
        return this.reader.end?.() ?? []
      case "whole":
        return this.reader.whole(this.#whole())
      case "passing":
        return this.reader.endPassing?.() ?? []
    }
  }

  #whole(): Uint8Array {
    const [only] = this.#held
    return only !== undefined && this.#held.length === 1 ? only : Buffer.concat(this.#held)
  }

  #hold(chunk: Uint8Array): void {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
  }

  /** Passes on an answer that is too large to hold, from here on, or fails. */
  #release(control: ExchangeControl): void {
    if (this.reader.pass === undefined) return control.fail(ProviderFailed.malformed(this.#provider))
    this.#kind = "passing"
    for (const chunk of this.#held) this.#pass(chunk, control)
    this.#held = []
  }

  #pass(chunk: Uint8Array, control: ExchangeControl): void {
    for (const piece of this.reader.pass?.(chunk) ?? []) this.#write(piece, control)
  }

  #onStream(chunk: Uint8Array, control: ExchangeControl): void {
    const pieces = this.reader.push?.(chunk) ?? []
    if (this.#hasContent) { for (const piece of pieces) this.#write(piece, control) }
    else this.#holdStart(pieces, control)
    const failure = this.reader.failure?.()
    if (failure !== undefined) control.fail(failure)
  }

  /** Holds back the pieces before the first content, so that until then another provider can be tried. */
  #holdStart(pieces: ReadonlyArray<Uint8Array>, control: ExchangeControl): void {
    for (const piece of pieces) this.#hold(piece)
    this.#hasContent = this.#heldBytes > maxStartBytes || this.reader.hasContent?.() !== false
    if (!this.#hasContent) return
    for (const piece of this.#held) this.#write(piece, control)
    this.#held = []
  }

  #last(read: Exclude<Read, JobError>, usage: Usage | undefined): Usage | undefined {
    // a relayed answer may be empty
    if (!this.#sink.hasStarted && this.reader.pass !== undefined) this.#start()
    const pieces = typeof read === "function" ? read(usage ?? UsageSum.none) : read
    // includes the held pieces of a stream without content
    for (const piece of this.#kind === "stream" ? [...this.#held, ...pieces] : pieces) {
      if (!this.#sink.hasStarted) this.#start()
      this.#sink.write(piece)
    }
    return usage
  }

  #write(bytes: Uint8Array, control: ExchangeControl): void {
    control.noteContent()
    if (!this.#sink.hasStarted) this.#start()
    if (this.#sink.write(bytes)) return
    control.pause()
    this.#sink.onDrain(() => control.resume())
  }

  #start(): void {
    this.#sink.start(this.reader.head(this.#status, this.#contentType))
  }
}
