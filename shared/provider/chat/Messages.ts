/** The messages dialect: from a request to the canonical conversation, from canonical events to the answer. */
import * as Contract from "../../contract/Messages.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { AnswerFormat, ContentPart, Conversation, ToolChoice, Turn } from "./Conversation.ts"
import type { AnswerEncoder, AnswerIdentity, Dialect } from "./Dialect.ts"
import type { ModelEvent } from "./ModelEvent.ts"

// Request

const toConversation = (request: Contract.MessagesRequest): Conversation => ({
  turns: [...systemTurn(request.system), ...request.messages.flatMap(toTurns)],
  tools: (request.tools ?? []).flatMap((tool) =>
    tool.input_schema === undefined
      ? []
      : [{ name: tool.name, description: tool.description ?? undefined, parameters: tool.input_schema }]
  ),
  toolChoice: toToolChoice(request),
  format: toFormat(request.output_config),
  stop: request.stop_sequences ?? [],
  maxTokens: request.max_tokens,
  choices: 1,
  seed: undefined
})

const textTurn = (role: Turn["role"], content: ReadonlyArray<ContentPart>): Turn => ({
  role,
  content,
  toolCalls: [],
  toolCallId: undefined
})

const systemTurn = (system: Contract.MessagesRequest["system"]): ReadonlyArray<Turn> => {
  if (system === undefined || system === null) return []
  const parts = typeof system === "string" ? [{ text: system }] : system
  return [textTurn("system", parts.map(({ text }) => ({ type: "text", text })))]
}

/** A message of this dialect may hold results of tools beside the user's own words: each result is a turn of its own. */
const toTurns = (message: Contract.MessagesRequest["messages"][number]): ReadonlyArray<Turn> => {
  if (typeof message.content === "string") return [textTurn(message.role, [{ type: "text", text: message.content }])]
  const results = message.content.flatMap((block): ReadonlyArray<Turn> =>
    block.type === "tool_result"
      ? [{ role: "tool", content: resultParts(block.content), toolCalls: [], toolCallId: block.tool_use_id }]
      : []
  )
  const content = message.content.flatMap(toParts)
  const toolCalls = message.content.flatMap((block) =>
    block.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: JSON.stringify(block.input) }] : []
  )
  if (content.length === 0 && toolCalls.length === 0) return results
  return [...results, { role: message.role, content, toolCalls, toolCallId: undefined }]
}

const toParts = (block: Contract.ContentBlock): ReadonlyArray<ContentPart> => {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text }]
    case "image":
      return [{
        type: "image",
        url: block.source.type === "url"
          ? block.source.url
          : `data:${block.source.media_type};base64,${block.source.data}`
      }]
    case "document":
      return [{ type: "file", mediaType: String(block.source["media_type"] ?? ""), name: undefined }]
    default:
      return []
  }
}

type ToolResultContent = Extract<Contract.ContentBlock, { readonly type: "tool_result" }>["content"]

const resultParts = (content: ToolResultContent): ReadonlyArray<ContentPart> => {
  if (content === undefined || content === null) return []
  return typeof content === "string" ? [{ type: "text", text: content }] : content.flatMap(toParts)
}

const toToolChoice = ({ tool_choice: choice, tools }: Contract.MessagesRequest): ToolChoice => {
  switch (choice?.type) {
    case "tool":
      return { type: "tool", name: choice.name }
    case "any":
      return { type: "required" }
    case "none":
      return { type: "none" }
    default:
      return { type: (tools ?? []).length > 0 ? "auto" : "none" }
  }
}

const toFormat = (config: Contract.MessagesRequest["output_config"]): AnswerFormat => {
  const format = config?.output_format ?? config?.format
  return format?.["type"] === "json_schema" ? { type: "jsonSchema", schema: format["schema"] ?? {} } : { type: "text" }
}

// Answer

const noUsage: Usage = { inputTokens: 0, outputTokens: 0 }

const toMessageUsage = (usage: Usage) => ({
  input_tokens: usage.inputTokens - (usage.cachedTokens ?? 0),
  output_tokens: usage.outputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: usage.cachedTokens ?? 0
})

type Finish = Extract<ModelEvent, { readonly type: "finish" }>

const toStop = (finish: Finish | undefined): Pick<Contract.MessageAnswer, "stop_reason" | "stop_sequence"> => {
  if (finish?.stopSequence !== undefined) return { stop_reason: "stop_sequence", stop_sequence: finish.stopSequence }
  switch (finish?.reason) {
    case "length":
      return { stop_reason: "max_tokens", stop_sequence: null }
    case "tool_calls":
      return { stop_reason: "tool_use", stop_sequence: null }
    default:
      return { stop_reason: "end_turn", stop_sequence: null }
  }
}

/** Tool arguments are an object in this dialect; what is not one cannot be handed on as one. */
const parseInput = (text: string): { readonly [key: string]: unknown } => {
  try {
    const value: unknown = JSON.parse(text === "" ? "{}" : text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : { value }
  } catch {
    return { invalid_json: text }
  }
}

/** What the events add up to, block by block in their order. */
const toBlocks = (events: ReadonlyArray<ModelEvent>): ReadonlyArray<Contract.AnswerBlock> => {
  const blocks: Array<
    { readonly kind: "text" | "thinking"; text: string } | {
      readonly kind: "tool"
      readonly call: number
      readonly id: string
      readonly name: string
      text: string
    }
  > = []
  const extend = (kind: "text" | "thinking", delta: string) => {
    const last = blocks.at(-1)
    if (last?.kind === kind) last.text += delta
    else blocks.push({ kind, text: delta })
  }
  for (const event of events) {
    switch (event.type) {
      case "text":
        extend("text", event.delta)
        break
      case "reasoning":
        extend("thinking", event.delta)
        break
      case "toolCall":
        blocks.push({ kind: "tool", call: event.call, id: event.id, name: event.name, text: "" })
        break
      case "toolArguments": {
        const block = blocks.find((block) => block.kind === "tool" && block.call === event.call)
        if (block !== undefined) block.text += event.delta
      }
    }
  }
  return blocks.map((block) => {
    switch (block.kind) {
      case "text":
        return { type: "text", text: block.text }
      case "thinking":
        return { type: "thinking", thinking: block.text, signature: "" }
      case "tool":
        return { type: "tool_use", id: block.id, name: block.name, input: parseInput(block.text) }
    }
  })
}

const toBody = (identity: AnswerIdentity, events: ReadonlyArray<ModelEvent>): Contract.MessageAnswer => {
  const usage = events.find((event) => event.type === "usage")?.usage ?? noUsage
  return {
    id: `msg_${identity.id}`,
    type: "message",
    role: "assistant",
    model: identity.model,
    content: toBlocks(events),
    ...toStop(events.find((event) => event.type === "finish")),
    usage: toMessageUsage(usage)
  }
}

/**
 * Encodes events as named frames. Blocks are opened and closed one after the other; the end is held back until usage is
 * known, since this dialect tells both in one frame.
 */
class AnswerFrames implements AnswerEncoder {
  readonly #identity: AnswerIdentity
  #begun = false
  #index = -1
  /** Which block is open: text, thinking, or the tool call of that number. */
  #open: "text" | "thinking" | number | undefined
  #finish: Finish | undefined
  #usage: Usage = noUsage

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  frames(event: ModelEvent): string {
    const begin = this.#begin()
    switch (event.type) {
      case "text":
        return begin + this.#block("text", { type: "text", text: "" }) +
          this.#delta({ type: "text_delta", text: event.delta })
      case "reasoning":
        return begin + this.#block("thinking", { type: "thinking", thinking: "", signature: "" }) +
          this.#delta({ type: "thinking_delta", thinking: event.delta })
      case "toolCall":
        return begin + this.#block(event.call, { type: "tool_use", id: event.id, name: event.name, input: {} })
      case "toolArguments":
        return begin + this.#delta({ type: "input_json_delta", partial_json: event.delta })
      case "finish":
        this.#finish = event
        return begin + this.#close()
      case "usage":
        this.#usage = event.usage
        return begin
    }
  }

  lastFrames(): string {
    return this.#begin() + this.#close() +
      frame("message_delta", { delta: toStop(this.#finish), usage: toMessageUsage(this.#usage) }) +
      frame("message_stop", {})
  }

  body(events: ReadonlyArray<ModelEvent>): Contract.MessageAnswer {
    return toBody(this.#identity, events)
  }

  #begin(): string {
    if (this.#begun) return ""
    this.#begun = true
    return frame("message_start", {
      message: {
        id: `msg_${this.#identity.id}`,
        type: "message",
        role: "assistant",
        model: this.#identity.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: toMessageUsage(noUsage)
      }
    })
  }

  #block(kind: "text" | "thinking" | number, content: object): string {
    if (this.#open === kind) return ""
    const closed = this.#close()
    this.#open = kind
    this.#index++
    return closed + frame("content_block_start", { index: this.#index, content_block: content })
  }

  #delta(delta: object): string {
    return frame("content_block_delta", { index: this.#index, delta })
  }

  #close(): string {
    if (this.#open === undefined) return ""
    this.#open = undefined
    return frame("content_block_stop", { index: this.#index })
  }
}

const frame = (type: string, content: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...content })}\n\n`

export const messages: Dialect<Contract.MessagesRequest> = {
  operation: Contract.messages.name,
  request: Contract.MessagesRequest,
  toConversation,
  streams: (request) => request.stream === true,
  encoder: (_request, identity) => new AnswerFrames(identity)
}
