/** Decodes requests in the chat completions dialect. */
import type { Tool } from "../../../contract/operations/chat/ChatTools.ts"
import type * as Contract from "../../../contract/operations/ChatCompletions.ts"
import type { CompletionRequest } from "../../../contract/operations/Completions.ts"
import type { CompactionItem } from "../../../contract/CompactionItem.ts"
import { fields, string } from "../../json/Json.ts"
import type {
  AnswerFormat,
  CacheControl,
  ContentPart,
  Conversation,
  Modality,
  Sampling,
  SettingNames,
  ToolChoice,
  ToolDefinition,
  Turn
} from "../conversation/Conversation.ts"
import { cacheOf, reasoningOf, toSchemaFormat } from "../conversation/Conversation.ts"
import * as CustomTools from "./CustomTools.ts"
import { carried, type Fate, type Losses, meaning } from "../conversation/Losses.ts"
import { fromUrl, sentFile, typeOfName } from "../conversation/Media.ts"
import * as Signature from "../conversation/Signature.ts"

export const settings: SettingNames = {
  temperature: "temperature",
  topP: "top_p",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  seed: "seed",
  stop: "stop",
  maxTokens: "max_tokens",
  choices: "n",
  reasoning: "reasoning_effort",
  format: "response_format",
  toolChoice: "tool_choice",
  parallelToolCalls: "parallel_tool_calls",
  modalities: "modalities",
  user: "user",
  cache: "prompt_cache_key"
}

const namedTool: Fate = { type: "carried", function: carried("name"), custom: carried("name") }

export const fates: Fate = {
  ...carried("model", "stream"),
  stream_options: carried("include_usage"),
  messages: [{
    ...carried("role", "type", "cache_control"),
    content: [{
      ...carried("type", "text", "refusal", "cache_control"),
      image_url: carried("url", "detail"),
      input_audio: carried("data", "format"),
      file: carried("filename", "file_data", "file_id"),
      video_url: carried("url")
    }],
    tool_calls: [{
      ...carried("id", "type", "extra_content"),
      function: carried("name", "arguments"),
      custom: carried("name", "input")
    }],
    ...carried("tool_call_id", "reasoning_content", "reasoning_details", "refusal"),
    ...meaning("audio", "function_call"),
    // of a compaction by another service
    ...carried("encrypted_content", "id")
  }],
  ...carried(...Object.values(settings), "max_completion_tokens"),
  tool_choice: { ...namedTool, allowed_tools: { mode: "carried", tools: [namedTool] } },
  tools: [{
    ...carried("type", "cache_control"),
    function: carried("name", "description", "parameters", "strict"),
    custom: carried("name", "description", "format")
  }],
  response_format: carried("type", "json_schema", "schema"),
  ...meaning("logit_bias", "logprobs", "top_logprobs", "functions", "function_call", "web_search_options"),
  ...meaning("moderation"),
  safety_identifier: "carried"
}

/** The end user's id in either field. */
export const userOf = (
  { safety_identifier: newer, user }: {
    readonly safety_identifier?: string | null
    readonly user?: string | null
  },
  losses: Losses
): string | undefined => {
  if (!newer) return user ?? undefined
  if (!user) losses.rename("user", "safety_identifier")
  else if (user !== newer) losses.warn("safety_identifier", "gives way to user")
  return user || newer
}

export const toConversation = (request: Contract.ChatCompletionRequest, losses: Losses): Conversation => {
  const isAllowed = allowedBy(request.tool_choice)
  return {
    turns: request.messages.flatMap((message, index) => {
      const path = `messages[${index}]`
      if (!isEncrypted(message)) {
        const own = toMessage(message)
        for (const [field, role] of fieldsOfRoles) {
          if (own[field] && own.role !== role) {
            losses.warn(`${path}.${field}`, `belongs to messages of the role ${role}`)
          }
        }
        return [withMark(toTurn(own, path), own, losses)]
      }
      // compactions of this gateway are already expanded; only their own service can decrypt others
      losses.warn(path, "was sealed by another service")
      return []
    }),
    tools: (request.tools ?? []).flatMap((tool, index) => {
      const path = `tools[${index}]`
      const own = toDefinition(tool, path, losses)
      if (own === undefined) losses.refuseTool(path)
      return own === undefined || !isAllowed(tool) ? [] : [own]
    }),
    toolChoice: toToolChoice(request, losses),
    parallelToolCalls: request.parallel_tool_calls ?? undefined,
    format: toFormat(request.response_format),
    stop: typeof request.stop === "string" ? [request.stop] : request.stop ?? [],
    maxTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    choices: request.n ?? 1,
    seed: request.seed ?? undefined,
    sampling: toSampling(request),
    reasoning: request.reasoning_effort
      ? reasoningOf(request.reasoning_effort, "reasoning_effort", losses)
      : undefined,
    modalities: toModalities(request, losses),
    user: userOf(request, losses),
    cache: cacheOf(request)
  }
}

/** `undefined` for a tool of the provider. */
const toDefinition = (tool: Tool, path: string, losses: Losses): ToolDefinition | undefined => {
  if ("custom" in tool) {
    const { name } = tool.custom
    const place = { name, path, formatPath: `${path}.custom.format` }
    return { ...CustomTools.toDefinition(tool.custom, place, losses), ...markOf(tool) }
  }
  if (!("function" in tool)) return undefined
  const { description, name, parameters, strict } = tool.function
  return {
    name,
    description: description ?? undefined,
    parameters: parameters ?? {},
    ...(strict === true ? { strict } : {}),
    ...markOf(tool),
    path
  }
}

const markOf = ({ cache_control: cache }: { readonly cache_control?: CacheControl | null }) => cache ? { cache } : {}

/** A message's mark belongs to a tool's whole result, or to the last call or part of another message that can have one. */
const withMark = (turn: Turn, message: Contract.Message, losses: Losses): Turn => {
  const mark = markOf(message)
  if (turn.role === "tool" || mark.cache === undefined) return { ...turn, ...mark }
  const { content, path = "", toolCalls } = turn
  const marked = <A>(all: ReadonlyArray<A>, at: number) =>
    all.map((each, index) => index === at ? { ...each, ...mark } : each)
  if (toolCalls.length > 0) return { ...turn, toolCalls: marked(toolCalls, toolCalls.length - 1) }
  const last = content.findLastIndex((part) => part.type !== "reasoning" && (part.type !== "text" || part.text !== ""))
  if (last === -1) losses.warn(`${path}.cache_control`)
  return { ...turn, content: marked(content, last) }
}

export const toSampling = (request: Contract.ChatCompletionRequest | CompletionRequest): Sampling => ({
  temperature: request.temperature ?? undefined,
  topP: request.top_p ?? undefined,
  presencePenalty: request.presence_penalty ?? undefined,
  frequencyPenalty: request.frequency_penalty ?? undefined
})

/** Fields of messages of one role. */
const fieldsOfRoles = [
  ["tool_call_id", "tool"],
  ["reasoning_content", "assistant"],
  ["reasoning_details", "assistant"]
] as const satisfies ReadonlyArray<readonly [keyof Contract.Message, Contract.Message["role"]]>

type AnyMessage = Contract.ChatCompletionRequest["messages"][number]

const isEncrypted = (message: AnyMessage): message is CompactionItem => "encrypted_content" in message

/** Converts messages of the responses format to this dialect. */
export const toMessage = (message: Contract.Message | Contract.KeptMessage): Contract.Message =>
  "type" in message ? { role: "user", content: message.content.map(toOwnPart) } : message

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

const toTurn = (message: Contract.Message, path: string): Turn => ({
  role: message.role === "developer" ? "system" : message.role,
  content: [
    ...toReasoning(message, path),
    ...(typeof message.content === "string"
      ? [{ type: "text" as const, text: message.content, path: `${path}.content` }]
      : (message.content ?? []).map((part, index) => ({
        ...toPart(part, `${path}.content[${index}]`),
        ...(part.type === "refusal" ? {} : markOf(part))
      }))),
    ...(message.refusal ? [{ type: "text" as const, text: message.refusal, path: `${path}.refusal` }] : [])
  ],
  toolCalls: (message.tool_calls ?? []).map((call, index) => {
    const at = `${path}.tool_calls[${index}]`
    const { id } = call
    return call.type === "function"
      ? { id, ...call.function, path: at }
      : { id, name: call.custom.name, arguments: CustomTools.toArguments(call.custom.input), path: at }
  }),
  toolCallId: message.tool_call_id ?? undefined,
  path
})

/** `reasoning_details` repeat `reasoning_content` and add the signatures. */
const toReasoning = (message: Contract.Message, path: string): ReadonlyArray<ContentPart> => {
  const details = (message.reasoning_details ?? []).map((detail, index): ContentPart => {
    const signature = string(detail["signature"]) ?? string(detail["data"])
    return {
      type: "reasoning",
      text: string(detail["text"]) ?? "",
      signature: signature === undefined ? undefined : Signature.fromClient(signature, "openai"),
      path: `${path}.reasoning_details[${index}]`
    }
  })
  if (details.length > 0) return details
  const signed = (message.tool_calls ?? []).flatMap((call, index) => {
    const signature = "extra_content" in call ? Signature.signatureIn(call.extra_content) : undefined
    const at = `${path}.tool_calls[${index}].extra_content`
    // without a mark it is Google's own, for Google's own endpoint
    return signature?.startsWith(Signature.wrappedPrefix) === true
      ? [Signature.reasoningOf(Signature.fromClient(signature, "openai"), at)]
      : []
  })
  if (signed.length > 0) return Signature.withoutCopies(signed)
  const text = message.reasoning_content ?? ""
  return text === "" ? [] : [{ type: "reasoning", text, signature: undefined, path: `${path}.reasoning_content` }]
}

const toPart = (part: Contract.ContentPart, path: string): ContentPart => {
  switch (part.type) {
    case "text":
      return { type: "text", text: part.text, path }
    case "refusal":
      return { type: "text", text: part.refusal, path }
    case "image_url":
      return { type: "image", ...fromUrl(part.image_url.url), detail: part.image_url.detail ?? undefined, path }
    case "input_audio": {
      const { data, format } = part.input_audio
      return { type: "file", mediaType: `audio/${format}`, name: undefined, media: { type: "base64", data }, path }
    }
    case "file":
      return toFile(part.file, path)
    case "video_url": {
      const { media, mediaType } = fromUrl(part.video_url.url)
      return { type: "file", mediaType: mediaType === "" ? "video/*" : mediaType, name: undefined, media, path }
    }
  }
}

/** `file_data` is a data URL or base64. */
const toFile = (
  { file_data: data, file_id: id, filename }: typeof Contract.FilePart.Type["file"],
  path: string
): ContentPart => {
  const name = filename ?? undefined
  const byName = typeOfName(name ?? "")
  if (typeof data !== "string") {
    const media = typeof id === "string" ? { type: "id" as const, id } : { type: "none" as const }
    return { type: "file", name, mediaType: byName, media, path }
  }
  return sentFile(data, { name, byName, path })
}

type Choice = Contract.ChatCompletionRequest["tool_choice"]

/** Other dialects cannot restrict the model to some of the tools, so they get only the allowed ones. */
const allowedBy = (choice: Choice): (tool: Tool) => boolean => {
  if (choice === null || typeof choice !== "object" || !("allowed_tools" in choice)) return () => true
  const allowed = identitiesOf(choice.allowed_tools.tools)
  return (tool) => allowed.has(identityOf(tool))
}

/** The type and the name; `undefined` for a tool without a name. */
const identityOf = (tool: object): string | undefined => {
  const { custom, function: own, type } = fields(tool)
  const name = string(fields(own ?? custom)["name"])
  return name === undefined ? undefined : `${String(type)} ${name}`
}

const identitiesOf = (tools: ReadonlyArray<object>): ReadonlySet<string | undefined> => {
  const identities = new Set(tools.map(identityOf))
  identities.delete(undefined)
  return identities
}

const toToolChoice = (
  { tool_choice: choice, tools }: Contract.ChatCompletionRequest,
  losses: Losses
): ToolChoice => {
  if (typeof choice === "string") return { type: choice }
  if (choice && "function" in choice) return { type: "tool", name: choice.function.name }
  if (choice && "custom" in choice) return { type: "tool", name: choice.custom.name }
  if (choice && "allowed_tools" in choice) {
    const { mode, tools: allowed } = choice.allowed_tools
    const known = identitiesOf(tools ?? [])
    for (const [index, one] of allowed.entries()) {
      if (known.has(identityOf(one))) continue
      losses.refuse(`tool_choice.allowed_tools.tools[${index}]`, "is none of `tools`")
    }
    return { type: mode }
  }
  if (choice) losses.refuseTool("tool_choice")
  return { type: (tools ?? []).length > 0 ? "auto" : "none" }
}

const toFormat = (format: Contract.ChatCompletionRequest["response_format"]): AnswerFormat => {
  switch (format?.type) {
    case "json_object":
      return format.schema
        ? { type: "jsonSchema", schema: format.schema, path: "response_format.schema" }
        : { type: "json" }
    case "json_schema": {
      const { json_schema: named, schema } = format
      return named
        ? toSchemaFormat(named, "response_format.json_schema")
        : { type: "jsonSchema", schema, path: "response_format.schema" }
    }
    default:
      return { type: "text" }
  }
}

const knownModalities: ReadonlySet<string> = new Set<Modality>(["text", "image", "audio"])
const isModality = (name: string): name is Modality => knownModalities.has(name)

const toModalities = ({ modalities }: Contract.ChatCompletionRequest, losses: Losses): Conversation["modalities"] => {
  if (modalities === undefined || modalities === null) return undefined
  for (const name of modalities) if (!isModality(name)) losses.refuse("modalities")
  return modalities.filter(isModality)
}
