/** The messages dialect of a client: from its request to the canonical conversation, from events to its answer. */
import * as Contract from "../../contract/Messages.ts"
import type { Usage } from "../../contract/Usage.ts"
import { string } from "../Json.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  Media,
  Reasoning,
  SettingNames,
  ToolChoice,
  Turn
} from "./Conversation.ts"
import type { AnswerEncoder, AnswerIdentity, ClientDialect } from "./Dialect.ts"
import type { Fate, Losses } from "./Losses.ts"
import { noSuchTool } from "./Losses.ts"
import type { ModelEvent } from "./ModelEvent.ts"
import * as Signature from "./Signature.ts"
import * as ToolCalls from "./ToolCalls.ts"

// Request

export const settings: SettingNames = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  stop: "stop_sequences",
  maxTokens: "max_tokens",
  reasoning: "thinking",
  format: "output_config",
  toolChoice: "tool_choice",
  parallelToolCalls: "tool_choice.disable_parallel_tool_use",
  user: "metadata.user_id"
}

const block = {
  type: "carried",
  text: "carried",
  source: "carried",
  title: "carried",
  // the answer would quote its sources
  citations: { enabled: "meaning" }
} as const

const fates: Fate = {
  model: "carried",
  stream: "carried",
  system: [block],
  messages: [{
    role: "carried",
    content: [{
      ...block,
      id: "carried",
      name: "carried",
      input: "carried",
      tool_use_id: "carried",
      content: [block],
      is_error: "carried",
      thinking: "carried",
      signature: "carried",
      data: "carried"
    }]
  }],
  max_tokens: "carried",
  temperature: "carried",
  top_p: "carried",
  top_k: "carried",
  stop_sequences: "carried",
  tools: [{ type: "carried", name: "carried", description: "carried", input_schema: "carried", strict: "carried" }],
  tool_choice: "carried",
  thinking: { type: "carried", budget_tokens: "carried" },
  output_config: { output_format: "carried", format: "carried", effort: "carried" },
  metadata: { user_id: "carried" },
  container: "meaning",
  inference_geo: "meaning",
  mcp_servers: "meaning"
}

const toConversation = (request: Contract.MessagesRequest, losses: Losses): Conversation => ({
  turns: [
    ...systemTurn(request.system),
    ...request.messages.flatMap((message, index) => toTurns(message, `messages[${index}]`, losses))
  ],
  tools: (request.tools ?? []).flatMap((tool, index) => {
    const path = `tools[${index}]`
    if (tool.input_schema === undefined) {
      losses.refuse(path, noSuchTool)
      return []
    }
    return [{
      name: tool.name,
      description: tool.description ?? undefined,
      parameters: tool.input_schema,
      ...(tool.strict === true ? { strict: true } : {}),
      path
    }]
  }),
  toolChoice: toToolChoice(request),
  parallelToolCalls: isOneAtATime(request) ? false : undefined,
  format: toFormat(request.output_config),
  stop: request.stop_sequences ?? [],
  maxTokens: request.max_tokens,
  choices: 1,
  seed: undefined,
  sampling: {
    temperature: request.temperature ?? undefined,
    topP: request.top_p ?? undefined,
    topK: request.top_k ?? undefined,
    presencePenalty: undefined,
    frequencyPenalty: undefined
  },
  reasoning: toReasoning(request, losses),
  user: request.metadata?.user_id ?? undefined
})

const textTurn = (role: Turn["role"], content: ReadonlyArray<ContentPart>, path: string): Turn => ({
  role,
  content,
  toolCalls: [],
  toolCallId: undefined,
  path
})

const systemTurn = (system: Contract.MessagesRequest["system"]): ReadonlyArray<Turn> => {
  if (system === undefined || system === null) return []
  const parts = typeof system === "string" ? [{ text: system }] : system
  return [textTurn("system", parts.map(({ text }) => ({ type: "text", text })), "system")]
}

/** A message of this dialect may hold results of tools beside the user's own words: each result is a turn of its own. */
const toTurns = (
  message: Contract.MessagesRequest["messages"][number],
  path: string,
  losses: Losses
): ReadonlyArray<Turn> => {
  if (typeof message.content === "string") {
    return [textTurn(message.role, [{ type: "text", text: message.content }], path)]
  }
  const blocks = message.content.map((block, index) => ({ block, path: `${path}.content[${index}]` }))
  const results = blocks.flatMap(({ block, path }): ReadonlyArray<Turn> =>
    block.type !== "tool_result" ? [] : [{
      role: "tool",
      content: resultParts(block.content, path, losses),
      toolCalls: [],
      toolCallId: block.tool_use_id,
      ...(block.is_error === true ? { failed: true } : {}),
      path
    }]
  )
  const content = blocks.flatMap(({ block, path }) => toParts(block, path, losses))
  const toolCalls = blocks.flatMap(({ block }) =>
    block.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: JSON.stringify(block.input) }] : []
  )
  if (content.length === 0 && toolCalls.length === 0) return results
  return [...results, { role: message.role, content, toolCalls, toolCallId: undefined, path }]
}

const toParts = (
  block: Contract.ContentBlock | Contract.ResultBlock,
  path: string,
  losses: Losses
): ReadonlyArray<ContentPart> => {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, path }]
    case "image":
      return [
        block.source.type === "url"
          ? { type: "image", mediaType: "", media: block.source, path }
          : {
            type: "image",
            mediaType: block.source.media_type,
            media: { type: "base64", data: block.source.data },
            path
          }
      ]
    case "document":
      return [toFile(block, path)]
    case "thinking":
      return [{
        type: "reasoning",
        text: block.thinking,
        signature: block.signature ? Signature.fromClient(block.signature, "anthropic") : undefined,
        path
      }]
    case "redacted_thinking":
      return [{
        type: "reasoning",
        text: "",
        signature: { ...Signature.fromClient(block.data, "anthropic"), redacted: true },
        path
      }]
    case "tool_use":
    case "tool_result":
      return []
    default:
      losses.refuse(path)
      return []
  }
}

const toFile = (
  { source, title }: Extract<Contract.ContentBlock, { readonly type: "document" }>,
  path: string
): ContentPart => {
  const data = string(source["data"]) ?? ""
  const file = (mediaType: string, media: Media): ContentPart => ({
    type: "file",
    mediaType,
    name: title ?? undefined,
    media,
    path
  })
  switch (source["type"]) {
    case "base64":
      return file(string(source["media_type"]) ?? "", { type: "base64", data })
    case "text":
      return file("text/plain", { type: "text", text: data })
    case "url":
      return file("application/pdf", { type: "url", url: string(source["url"]) ?? "" })
    case "file":
      return file("", { type: "id", id: string(source["file_id"]) ?? "" })
    default:
      return file(string(source["media_type"]) ?? "", { type: "none" })
  }
}

type ToolResultContent = Extract<Contract.ContentBlock, { readonly type: "tool_result" }>["content"]

const resultParts = (content: ToolResultContent, path: string, losses: Losses): ReadonlyArray<ContentPart> => {
  if (content === undefined || content === null) return []
  return typeof content === "string"
    ? [{ type: "text", text: content, path }]
    : content.flatMap((block, index) => toParts(block, `${path}.content[${index}]`, losses))
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

const isOneAtATime = ({ tool_choice: choice }: Contract.MessagesRequest): boolean =>
  choice !== undefined && choice !== null && "disable_parallel_tool_use" in choice &&
  choice.disable_parallel_tool_use === true

const toFormat = (config: Contract.MessagesRequest["output_config"]): AnswerFormat => {
  const format = config?.output_format ?? config?.format
  return format?.["type"] === "json_schema" ? { type: "jsonSchema", schema: format["schema"] ?? {} } : { type: "text" }
}

const toReasoning = (
  { output_config: config, thinking }: Contract.MessagesRequest,
  losses: Losses
): Reasoning | undefined => {
  const effort = config?.effort ?? undefined
  if (thinking?.type === "enabled") {
    if (effort !== undefined) losses.warn("output_config.effort", "gives way to thinking.budget_tokens")
    return { type: "budget", tokens: thinking.budget_tokens }
  }
  if (thinking?.type === "disabled") return { type: "off" }
  if (effort !== undefined) return { type: "effort", effort }
  return thinking ? { type: "auto" } : undefined
}

// Answer

const noUsage: Usage = { inputTokens: 0, outputTokens: 0 }

/** Input here is without what came from the cache or went into it. */
const toMessageUsage = (usage: Usage): typeof Contract.MessageUsage.Type => {
  const { cacheWriteTokens = 0, cachedTokens = 0, inputTokens, outputTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    output_tokens: outputTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    ...(reasoningTokens === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoningTokens } })
  }
}

type Finish = Extract<ModelEvent, { readonly type: "finish" }>

const toStop = (finish: Finish | undefined): Pick<Contract.MessageAnswer, "stop_reason" | "stop_sequence"> => {
  if (finish?.stopSequence !== undefined) return { stop_reason: "stop_sequence", stop_sequence: finish.stopSequence }
  switch (finish?.reason) {
    case "length":
      return { stop_reason: "max_tokens", stop_sequence: null }
    case "tool_calls":
      return { stop_reason: "tool_use", stop_sequence: null }
    case "content_filter":
      return { stop_reason: "refusal", stop_sequence: null }
    default:
      return { stop_reason: "end_turn", stop_sequence: null }
  }
}

/** What stands in the place of reasoning that is not shown; any other signature belongs to the thinking before it. */
const toRedacted = (signature: Signature.Signature): Contract.AnswerBlock | undefined =>
  signature.redacted === true
    ? { type: "redacted_thinking", data: Signature.toClient(signature, "anthropic") }
    : undefined

const toImage = (mediaType: string, data: string): Contract.AnswerBlock => ({
  type: "image",
  source: { type: "base64", media_type: mediaType, data }
})

interface Thinking {
  readonly kind: "thinking"
  text: string
  signature: string | undefined
}

type OpenBlock =
  | Thinking
  | { readonly kind: "text"; text: string }
  | { readonly kind: "tool"; readonly call: number; readonly id: string; readonly name: string; text: string }
  | { readonly kind: "whole"; readonly block: Contract.AnswerBlock }

/** What the events add up to, block by block in their order. */
const toBlocks = (events: ReadonlyArray<ModelEvent>): ReadonlyArray<Contract.AnswerBlock> => {
  const blocks: Array<OpenBlock> = []
  const thinking = (): Thinking => {
    const last = blocks.at(-1)
    if (last?.kind === "thinking" && last.signature === undefined) return last
    const block: Thinking = { kind: "thinking", text: "", signature: undefined }
    blocks.push(block)
    return block
  }
  for (const event of events) {
    switch (event.type) {
      case "text":
      case "refusal": {
        const last = blocks.at(-1)
        if (last?.kind === "text") last.text += event.delta
        else blocks.push({ kind: "text", text: event.delta })
        break
      }
      case "reasoning":
        thinking().text += event.delta
        break
      case "signature": {
        const block = toRedacted(event.signature)
        if (block === undefined) thinking().signature = Signature.toClient(event.signature, "anthropic")
        else blocks.push({ kind: "whole", block })
        break
      }
      case "media":
        blocks.push({ kind: "whole", block: toImage(event.mediaType, event.data) })
        break
      case "toolCall":
        blocks.push({ kind: "tool", call: event.call, id: event.id, name: event.name, text: "" })
        break
      case "toolArguments": {
        const block = blocks.find((block) => block.kind === "tool" && block.call === event.call)
        if (block?.kind === "tool") block.text += event.delta
      }
    }
  }
  return blocks.map((block) => {
    switch (block.kind) {
      case "text":
        return { type: "text", text: block.text }
      case "thinking":
        return { type: "thinking", thinking: block.text, signature: block.signature ?? "" }
      case "tool":
        return { type: "tool_use", id: block.id, name: block.name, input: ToolCalls.toObject(block.text) }
      case "whole":
        return block.block
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
      case "refusal":
        return begin + this.#block("text", { type: "text", text: "" }) +
          this.#delta({ type: "text_delta", text: event.delta })
      case "reasoning":
        return begin + this.#block("thinking", { type: "thinking", thinking: "", signature: "" }) +
          this.#delta({ type: "thinking_delta", thinking: event.delta })
      case "signature": {
        const block = toRedacted(event.signature)
        if (block !== undefined) return begin + this.#whole(block)
        const signature = Signature.toClient(event.signature, "anthropic")
        return begin + this.#block("thinking", { type: "thinking", thinking: "", signature: "" }) +
          this.#delta({ type: "signature_delta", signature }) + this.#close()
      }
      case "media":
        return begin + this.#whole(toImage(event.mediaType, event.data))
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

  /** A block that comes in one piece. */
  #whole(block: Contract.AnswerBlock): string {
    const closed = this.#close()
    this.#index++
    return closed + frame("content_block_start", { index: this.#index, content_block: block }) +
      frame("content_block_stop", { index: this.#index })
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

export const messages: ClientDialect<Contract.MessagesRequest> = {
  operation: Contract.messages.name,
  request: Contract.MessagesRequest,
  settings,
  fates,
  toConversation,
  streams: (request) => request.stream === true,
  encoder: (_request, identity) => new AnswerFrames(identity)
}
