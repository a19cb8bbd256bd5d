/** Encodes requests to providers of the responses dialect. */
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  ToolChoice,
  ToolDefinition,
  Turn
} from "../conversation/Conversation.ts"
import { isMedia, withoutMarks } from "../conversation/Conversation.ts"
import type { Target } from "../conversation/Dialect.ts"
import { foreignReasoning, type Losses } from "../conversation/Losses.ts"
import { toDataUrl } from "../conversation/Media.ts"
import {
  audioFormats,
  isClosed,
  type Options,
  toEffort,
  toNamedSchema,
  toUser,
  urlOf
} from "../openai/ChatCompletionsProviderRequest.ts"
import { fitted, openAiUser } from "../fitting/Identifiers.ts"
import { withJsonWord } from "../fitting/JsonWord.ts"
import { withPlainRoot } from "../fitting/PlainRoot.ts"
import { fit, openAiRules } from "../fitting/SchemaSubset.ts"
import { encryptedReasoning } from "./ResponsesRequest.ts"

export const toRequest = (
  marked: Conversation,
  { losses, model, session, streams }: Target,
  { encryptedReasoning: returnsReasoning = true, promptCacheKey = false, userField }: typeof Options.Type
): object => {
  const conversation = withoutMarks(promptCacheKey ? { ...marked, cache: undefined } : marked, losses)
  const { format, maxTokens, modalities, reasoning, sampling = {}, seed, stop, summary, tools, user } = conversation
  for (const setting of ["topK", "presencePenalty", "frequencyPenalty"] as const) {
    if (sampling[setting] !== undefined) losses.warnOf(setting)
  }
  if (seed !== undefined) losses.warnOf("seed")
  if (stop.length > 0) losses.refuseOf("stop")
  if (modalities?.some((modality) => modality !== "text") === true) losses.refuseOf("modalities")
  return {
    model,
    input: withJsonWord(conversation).flatMap((turn) => toItems(turn, losses)),
    store: false,
    include: returnsReasoning ? [encryptedReasoning] : undefined,
    ...(streams ? { stream: true } : {}),
    ...(tools.length === 0 ? {} : {
      tools: tools.map((tool) => toTool(tool, losses)),
      tool_choice: toToolChoice(conversation.toolChoice),
      parallel_tool_calls: conversation.parallelToolCalls
    }),
    text: toFormat(format, losses),
    max_output_tokens: toLimit(maxTokens, losses),
    temperature: sampling.temperature,
    top_p: sampling.topP,
    reasoning: reasoning === undefined && summary === undefined
      ? undefined
      : { effort: reasoning && toEffort(reasoning, losses), summary: summary?.kind },
    prompt_cache_key: promptCacheKey ? session : undefined,
    ...toUser(user, userField, losses)
  }
}

/** OpenAI's minimum of `max_output_tokens`. */
const leastTokens = 16

const toLimit = (tokens: number | undefined, losses: Losses): number | undefined => {
  if (tokens === undefined || tokens >= leastTokens) return tokens
  losses.warnOf("maxTokens", `was raised to ${leastTokens}`)
  return leastTokens
}

const toItems = (turn: Turn, losses: Losses): ReadonlyArray<object> => {
  const { content, failed, role, toolCallId, toolCalls } = turn
  const parts = (content: ReadonlyArray<ContentPart>) => content.flatMap((part) => toPart(part, losses))
  switch (role) {
    case "system":
    case "user":
      return content.length === 0 ? [] : [{ type: "message", role, content: parts(content) }]
    case "tool": {
      const output = [...failed === true ? [{ type: "input_text", text: "Error:" }] : [], ...parts(content)]
      return [{ type: "function_call_output", call_id: fitted(toolCallId ?? "", openAiUser), output: asText(output) }]
    }
    case "assistant": {
      const media = content.filter(isMedia)
      return [
        ...content.flatMap((part) => part.type === "reasoning" ? toReasoning(part, losses) : []),
        ...content.flatMap((part) =>
          part.type === "text"
            ? [{ type: "message", role, content: [{ type: "output_text", text: part.text }] }]
            : []
        ),
        ...toolCalls.map(({ arguments: json, id, name }) => ({
          type: "function_call",
          call_id: fitted(id, openAiUser),
          name,
          arguments: json
        })),
        ...media.length === 0 ? [] : [{
          type: "message",
          role: "user",
          content: [{ type: "input_text", text: "From your answer:" }, ...parts(media)]
        }]
      ]
    }
  }
}

/** Only texts become a string, which every server accepts. */
const asText = (parts: ReadonlyArray<object>): unknown => {
  const texts = parts.flatMap((part) => "text" in part ? [part.text] : [])
  return texts.length === parts.length ? texts.join("\n\n") : parts
}

const toReasoning = (
  { path = "", signature, text }: Extract<ContentPart, { readonly type: "reasoning" }>,
  losses: Losses
): ReadonlyArray<object> => {
  if (signature?.origin === "responses") {
    const summary = text === "" ? [] : [{ type: "summary_text", text }]
    return [{ type: "reasoning", summary, encrypted_content: signature.value }]
  }
  losses.warn(path, foreignReasoning)
  return []
}

const toPart = (part: ContentPart, losses: Losses): ReadonlyArray<object> => {
  const refuse = () => {
    losses.refuse(part.path ?? "")
    return []
  }
  switch (part.type) {
    case "text":
      return [{ type: "input_text", text: part.text }]
    case "reasoning":
      return []
    case "image": {
      const url = urlOf(part)
      return url === undefined ? refuse() : [{ type: "input_image", image_url: url, detail: part.detail ?? "auto" }]
    }
    case "file": {
      const { media, mediaType, name } = part
      if (media.type === "text") return [{ type: "input_text", text: media.text }]
      if (mediaType.startsWith("video/")) return refuse()
      if (mediaType.startsWith("audio/")) {
        const format = audioFormats.get(mediaType)
        return format === undefined || media.type !== "base64"
          ? refuse()
          : [{ type: "input_audio", input_audio: { data: media.data, format } }]
      }
      if (media.type === "url") return [{ type: "input_file", file_url: media.url }]
      return media.type === "base64"
        ? [{ type: "input_file", filename: name ?? "file", file_data: toDataUrl(mediaType, media.data) }]
        : refuse()
    }
  }
}

/** This dialect is strict by default. */
const toTool = (
  { description, name, parameters: given, path = "", strict }: ToolDefinition,
  losses: Losses
): object => {
  const parameters = withPlainRoot(given, path, losses)
  const isStrict = strict === true && isClosed(parameters)
  if (strict === true && !isStrict) losses.warn(path, "is not enforced: its schema is open")
  return {
    type: "function",
    name,
    description,
    parameters: isStrict ? fit(parameters, openAiRules, path, losses) : parameters,
    strict: isStrict
  }
}

const toToolChoice = (choice: ToolChoice): unknown =>
  choice.type === "tool" ? { ...choice, type: "function" } : choice.type

const toFormat = (format: AnswerFormat, losses: Losses): object | undefined => {
  switch (format.type) {
    case "text":
      return undefined
    case "json":
      return { format: { type: "json_object" } }
    case "jsonSchema": {
      return { format: { type: "json_schema", ...toNamedSchema(format, losses) } }
    }
  }
}
