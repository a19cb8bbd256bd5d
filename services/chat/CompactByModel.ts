/**
 * Compacts conversations for models whose provider cannot: one call to the model writes a summary. Also answers requests for a
 * response whose last item is a `compaction_trigger`.
 */
import { Effect } from "effect"
import { type JobError, ProviderFailed } from "../../shared/contract/JobError.ts"
import { compaction } from "../../shared/contract/operations/Compaction.ts"
import { responses, ResponsesRequest } from "../../shared/contract/operations/Responses.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import * as UsageSum from "../../shared/contract/UsageSum.ts"
import * as PaidParts from "../../shared/provider/call/PaidParts.ts"
import type { Call, Perform } from "../../shared/provider/call/Protocol.ts"
import { decoder } from "../../shared/provider/call/RequestBody.ts"
import * as TranslationWarnings from "../../shared/provider/call/TranslationWarnings.ts"
import { newIdentity } from "../../shared/provider/dialects/conversation/Dialect.ts"
import { Encoder } from "../../shared/provider/dialects/responses/ResponsesAnswer.ts"
import * as Json from "../../shared/provider/json/Json.ts"
import * as JsonText from "../../shared/provider/json/JsonText.ts"
import { isServedByResponses } from "../../shared/provider/protocols/openai/OpenAiResponses.ts"
import type { Sink } from "../../shared/provider/transport/Sink.ts"
import * as Compact from "./Compact.ts"
import type { Compactions } from "./state/Compactions.ts"
import { extract, type Source, type Summarise } from "./Summary.ts"

const task =
  "Summarise the conversation below for a model that will continue it without seeing it. Keep the user's goals and " +
  "constraints, what was decided and done, the facts, names, paths and values that later work needs, and what is left to do. " +
  "Answer with the summary alone, in the language of the conversation."

/** The names of the authors in a transcript. */
const authors: Readonly<Record<Source["origin"], string>> = {
  instructions: "Instructions",
  user: "User",
  assistant: "Assistant",
  tool: "Tools"
}

/** Keeps an answer instead of sending it. */
class Kept implements Sink {
  hasStarted = false
  readonly #pieces: Array<Uint8Array> = []

  start(): void {
    this.hasStarted = true
  }

  write(bytes: Uint8Array): boolean {
    this.#pieces.push(bytes)
    return true
  }

  /** Never called, because `write` always accepts more. */
  onDrain(): void {}

  get json(): Json.Fields {
    return Json.fields(Json.parse(Buffer.concat(this.#pieces).toString()))
  }
}

const textIn = ({ output }: Json.Fields): string =>
  Json.list(output).flatMap((item) => Json.list(Json.fields(item)["content"]))
    .map((part) => Json.string(Json.fields(part)["text"]) ?? "").join("")

/** A call to the same model with another request. */
const withBody = (call: Call, operation: Call["operation"], body: object): Call => ({
  ...call,
  operation,
  contentType: "application/json",
  body: Buffer.from(JSON.stringify({ model: call.model, ...body })),
  isPlain: true
})

/** Sends the conversation as a transcript, because providers reject calls of tools that the request does not define. */
const summariseBy = (perform: Perform): Summarise =>
  Effect.fnUntraced(function*(call, sources, instructions) {
    const focus = instructions === "" ? "" : `\n\nFollow these instructions for the summary:\n${instructions}`
    const input = sources.map(({ origin, text }) => `${authors[origin]}:\n${text}`).join("\n\n")
    const kept = new Kept()
    const usage = yield* perform(withBody(call, responses, { instructions: `${task}${focus}`, input }), kept)
    const text = textIn(kept.json)
    const isEmpty = ProviderFailed.malformed(call.endpoint.name, "the summary is empty")
    if (text === "") return yield* PaidParts.after(call, usage, Effect.fail(isEmpty))
    return { text, usage: usage ?? UsageSum.none }
  })

const decode = decoder(ResponsesRequest)
const trigger = "compaction_trigger"

/** Whether the last item of a request is a trigger. */
const isTriggered = ({ body, operation }: Call): boolean => {
  if (operation.name !== responses.name) return false
  if (!Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(trigger)) return false
  const input = Json.list(JsonText.valueOf(body, JsonText.members(body) ?? [], "input"))
  return Json.fields(input.at(-1))["type"] === trigger
}

/** Answers with a response whose only item is the compaction of the items before the trigger. */
const respond = Effect.fnUntraced(function*(
  call: Call,
  sink: Sink,
  summarise: Summarise,
  compactions: Compactions["Service"]
): Effect.fn.Return<Usage, JobError> {
  const request = yield* decode(call)
  const input = Json.list(JsonText.valueOf(call.body, JsonText.members(call.body) ?? [], "input")).slice(0, -1)
  const compacted = yield* Compact.compact(withBody(call, compaction, { input }), summarise, compactions)
  const encoder = new Encoder(request, yield* newIdentity(call.answersAs))
  const item = encoder.wholeItem(compacted.output.at(-1) ?? {})
  const end = encoder.frames({ type: "usage", usage: compacted.usage })
  const isStream = request.stream === true
  const contentType = isStream ? "text/event-stream" : "application/json"
  sink.start({ status: 200, contentType, headers: TranslationWarnings.toHeaders(compacted.warnings) })
  sink.write(Buffer.from(isStream ? item + end + encoder.lastFrames() : JSON.stringify(encoder.body([]))))
  return compacted.usage
})

/** Adds compactions to a protocol, unless the provider or the built-in engine makes them itself. */
export const around = (compactions: Compactions["Service"]) => (perform: Perform): Perform => {
  const summarise = summariseBy(perform)
  const compact = Compact.make(compactions, summarise)
  return (call, sink) => {
    if (isServedByResponses(call)) return perform(call, sink)
    const isLocal = call.endpoint.provider.protocol === "local"
    if (isTriggered(call)) return respond(call, sink, isLocal ? extract : summarise, compactions)
    return !isLocal && call.operation.name === compaction.name ? compact(call, sink) : perform(call, sink)
  }
}
