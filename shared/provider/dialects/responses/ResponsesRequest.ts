/** Decodes requests in the responses dialect. */
import type * as Contract from "../../../contract/operations/Responses.ts"
import {
  type AnswerFormat,
  cacheOf,
  type ContentPart,
  type Conversation,
  reasoningOf,
  type SettingNames,
  textTurn,
  type ToolCall,
  type ToolChoice,
  toSchemaFormat,
  type Turn
} from "../conversation/Conversation.ts"
import { carried, type Fate, type Losses, meaning, noSuchTool } from "../conversation/Losses.ts"
import { fromUrl, sentFile, typeOfName } from "../conversation/Media.ts"
import { userOf } from "../openai/ChatCompletionsRequest.ts"
import * as Signature from "../conversation/Signature.ts"
import * as CustomTools from "../openai/CustomTools.ts"
import * as Tools from "./ResponsesTools.ts"

export const settings: SettingNames = {
  temperature: "temperature",
  topP: "top_p",
  maxTokens: "max_output_tokens",
  reasoning: "reasoning.effort",
  format: "text.format",
  toolChoice: "tool_choice",
  parallelToolCalls: "parallel_tool_calls",
  user: "user",
  cache: "prompt_cache_key"
}

const content: Fate = [{
  ...carried("type", "text", "refusal", "image_url", "file_id", "detail", "filename", "file_data", "file_url"),
  input_audio: carried("data", "format")
}]

const tool = carried("type", "name", "description", "parameters", "strict", "format")
const tools: Fate = [{ ...tool, tools: [tool] }]

/** The answer repeats the metadata. */
export const fates: Fate = {
  ...carried("model", "stream", "instructions", "tool_choice", "parallel_tool_calls", "max_output_tokens"),
  ...carried(
    "temperature",
    "top_p",
    "top_logprobs",
    "user",
    "safety_identifier",
    "include",
    "truncation",
    "metadata",
    "prompt_cache_key",
    "store"
  ),
  input: [{
    ...carried("type", "role", "id", "status", "call_id", "name", "namespace", "arguments", "input"),
    ...carried("encrypted_content", "result", "output_format"),
    summary: [carried("type", "text")],
    content,
    output: content,
    tools
  }],
  tools,
  reasoning: carried("effort", "summary"),
  text: { format: carried("type", "name", "description", "schema", "strict") },
  ...meaning("conversation", "previous_response_id", "background", "prompt", "moderation")
}

export const toConversation = (request: Contract.ResponsesRequest, losses: Losses): Conversation => {
  const { include, input, instructions, text, tool_choice: choice, top_logprobs: logprobs, truncation } = request
  if (logprobs) losses.refuse("top_logprobs")
  if (truncation && truncation !== "disabled") losses.warn("truncation")
  for (const [index, name] of (include ?? []).entries()) {
    if (name !== encryptedReasoning) losses.warn(`include[${index}]`)
  }
  const { hosted, own } = Tools.toolsIn(request)
  for (const { path, type } of hosted) {
    if (type === "tool_search") losses.refuseTool(path)
    else losses.warn(path, noSuchTool)
  }
  const tools = own.filter(allowedBy(choice))
  const turns = [
    ...(instructions ? [textTurn("system", instructions, "instructions")] : []),
    ...(typeof input === "string" ? [textTurn("user", input, "input")] : toTurns(input ?? [], losses))
  ]
  if (turns.length === 0) losses.refuse("input", "must have at least one item")
  return {
    turns,
    tools: tools.map((tool) => Tools.toDefinition(tool, losses)),
    toolChoice: toToolChoice(choice, tools, hosted.length > 0, losses),
    parallelToolCalls: request.parallel_tool_calls ?? undefined,
    format: toFormat(text?.format),
    stop: [],
    maxTokens: request.max_output_tokens ?? undefined,
    choices: 1,
    sampling: { temperature: request.temperature ?? undefined, topP: request.top_p ?? undefined },
    reasoning: request.reasoning?.effort
      ? reasoningOf(request.reasoning.effort, "reasoning.effort", losses)
      : undefined,
    summary: request.reasoning?.summary
      ? { kind: request.reasoning.summary, path: "reasoning.summary" }
      : undefined,
    user: userOf(request, losses),
    cache: cacheOf(request)
  }
}

/** Asks for reasoning that later requests can send back. */
export const encryptedReasoning = "reasoning.encrypted_content"

// Items

type Item = Contract.InputItem
/** Items are told apart by their type, which messages may lack. */
type Typed<T extends string> = Extract<Item, { readonly type: T }>
const isOf = <T extends Exclude<Item["type"], undefined | null>>(item: Item, type: T): item is Typed<T> =>
  item.type === type

interface AssistantTurn extends Turn {
  readonly role: "assistant"
  readonly content: Array<ContentPart>
  readonly toolCalls: Array<ToolCall>
}

/** What the model has written between two other messages becomes one turn: its reasoning, its text and its calls. */
const toTurns = (items: ReadonlyArray<Item>, losses: Losses): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  let open: AssistantTurn | undefined
  const assistant = (path: string): AssistantTurn => {
    if (open === undefined) turns.push(open = { role: "assistant", content: [], toolCalls: [], path })
    return open
  }
  const add = (turn: Turn): void => {
    open = undefined
    turns.push(turn)
  }
  for (const [index, item] of items.entries()) {
    const path = `input[${index}]`
    if ("role" in item) {
      const parts = toParts(item.content, `${path}.content`)
      if (item.role === "assistant") { for (const part of parts) assistant(path).content.push(part) }
      else add({ role: item.role === "user" ? "user" : "system", content: parts, toolCalls: [], path })
    } else if (isOf(item, "function_call")) {
      const name = Tools.functionNameOf(item.name, item.namespace)
      assistant(path).toolCalls.push({ id: item.call_id, name, arguments: item.arguments })
    } else if (isOf(item, "custom_tool_call")) {
      const name = Tools.functionNameOf(item.name, item.namespace)
      assistant(path).toolCalls.push({ id: item.call_id, name, arguments: CustomTools.toArguments(item.input) })
    } else if (isOf(item, "function_call_output") || isOf(item, "custom_tool_call_output")) {
      add({
        role: "tool",
        content: toParts(item.output, `${path}.output`),
        toolCalls: [],
        toolCallId: item.call_id,
        path
      })
    } else if (isOf(item, "reasoning")) {
      if (item.summary?.length && item.content?.length) losses.warn(`${path}.content`, "gives way to the summary")
      const reasoning = toReasoning(item, path)
      if (reasoning === undefined) losses.warn(path, "is reasoning without a text")
      else assistant(path).content.push(reasoning)
    } else if (isOf(item, "image_generation_call")) {
      const media = { type: "base64", data: item.result ?? "" } as const
      assistant(path).content.push({ type: "image", mediaType: `image/${item.output_format ?? "png"}`, media, path })
    } else if (isOf(item, "compaction")) losses.warn(path, "was sealed by another service")
    else if (item.type?.startsWith("tool_search")) losses.refuseTool(path)
    else if (item.type !== "additional_tools") losses.warn(path)
  }
  return turns
}

const toReasoning = (
  { content, encrypted_content: sealed, summary }: Typed<"reasoning">,
  path: string
): ContentPart | undefined => {
  const parts = summary && summary.length > 0 ? summary : content ?? []
  const text = parts.map(({ text }) => text).join("\n\n")
  const signature = sealed ? Signature.fromClient(sealed, "responses") : undefined
  return text === "" && signature === undefined ? undefined : { type: "reasoning", text, signature, path }
}

const toParts = (content: Contract.Content, path: string): Array<ContentPart> =>
  typeof content === "string"
    ? [{ type: "text", text: content, path }]
    : content.map((part, index) => toPart(part, `${path}[${index}]`))

const toPart = (part: Contract.ContentPart, path: string): ContentPart => {
  switch (part.type) {
    case "refusal":
      return { type: "text", text: part.refusal, path }
    case "input_image": {
      const { detail, file_id: id, image_url: url } = part
      const place = url ? fromUrl(url) : { mediaType: "", media: uploaded(id) }
      return { type: "image", ...place, detail: detail ?? undefined, path }
    }
    case "input_file": {
      const { file_data: data, file_id: id, file_url: url, filename } = part
      const name = filename ?? undefined
      const byName = typeOfName(name ?? url?.replace(/[?#].*$/s, "") ?? "")
      if (!data) {
        const media = url ? { type: "url" as const, url } : uploaded(id)
        return { type: "file", name, mediaType: byName, media, path }
      }
      return sentFile(data, { name, byName, path })
    }
    case "input_audio": {
      const { data, format } = part.input_audio
      return { type: "file", mediaType: `audio/${format}`, name: undefined, media: { type: "base64", data }, path }
    }
    default:
      return { type: "text", text: part.text, path }
  }
}

const uploaded = (id: string | null | undefined) => id ? { type: "id" as const, id } : { type: "none" as const }

// Settings

type Choice = Contract.ResponsesRequest["tool_choice"]
type AllowedTools = Extract<Choice, { readonly mode: unknown }>

const isAllowedTools = (choice: Choice): choice is AllowedTools =>
  typeof choice === "object" && choice?.type === "allowed_tools"

const isNamed = (choice: object): choice is { readonly type: string; readonly name: string } => "name" in choice

/** Other dialects cannot restrict the model to some of the tools, so they get only the allowed ones. */
const allowedBy = (choice: Choice): (own: Tools.OwnTool) => boolean => {
  if (!isAllowedTools(choice)) return () => true
  const allowed = new Set(choice.tools.map(({ name, type }) => `${String(type)} ${String(name)}`))
  return ({ namespace, tool }) => allowed.has(`${tool.type} ${tool.name}`) || allowed.has(`namespace ${namespace}`)
}

const toToolChoice = (
  choice: Choice,
  tools: ReadonlyArray<Tools.OwnTool>,
  hasHosted: boolean,
  losses: Losses
): ToolChoice => {
  const mode = isAllowedTools(choice) ? choice.mode : choice ?? "auto"
  if (typeof mode === "string") {
    // what must be called can only be a tool that was left out
    if (mode === "required" && tools.length === 0 && hasHosted) losses.refuseTool("tool_choice")
    return { type: mode === "auto" && tools.length === 0 ? "none" : mode }
  }
  if (isNamed(mode)) {
    const named = tools.find(({ tool }) => tool.type === mode.type && tool.name === mode.name)
    return { type: "tool", name: named?.functionName ?? mode.name }
  }
  losses.refuseTool("tool_choice")
  return { type: "none" }
}

const toFormat = (format: NonNullable<Contract.ResponsesRequest["text"]>["format"]): AnswerFormat => {
  switch (format?.type) {
    case "json_object":
      return { type: "json" }
    case "json_schema":
      return toSchemaFormat({ ...format }, "text.format")
    default:
      return { type: "text" }
  }
}
