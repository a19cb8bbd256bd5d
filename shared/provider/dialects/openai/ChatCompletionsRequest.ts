/** Decodes requests in the chat completions dialect. */
import type * as Contract from "../../../contract/operations/ChatCompletions.ts"
import type { CompletionRequest } from "../../../contract/operations/Completions.ts"
import type { CompactionItem } from "../../../contract/operations/CompactionItem.ts"
import { string } from "../../json/Json.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  Modality,
  Sampling,
  SettingNames,
  ToolChoice,
  Turn
} from "../conversation/Conversation.ts"
import { carried, type Fate, type Losses, meaning } from "../conversation/Losses.ts"
import { fromUrl, typeOfName } from "../conversation/Media.ts"
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
  user: "user"
}

export const fates: Fate = {
  ...carried("model", "stream"),
  stream_options: carried("include_usage"),
  messages: [{
    ...carried("role", "type"),
    content: [{
      ...carried("type", "text", "refusal"),
      image_url: carried("url", "detail"),
      input_audio: carried("data", "format"),
      file: carried("filename", "file_data", "file_id"),
      video_url: carried("url")
    }],
    tool_calls: [{ id: "carried", type: "carried", function: carried("name", "arguments") }],
    ...carried("tool_call_id", "reasoning_content", "reasoning_details", "refusal"),
    ...meaning("audio", "function_call"),
    // of a compaction by another service
    ...carried("encrypted_content", "id")
  }],
  ...carried(...Object.values(settings), "max_completion_tokens"),
  tools: [{ type: "carried", function: carried("name", "description", "parameters", "strict") }],
  response_format: { type: "carried", json_schema: carried("name", "description", "schema", "strict") },
  ...meaning("logit_bias", "logprobs", "top_logprobs", "functions", "function_call", "web_search_options")
}

export const toConversation = (request: Contract.ChatCompletionRequest, losses: Losses): Conversation => ({
  turns: request.messages.flatMap((message, index) => {
    const path = `messages[${index}]`
    if (!isEncrypted(message)) return [toTurn(toMessage(message), path)]
    // compactions of this gateway are already expanded; only their own service can decrypt others
    losses.warn(path, "was sealed by another service")
    return []
  }),
  tools: (request.tools ?? []).map(({ function: tool }, index) => ({
    name: tool.name,
    description: tool.description ?? undefined,
    parameters: tool.parameters ?? {},
    ...(tool.strict === true ? { strict: true } : {}),
    path: `tools[${index}]`
  })),
  toolChoice: toToolChoice(request),
  parallelToolCalls: request.parallel_tool_calls ?? undefined,
  format: toFormat(request.response_format),
  stop: typeof request.stop === "string" ? [request.stop] : request.stop ?? [],
  maxTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
  choices: request.n ?? 1,
  seed: request.seed ?? undefined,
  sampling: toSampling(request),
  reasoning: request.reasoning_effort ? { type: "effort", effort: request.reasoning_effort } : undefined,
  modalities: toModalities(request, losses),
  user: request.user ?? undefined
})

export const toSampling = (request: Contract.ChatCompletionRequest | CompletionRequest): Sampling => ({
  temperature: request.temperature ?? undefined,
  topP: request.top_p ?? undefined,
  presencePenalty: request.presence_penalty ?? undefined,
  frequencyPenalty: request.frequency_penalty ?? undefined
})

type AnyMessage = Contract.ChatCompletionRequest["messages"][number]

const isEncrypted = (message: AnyMessage): message is CompactionItem => "encrypted_content" in message

/** Converts messages of the responses format to this dialect. */
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

const toTurn = (message: Contract.Message, path: string): Turn => ({
  role: message.role === "developer" ? "system" : message.role,
  content: [
    ...toReasoning(message, path),
    ...(typeof message.content === "string"
      ? [{ type: "text" as const, text: message.content, path: `${path}.content` }]
      : (message.content ?? []).map((part, index) => toPart(part, `${path}.content[${index}]`))),
    ...(message.refusal ? [{ type: "text" as const, text: message.refusal, path: `${path}.refusal` }] : [])
  ],
  toolCalls: (message.tool_calls ?? []).map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: call.function.arguments
  })),
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
  const { media, mediaType } = fromUrl(data)
  return {
    type: "file",
    name,
    mediaType: mediaType === "" ? byName : mediaType,
    media: media.type === "url" ? { type: "base64", data } : media,
    path
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
    case "json_schema": {
      const { description, name, schema, strict } = format.json_schema
      return {
        type: "jsonSchema",
        schema: schema ?? {},
        ...(typeof name === "string" ? { name } : {}),
        ...(typeof description === "string" ? { description } : {}),
        ...(strict === true ? { strict } : {})
      }
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
