/**
 * Accepts requests in the responses format at the path of chat completions, as Cursor sends them, and answers with a chat
 * completion. Cursor expects every tool call to be a function call. A custom tool's call is therefore answered as a function
 * call whose arguments are the tool's input text. Later requests repeat it in this form.
 */
import { Deferred, Effect, Exit, Predicate } from "effect"
import { InvalidRequest, type JobError, ProviderFailed } from "../../shared/contract/JobError.ts"
import { chatCompletions } from "../../shared/contract/operations/ChatCompletions.ts"
import { responses } from "../../shared/contract/operations/Responses.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import * as UsageSum from "../../shared/contract/UsageSum.ts"
import type { Call, Perform } from "../../shared/provider/call/Protocol.ts"
import { turnFor } from "../../shared/provider/call/RequestBody.ts"
import { maxWholeBytes } from "../../shared/provider/exchange/AnswerReader.ts"
import { type AnswerEncoder, newIdentity } from "../../shared/provider/dialects/conversation/Dialect.ts"
import type { ModelEvent } from "../../shared/provider/dialects/conversation/ModelEvent.ts"
import { encoder } from "../../shared/provider/dialects/openai/ChatCompletionsAnswer.ts"
import { Decoder } from "../../shared/provider/dialects/responses/ResponsesProviderAnswer.ts"
import * as Json from "../../shared/provider/json/Json.ts"
import * as JsonText from "../../shared/provider/json/JsonText.ts"
import type { Head, Sink } from "../../shared/provider/transport/Sink.ts"
import { dataOf, SseFrames } from "../../shared/bounds/SseFrames.ts"

const mark = Buffer.from("\"input\"")
const { has, lacks } = chatCompletions.alternative

const isOfItems = ({ body, operation }: Call): boolean => {
  if (operation.name !== chatCompletions.name) return false
  if (!Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(mark)) return false
  const names = new Set(JsonText.members(body)?.map(({ name }) => name))
  return names.has(has) && !names.has(lacks)
}

// Requests

/** Restores the calls of custom tools, which Cursor repeats as function calls. */
const withCustomCalls = (input: unknown, tools: unknown): unknown => {
  const custom = new Set(
    Json.list(tools).map(Json.fields).flatMap(({ name, type }) => type === "custom" ? [name] : [])
  )
  if (custom.size === 0 || !Array.isArray(input)) return input
  const calls = new Set<unknown>()
  return input.map((item: unknown) => {
    if (!Predicate.isReadonlyObject(item)) return item
    const { arguments: text, ...call } = item
    if (item["type"] === "function_call" && custom.has(item["name"])) {
      calls.add(item["call_id"])
      return { ...call, type: "custom_tool_call", input: text }
    }
    return item["type"] === "function_call_output" && calls.has(item["call_id"])
      ? { ...item, type: "custom_tool_call_output" }
      : item
  })
}

/** Settings of chat completions that the responses format lacks. */
const foreign = ["stream_options"]

const toResponses = (call: Call, body: Json.Fields): Call => {
  const kept = Object.fromEntries(Object.entries(body).filter(([name]) => !foreign.includes(name)))
  const input = withCustomCalls(body["input"], body["tools"])
  const bytes = Buffer.from(JSON.stringify({ ...kept, input, store: false }))
  return { ...call, operation: responses, body: bytes }
}

// Answers

const text = new TextDecoder()

/** Turns a response, or its events, into a chat completion. */
class ChatSink implements Sink {
  readonly #sink: Sink
  readonly #encoder: AnswerEncoder
  readonly #decoder = new Decoder()
  readonly #frames = new SseFrames()
  #head: Head | undefined
  /** The pieces of an answer that is not streamed. */
  readonly #pieces: Array<Uint8Array> = []
  #heldBytes = 0
  readonly #onTooLarge: () => void

  /** `onTooLarge` is called if the answer is too large to be held as a whole. Its caller must end it then. */
  constructor(sink: Sink, encoder: AnswerEncoder, onTooLarge: () => void) {
    this.#sink = sink
    this.#encoder = encoder
    this.#onTooLarge = onTooLarge
  }

  get hasStarted(): boolean {
    return this.#head !== undefined
  }

  get #isStream(): boolean {
    return this.#head?.contentType.includes("text/event-stream") === true
  }

  start(head: Head): void {
    this.#head = head
    if (this.#isStream) this.#sink.start(head)
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isStream) return this.#send(this.#frames.push(bytes).flatMap((frame) => this.#read(frame)))
    this.#heldBytes += bytes.length
    if (this.#heldBytes > maxWholeBytes) {
      this.#onTooLarge()
      return false
    }
    this.#pieces.push(bytes)
    return true
  }

  onDrain(resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  /** Writes the end of the answer. */
  end(usage: Usage): void {
    const last = (): ReadonlyArray<ModelEvent> => [...this.#decoder.last(), { type: "usage", usage }]
    if (this.#isStream) {
      this.#send([...this.#read(this.#frames.rest), ...last()])
      this.#sink.write(Buffer.from(this.#encoder.lastFrames()))
    } else if (this.#head !== undefined) {
      const events = this.#decoder.whole(Json.parseExact(text.decode(Buffer.concat(this.#pieces)))) ?? []
      this.#sink.start(this.#head)
      this.#sink.write(Buffer.from(JSON.stringify(this.#encoder.body([...events, ...last()]))))
    }
  }

  #read(frame: Uint8Array): ReadonlyArray<ModelEvent> {
    const data = dataOf(frame)
    return data === undefined ? [] : this.#decoder.frame(Json.parseExact(text.decode(data))) ?? []
  }

  #send(events: ReadonlyArray<ModelEvent>): boolean {
    const frames = events.map((event) => this.#encoder.frames(event)).join("")
    return frames === "" || this.#sink.write(Buffer.from(frames))
  }
}

export const around = (perform: Perform): Perform => (call, sink) =>
  isOfItems(call) ? answer(perform, call, sink) : perform(call, sink)

const answer = Effect.fnUntraced(function*(perform: Perform, call: Call, sink: Sink) {
  yield* turnFor(call)
  const body = Json.fields(Json.parseExact(text.decode(call.body)))
  if ((body["previous_response_id"] ?? "") !== "") {
    return yield* InvalidRequest.at("previous_response_id", "is not available here: send all items in `input`")
  }
  const includeUsage = Json.fields(body["stream_options"])["include_usage"] === true
  const tooLarge = Deferred.makeUnsafe<never, JobError>()
  const settings = { includeUsage, customTools: new Set<string>() }
  const chat = new ChatSink(sink, encoder(yield* newIdentity(call.answersAs), settings), () => {
    Deferred.doneUnsafe(tooLarge, Exit.fail(ProviderFailed.malformed(call.endpoint.name, "it is too large")))
  })
  const usage = yield* Effect.raceFirst(perform(toResponses(call, body), chat), Deferred.await(tooLarge))
  chat.end(usage ?? UsageSum.none)
  return usage
})
