/** A client's request in the chat completions dialect, as the canonical conversation. */
import type * as Contract from "../../../contract/operations/ChatCompletions.ts"
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
import type { Fate, Losses } from "../conversation/Losses.ts"
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
  model: "carried",
  stream: "carried",
  stream_options: { include_usage: "carried" },
  messages: [{
    role: "carried",
    type: "carried",
    content: [{
      type: "carried",
      text: "carried",
      refusal: "carried",
      image_url: { url: "carried", detail: "carried" },
      input_audio: { data: "carried", format: "carried" },
      file: { filename: "carried", file_data: "carried", file_id: "carried" },
      video_url: { url: "carried" }
    }],
    tool_calls: [{ id: "carried", type: "carried", function: { name: "carried", arguments: "carried" } }],
    tool_call_id: "carried",
    reasoning_content: "carried",
    reasoning_details: "carried",
    refusal: "carried",
    audio: "meaning",
    function_call: "meaning",
    // sealed by another service
    encrypted_content: "carried",
    id: "carried"
  }],
  temperature: "carried",
  top_p: "carried",
  n: "carried",
  stop: "carried",
  max_tokens: "carried",
  max_completion_tokens: "carried",
  presence_penalty: "carried",
  frequency_penalty: "carried",
  seed: "carried",
  reasoning_effort: "carried",
  user: "carried",
  tools: [{
    type: "carried",
    function: { name: "carried", description: "carried", parameters: "carried", strict: "carried" }
  }],
  tool_choice: "carried",
  parallel_tool_calls: "carried",
  response_format: {
    type: "carried",
    json_schema: { name: "carried", description: "carried", schema: "carried", strict: "carried" }
  },
  modalities: "carried",
  logit_bias: "meaning",
  logprobs: "meaning",
  top_logprobs: "meaning",
  functions: "meaning",
  function_call: "meaning",
  web_search_options: "meaning"
}

export const toConversation = (request: Contract.ChatCompletionRequest, losses: Losses): Conversation => ({
  turns: request.messages.flatMap((message, index) => {
    const path = `messages[${index}]`
    if (!isSealed(message)) return [toTurn(toMessage(message), path)]
    // what this gateway has sealed is open by now; what others have sealed only they can read
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

/** Completions have the same fields. */
export const toSampling = (
  request: Pick<
    Contract.ChatCompletionRequest,
    "frequency_penalty" | "presence_penalty" | "temperature" | "top_p"
  >
): Sampling => ({
  temperature: request.temperature ?? undefined,
  topP: request.top_p ?? undefined,
  topK: undefined,
  presencePenalty: request.presence_penalty ?? undefined,
  frequencyPenalty: request.frequency_penalty ?? undefined
})

type AnyMessage = Contract.ChatCompletionRequest["messages"][number]

const isSealed = (message: AnyMessage): message is CompactionItem => "encrypted_content" in message

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

/** The details hold all that the content holds, and the signatures besides. */
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

/** Its data may be a data URL, or base64 alone. */
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

const toModalities = (
  { modalities }: Contract.ChatCompletionRequest,
  losses: Losses
): ReadonlyArray<Modality> | undefined => {
  if (modalities === undefined || modalities === null) return undefined
  for (const name of modalities) if (!isModality(name)) losses.refuse("modalities")
  return modalities.filter(isModality)
}
