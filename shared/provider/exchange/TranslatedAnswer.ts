/**
 * Translates the answer for a client whose dialect is not the provider's: every piece is decoded to events, which are encoded in the
 * client's dialect. Several exchanges may contribute to one answer, each with choices of its own.
 */
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"
import { isReported, type Usage } from "../../contract/Usage.ts"
import type { AnswerDecoder, AnswerEncoder } from "../dialects/conversation/Dialect.ts"
import type { ModelEvent } from "../dialects/conversation/ModelEvent.ts"
import * as Signature from "../dialects/conversation/Signature.ts"
import * as TextUsage from "../dialects/conversation/TextUsage.ts"
import * as UsageSum from "../../contract/UsageSum.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Json from "../json/Json.ts"
import type { Head } from "../transport/Sink.ts"
import { dataOf, maxFrameBytes, SseFrames } from "../../bounds/SseFrames.ts"
import { type AnswerGrammar, ContentWatch, isDone, textIn } from "./AnswerGrammar.ts"
import { type AnswerReader, maxWholeBytes, type Read } from "./AnswerReader.ts"
import { Ends, type Piece } from "./ResponseMetadata.ts"
import * as ProviderError from "./ProviderError.ts"

const utf8 = new TextEncoder()
const text = new TextDecoder()

export interface TranslatedAnswerOptions {
  readonly encoder: AnswerEncoder
  /** Whether the client wants a stream. */
  readonly streams: boolean
  readonly headers: Readonly<Record<string, string>>
  /** Number of exchanges that make the answer. */
  readonly exchanges: number
  /** Whether the request has only text. */
  readonly isTextRequest: boolean
}

/** The state shared by the exchanges of one answer. */
export class TranslatedAnswer {
  readonly #options: TranslatedAnswerOptions
  readonly #events: Array<ModelEvent> = []
  #open: number
  #hasMedia = false
  #usage: Usage | undefined

  constructor(options: TranslatedAnswerOptions) {
    this.#options = options
    this.#open = options.exchanges
  }

  get head(): Head {
    const { headers, streams } = this.#options
    return { status: 200, contentType: streams ? "text/event-stream" : "application/json", headers }
  }

  /** Whether the answer is held until it is complete. */
  get isHeld(): boolean {
    return !this.#options.streams
  }

  /** The usage of all exchanges that have ended. */
  get usage(): Usage | undefined {
    return this.#usage && TextUsage.complete(this.#usage, this.#options.isTextRequest, !this.#hasMedia)
  }

  take(events: ReadonlyArray<ModelEvent>): ReadonlyArray<Uint8Array> {
    this.#hasMedia ||= events.some(({ type }) => type === "media")
    if (!this.#options.streams) {
      for (const event of events) this.#events.push(event)
      return []
    }
    let frames = ""
    for (const event of events) frames += this.#options.encoder.frames(event)
    return frames === "" ? [] : [utf8.encode(frames)]
  }

  /** One exchange has ended. The last one ends the answer. */
  end(events: ReadonlyArray<ModelEvent>, usage: Usage): ReadonlyArray<Uint8Array> {
    this.#usage = UsageSum.sum(this.#usage, usage)
    const pieces = this.take(events)
    if (--this.#open > 0) return pieces
    const last = this.take([{ type: "usage", usage: this.usage ?? UsageSum.none }])
    const { encoder, streams } = this.#options
    const end = streams ? encoder.lastFrames() : JSON.stringify(encoder.body(this.#events))
    return [...pieces, ...last, utf8.encode(end)]
  }
}

export interface TranslatedPartOptions {
  readonly answer: TranslatedAnswer
  readonly decoder: AnswerDecoder
  readonly grammar: AnswerGrammar
  /** The number of this exchange's first choice. */
  readonly firstChoice: number
  readonly provider: string
  /** Texts that no error may reveal. */
  readonly secrets: ReadonlyArray<string>
  /** The account at the provider. Absent if the answer is the gateway's own, whose signatures are marked already. */
  readonly account?: () => string
}

export class TranslatedPart implements AnswerReader {
  readonly #options: TranslatedPartOptions
  readonly #frames = new SseFrames()
  readonly #content: ContentWatch
  readonly #pieces = new Ends<Piece>()
  /** The pieces with new text. */
  readonly #texts: Ends<Piece>
  #terminated = false
  #bytes = 0
  #failure: JobError | undefined

  constructor(options: TranslatedPartOptions) {
    this.#options = options
    this.#content = new ContentWatch(options.grammar)
    this.#texts = options.grammar.newText === undefined ? this.#pieces : new Ends()
  }

  head(): Head {
    return this.#options.answer.head
  }

  inForm(): AnswerReader {
    return this
  }

  holdBytes(): number {
    return maxWholeBytes
  }

  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    const events: Array<ModelEvent> = []
    for (const frame of this.#frames.push(chunk)) {
      this.#failure = this.#read(frame, events)
      if (this.#failure !== undefined) break
    }
    this.#bytes += chunk.length
    const isTooLarge = this.#options.answer.isHeld && this.#bytes > maxWholeBytes
    if (isTooLarge || this.#frames.restBytes > maxFrameBytes) this.#failure ??= this.#failed("malformed")
    return this.#options.answer.take(events)
  }

  failure(): JobError | undefined {
    return this.#failure
  }

  /** The last frame may lack its blank line; an incomplete frame is dropped. */
  end(): Read {
    const { decoder } = this.#options
    const events: Array<ModelEvent> = []
    const { rest } = this.#frames
    const failure = rest.length === 0 ? undefined : this.#read(rest, events)
    const isCut = failure?._tag === "ProviderFailed" && failure.reason === "malformed"
    if (failure !== undefined && !isCut) return failure
    const hasEnded = decoder.isComplete || (this.#terminated && decoder.mayEnd !== false)
    if (this.#content.isAfterGap || !hasEnded) return this.#failed("cut")
    return this.#last([...events, ...this.#marked(decoder.last())])
  }

  whole(body: Uint8Array): Read {
    const { decoder, grammar, provider, secrets } = this.#options
    const json = Json.parseExact(text.decode(body))
    this.#pieces.pass({ size: body.length, json })
    if (grammar.newText !== undefined) this.#texts.pass({ size: body.length, json: textIn(grammar, json) })
    if (isError(json)) return ProviderError.inAnswer(provider, json, secrets)
    const events = decoder.whole(json)
    if (events === undefined || !decoder.isComplete) return this.#failed("malformed")
    return this.#last(this.#marked([...events, ...decoder.last()]))
  }

  textBytes(): number {
    return this.#texts.textBytes
  }

  usage(): Usage | undefined {
    return this.#options.decoder.usage
  }

  ends(): ReadonlyArray<unknown> {
    return this.#pieces.all.map(({ json }) => json)
  }

  #last(events: ReadonlyArray<ModelEvent>): Read {
    const { answer, decoder: { usage } } = this.#options
    return isReported(usage) ? answer.end(events, usage) : (estimate) => answer.end(events, estimate)
  }

  #read(frame: Uint8Array, events: Array<ModelEvent>): JobError | undefined {
    const data = dataOf(frame)
    // a comment or an event without data
    if (data === undefined) return undefined
    const { decoder, grammar, provider, secrets } = this.#options
    if (isDone(data)) {
      this.#terminated ||= grammar.done === "ends"
      return undefined
    }
    const json = Json.parseExact(text.decode(data))
    if (json === undefined && this.#content.skip(data, this.#pieces.last.map(({ json }) => Json.fields(json)))) {
      Metrics.update(Metrics.skippedChunks(provider), 1)
      return undefined
    }
    const piece = { size: data.length, json }
    this.#pieces.pass(piece)
    if (grammar.newText?.data.test(Buffer.from(data).toString("latin1")) === true) this.#texts.pass(piece)
    if (isError(json)) return ProviderError.inAnswer(provider, json, secrets)
    const decoded = decoder.frame(json)
    if (decoded === undefined || (this.#content.isAfterGap && !this.#content.see(Json.fields(json)))) {
      return this.#failed("malformed")
    }
    for (const event of this.#marked(decoded)) events.push(event)
    return undefined
  }

  /** The events with the numbers of their choices in the whole answer, and the signatures with their account. */
  #marked(events: ReadonlyArray<ModelEvent>): ReadonlyArray<ModelEvent> {
    const { account, firstChoice } = this.#options
    if (firstChoice === 0 && (account === undefined || !events.some(isSignature))) return events
    return events.map((event) => {
      if (event.type === "usage") return event
      const numbered = firstChoice === 0 ? event : { ...event, choice: event.choice + firstChoice }
      return account !== undefined && isSignature(numbered)
        ? { ...numbered, signature: Signature.madeBy(account, numbered.signature) }
        : numbered
    })
  }

  #failed(reason: "cut" | "malformed"): JobError {
    return new ProviderFailed({ provider: this.#options.provider, reason })
  }
}

const isSignature = (event: ModelEvent): event is Extract<ModelEvent, { readonly type: "signature" }> =>
  event.type === "signature"

/** Whether an event reports an error. In the responses dialect, the event or its response does; in Cohere's, the message's end. */
const isError = (json: unknown): boolean => {
  const { delta, error, response, type } = Json.fields(json)
  const reported = error ?? Json.fields(response)["error"] ?? Json.fields(delta)["error"] ?? null
  return reported !== null || type === "error"
}
