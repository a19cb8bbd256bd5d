/**
 * The `openai` protocol: any server that speaks the OpenAI dialect. The client speaks it too, so this is a relay: the
 * request goes out byte for byte but for the model's name and `stream_options`, the answer comes back but for the
 * model's alias, and unknown fields pass in both directions.
 */
import { Effect, Option, Redacted } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import { InvalidRequest, type JobError, ProviderFailed } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as TraceParent from "../../telemetry/TraceParent.ts"
import * as Endpoint from "../Endpoint.ts"
import * as JsonText from "../JsonText.ts"
import { type Call, notSupported, type Perform } from "../Protocol.ts"
import type { Sink } from "../Sink.ts"
import type { ExchangeControl, Receiver, Upstream } from "../Upstream.ts"
import { ChatStream } from "./ChatStream.ts"
import { usageOf } from "./OpenAiUsage.ts"
import * as MultipartText from "./MultipartText.ts"
import * as ProviderError from "./ProviderError.ts"

/** Where each operation lives below `baseUrl`. */
const paths: ReadonlyMap<string, string> = new Map([
  ["chat.completions", "/chat/completions"],
  ["completions", "/completions"],
  ["embeddings", "/embeddings"],
  ["engines.embeddings", "/embeddings"],
  ["responses.compact", "/responses/compact"],
  ["rerank", "/rerank"],
  ["audio.speech", "/audio/speech"],
  ["images.generations", "/images/generations"],
  ["images.edits", "/images/edits"]
])

/** JSON answers up to this size are held back until they are whole, so that a broken one can still be tried elsewhere. */
const holdBackBytes = 1024 * 1024

export const make = (upstream: Upstream["Service"]): Perform => (call, sink) =>
  Effect.gen(function*() {
    const { endpoint } = call
    const path = paths.get(call.operation.name)
    if (path === undefined) return yield* notSupported(call)
    const key = Option.map(yield* Endpoint.keyOf(endpoint), Redacted.value)
    const request = isForm(call) ? yield* outgoingForm(call) : outgoing(call)
    const relay = new Relay(call, sink, request.showUsage)
    const traceparent = yield* TraceParent.current
    yield* upstream.exchange({
      provider: endpoint.name,
      url: Endpoint.urlOf(endpoint, path),
      headers: {
        "content-type": call.contentType,
        "accept": request.streams ? "text/event-stream" : "application/json",
        ...(Option.isSome(key) ? { authorization: `Bearer ${key.value}` } : {}),
        ...(traceparent === undefined ? {} : { traceparent })
      },
      body: request.body,
      ...Endpoint.timeoutsOf(endpoint)
    }, (control) => relay.receiver(control))
    const secrets = [Option.getOrElse(key, () => ""), endpoint.provider.baseUrl ?? ""]
    return yield* relay.finish(secrets)
  })

interface Outgoing {
  readonly body: Uint8Array
  readonly streams: boolean
  /** The client asked for usage in the stream. */
  readonly showUsage: boolean
}

const isForm = ({ contentType }: Call): boolean => /^multipart\/form-data\s*;/i.test(contentType)

/** The client's form with the provider's name of the model. */
const outgoingForm = (call: Call): Effect.Effect<Outgoing, InvalidRequest> => {
  const { model } = call.endpoint
  const body = model === call.model ? call.body : MultipartText.setField(call.body, call.contentType, "model", model)
  return body === undefined
    ? Effect.fail(
      new InvalidRequest({ message: "model: cannot be found in the form", param: "model", code: "invalid_form" })
    )
    : Effect.succeed({ body, streams: false, showUsage: false })
}

/** The client's body with the provider's name of the model, and with usage asked for so that it can be metered. */
const outgoing = (call: Call): Outgoing => {
  const members = JsonText.members(call.body) ?? []
  const streams = JsonText.valueOf(call.body, members, "stream") === true
  const changes = new Map<string, unknown>()
  // where the path named the model, the body need not name it, or not the same
  if (JsonText.valueOf(call.body, members, "model") !== call.endpoint.model) changes.set("model", call.endpoint.model)
  let showUsage = false
  if (streams) {
    const asked = JsonText.valueOf(call.body, members, "stream_options")
    const options = typeof asked === "object" && asked !== null ? asked : {}
    showUsage = "include_usage" in options && options.include_usage === true
    if (!showUsage) changes.set("stream_options", { ...options, include_usage: true })
  }
  return { body: changes.size === 0 ? call.body : JsonText.setMembers(call.body, members, changes), streams, showUsage }
}

/** One answer on its way from the provider to the sink. */
class Relay {
  readonly #call: Call
  readonly #sink: Sink
  readonly #stream: ChatStream
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #contentType = "application/json"
  #kind: "error" | "stream" | "json" | "passing" = "json"
  #held: Array<Uint8Array> = []
  #heldBytes = 0

  constructor(call: Call, sink: Sink, showUsage: boolean) {
    this.#call = call
    this.#sink = sink
    this.#stream = new ChatStream({ showUsage, alias: this.#alias })
  }

  get #alias(): string | undefined {
    return this.#call.endpoint.model === this.#call.model ? undefined : this.#call.model
  }

  receiver(control: ExchangeControl): Receiver {
    return {
      onHead: (status, headers) => {
        this.#status = status
        this.#headers = headers
        this.#contentType = headers["content-type"] ?? this.#contentType
        if (status < 200 || status >= 300) this.#kind = "error"
        else if (this.#contentType.includes("text/event-stream")) this.#kind = "stream"
        else if (!this.#contentType.includes("json") && this.#call.operation.responseType !== undefined) {
          this.#kind = "passing"
        }
      },
      onData: (chunk) => {
        switch (this.#kind) {
          case "stream":
            return this.#onStream(chunk, control)
          case "error":
            if (this.#heldBytes < ProviderError.maxErrorBytes) this.#hold(chunk)
            return
          case "json":
            this.#hold(chunk)
            if (this.#heldBytes > holdBackBytes) this.#release(control)
            return
          case "passing":
            return this.#write(chunk, control)
        }
      }
    }
  }

  /** What the whole answer came to, once the exchange has ended. */
  finish(secrets: ReadonlyArray<string>): Effect.Effect<Usage | undefined, JobError> {
    switch (this.#kind) {
      case "error": {
        const body = Buffer.concat(this.#held).toString()
        const { name } = this.#call.endpoint
        return Effect.flatMap(ProviderError.fromAnswer(name, this.#status, this.#headers, body, secrets), Effect.fail)
      }
      case "stream":
        return this.#finishStream()
      case "passing":
        return Effect.undefined
      case "json":
        return this.#finishJson()
    }
  }

  #onStream(chunk: Uint8Array, control: ExchangeControl): void {
    const frames = this.#stream.push(chunk)
    if (typeof frames === "string") return control.fail(this.#failed(frames))
    for (const frame of frames) this.#write(frame, control)
  }

  #finishStream(): Effect.Effect<Usage | undefined, JobError> {
    const last = this.#stream.end()
    if (last === "error") return Effect.fail(this.#failed("error"))
    if (!this.#stream.isComplete) return Effect.fail(this.#failed("cut"))
    if (!this.#sink.started) this.#start()
    if (last !== undefined) this.#sink.write(last)
    return Effect.succeed(this.#stream.usage)
  }

  #finishJson(): Effect.Effect<Usage | undefined, JobError> {
    const body = Buffer.concat(this.#held)
    const members = JsonText.members(body)
    if (members === undefined) return Effect.fail(this.#failed("malformed"))
    // some providers say 200 and mean it not
    const error = JsonText.valueOf(body, members, "error")
    if (error !== undefined && error !== null) return Effect.fail(this.#failed("error"))
    // pictures come without the name of a model, and get none
    const alias = members.some(({ name }) => name === "model") ? this.#alias : undefined
    this.#start()
    this.#sink.write(alias === undefined ? body : JsonText.setMembers(body, members, new Map([["model", alias]])))
    return Effect.succeed(usageOf(JsonText.valueOf(body, members, "usage")))
  }

  #hold(chunk: Uint8Array): void {
    this.#held.push(chunk)
    this.#heldBytes += chunk.length
  }

  /** An answer too large to hold: from here on it passes as it comes. */
  #release(control: ExchangeControl): void {
    this.#kind = "passing"
    for (const chunk of this.#held) this.#write(chunk, control)
    this.#held = []
  }

  #write(bytes: Uint8Array, control: ExchangeControl): void {
    if (!this.#sink.started) this.#start()
    if (this.#sink.write(bytes)) return
    control.pause()
    this.#sink.onDrain(control.resume)
  }

  #start(): void {
    this.#sink.start({ status: this.#status, contentType: this.#contentType, headers: {} })
  }

  #failed(reason: "cut" | "malformed" | "error"): JobError {
    return new ProviderFailed({ provider: this.#call.endpoint.name, reason, status: null, retryAfterMs: null })
  }
}
