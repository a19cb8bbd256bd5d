/** The chat completions dialect: from a request to the canonical conversation, from canonical events to the answer. */
import * as Contract from "../../contract/ChatCompletions.ts"
import type { CompactionItem } from "../../contract/CompactionItem.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { AnswerFormat, ContentPart, Conversation, ToolChoice, Turn } from "./Conversation.ts"
import type { AnswerIdentity, Dialect } from "./Dialect.ts"
import type { FinishReason, ModelEvent } from "./ModelEvent.ts"

// Request

const toConversation = (request: Contract.ChatCompletionRequest): Conversation => ({
  turns: request.messages.flatMap((message) => isSealed(message) ? [] : [toTurn(toMessage(message))]),
  tools: (request.tools ?? []).map(({ function: tool }) => ({
    name: tool.name,
    description: tool.description ?? undefined,
    parameters: tool.parameters ?? {}
  })),
  toolChoice: toToolChoice(request),
  format: toFormat(request.response_format),
  stop: typeof request.stop === "string" ? [request.stop] : request.stop ?? [],
  maxTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
  choices: request.n ?? 1,
  seed: request.seed ?? undefined
})

type AnyMessage = Contract.ChatCompletionRequest["messages"][number]

const isSealed = (message: AnyMessage): message is CompactionItem => "encrypted_content" in message

/** What this gateway has sealed is open by now. What others have sealed only they can read. */
const sealedByOthers = ({ messages }: Contract.ChatCompletionRequest): ReadonlyArray<string> =>
  messages.flatMap((message, index) => isSealed(message) ? [`messages[${index}] was sealed by another service`] : [])

/** A message in this dialect's own words, where it is in those of the responses format. */
export const toMessage = (message: Contract.Message | Contract.KeptMessage): Contract.Message =>
  "type" in message ? { role: message.role, content: message.content.map(toOwnPart) } : message

const toOwnPart = (part: Contract.KeptMessage["content"][number]): Contract.ContentPart => {
  switch (part.type) {
    case "input_text":
      return { type: "text", text: part.text }
    case "input_image": {
      const { detail, image_url: url } = part
      return { type: "image_url", image_url: detail === undefined ? { url } : { url, detail } }
    }
    case "input_file": {
      const { type: _type, ...file } = part
      return { type: "file", file }
    }
    default:
      return part
  }
}

const toTurn = (message: Contract.Message): Turn => ({
  role: message.role === "developer" ? "system" : message.role,
  content: typeof message.content === "string"
    ? [{ type: "text", text: message.content }]
    : (message.content ?? []).map(toPart),
  toolCalls: (message.tool_calls ?? []).map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: call.function.arguments
  })),
  toolCallId: message.tool_call_id ?? undefined
})

const toPart = (part: Contract.ContentPart): ContentPart => {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text }
    case "refusal":
      return { type: "text", text: part.refusal }
    case "image_url":
      return { type: "image", url: part.image_url.url }
    case "input_audio":
      return { type: "file", mediaType: `audio/${part.input_audio.format}`, name: undefined }
    case "file":
      return { type: "file", mediaType: "", name: part.file.filename ?? undefined }
    case "video_url":
      return { type: "file", mediaType: "video/*", name: undefined }
  }
}

const toToolChoice = ({ tool_choice: choice, tools }: Contract.ChatCompletionRequest): ToolChoice => {
  if (choice === undefined || choice === null) return { type: (tools ?? []).length > 0 ? "auto" : "none" }
  return typeof choice === "string" ? { type: choice } : { type: "tool", name: choice.function.name }
}

const toFormat = (format: Contract.ChatCompletionRequest["response_format"]): AnswerFormat => {
  switch (format?.type) {
    case "json_object":
      return { type: "json" }
    case "json_schema":
      return { type: "jsonSchema", schema: format.json_schema["schema"] ?? {} }
    default:
      return { type: "text" }
  }
}

// Answer

export const toTokenUsage = (usage: Usage) => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 }
})

interface Choice {
  text: string | undefined
  reasoning: string | undefined
  readonly calls: Array<{ readonly id: string; readonly name: string; arguments: string }>
  finish: FinishReason
}

/** Gathers the events of a whole answer into its JSON body. */
class AnswerFold {
  readonly #choices: Array<Choice> = []
  usage: Usage = { inputTokens: 0, outputTokens: 0 }

  push(event: ModelEvent): void {
    if (event.type === "usage") {
      this.usage = event.usage
      return
    }
    const choice = this.#choice(event.choice)
    switch (event.type) {
      case "text":
        choice.text = (choice.text ?? "") + event.delta
        return
      case "reasoning":
        choice.reasoning = (choice.reasoning ?? "") + event.delta
        return
      case "toolCall":
        choice.calls[event.call] = { id: event.id, name: event.name, arguments: "" }
        return
      case "toolArguments": {
        const call = choice.calls[event.call]
        if (call !== undefined) call.arguments += event.delta
        return
      }
      case "finish":
        choice.finish = event.reason
    }
  }

  toBody(identity: AnswerIdentity): Contract.ChatCompletion {
    return {
      id: `chatcmpl-${identity.id}`,
      object: "chat.completion",
      created: identity.created,
      model: identity.model,
      choices: this.#choices.map((choice, index) => ({
        index,
        message: {
          role: "assistant",
          content: choice.text ?? (choice.calls.length > 0 ? null : ""),
          refusal: null,
          ...(choice.reasoning === undefined ? {} : { reasoning_content: choice.reasoning }),
          ...(choice.calls.length === 0 ? {} : {
            tool_calls: choice.calls.map((call) => ({
              id: call.id,
              type: "function" as const,
              function: { name: call.name, arguments: call.arguments }
            }))
          })
        },
        logprobs: null,
        finish_reason: choice.finish
      })),
      usage: toTokenUsage(this.usage),
      system_fingerprint: identity.fingerprint
    }
  }

  #choice(index: number): Choice {
    return this.#choices[index] ??= { text: undefined, reasoning: undefined, calls: [], finish: "stop" }
  }
}

/** Encodes events as the frames of a streamed answer. */
class AnswerFrames {
  readonly #identity: AnswerIdentity
  readonly #includeUsage: boolean
  readonly #begun = new Set<number>()

  constructor(identity: AnswerIdentity, includeUsage: boolean) {
    this.#identity = identity
    this.#includeUsage = includeUsage
  }

  encode(event: ModelEvent): string {
    switch (event.type) {
      case "usage":
        return this.#includeUsage ? this.#frame({ choices: [], usage: toTokenUsage(event.usage) }) : ""
      case "text":
        return this.#opening(event.choice, "") + this.#delta(event.choice, { content: event.delta })
      case "reasoning":
        return this.#opening(event.choice, "") + this.#delta(event.choice, { reasoning_content: event.delta })
      case "toolCall":
        return this.#opening(event.choice, null) + this.#delta(event.choice, {
          tool_calls: [{
            index: event.call,
            id: event.id,
            type: "function",
            function: { name: event.name, arguments: "" }
          }]
        })
      case "toolArguments":
        return this.#delta(event.choice, {
          tool_calls: [{ index: event.call, function: { arguments: event.delta } }]
        })
      case "finish":
        return this.#opening(event.choice, "") + this.#delta(event.choice, {}, event.reason)
    }
  }

  /** Every choice begins with its role, before anything else of it. */
  #opening(choice: number, content: "" | null): string {
    if (this.#begun.has(choice)) return ""
    this.#begun.add(choice)
    return this.#delta(choice, { role: "assistant", content, refusal: null })
  }

  #delta(index: number, delta: object, reason: FinishReason | null = null): string {
    return this.#frame({
      choices: [{ index, delta, logprobs: null, finish_reason: reason }],
      ...(this.#includeUsage ? { usage: null } : {})
    })
  }

  #frame(content: object): string {
    const { created, fingerprint, id, model } = this.#identity
    const chunk = {
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created,
      model,
      system_fingerprint: fingerprint,
      ...content
    }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }
}

export const chatCompletions: Dialect<Contract.ChatCompletionRequest> = {
  operation: Contract.chatCompletions.name,
  request: Contract.ChatCompletionRequest,
  toConversation,
  warnings: sealedByOthers,
  streams: (request) => request.stream === true,
  encoder: (request, identity) => {
    const frames = new AnswerFrames(identity, request.stream_options?.include_usage === true)
    return {
      frames: (event) => frames.encode(event),
      lastFrames: () => "data: [DONE]\n\n",
      body: (events) => {
        const fold = new AnswerFold()
        for (const event of events) fold.push(event)
        return fold.toBody(identity)
      }
    }
  }
}
