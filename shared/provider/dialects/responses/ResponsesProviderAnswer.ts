/** Decodes answers of providers of the responses dialect. The text of a custom tool's call becomes its arguments. */
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"
import { fromUrlCitation } from "../openai/UrlCitation.ts"
import type { AnswerDecoder } from "../conversation/Dialect.ts"
import type { FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"
import { usageOf } from "../openai/OpenAiUsage.ts"

/** An item of the output. Its end repeats its deltas. */
interface Streamed {
  /** The number of the call, if it is one. */
  readonly call: number | undefined
  hasDeltas: boolean
  /** The parts whose deltas have arrived: the end of a part repeats them. */
  readonly parts: Set<unknown>
  /** Whether the whole item has arrived: the end of the response repeats it. */
  hasEnded: boolean
  /** The length of the text before it. */
  readonly start: number
}

type Delta = "text" | "refusal" | "reasoning" | "toolArguments"

/** The events with a whole text, which some servers send without its deltas. */
const wholes: ReadonlyMap<unknown, readonly [Delta, field: string]> = new Map([
  ["response.output_text.done", ["text", "text"]],
  ["response.refusal.done", ["refusal", "refusal"]],
  ["response.reasoning_summary_text.done", ["reasoning", "text"]],
  ["response.reasoning_text.done", ["reasoning", "text"]],
  ["response.function_call_arguments.done", ["toolArguments", "arguments"]],
  ["response.custom_tool_call_input.done", ["toolArguments", "input"]]
])

export class Decoder implements AnswerDecoder {
  /** By their place in the output, and by their ids. */
  readonly #items = new Map<unknown, Streamed>()
  #calls = 0
  /** The key of the last call. */
  #lastCall: unknown
  #textLength = 0
  #hasRefused = false
  #reason: FinishReason | undefined
  isComplete = false
  usage: Usage | undefined

  frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    const { item, item_id: id } = data
    const index = this.#placeOf(data["output_index"], id ?? Json.fields(item)["id"])
    const part = data["content_index"] ?? data["summary_index"]
    const [type, field = ""] = wholes.get(data["type"]) ?? []
    if (type === "toolArguments") return this.#late(index, data[field], true)
    if (type !== undefined) {
      return this.#items.get(index)?.parts.has(part) === true ? [] : this.#delta(index, type, data[field], part)
    }
    switch (data["type"]) {
      case "response.output_item.added":
        return this.#items.has(index) ? [] : this.#start(index, Json.fields(item))
      case "response.output_text.delta":
        return this.#delta(index, "text", data["delta"], part)
      case "response.refusal.delta":
        return this.#delta(index, "refusal", data["delta"], part)
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#delta(index, "reasoning", data["delta"], part)
      case "response.reasoning_summary_part.added":
        return this.#delta(index, "reasoning", data["summary_index"] === 0 ? "" : "\n\n")
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return this.#late(index, data["delta"])
      case "response.output_item.done":
        return this.#end(index, Json.fields(item))
      case "response.completed":
      case "response.incomplete":
        this.#finish(Json.fields(data["response"]))
        return this.#rest(Json.list(Json.fields(data["response"])["output"]).map(Json.fields))
      default:
        return []
    }
  }

  whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(answer)) return undefined
    this.#finish(answer)
    return Json.list(answer["output"]).flatMap((item, index) => this.#end(index, Json.fields(item)))
  }

  last(): ReadonlyArray<ModelEvent> {
    const usual = this.#hasRefused ? "content_filter" : this.#calls > 0 ? "tool_calls" : "stop"
    return [{ type: "finish", choice: 0, reason: this.#reason ?? usual }]
  }

  /** The key of an item. Some servers number the deltas of an item differently, but repeat its id. */
  #placeOf(index: unknown, id: unknown): unknown {
    return typeof id === "string" && this.#items.has(id) ? id : index
  }

  /** Arguments of a call. Those of no item belong to the last call; without one, the answer is malformed. */
  #late(index: unknown, delta: unknown, areWhole = false): ReadonlyArray<ModelEvent> | undefined {
    const item = this.#items.get(index)
    if (areWhole && (item ?? this.#items.get(this.#lastCall))?.hasDeltas === true) return []
    // tools of the provider have arguments as well
    if (item !== undefined && item.call === undefined) return []
    if (item === undefined && this.#lastCall === undefined) return delta === "" ? [] : undefined
    return this.#delta(item === undefined ? this.#lastCall : index, "toolArguments", delta)
  }

  #start(index: unknown, item: Json.Fields): ReadonlyArray<ModelEvent> {
    const isCall = item["type"] === "function_call" || item["type"] === "custom_tool_call"
    const streamed = {
      call: isCall ? this.#calls++ : undefined,
      hasDeltas: false,
      parts: new Set(),
      hasEnded: false,
      start: this.#textLength
    }
    for (const key of [index, item["id"]]) if (key !== undefined) this.#items.set(key, streamed)
    if (!isCall) return []
    this.#lastCall = index
    const id = Json.string(item["call_id"]) ?? ToolCalls.newId()
    return [{ type: "toolCall", choice: 0, call: this.#calls - 1, id, name: Json.string(item["name"]) ?? "" }]
  }

  #delta(
    index: unknown,
    type: Delta,
    delta: unknown,
    part?: unknown
  ): ReadonlyArray<ModelEvent> {
    if (typeof delta !== "string" || delta === "") return []
    if (!this.#items.has(index)) this.#start(index, {})
    const item = this.#items.get(index)
    if (item !== undefined) {
      item.hasDeltas = true
      item.parts.add(part)
    }
    if (type === "refusal") this.#hasRefused = true
    if (type === "text") this.#textLength += delta.length
    if (type !== "toolArguments") return [{ type, choice: 0, delta }]
    return item?.call === undefined ? [] : [{ type, choice: 0, call: item.call, delta }]
  }

  /** The items that some servers send only with the whole response. */
  #rest(output: ReadonlyArray<Json.Fields>): ReadonlyArray<ModelEvent> {
    const isSilent = [...this.#items.values()].every(({ hasDeltas, hasEnded }) => !hasDeltas && !hasEnded)
    return output.flatMap((item, index) => {
      const place = this.#placeOf(index, item["id"])
      const { hasDeltas, hasEnded } = this.#items.get(place) ?? { hasDeltas: false, hasEnded: !isSilent }
      return hasDeltas || hasEnded ? [] : this.#end(place, item)
    })
  }

  /** A whole item: what no delta has brought. */
  #end(index: unknown, item: Json.Fields): ReadonlyArray<ModelEvent> {
    const started = this.#items.has(index) ? [] : this.#start(index, item)
    const streamed = this.#items.get(index)
    const { hasDeltas = false, start = 0 } = streamed ?? {}
    if (streamed !== undefined) streamed.hasEnded = true
    const rest = (type: Delta, text: unknown) => hasDeltas ? [] : this.#delta(index, type, text)
    switch (item["type"]) {
      case "message": {
        let base = start
        return Json.list(item["content"]).map(Json.fields).flatMap(({ annotations, refusal, text }) => {
          const citations = Json.list(annotations).flatMap((annotation) => fromUrlCitation(annotation, base))
          base += Json.string(text)?.length ?? 0
          return [
            ...rest("text", text),
            ...citations.map((citation): ModelEvent => ({ type: "citation", choice: 0, citation })),
            ...rest("refusal", refusal)
          ]
        })
      }
      case "reasoning":
        return [...rest("reasoning", textIn(item["summary"]) || textIn(item["content"])), ...toSignature(item)]
      case "function_call":
        return [...started, ...rest("toolArguments", item["arguments"])]
      case "custom_tool_call":
        return [...started, ...rest("toolArguments", item["input"])]
      case "image_generation_call": {
        const { output_format: format, result } = item
        const mediaType = `image/${Json.string(format) ?? "png"}`
        return typeof result === "string" ? [{ type: "media", choice: 0, mediaType, data: result }] : []
      }
      default:
        // tools of the provider, which no client can have enabled
        return []
    }
  }

  #finish({ incomplete_details: details, status, usage }: Json.Fields): void {
    this.usage = usageOf(usage) ?? this.usage
    this.isComplete = status !== "in_progress" && status !== "queued"
    if (status !== "incomplete") return
    this.#reason = Json.fields(details)["reason"] === "content_filter" ? "content_filter" : "length"
  }
}

const textIn = (parts: unknown): string =>
  Json.list(parts).map((part) => Json.string(Json.fields(part)["text"]) ?? "").join("\n\n")

const toSignature = ({ encrypted_content: value }: Json.Fields): ReadonlyArray<ModelEvent> =>
  typeof value === "string" && value !== ""
    ? [{ type: "signature", choice: 0, signature: { origin: "responses", value } }]
    : []
