/** Decodes answers of Cohere's chat API. */
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"
import type { AnswerDecoder } from "../conversation/Dialect.ts"
import type { FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

export class Decoder implements AnswerDecoder {
  #calls = 0
  /** The open call has arguments. */
  #hasArguments = true
  /** Where the text of each block of content begins, in all the text. */
  readonly #starts = new Map<unknown, number>()
  #textLength = 0
  /** The last piece was reasoning. */
  #isThinking = false
  #finish: FinishReason | undefined
  usage: Usage | undefined

  get isComplete(): boolean {
    return this.#finish !== undefined
  }

  frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    const delta = Json.fields(data["delta"])
    const { citations, content, tool_calls: call, tool_plan: plan } = Json.fields(delta["message"])
    switch (data["type"]) {
      case "content-start":
      case "content-delta":
        return this.#content(data["index"], content)
      case "tool-plan-delta":
        return this.#text(plan)
      case "tool-call-start":
        return this.#call(call)
      case "tool-call-delta":
        return this.#arguments(Json.fields(Json.fields(call)["function"])["arguments"])
      case "tool-call-end":
        return this.#endCall()
      case "citation-start":
        return this.#cite(citations)
      case "message-end":
        return this.#end(delta) ? [] : undefined
      default:
        return []
    }
  }

  whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(answer) || !this.#end(answer)) return undefined
    const { citations, content, tool_calls: calls, tool_plan: plan } = Json.fields(answer["message"])
    const blocks = [...Json.list(content).entries()]
    const isThought = ([, block]: typeof blocks[number]) => Json.fields(block)["type"] === "thinking"
    const say = ([index, block]: typeof blocks[number]) => this.#content(index, block)
    return [
      // as in a stream, the plan comes between thoughts and text
      ...blocks.filter(isThought).flatMap(say),
      ...this.#text(plan),
      ...blocks.filter((block) => !isThought(block)).flatMap(say),
      ...Json.list(citations).flatMap((citation) => this.#cite(citation)),
      ...Json.list(calls).flatMap((call) => [...this.#call(call), ...this.#endCall()])
    ]
  }

  last(): ReadonlyArray<ModelEvent> {
    return [...this.#endReasoning(), { type: "finish", choice: 0, reason: this.#finish ?? "stop" }]
  }

  #content(index: unknown, block: unknown): ReadonlyArray<ModelEvent> {
    const { text, thinking } = Json.fields(block)
    if (!this.#starts.has(index)) this.#starts.set(index, this.#textLength)
    if (typeof thinking === "string" && thinking !== "") {
      this.#isThinking = true
      return [{ type: "reasoning", choice: 0, delta: thinking }]
    }
    return this.#text(text)
  }

  #text(text: unknown): ReadonlyArray<ModelEvent> {
    if (typeof text !== "string" || text === "") return []
    this.#textLength += text.length
    return [...this.#endReasoning(), { type: "text", choice: 0, delta: text }]
  }

  #call(call: unknown): ReadonlyArray<ModelEvent> {
    const { function: called, id } = Json.fields(call)
    const { arguments: json, name } = Json.fields(called)
    this.#hasArguments = false
    return [
      ...this.#endReasoning(),
      {
        type: "toolCall",
        choice: 0,
        call: this.#calls++,
        id: Json.string(id) || ToolCalls.newId(),
        name: Json.string(name) ?? ""
      },
      ...this.#arguments(json)
    ]
  }

  #arguments(delta: unknown): ReadonlyArray<ModelEvent> {
    if (typeof delta !== "string" || delta === "") return []
    this.#hasArguments = true
    return [{ type: "toolArguments", choice: 0, call: this.#calls - 1, delta }]
  }

  /** Other dialects send empty arguments as `{}`. */
  #endCall(): ReadonlyArray<ModelEvent> {
    return this.#hasArguments ? [] : this.#arguments("{}")
  }

  /** Positions of a citation count from the start of its block of content; in the plan, from the start of the plan. */
  #cite(citation: unknown): ReadonlyArray<ModelEvent> {
    const { content_index: index = 0, end, sources, start, type } = Json.fields(citation)
    if (type === "THINKING_CONTENT") return []
    const before = type === "PLAN" ? 0 : this.#starts.get(index) ?? 0
    return Json.list(sources).flatMap((source): ReadonlyArray<ModelEvent> => {
      const { document, tool_output: output } = Json.fields(source)
      const { title, url } = Json.fields(document ?? output)
      if (typeof url !== "string" || !/^https?:/.test(url)) return []
      const at = { start: before + (Json.count(start) ?? 0), end: before + (Json.count(end) ?? 0) }
      return [{
        type: "citation",
        choice: 0,
        citation: { url, title: Json.string(title) ?? "", ...at, quote: "" }
      }]
    })
  }

  /** Marks the end of reasoning, so that clients send it back: this dialect has no signatures. */
  #endReasoning(): ReadonlyArray<ModelEvent> {
    if (!this.#isThinking) return []
    this.#isThinking = false
    return [{ type: "signature", choice: 0, signature: { origin: "cohere", value: "" } }]
  }

  /** `false` if the answer failed. */
  #end({ finish_reason: reason, usage }: Json.Fields): boolean {
    this.usage = usageOf(usage)
    this.#finish = finishes.get(reason)
    return this.isComplete
  }
}

/** The other reasons, `ERROR` and `TIMEOUT`, say that the answer failed. */
const finishes: ReadonlyMap<unknown, FinishReason> = new Map([
  ["COMPLETE", "stop"],
  ["STOP_SEQUENCE", "stop"],
  ["MAX_TOKENS", "length"],
  ["TOOL_CALL", "tool_calls"],
  ["ERROR_TOXIC", "content_filter"]
])

/** What is billed: without the provider's own instructions, which `tokens` include. */
const usageOf = (reported: unknown): Usage | undefined => {
  const { billed_units: billed, cached_tokens: cached, tokens } = Json.fields(reported)
  const { input_tokens: input, output_tokens: output } = { ...Json.fields(tokens), ...Json.fields(billed) }
  const inputTokens = Json.count(input)
  const outputTokens = Json.count(output)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const read = Json.count(cached)
  return {
    inputTokens,
    outputTokens,
    ...(read === undefined ? {} : { cachedTokens: Math.min(read, inputTokens) })
  }
}
