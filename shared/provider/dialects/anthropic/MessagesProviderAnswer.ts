/** Decodes answers of providers of the messages dialect. */
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import { usageOf } from "./AnthropicUsage.ts"
import * as Json from "../../json/Json.ts"
import type { AnswerDecoder } from "../conversation/Dialect.ts"
import * as FinishReasons from "../finish/FinishReasons.ts"
import type { Citation, FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

interface CallBlock {
  readonly call: number
  /** Some arguments have arrived. */
  begun: boolean
}

export class Decoder implements AnswerDecoder {
  readonly #calls = new Map<unknown, CallBlock>()
  /** The index of the last block, if that is a call which has not ended. */
  #open: unknown
  /** The blocks of tools that the provider runs itself. */
  readonly #foreign = new Set<unknown>()
  /** The sources of the open block, whose text began here. */
  #citations: Array<unknown> = []
  #blockStart = 0
  #textLength = 0
  #finish: FinishReason = "stop"
  #stopSequence: string | undefined
  isComplete = false
  usage: Usage | undefined

  frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    const index = data["index"]
    switch (data["type"]) {
      case "message_start":
        this.usage = usageOf(Json.fields(data["message"])["usage"], this.usage)
        return []
      case "content_block_start":
        return this.#start(index, Json.fields(data["content_block"]))
      case "content_block_delta":
        return this.#delta(index, Json.fields(data["delta"]))
      case "content_block_stop":
        return this.#end(index)
      case "message_delta":
        this.usage = usageOf(data["usage"], this.usage)
        return this.#stop(Json.fields(data["delta"]))
      case "message_stop":
        this.isComplete = true
        return []
      default:
        return []
    }
  }

  whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(answer)) return undefined
    this.usage = usageOf(answer["usage"])
    const stop = this.#stop(answer)
    if (stop === undefined) return undefined
    return [
      ...Json.list(answer["content"]).flatMap((block, index) => [
        ...this.#start(index, Json.fields(block)),
        ...this.#end(index)
      ]),
      ...stop
    ]
  }

  /** Some servers say `end_turn` after a call, as Bedrock's and Kimi's; a stream may lack the end of its last block. */
  last(): ReadonlyArray<ModelEvent> {
    const hasCalls = this.#calls.size > 0 && this.#stopSequence === undefined
    const reason = this.#finish === "stop" && hasCalls ? "tool_calls" : this.#finish
    return [
      ...[...this.#calls.keys()].flatMap((index) => this.#end(index)),
      { type: "finish", choice: 0, reason, stopSequence: this.#stopSequence }
    ]
  }

  /** A block starts, or is complete. Ignores blocks of the provider's own tools, which no client can have enabled. */
  #start(index: unknown, block: Json.Fields): ReadonlyArray<ModelEvent> {
    switch (block["type"]) {
      case "text":
        this.#blockStart = this.#textLength
        this.#citations = [...Json.list(block["citations"])]
        return this.#text(block["text"])
      case "thinking":
        return [...toDelta("reasoning", block["thinking"]), ...toSignature(block["signature"])]
      case "redacted_thinking":
        return toSignature(block["data"], true)
      case "tool_use": {
        const call = this.#calls.size
        const name = Json.string(block["name"]) ?? ""
        this.#calls.set(index, { call, begun: false })
        this.#open = index
        return [
          { type: "toolCall", choice: 0, call, id: Json.string(block["id"]) ?? ToolCalls.newId(), name },
          ...this.#arguments(index, isEmpty(block["input"]) ? "" : JSON.stringify(block["input"]))
        ]
      }
      default:
        this.#foreign.add(index)
        return []
    }
  }

  /** Arguments of a stream. Those under the index of no block belong to the open call; without one, the answer is malformed. */
  #late(index: unknown, delta: string): ReadonlyArray<ModelEvent> | undefined {
    if (this.#foreign.has(index) || delta === "") return []
    const at = this.#calls.has(index) ? index : this.#open
    return this.#calls.has(at) ? this.#arguments(at, delta) : undefined
  }

  #delta(index: unknown, delta: Json.Fields): ReadonlyArray<ModelEvent> | undefined {
    switch (delta["type"]) {
      case "text_delta":
        return this.#text(delta["text"])
      case "citations_delta":
        this.#citations.push(delta["citation"])
        return []
      case "thinking_delta":
        return toDelta("reasoning", delta["thinking"])
      case "signature_delta":
        return toSignature(delta["signature"])
      case "input_json_delta":
        return this.#late(index, Json.string(delta["partial_json"]) ?? "")
      default:
        return []
    }
  }

  #text(text: unknown): ReadonlyArray<ModelEvent> {
    if (typeof text === "string") this.#textLength += text.length
    return toDelta("text", text)
  }

  /** This dialect omits empty arguments, which others send as `{}`. The sources of a block are those of its text. */
  #end(index: unknown): ReadonlyArray<ModelEvent> {
    if (this.#calls.get(index)?.begun === false) return this.#arguments(index, "{}")
    const [start, end] = [this.#blockStart, this.#textLength]
    return this.#citations.splice(0).flatMap((citation) => toCitation(Json.fields(citation), start, end))
  }

  #arguments(index: unknown, delta: string): ReadonlyArray<ModelEvent> {
    const block = this.#calls.get(index)
    if (block === undefined || delta === "") return []
    block.begun = true
    return [{ type: "toolArguments", choice: 0, call: block.call, delta }]
  }

  /** `undefined` if the answer failed. The reason ends an answer, even if `message_stop` is missing. */
  #stop(message: Json.Fields): ReadonlyArray<ModelEvent> | undefined {
    const { stop_reason: given } = message
    if (FinishReasons.isFailure(given)) return undefined
    const reason = FinishReasons.reasonIn(given)
    if (reason !== undefined) {
      this.#finish = FinishReasons.toFinish(reason)
      this.isComplete = true
    }
    if (reason === "stop_sequence") this.#stopSequence = Json.string(message["stop_sequence"])
    return toDelta("refusal", Json.fields(message["stop_details"])["explanation"])
  }
}

/** Documents of the request have no address, and no counterpart in other dialects. */
const toCitation = (
  { cited_text: quote, source, title, url = source }: Json.Fields,
  start: number,
  end: number
): ReadonlyArray<ModelEvent> => {
  if (typeof url !== "string" || !/^https?:/.test(url)) return []
  const citation: Citation = { url, title: Json.string(title) ?? "", start, end, quote: Json.string(quote) ?? "" }
  return [{ type: "citation", choice: 0, citation }]
}

const isEmpty = (input: unknown): boolean => Object.keys(Json.fields(input)).length === 0

const toDelta = (type: "text" | "reasoning" | "refusal", text: unknown): ReadonlyArray<ModelEvent> =>
  typeof text === "string" && text !== "" ? [{ type, choice: 0, delta: text }] : []

const toSignature = (value: unknown, redacted = false): ReadonlyArray<ModelEvent> =>
  typeof value === "string" && value !== ""
    ? [{ type: "signature", choice: 0, signature: { origin: "anthropic", value, ...(redacted ? { redacted } : {}) } }]
    : []
