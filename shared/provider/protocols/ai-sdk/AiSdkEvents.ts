/** The stream of a language model of the AI SDK as canonical events, for one choice of an answer. */
import type { LanguageModelV4StreamPart, LanguageModelV4Usage } from "@ai-sdk/provider"
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import type { FinishReason, ModelEvent } from "../../dialects/conversation/ModelEvent.ts"

/** What a part says beside its events. */
export interface Taken {
  readonly events: ReadonlyArray<ModelEvent>
  /** The model reports an error in the middle of its answer. */
  readonly error?: unknown
  /** A picture, or whatever else is no text, of which only the address is given. */
  readonly isElsewhere?: boolean
}

export class Events {
  readonly #choice: number
  #calls = 0
  usage: Usage | undefined
  /** Whether the answer has said why it ends. */
  isComplete = false

  constructor(choice: number) {
    this.#choice = choice
  }

  take(part: LanguageModelV4StreamPart): Taken {
    const choice = this.#choice
    switch (part.type) {
      case "text-delta":
        return { events: part.delta === "" ? [] : [{ type: "text", choice, delta: part.delta }] }
      case "reasoning-delta":
        return { events: part.delta === "" ? [] : [{ type: "reasoning", choice, delta: part.delta }] }
      // not the pieces of its arguments: those of several calls may come mixed
      case "tool-call":
        return { events: part.providerExecuted === true ? [] : this.#called(part) }
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

  #called(
    { input, toolCallId: id, toolName: name }: Extract<LanguageModelV4StreamPart, { readonly type: "tool-call" }>
  ): ReadonlyArray<ModelEvent> {
    const [choice, call] = [this.#choice, this.#calls++]
    return [
      { type: "toolCall", choice, call, id, name },
      { type: "toolArguments", choice, call, delta: input === "" ? "{}" : input }
    ]
  }
}

/** In base64. Older versions have the data itself where this one has an object. */
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

const usageOf = ({ inputTokens, outputTokens }: LanguageModelV4Usage): Usage => ({
  inputTokens: inputTokens.total ?? 0,
  outputTokens: outputTokens.total ?? 0,
  ...(inputTokens.cacheRead === undefined ? {} : { cachedTokens: inputTokens.cacheRead }),
  ...(inputTokens.cacheWrite === undefined ? {} : { cacheWriteTokens: inputTokens.cacheWrite }),
  ...(outputTokens.reasoning === undefined ? {} : { reasoningTokens: outputTokens.reasoning })
})
