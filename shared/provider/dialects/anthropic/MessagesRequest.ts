/** Decodes requests in the messages dialect. */
import { Predicate } from "effect"
import type * as Contract from "../../../contract/operations/Messages.ts"
import { string } from "../../json/Json.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  Media,
  Reasoning,
  SettingNames,
  ToolChoice,
  ToolDefinition,
  Turn
} from "../conversation/Conversation.ts"
import { reasoningOf, textTurn, toSchemaFormat } from "../conversation/Conversation.ts"
import { carried, type Fate, type Losses, meaning } from "../conversation/Losses.ts"
import * as Signature from "../conversation/Signature.ts"
import { markOf, toolNames, toTools } from "./MessagesTools.ts"

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
  user: "metadata.user_id",
  cache: "cache_control"
}

const block = {
  ...carried("type", "text", "title", "cache_control"),
  source: carried("type", "media_type", "data", "url", "file_id", "content"),
  // the answer would cite its sources
  citations: { enabled: "meaning" }
} as const

export const fates: Fate = {
  ...carried("model", "stream"),
  system: [block],
  messages: [{
    ...carried("role", "clear_at"),
    output_config: carried("effort"),
    content: [{
      ...block,
      ...carried("id", "name", "input", "tool_use_id", "tool"),
      content: [{ ...block, ...carried("tool_name") }],
      ...carried("is_error", "thinking", "signature", "data")
    }]
  }],
  ...carried("max_tokens", "temperature", "top_p", "top_k", "stop_sequences"),
  tools: [carried("type", "name", "description", "input_schema", "strict", "cache_control")],
  tool_choice: carried("type", "name", "disable_parallel_tool_use"),
  thinking: carried("type", "budget_tokens"),
  output_config: carried("format", "effort"),
  output_format: "carried",
  metadata: carried("user_id"),
  ...carried("cache_control", "thread", "compaction"),
  ...meaning("container", "inference_geo", "mcp_servers")
}

export const toConversation = (request: Contract.MessagesRequest, losses: Losses): Conversation => {
  refuseServerState(request, losses)
  const tools = toTools(request, losses)
  const lastUser = request.messages.findLastIndex(({ role }) => role === "user")
  return {
    turns: [
      ...systemTurn(request.system),
      ...request.messages.flatMap((message, index) => {
        const path = `messages[${index}]`
        return message.role === "system"
          ? instructionTurns(message, path, index < lastUser)
          : toTurns(message, path, toolNames(tools), losses)
      })
    ],
    tools,
    toolChoice: toToolChoice(request, tools),
    parallelToolCalls: isOneAtATime(request) ? false : undefined,
    format: toFormat(request, losses),
    stop: request.stop_sequences ?? [],
    maxTokens: request.max_tokens,
    choices: 1,
    sampling: {
      temperature: request.temperature ?? undefined,
      topP: request.top_p ?? undefined,
      topK: request.top_k ?? undefined
    },
    reasoning: toReasoning(request, losses),
    user: request.metadata?.user_id ?? undefined,
    ...markOf(request)
  }
}

/** What is wrong with a thread. Official clients know the code and go on without threads. */
export const noThreads = {
  problem: "is not supported by this model: send the whole conversation without `thread`",
  details: { error_code: "thread_unsupported_request", unsupported: ["thread"] }
}

/** Refuses what asks the provider to keep or to change the conversation: without it, the answer would mean something else. */
const refuseServerState = ({ compaction, thread }: Contract.MessagesRequest, losses: Losses): void => {
  if (thread) losses.refuseAlways("thread", noThreads.problem, noThreads.details)
  if (compaction) losses.refuseAlways("compaction", "is not supported by this model: leave it out")
}

const systemTurn = (system: Contract.MessagesRequest["system"]): ReadonlyArray<Turn> => {
  if (system === undefined || system === null) return []
  if (typeof system === "string") return [textTurn("system", system, "system")]
  const content = system.map((block, index) => ({
    type: "text" as const,
    text: block.text,
    ...markOf(block),
    path: `system[${index}]`
  }))
  return [{ role: "system", content, toolCalls: [], path: "system" }]
}

/** The instructions of a message in the course of the conversation. `isOver`: the user has sent a message since. */
const instructionTurns = (
  { clear_at: cleared, content }: Contract.SystemMessage,
  path: string,
  isOver: boolean
): ReadonlyArray<Turn> => {
  if (cleared === "next_user_message" && isOver) return []
  if (content === undefined || content === null) return []
  if (typeof content === "string") return [textTurn("system", content, path)]
  const texts = content.flatMap((block, index) =>
    block.type === "text"
      ? [{ type: "text" as const, text: block.text, ...markOf(block), path: `${path}.content[${index}]` }]
      : []
  )
  return texts.length === 0 ? [] : [{ role: "system", content: texts, toolCalls: [], path }]
}

/** A message may contain tool results beside the user's text: each result becomes a separate turn. */
const toTurns = (
  message: Exclude<Contract.Message, Contract.SystemMessage>,
  path: string,
  tools: ReadonlySet<string>,
  losses: Losses
): ReadonlyArray<Turn> => {
  if (typeof message.content === "string") return [textTurn(message.role, message.content, path)]
  const blocks = message.content.map((block, index) => ({ block, path: `${path}.content[${index}]` }))
  const results = blocks.flatMap(({ block, path }): ReadonlyArray<Turn> =>
    block.type !== "tool_result" ? [] : [{
      role: "tool",
      content: resultParts(block.content, path, tools, losses),
      toolCalls: [],
      toolCallId: block.tool_use_id,
      ...(block.is_error === true ? { failed: true } : {}),
      ...markOf(block),
      path
    }]
  )
  const content = blocks.flatMap(({ block, path }) => toParts(block, path, losses))
  const toolCalls = blocks.flatMap(({ block, path }) =>
    block.type === "tool_use"
      ? [{ id: block.id, name: block.name, arguments: JSON.stringify(block.input), ...markOf(block), path }]
      : []
  )
  if (content.length === 0 && toolCalls.length === 0) return results
  return [...results, { role: message.role, content, toolCalls, path }]
}

const toParts = (
  block: Contract.ContentBlock | Contract.ResultBlock,
  path: string,
  losses: Losses
): ReadonlyArray<ContentPart> => {
  switch (block.type) {
    case "text":
      return [{ type: "text", text: block.text, ...markOf(block), path }]
    case "image":
      return [
        {
          type: "image",
          mediaType: block.source.type === "url" ? "" : block.source.media_type,
          media: block.source,
          ...markOf(block),
          path
        }
      ]
    case "document":
      return [{ ...toFile(block, path), ...markOf(block) }]
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
    case "fallback":
      losses.warn(path)
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
  const name = title ?? undefined
  const file = (mediaType: string, media: Media): ContentPart => ({ type: "file", mediaType, name, media, path })
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

const resultParts = (
  content: ToolResultContent,
  path: string,
  tools: ReadonlySet<string>,
  losses: Losses
): ReadonlyArray<ContentPart> => {
  if (content === undefined || content === null) return []
  if (typeof content === "string") return [{ type: "text", text: content, path }]
  return content.flatMap((block, index) => {
    const at = `${path}.content[${index}]`
    // a search of the client found a tool, which the provider already has
    return block.type === "tool_reference" && block.tool_name !== undefined && tools.has(block.tool_name)
      ? [{ type: "text" as const, text: `The tool ${block.tool_name} is available.`, path: at }]
      : toParts(block, at, losses)
  })
}

const toToolChoice = (
  { tool_choice: choice }: Contract.MessagesRequest,
  tools: ReadonlyArray<ToolDefinition>
): ToolChoice => {
  switch (choice?.type) {
    case "tool":
      return { type: "tool", name: choice.name }
    case "any":
      return { type: "required" }
    case "none":
      return { type: "none" }
    default:
      return { type: tools.length > 0 ? "auto" : "none" }
  }
}

const isOneAtATime = ({ tool_choice: choice }: Contract.MessagesRequest): boolean =>
  choice !== undefined && choice !== null && "disable_parallel_tool_use" in choice &&
  choice.disable_parallel_tool_use === true

/** A format of another type than `json_schema` is a bare schema. */
const toFormat = ({ output_config, output_format: older }: Contract.MessagesRequest, losses: Losses): AnswerFormat => {
  const path = "output_config.format"
  const newer = output_config?.format
  if (isGiven(newer)) {
    if (isGiven(older)) losses.warn("output_format", `gives way to ${path}`)
    return formatOf(newer, path)
  }
  return isGiven(older) ? formatOf(older, "output_format") : { type: "text" }
}

type SentFormat = NonNullable<Contract.MessagesRequest["output_format"]>

const isGiven = (format: SentFormat | null | undefined): format is SentFormat => Object.keys(format ?? {}).length > 0

const formatOf = (format: SentFormat, path: string): AnswerFormat => {
  const { json_schema: named, type, ...rest } = format
  const schema = type !== "json_schema" ? { schema: format } : Predicate.isReadonlyObject(named) ? named : rest
  return toSchemaFormat(schema, path)
}

/** The effort in force: the latest one. */
const effortOf = (
  { messages, output_config }: Contract.MessagesRequest
): { readonly effort: string | undefined; readonly path: string } => {
  const index = messages.findLastIndex((message) => message.role === "system" && message.output_config?.effort)
  const changed = messages[index]
  return changed?.role === "system"
    ? { effort: changed.output_config?.effort ?? undefined, path: `messages[${index}].output_config.effort` }
    : { effort: output_config?.effort ?? undefined, path: "output_config.effort" }
}

const toReasoning = (request: Contract.MessagesRequest, losses: Losses): Reasoning | undefined => {
  const { thinking } = request
  const { effort, path } = effortOf(request)
  if (thinking?.type === "enabled") {
    if (effort !== undefined) losses.warn(path, "gives way to thinking.budget_tokens")
    return { type: "budget", tokens: thinking.budget_tokens }
  }
  if (thinking?.type === "disabled") return { type: "off" }
  if (effort !== undefined) {
    losses.rename("reasoning", path)
    return reasoningOf(effort, path, losses)
  }
  if (thinking?.type === "between_tools") losses.warn("thinking.type", "was taken as adaptive")
  return thinking ? { type: "auto" } : undefined
}
