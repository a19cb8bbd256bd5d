/** Converts the stream of an AI SDK language model to canonical events, for one choice of an answer. */
import type { LanguageModelV4StreamPart, LanguageModelV4Usage } from "@ai-sdk/provider"
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import type { FinishReason, ModelEvent } from "../../dialects/conversation/ModelEvent.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import * as GeminiUsage from "../../dialects/gemini/GeminiUsage.ts"
import * as OpenAiUsage from "../../dialects/openai/OpenAiUsage.ts"
import * as Json from "../../json/Json.ts"

/** The events of a part, or a failure. */
export interface Taken {
  readonly events: ReadonlyArray<ModelEvent>
  /** An error that the model has reported in the middle of its answer. */
  readonly error?: unknown
  /** Whether the part has only the URL of a picture or other media. */
  readonly isElsewhere?: boolean
}

export class Events {
  readonly #choice: number
  #calls = 0
  usage: Usage | undefined
  /** The size of the text so far, in bytes. */
  textBytes = 0
  #textLength = 0
  /** Whether the finish reason has arrived. */
  isComplete = false

  constructor(choice: number) {
    this.#choice = choice
  }

  take(part: LanguageModelV4StreamPart): Taken {
    const choice = this.#choice
    switch (part.type) {
      case "text-delta":
        this.textBytes += Buffer.byteLength(part.delta)
        this.#textLength += part.delta.length
        return { events: part.delta === "" ? [] : [{ type: "text", choice, delta: part.delta }] }
      case "reasoning-delta":
        this.textBytes += Buffer.byteLength(part.delta)
        return { events: part.delta === "" ? [] : [{ type: "reasoning", choice, delta: part.delta }] }
      // the deltas of arguments are ignored, because those of several calls may be interleaved
      case "tool-call":
        return { events: part.providerExecuted === true ? [] : this.#callOf(part) }
      case "source": {
        if (part.sourceType !== "url") return { events: [] }
        const at = { start: this.#textLength, end: this.#textLength }
        const citation = { url: part.url, title: part.title ?? "", ...at, quote: "" }
        return { events: [{ type: "citation", choice, citation }] }
      }
      case "file": {
        const data = dataOf(part.data)
        return data === undefined
          ? { events: [], isElsewhere: true }
          : { events: [{ type: "media", choice, mediaType: part.mediaType, data }] }
      }
      case "error":
        return { events: [], error: part.error }
      case "finish":
        this.usage = usageOf(part.usage)
        if (part.finishReason.unified === "error") return { events: [], error: undefined }
        this.isComplete = true
        return { events: [{ type: "finish", choice, reason: toFinish(part.finishReason.unified) }] }
      default:
        return { events: [] }
    }
  }

  #callOf(
    { input, toolCallId: id, toolName: name }: Extract<LanguageModelV4StreamPart, { readonly type: "tool-call" }>
  ): ReadonlyArray<ModelEvent> {
    const [choice, call] = [this.#choice, this.#calls++]
    this.textBytes += Buffer.byteLength(input)
    return [
      { type: "toolCall", choice, call, id, name },
      { type: "toolArguments", choice, call, delta: input === "" ? "{}" : input }
    ]
  }
}

/** The data of a file in base64. Older versions have the data itself instead of an object. */
const dataOf = (data: unknown): string | undefined => {
  const inner = Predicate.hasProperty(data, "type") && data.type === "data" && Predicate.hasProperty(data, "data")
    ? data.data
    : data
  if (typeof inner === "string") return inner
  return inner instanceof Uint8Array ? Buffer.from(inner).toString("base64") : undefined
}

const toFinish = (reason: string): FinishReason => {
  switch (reason) {
    case "length":
      return "length"
    case "content-filter":
      return "content_filter"
    case "tool-calls":
      return "tool_calls"
    default:
      return "stop"
  }
}

/** Only the provider's own report has the kinds of tokens. */
const usageOf = ({ inputTokens, outputTokens, raw }: LanguageModelV4Usage): Usage => ({
  ...OpenAiUsage.usageOf(raw) ?? GeminiUsage.usageOf(raw) ?? UsageSum.none,
  ...Json.counts({
    inputTokens: inputTokens.total,
    outputTokens: outputTokens.total,
    cachedTokens: inputTokens.cacheRead,
    cacheWriteTokens: inputTokens.cacheWrite,
    reasoningTokens: outputTokens.reasoning
  })
})
