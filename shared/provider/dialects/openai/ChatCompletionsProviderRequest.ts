/** Encodes requests to providers of the chat completions dialect. */
import { Predicate, Schema } from "effect"
import { chatApis } from "../../../catalogue/Provider.ts"
import * as Json from "../../json/Json.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  MediaPart,
  Reasoning,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  Turn
} from "../conversation/Conversation.ts"
import { isMedia, warnOfSummary, withoutMarks } from "../conversation/Conversation.ts"
import type { Target } from "../conversation/Dialect.ts"
import { foreignReasoning, type Losses } from "../conversation/Losses.ts"
import { textOf, toDataUrl } from "../conversation/Media.ts"
import { effortUpToHigh } from "../conversation/ReasoningEffort.ts"
import { fitted, fittedName, openAiCallId, openAiUser } from "../fitting/Identifiers.ts"
import { withJsonWord } from "../fitting/JsonWord.ts"
import { withPlainRoot } from "../fitting/PlainRoot.ts"
import { fit, openAiRules } from "../fitting/SchemaSubset.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

export const Options = Schema.Struct({
  /** Some servers know only the older name, and OpenAI's newer models know only the newer one (the default). */
  maxTokensField: Schema.optionalKey(Schema.Literals(["max_completion_tokens", "max_tokens"])),
  /** Whether the server knows `prompt_cache_key`. Default false: others may reject it. */
  promptCacheKey: Schema.optionalKey(Schema.Boolean),
  /** Whether the server knows `cache_control`. Default false: others may reject it. */
  cacheControl: Schema.optionalKey(Schema.Boolean),
  /** The chat APIs that the server has. */
  apis: Schema.optionalKey(Schema.NonEmptyArray(Schema.Literals(chatApis))),
  /** The field for the end user's id. Default `user`, which all servers know; OpenAI's newer field is `safety_identifier`. */
  userField: Schema.optionalKey(Schema.Literals(["user", "safety_identifier", "none"])),
  /** Whether the models can return encrypted reasoning: OpenAI's models without reasoning reject it. Default true. */
  encryptedReasoning: Schema.optionalKey(Schema.Boolean)
})

export const toRequest = (
  marked: Conversation,
  { losses, model, session, streams }: Target,
  { cacheControl = false, maxTokensField = "max_completion_tokens", promptCacheKey = false, userField }:
    typeof Options.Type
): object => {
  const keyed = promptCacheKey ? { ...marked, cache: undefined } : marked
  const conversation = cacheControl ? keyed : withoutMarks(keyed, losses)
  const { maxTokens, modalities, sampling, seed, stop, tools, user } = conversation
  if (sampling?.topK !== undefined) losses.warnOf("topK")
  if (modalities?.includes("audio") === true) losses.refuseOf("modalities")
  warnOfSummary(conversation, losses)
  return {
    model,
    messages: toMessages(withJsonWord(conversation), losses, { toAssistant, toPart }),
    ...(streams ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...(tools.length === 0 ? {} : {
      tools: tools.map((tool) => toTool(tool, losses)),
      tool_choice: toToolChoice(conversation.toolChoice),
      parallel_tool_calls: conversation.parallelToolCalls
    }),
    response_format: toFormat(conversation.format, losses),
    stop: stop.length === 0 ? undefined : stop,
    [maxTokensField]: maxTokens,
    n: conversation.choices === 1 ? undefined : conversation.choices,
    seed,
    temperature: sampling?.temperature,
    top_p: sampling?.topP,
    presence_penalty: sampling?.presencePenalty,
    frequency_penalty: sampling?.frequencyPenalty,
    reasoning_effort: toEffort(conversation.reasoning, losses),
    modalities: modalities?.includes("image") === true ? modalities : undefined,
    prompt_cache_key: promptCacheKey ? session : undefined,
    cache_control: conversation.cache,
    ...toUser(user, userField, losses)
  }
}

/** The end user's id in the server's field, not longer than OpenAI allows. */
export const toUser = (
  user: string | undefined,
  field: (typeof Options.Type)["userField"] = "user",
  losses: Losses
): object => {
  if (user === undefined) return {}
  if (field !== "none") return { [field]: fitted(user, openAiUser) }
  losses.warnOf("user")
  return {}
}

/** How a dialect with messages like these writes a turn of the assistant, and a part of a user's message. */
export interface MessageForms {
  readonly toAssistant: (turn: Turn, losses: Losses) => object
  readonly toPart: (part: ContentPart, losses: Losses) => ReadonlyArray<object>
}

export const toMessages = (
  turns: ReadonlyArray<Turn>,
  losses: Losses,
  { toAssistant, toPart }: MessageForms
): ReadonlyArray<object> => {
  const messages: Array<object> = []
  /** Pictures and files, which only user messages can hold, until all tool results are written. */
  let loose: Array<object> = []
  const settle = () => {
    if (loose.length > 0) messages.push({ role: "user", content: loose })
    loose = []
  }
  for (const turn of turns) {
    if (turn.role !== "tool") settle()
    const others = turn.content.filter(isMedia)
    switch (turn.role) {
      case "system":
        for (const part of others) losses.refuse(part.path ?? "")
        messages.push({ role: "system", content: toMarkedText(turn.content) })
        break
      case "user":
        messages.push({ role: "user", content: toContent(turn.content.flatMap((part) => toPart(part, losses))) })
        break
      case "assistant":
        messages.push(toAssistant(turn, losses))
        if (others.length > 0) {
          loose.push({ type: "text", text: "From your answer:" }, ...others.flatMap((part) => toPart(part, losses)))
        }
        break
      case "tool": {
        const text = toText(turn.content)
        messages.push({
          role: "tool",
          tool_call_id: fitted(turn.toolCallId ?? "", openAiCallId),
          content: turn.failed === true ? `Error: ${text}` : toMarkedText(turn.content),
          cache_control: turn.cache
        })
        if (others.length > 0) {
          const note = `From the result of ${turn.toolCallId ?? "the tool"}:`
          loose.push({ type: "text", text: note }, ...others.flatMap((part) => toPart(part, losses)))
        }
      }
    }
  }
  settle()
  return messages
}

export const toText = (content: ReadonlyArray<ContentPart>): string =>
  content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n\n")

/** As a string, which every server accepts, unless a part has a mark. */
const toMarkedText = (content: ReadonlyArray<ContentPart>): unknown =>
  content.some(({ cache }) => cache !== undefined)
    ? content.flatMap((part) => part.type === "text" ? [toTextPart(part)] : [])
    : toText(content)

const toTextPart = ({ cache, text }: Extract<ContentPart, { readonly type: "text" }>): object => ({
  type: "text",
  text,
  cache_control: cache
})

/** A single text becomes a string, which every server accepts, unless it has a mark. */
const toContent = (parts: ReadonlyArray<object>): unknown => {
  const [only] = parts
  // servers reject an empty list
  if (only === undefined) return ""
  const isPlain = "text" in only && Reflect.get(only, "cache_control") === undefined
  return parts.length === 1 && isPlain ? only.text : parts
}

const toAssistant = ({ content, toolCalls }: Turn, losses: Losses): object => {
  const texts = content.filter((part) => part.type === "text")
  const reasoning = content.flatMap((part) => {
    if (part.type !== "reasoning") return []
    if (part.signature === undefined || part.signature.origin === "openai") return [part.text]
    losses.warn(part.path ?? "", foreignReasoning)
    return []
  }).join("")
  return {
    role: "assistant",
    // without calls, servers require a text
    content: texts.length > 0 ? toContent(texts.map(toTextPart)) : toolCalls.length > 0 ? null : "",
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : { tool_calls: toolCalls.map(toToolCall) })
  }
}

export const toToolCall = ({ arguments: json, cache, id, name }: ToolCall): object => ({
  id: fitted(id, openAiCallId),
  type: "function",
  function: { name, arguments: json },
  cache_control: cache
})

export const audioFormats: ReadonlyMap<string, string> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/mp3", "mp3"],
  ["audio/mpeg", "mp3"]
])

export const toPart = (part: ContentPart, losses: Losses): ReadonlyArray<object> => {
  const refuse = () => {
    losses.refuse(part.path ?? "")
    return []
  }
  switch (part.type) {
    case "text":
      return [toTextPart(part)]
    case "reasoning":
      return []
    case "image": {
      const url = urlOf(part)
      return url === undefined
        ? refuse()
        : [{ type: "image_url", image_url: { url, detail: part.detail }, cache_control: part.cache }]
    }
    case "file": {
      const { media, mediaType, name } = part
      const text = textOf(part)
      if (text !== undefined) return [toTextPart({ type: "text", text, cache: part.cache })]
      if (mediaType.startsWith("video/")) {
        const url = urlOf(part)
        return url === undefined ? refuse() : [{ type: "video_url", video_url: { url }, cache_control: part.cache }]
      }
      if (media.type !== "base64") return refuse()
      if (mediaType.startsWith("audio/")) {
        const format = audioFormats.get(mediaType)
        return format === undefined
          ? refuse()
          : [{ type: "input_audio", input_audio: { data: media.data, format }, cache_control: part.cache }]
      }
      const file = { filename: name ?? "file", file_data: toDataUrl(mediaType, media.data) }
      return [{ type: "file", file, cache_control: part.cache }]
    }
  }
}

export const urlOf = ({ media, mediaType }: MediaPart): string | undefined => {
  if (media.type === "url") return media.url
  return media.type === "base64" ? toDataUrl(mediaType, media.data) : undefined
}

const toTool = (
  { cache, description, name, parameters: given, path = "", strict }: ToolDefinition,
  losses: Losses
): object => {
  const parameters = withPlainRoot(given, path, losses)
  const isStrict = strict === true && isClosed(parameters)
  if (strict === true && !isStrict) losses.warn(path, "is not enforced: its schema is open")
  return {
    type: "function",
    function: {
      name,
      description,
      parameters: ToolCalls.parametersOrNone(
        isStrict ? fit(parameters, openAiRules, path, losses) : parameters
      ),
      ...(isStrict ? { strict } : {})
    },
    cache_control: cache
  }
}

const toToolChoice = (choice: ToolChoice): unknown => {
  switch (choice.type) {
    case "auto":
      return undefined
    case "tool":
      return { type: "function", function: { name: choice.name } }
    default:
      return choice.type
  }
}

const toFormat = (format: AnswerFormat, losses: Losses): object | undefined => {
  switch (format.type) {
    case "text":
      return undefined
    case "json":
      return { type: "json_object" }
    case "jsonSchema": {
      const { strict, ...named } = toNamedSchema(format, losses)
      return { type: "json_schema", json_schema: { ...named, ...(strict ? { strict } : {}) } }
    }
  }
}

/** A schema with a name, without the keywords that strict schemas must not have. */
export const toNamedSchema = (format: Extract<AnswerFormat, { readonly type: "jsonSchema" }>, losses: Losses) => {
  const { description, name = "answer", path = losses.nameOf("format"), schema, strict = isClosed(schema) } = format
  return {
    name: fittedName(name),
    description,
    schema: strict ? fit(schema, openAiRules, path, losses) : schema,
    strict
  }
}

/** This dialect enforces only schemas whose objects are closed and have no optional fields. */
export const isClosed = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.every(isClosed)
  if (!Predicate.isReadonlyObject(schema)) return true
  if (schema["type"] === "object" || schema["properties"] !== undefined) {
    const names = Object.keys(Json.fields(schema["properties"]))
    const required = new Set(Json.list(schema["required"]))
    if (schema["additionalProperties"] !== false || !names.every((name) => required.has(name))) return false
  }
  return Object.values(schema).every(isClosed)
}

export const toEffort = (reasoning: Reasoning | undefined, losses: Losses): string | undefined => {
  if (reasoning === undefined) return undefined
  if (reasoning.type === "off" || reasoning.type === "auto") {
    losses.warnOf("reasoning", "is left to the model")
    return undefined
  }
  return effortUpToHigh(reasoning, losses)
}
