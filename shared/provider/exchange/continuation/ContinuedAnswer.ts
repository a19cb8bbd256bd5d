/**
 * Continues a streamed answer of plain text with another call if the answer breaks off. The client gets one stream, with the first call's
 * id and model, the whole text, one finish and the usage of all calls.
 *
 * Until a call fails, the sink only keeps a copy of the bytes that pass. All these bytes are in the client's dialect, whatever the
 * providers speak.
 */
import { Effect, Result } from "effect"
import { spellingsOf } from "../../../contract/http/FieldSpelling.ts"
import { isReported, type Usage } from "../../../contract/Usage.ts"
import * as EstimatedUsage from "../../call/EstimatedUsage.ts"
import type { Call } from "../../call/Protocol.ts"
import * as ClientRequest from "../../dialects/conversation/ClientRequest.ts"
import * as ClientDialects from "../../dialects/ClientDialects.ts"
import type { Conversation } from "../../dialects/conversation/Conversation.ts"
import type { AnswerEncoder, AnswerIdentity, ClientDialect } from "../../dialects/conversation/Dialect.ts"
import type { ModelEvent } from "../../dialects/conversation/ModelEvent.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import * as Json from "../../json/Json.ts"
import * as JsonText from "../../json/JsonText.ts"
import type { Head, Sink } from "../../transport/Sink.ts"
import { type AnswerGrammar, membersNamed } from "../AnswerGrammar.ts"
import { isFailure } from "../AnswerReader.ts"
import { EchoFilter, givenOf } from "./EchoFilter.ts"
import { reasonsIn } from "../ResponseMetadata.ts"
import { TranslatedAnswer, TranslatedPart } from "../TranslatedAnswer.ts"

/** The parts of a request that matter to its continuation. */
type Request = Pick<Call, "body" | "headers" | "model" | "onCut" | "operation">

/** Maximum number of bytes to keep unread. Beyond that they are read, and only their text is kept. */
const maxKeptBytes = 64 * 1024

/** Maximum length of an answer that can be continued, in characters. */
const maxText = 1024 * 1024

/** How long a provider must have been silent before a cut for `wasSilent`, in milliseconds. */
const silenceMs = 5_000

/** The grammar of the streams of all client dialects. */
const grammar: AnswerGrammar = {
  done: "ends",
  marks: membersNamed(),
  modelPaths: [],
  read: () => ({}),
  isLast: () => false
}

/** The places of the setting `maxTokens` in all client dialects. */
const limitPaths = [
  ["max_tokens"],
  ["max_completion_tokens"],
  ["max_output_tokens"],
  // Google's JSON has two spellings
  ...spellingsOf("generationConfig").flatMap((name) => spellingsOf("maxOutputTokens").map((limit) => [name, limit]))
]

/** The text of an answer, as far as the client has it. */
class Text implements AnswerEncoder {
  text = ""
  /** Whether the answer has had nothing but text. */
  isPlain = true
  /** Encodes events for the client; `undefined` while the client gets the provider's own frames. */
  encoder: AnswerEncoder | undefined
  /** Removes text that the current call repeats. */
  echo: EchoFilter | undefined
  /** The usage of the calls before the current one. */
  spent: Usage | undefined

  frames(event: ModelEvent): string {
    if (event.type === "text" && event.choice === 0) return this.#take(this.echo?.push(event.delta) ?? event.delta)
    const held = this.#take(this.echo?.end() ?? "")
    if (event.type === "usage") {
      return held + (this.encoder?.frames({ type: "usage", usage: UsageSum.sum(this.spent, event.usage) }) ?? "")
    }
    if (event.type !== "finish") this.isPlain = false
    return held + (this.encoder?.frames(event) ?? "")
  }

  lastFrames(): string {
    return this.encoder?.lastFrames() ?? ""
  }

  body(): undefined {
    return undefined
  }

  #take(delta: string): string {
    if (delta === "") return ""
    if (this.text.length <= maxText) this.text += delta
    return this.encoder?.frames({ type: "text", choice: 0, delta }) ?? ""
  }
}

/** Makes the sink of a request's answer. `now` is in milliseconds. */
type Make = (sink: Sink, request: Request, now: () => number) => ContinuedAnswer

/** The makers by the name of the chat operation. */
const makes: ReadonlyMap<string, Make> = new Map(
  ClientDialects.map((client): [string, Make] => {
    const decode = ClientRequest.decoder(client, "lenient")
    return [client.operation, (...about) => new DialectAnswer(client, decode, ...about)]
  })
)

/** Makes the sink; `undefined` if answers of this operation cannot be continued. */
export const make = (...[sink, request, now]: Parameters<Make>): ContinuedAnswer | undefined =>
  makes.get(request.operation.name)?.(sink, request, now)

export interface ContinuedAnswer extends Sink {
  /** See `Call`. */
  readonly onCut: (usage: Usage) => void
  /** Whether the provider fell silent before its answer broke off. */
  readonly wasSilent: boolean
  /**
   * Returns the body of a call that continues an answer that has started and broken off; `undefined` if the answer must not be
   * continued. Meters the failed call.
   */
  readonly resume: Effect.Effect<Uint8Array | undefined>
  /** Ends an answer that was continued. Returns whether it is complete. */
  readonly end: (usage: Usage | undefined) => boolean
}

class DialectAnswer<R> implements ContinuedAnswer {
  readonly #client: ClientDialect<R>
  readonly #decode: ReturnType<typeof ClientRequest.decoder<R>>
  readonly #sink: Sink
  readonly #request: Request
  readonly #now: () => number
  readonly #text = new Text()
  /** The bytes of the first call that are not read yet. */
  #kept: Array<Uint8Array> = []
  #keptBytes = 0
  /** Reads the current call's stream. */
  #part: TranslatedPart
  #isFirst = true
  /** The body of the current call, and the number of bytes of text before it. */
  #body: Uint8Array
  #textBytes = 0
  #isStream = false
  #hasStarted = false
  #wroteAt = 0
  /** The usage that the current call's provider has reported. */
  #reported: Usage | undefined

  constructor(
    client: ClientDialect<R>,
    decode: ReturnType<typeof ClientRequest.decoder<R>>,
    ...[sink, request, now]: Parameters<Make>
  ) {
    this.#client = client
    this.#decode = decode
    this.#sink = sink
    this.#request = request
    this.#body = request.body
    this.#now = now
    this.#part = this.#read()
  }

  /** Whether the current call has started its part of the answer. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  readonly onCut = (usage: Usage): void => {
    this.#reported = usage
    this.#request.onCut?.(usage)
  }

  start(head: Head): void {
    this.#hasStarted = true
    this.#isStream = head.contentType.startsWith("text/event-stream")
    if (this.#isFirst) this.#sink.start(head)
  }

  write(bytes: Uint8Array): boolean {
    if (!this.#isStream) return this.#isFirst ? this.#sink.write(bytes) : true
    this.#wroteAt = this.#now()
    if (!this.#isFirst) return this.#send(this.#part.push(bytes))
    this.#kept.push(bytes)
    this.#keptBytes += bytes.length
    if (this.#keptBytes > maxKeptBytes) this.#readKept()
    return this.#sink.write(bytes)
  }

  onDrain(resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  get wasSilent(): boolean {
    return this.#now() - this.#wroteAt > silenceMs
  }

  readonly resume: Effect.Effect<Uint8Array | undefined> = Effect.gen({ self: this }, function*() {
    const decoded = yield* Effect.result(this.#decode(this.#request))
    if (Result.isFailure(decoded)) return undefined
    const { conversations: [conversation, ...others], request } = decoded.success
    this.#readKept()
    if (conversation === undefined || others.length > 0 || !this.#isPlain(conversation)) return undefined
    const body = this.#prefill(conversation)
    if (body === undefined) return undefined
    if (this.#isFirst && !this.#takeOver(request)) return undefined
    const written = Buffer.byteLength(this.#text.text) - this.#textBytes
    this.#meter(yield* EstimatedUsage.ofBody(this.#body, written))
    this.#text.echo = new EchoFilter(this.#text.text)
    this.#textBytes = Buffer.byteLength(this.#text.text)
    this.#part = this.#read()
    this.#isFirst = false
    this.#hasStarted = false
    return this.#body = body
  })

  end(usage: Usage | undefined): boolean {
    if (!this.#isStream || this.#part.failure() !== undefined) return false
    const read = this.#part.end()
    if (isFailure(read)) return false
    this.#send(typeof read === "function" ? read(usage ?? UsageSum.none) : read)
    return true
  }

  #send(pieces: ReadonlyArray<Uint8Array>): boolean {
    return pieces.map((piece) => this.#sink.write(piece)).every((mayWrite) => mayWrite)
  }

  #read(): TranslatedPart {
    const answer = new TranslatedAnswer({
      encoder: this.#text,
      streams: true,
      headers: {},
      exchanges: 1,
      isTextRequest: false
    })
    const decoder = this.#client.continuation.decoder()
    return new TranslatedPart({ answer, decoder, grammar, firstChoice: 0, provider: "", secrets: [] })
  }

  #readKept(): void {
    for (const bytes of this.#kept) this.#part.push(bytes)
    this.#kept = []
    this.#keptBytes = 0
  }

  #isPlain({ choices, format, modalities = ["text"], turns }: Conversation): boolean {
    const { isPlain, text } = this.#text
    return this.#isStream && isPlain && text.trim() !== "" && text.length <= maxText &&
      this.#part.failure() === undefined && reasonsIn(this.#part.ends()).length === 0 &&
      choices === 1 && format.type === "text" && modalities.every((modality) => modality === "text") &&
      turns.at(-1)?.role !== "assistant"
  }

  /** The client's body with the text so far, and with the rest of its token limit. */
  #prefill({ maxTokens }: Conversation): Uint8Array | undefined {
    const { text } = this.#text
    const body = this.#client.continuation.prefill(this.#request.body, givenOf(text))
    if (body === undefined || maxTokens === undefined) return body
    const left = Math.max(1, maxTokens - EstimatedUsage.ofSizes(0, Buffer.byteLength(text)).outputTokens)
    return limitPaths.reduce(
      (body, path) => JsonText.setAt(body, JsonText.members(body) ?? [], path, left) ?? body,
      body
    )
  }

  /** Prepares to encode the client's frames from here on, in the state that the first call has left. `false` if that is impossible. */
  #takeOver(request: R): boolean {
    const frames = this.#part.ends()
    const first = Json.fields(frames[0])
    const { created, created_at, id, model, modelVersion, responseId, system_fingerprint } = Json.fields(
      first["message"] ?? first["response"] ?? first
    )
    const identity: AnswerIdentity = {
      id: "",
      givenId: Json.string(id) ?? Json.string(responseId),
      created: Json.count(created) ?? Json.count(created_at) ?? 0,
      now: () => Math.floor(this.#now() / 1_000),
      model: Json.string(model) ?? Json.string(modelVersion) ?? this.#request.model,
      fingerprint: Json.string(system_fingerprint)
    }
    const { text } = this.#text
    const { continuation: { takeOver = this.#encoderAfter } } = this.#client
    this.#text.encoder = takeOver(request, identity, text, frames.at(-1))
    return this.#text.encoder !== undefined
  }

  readonly #encoderAfter = (request: R, identity: AnswerIdentity, text: string): AnswerEncoder => {
    const encoder = this.#client.encoder(request, identity)
    encoder.frames({ type: "text", choice: 0, delta: text })
    return encoder
  }

  /** Meters the failed call: what its provider has reported, but at least the text that it wrote. */
  #meter(estimate: Usage): void {
    const { outputTokens } = estimate
    const reported = isReported(this.#reported) ? this.#reported : estimate
    const usage = reported.outputTokens >= outputTokens
      ? reported
      : { ...reported, outputTokens, estimatedTokens: outputTokens }
    this.#reported = undefined
    this.#text.spent = UsageSum.sum(this.#text.spent, usage)
    this.#request.onCut?.(usage)
  }
}
