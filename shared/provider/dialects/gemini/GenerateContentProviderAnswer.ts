/** Decodes answers of providers of the Gemini dialect. */
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import { usageOf } from "./GeminiUsage.ts"
import * as Json from "../../json/Json.ts"
import { Choices } from "../conversation/Choices.ts"
import type { AnswerDecoder } from "../conversation/Dialect.ts"
import * as FinishReasons from "../finish/FinishReasons.ts"
import { fromGrounding } from "./Grounding.ts"
import type { FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

interface Candidate {
  calls: number
  /** The last piece was reasoning without a signature. */
  thinking: boolean
  text: string
  /** The sources of the text. */
  grounding: unknown
  finish: FinishReason | undefined
}

/** Each frame is an answer that continues the previous one. */
export class Decoder implements AnswerDecoder {
  readonly #candidates = new Choices<Candidate>(() => ({
    calls: 0,
    thinking: false,
    text: "",
    grounding: undefined,
    finish: undefined
  }))
  /** Every frame has all usage so far: only the last one is read. */
  #reported: unknown

  get usage(): Usage | undefined {
    return usageOf(this.#reported)
  }

  frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    this.#reported = data["usageMetadata"] ?? this.#reported
    const blocked = Json.fields(data["promptFeedback"])["blockReason"]
    if (FinishReasons.reasonIn(blocked) !== undefined) this.#candidates.of(0).finish = "content_filter"
    const events: Array<ModelEvent> = []
    for (const [position, item] of Json.list(data["candidates"]).entries()) {
      const { content, finishReason: reason, groundingMetadata, index } = Json.fields(item)
      const number = Json.count(index) ?? position
      const candidate = this.#candidates.of(number)
      candidate.grounding = groundingMetadata ?? candidate.grounding
      for (const part of Json.list(Json.fields(content)["parts"])) {
        this.#decodePart(number, candidate, Json.fields(part), events)
      }
      const said = FinishReasons.reasonIn(reason)
      if (said === undefined) continue
      if (broken.has(said)) return undefined
      candidate.finish = FinishReasons.laterOf(candidate.finish, toFinish(said))
    }
    return events
  }

  whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    return this.frame(answer)
  }

  get isComplete(): boolean {
    return this.#candidates.areFinished
  }

  last(): ReadonlyArray<ModelEvent> {
    if (this.#candidates.size === 0) this.#candidates.of(0)
    return [...this.#candidates].flatMap(([choice, candidate]): ReadonlyArray<ModelEvent> => {
      const { calls, finish = "stop", grounding, text } = candidate
      const reason = finish === "stop" && calls > 0 ? "tool_calls" : finish
      const citations = fromGrounding(grounding, text)
      return [
        ...endReasoning(choice, candidate),
        ...citations.map((citation): ModelEvent => ({ type: "citation", choice, citation })),
        { type: "finish", choice, reason }
      ]
    })
  }

  /** Ignores parts of the provider's own tools, which no client can have enabled. */
  #decodePart(choice: number, candidate: Candidate, part: Json.Fields, events: Array<ModelEvent>): void {
    const { functionCall, inlineData, text, thoughtSignature } = part
    const signature = Json.string(thoughtSignature) ?? ""
    if (Predicate.isReadonlyObject(functionCall)) {
      const { args, id, name } = functionCall
      const call = candidate.calls++
      events.push(
        // reasoning precedes the call
        ...endReasoning(choice, candidate, signature),
        { type: "toolCall", choice, call, id: Json.string(id) || ToolCalls.newId(), name: Json.string(name) ?? "" },
        { type: "toolArguments", choice, call, delta: JSON.stringify(args ?? {}) }
      )
      return
    }
    if (typeof text === "string" && text !== "") {
      if (part["thought"] === true) candidate.thinking = true
      else {
        candidate.text += text
        events.push(...endReasoning(choice, candidate))
      }
      events.push({ type: part["thought"] === true ? "reasoning" : "text", choice, delta: text })
    }
    // pictures in the reasoning are not for the client
    if (Predicate.isReadonlyObject(inlineData) && part["thought"] !== true) {
      const { data, mimeType } = inlineData
      if (typeof data === "string") {
        const mediaType = Json.string(mimeType) ?? ""
        events.push(...endReasoning(choice, candidate), { type: "media", choice, mediaType, data })
      }
    }
    if (signature !== "") events.push(...endReasoning(choice, candidate, signature))
  }
}

/** Ends reasoning with its signature, or with an empty one that marks its origin. */
const endReasoning = (choice: number, candidate: Candidate, value = ""): ReadonlyArray<ModelEvent> => {
  if (value === "" && !candidate.thinking) return []
  candidate.thinking = false
  return [{ type: "signature", choice, signature: { origin: "gemini", value } }]
}

/** Finish reasons of a failed model: there is no answer. */
const broken: ReadonlySet<string> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "MALFORMED_RESPONSE",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS"
])

const filtered: ReadonlySet<string> = new Set([
  "SAFETY",
  "RECITATION",
  "BLOCKLIST",
  "PROHIBITED_CONTENT",
  "SPII",
  "IMAGE_SAFETY",
  "IMAGE_PROHIBITED_CONTENT",
  "IMAGE_RECITATION"
])

const toFinish = (reason: string): FinishReason => {
  if (reason === "MAX_TOKENS") return "length"
  return filtered.has(reason) ? "content_filter" : "stop"
}
