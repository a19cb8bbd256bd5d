/** Encodes requests to providers of the messages dialect. */
import { Schema } from "effect"
import * as Json from "../../json/Json.ts"
import type {
  CacheControl,
  ContentPart,
  Conversation,
  MediaPart,
  ToolCall,
  ToolChoice,
  ToolDefinition,
  Turn
} from "../conversation/Conversation.ts"
import { isMedia, joinAdjacent, marksIn, systemTexts, warnOfSummary } from "../conversation/Conversation.ts"
import type { Target } from "../conversation/Dialect.ts"
import { foreignReasoning, type Losses } from "../conversation/Losses.ts"
import { registeredMediaType, textOf, warnOfDetail } from "../conversation/Media.ts"
import { budgetOf, effortOf, Thinking } from "../conversation/ReasoningEffort.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"
import { anthropicUser, fitted, fittedCallId } from "../fitting/Identifiers.ts"
import { inJson } from "../fitting/JsonWord.ts"
import { withPlainRoot } from "../fitting/PlainRoot.ts"
import { anthropicRules, fit, isOpen } from "../fitting/SchemaSubset.ts"
import { withUserTurn } from "../fitting/UserTurn.ts"
import { open, rulesOf } from "./ClaudeModels.ts"
import { inLegalPlaces, leading } from "./LaterInstructions.ts"
import { toSampling } from "./MessagesSampling.ts"

export const Options = Schema.Struct({
  /** Limit of an answer if the client sets none, since this dialect requires one. A budget comes on top. Default 8,192. */
  maxTokens: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
  thinking: Schema.optionalKey(Thinking),
  /** Which sampling settings the models accept: all, `one` of temperature and `top_p`, or `none`. Default: by the model's name. */
  sampling: Schema.optionalKey(Schema.Literals(["all", "one", "none"])),
  /** Whether the models accept instructions in the course of the conversation. Default: by the model's name. */
  laterSystem: Schema.optionalKey(Schema.Boolean),
  /** Whether the server keeps the conversations of requests with `thread`. Default: only Anthropic does. */
  threads: Schema.optionalKey(Schema.Boolean)
})
export type Options = typeof Options.Type

const defaultLimit = 8_192
const defaultLimitOf = ({ maxTokens = defaultLimit }: Options): number => maxTokens

export const toRequest = (conversation: Conversation, { losses, model, streams }: Target, options: Options): object => {
  const { maxTokens = defaultLimitOf(options), modalities, seed, stop, tools, user } = conversation
  const { frequencyPenalty, presencePenalty } = conversation.sampling ?? {}
  const { laterSystem, sampling } = { ...rulesOf(model) ?? open, ...options }
  if (seed !== undefined) losses.warnOf("seed")
  if (frequencyPenalty !== undefined) losses.warnOf("frequencyPenalty")
  if (presencePenalty !== undefined) losses.warnOf("presencePenalty")
  if (modalities?.some((modality) => modality !== "text") === true) losses.refuseOf("modalities")
  const thinking = toThinking(conversation, losses, options)
  const cache = marksIn(conversation).length === 0 ? conversation.cache : undefined
  const asked = withUserTurn(conversation.turns, losses)
  const turns = laterSystem ? inLegalPlaces(asked, losses) : asked
  const system = withLastMarked(toSystem({ ...conversation, turns }, laterSystem, losses), cache)
  const config = { effort: thinking.effort, format: toFormat(conversation, losses) }
  return {
    model,
    max_tokens: thinking.maxTokens ?? maxTokens,
    system: system.length === 0 ? undefined : system,
    messages: toMessages(turns, laterSystem, losses, cache),
    stream: streams ? true : undefined,
    ...(tools.length === 0 ? {} : {
      tools: tools.map((tool) => toTool(tool, losses)),
      tool_choice: toToolChoice(conversation.toolChoice, conversation.parallelToolCalls === false)
    }),
    stop_sequences: toStop(stop, losses),
    ...toSampling(conversation, thinking.isOn === true ? "reasoning" : sampling, losses),
    thinking: thinking.config,
    output_config: config.effort === undefined && config.format === undefined ? undefined : config,
    metadata: user === undefined ? undefined : { user_id: fitted(user, anthropicUser) }
  }
}

/** The provider rejects sequences without a visible character. */
const toStop = (stop: ReadonlyArray<string>, losses: Losses): ReadonlyArray<string> | undefined => {
  const given = stop.filter((sequence) => sequence !== "")
  if (given.some((sequence) => !/\S/.test(sequence))) {
    losses.refuseOf("stop", "must not have a sequence of white space alone for this model")
  }
  return given.length === 0 ? undefined : given
}

const toSystem = (
  { format, turns }: Conversation,
  laterSystem: boolean,
  losses: Losses
): ReadonlyArray<object> => {
  const texts = systemTexts(laterSystem ? leading(turns) : turns, losses)
  const isJson = format.type === "json"
  if (isJson) losses.warnOf("format", "was turned into an instruction")
  return [...texts, ...(isJson ? [{ type: "text" as const, text: inJson }] : [])]
    .flatMap((part) => toText(part, losses))
}

/** Leaves out texts without a visible character, which the provider rejects; their marks are lost. */
const toText = (
  { cache, path = "", text }: Extract<ContentPart, { readonly type: "text" }>,
  losses: Losses
): ReadonlyArray<object> => {
  if (/\S/.test(text)) return [{ type: "text", text, cache_control: cache }]
  if (text !== "") losses.warn(path, "is only white space, which this model does not accept")
  if (cache !== undefined) losses.warn(`${path}.cache_control`)
  return []
}

/** Tool results belong to the user here and must come first, in one message. */
const toMessages = (
  turns: ReadonlyArray<Turn>,
  laterSystem: boolean,
  losses: Losses,
  cache: CacheControl | undefined
): ReadonlyArray<object> => {
  const messages: Array<readonly ["user" | "assistant" | "system", ReadonlyArray<object>]> = []
  const later = laterSystem ? turns.slice(leading(turns).length) : turns
  /** Pictures and files, which only user messages can hold, until all tool results are written. */
  let loose: Array<object> = []
  for (const turn of later) {
    if (turn.role === "tool") {
      messages.push(["user", [toResult(turn, losses)]])
      continue
    }
    if (turn.role === "system" && !laterSystem) continue
    messages.push(["user", loose])
    loose = []
    if (turn.role === "system") {
      messages.push(["system", systemTexts([turn], losses).flatMap((part) => toText(part, losses))])
    }
    if (turn.role === "user") messages.push(["user", turn.content.flatMap((part) => toBlocks(part, losses))])
    if (turn.role === "assistant") {
      const pictures = turn.content.filter(isMedia)
      const blocks = turn.content.filter((part) => !isMedia(part)).flatMap((part) => toBlocks(part, losses))
      messages.push(["assistant", [...blocks, ...turn.toolCalls.map(toToolUse)]])
      if (pictures.length > 0) {
        loose = [{ type: "text", text: "From your answer:" }, ...pictures.flatMap((part) => toBlocks(part, losses))]
      }
    }
  }
  messages.push(["user", loose])
  const joined = withoutLastSpace(joinAdjacent(messages), turns.at(-1)?.path ?? "", losses)
  return joined.map(([role, content], index) => ({
    role,
    content: index === joined.length - 1 ? withLastMarked(content, cache) : content
  }))
}

type Messages = ReturnType<typeof joinAdjacent<"user" | "assistant" | "system">>

/** The provider rejects an answer to be continued that ends in white space. */
const withoutLastSpace = (messages: Messages, path: string, losses: Losses): Messages => {
  const [role, content = []] = messages.at(-1) ?? []
  const last = content.at(-1)
  const text = last !== undefined && "text" in last ? String(last.text) : ""
  const trimmed = text.trimEnd()
  if (role !== "assistant" || trimmed === text) return messages
  losses.warn(path, "loses the white space at its end, which this model does not accept")
  return [...messages.slice(0, -1), [role, [...content.slice(0, -1), { ...last, text: trimmed }]]]
}

/** Marks the last block of the instructions, or of the conversation, if the client asks for a cache without marks. */
const withLastMarked = (blocks: ReadonlyArray<object>, cache: CacheControl | undefined): ReadonlyArray<object> =>
  cache === undefined
    ? blocks
    : blocks.map((block, index) => index === blocks.length - 1 ? { ...block, cache_control: cache } : block)

const toToolUse = ({ arguments: json, cache, id, name }: ToolCall): object => ({
  type: "tool_use",
  id: fittedCallId(id),
  name,
  input: ToolCalls.toObject(json),
  cache_control: cache
})

const toResult = ({ cache, content, failed, toolCallId = "" }: Turn, losses: Losses): object => ({
  type: "tool_result",
  tool_use_id: fittedCallId(toolCallId),
  content: content.flatMap((part) => toBlocks(part, losses)),
  is_error: failed,
  cache_control: cache
})

const toBlocks = (part: ContentPart, losses: Losses): ReadonlyArray<object> => {
  switch (part.type) {
    case "text":
      return toText(part, losses)
    case "reasoning": {
      const { path = "", signature, text } = part
      if (signature?.origin !== "anthropic" || signature.value === "") {
        losses.warn(path, foreignReasoning)
        return []
      }
      return [
        signature.redacted === true
          ? { type: "redacted_thinking", data: signature.value }
          : { type: "thinking", thinking: text, signature: signature.value }
      ]
    }
    case "image": {
      warnOfDetail(part, losses)
      const source = toSource(part)
      return source === undefined ? refused(part, losses) : [{ type: "image", source, cache_control: part.cache }]
    }
    case "file": {
      const text = textOf(part)
      const source = text !== undefined
        ? { type: "text", media_type: "text/plain", data: text }
        : part.mediaType === "application/pdf"
        ? toSource(part)
        : undefined
      return source === undefined
        ? refused(part, losses)
        : [{ type: "document", source, title: part.name, cache_control: part.cache }]
    }
  }
}

const refused = ({ path = "" }: MediaPart, losses: Losses): ReadonlyArray<object> => {
  losses.refuse(path)
  return []
}

const toSource = ({ media, mediaType }: MediaPart): object | undefined => {
  if (media.type === "url") return /^https?:/i.test(media.url) ? media : undefined
  return media.type === "base64" && mediaType !== ""
    ? { type: "base64", media_type: registeredMediaType(mediaType), data: media.data }
    : undefined
}

const toTool = (
  { cache, description, name, parameters: given, path = "", strict }: ToolDefinition,
  losses: Losses
): object => {
  const parameters = withPlainRoot(given, path, losses)
  const schema = Json.fields(parameters)
  const isStrict = strict === true && !isOpen(parameters)
  if (strict === true && !isStrict) losses.warn(path, "is not enforced: its schema is open")
  return {
    name,
    description,
    cache_control: cache,
    ...(isStrict
      ? { input_schema: fit({ type: "object", properties: {}, ...schema }, anthropicRules, path, losses), strict }
      : { input_schema: { type: "object", ...schema } })
  }
}

const toToolChoice = (choice: ToolChoice, oneAtATime: boolean): object | undefined => {
  const limit = oneAtATime ? { disable_parallel_tool_use: true } : {}
  switch (choice.type) {
    case "auto":
      return oneAtATime ? { type: "auto", ...limit } : undefined
    case "none":
      return { type: "none" }
    case "required":
      return { type: "any", ...limit }
    case "tool":
      return { type: "tool", name: choice.name, ...limit }
  }
}

const toFormat = ({ format }: Conversation, losses: Losses): object | undefined =>
  format.type === "jsonSchema"
    ? {
      type: "json_schema",
      schema: fit(format.schema, anthropicRules, format.path ?? losses.nameOf("format"), losses)
    }
    : undefined

/** The provider's minimum. */
const minimumBudget = 1_024

/** All models that take a budget accept this limit of reasoning and text together. */
const commonLimit = 32_000

interface ThinkingConfig {
  readonly config?: object
  readonly effort?: string
  readonly isOn?: boolean
  /** The limit of the answer with its reasoning, if that changes it. */
  readonly maxTokens?: number
}

/** Models that hide their reasoning by default show a summary if they are told so. */
const toThinking = (conversation: Conversation, losses: Losses, options: Options): ThinkingConfig => {
  const thinking = toBareThinking(conversation, losses, options)
  if (conversation.summary === undefined) return thinking
  if (thinking.isOn === true) return { ...thinking, config: { ...thinking.config, display: "summarized" } }
  warnOfSummary(conversation, losses)
  return thinking
}

const toBareThinking = (conversation: Conversation, losses: Losses, options: Options): ThinkingConfig => {
  const { reasoning, toolChoice, tools } = conversation
  const { thinking = "effort" } = options
  if (reasoning === undefined) return {}
  if (reasoning.type === "off") return { config: { type: "disabled" } }
  if (tools.length > 0 && (toolChoice.type === "required" || toolChoice.type === "tool")) {
    losses.warnOf("reasoning", "gives way to the tool that must be called")
    return {}
  }
  if (reasoning.type === "auto") {
    if (thinking === "effort") return { config: { type: "adaptive" }, isOn: true }
    return withBudget(minimumBudget, conversation, losses, options)
  }
  if (thinking === "budget") return withBudget(budgetOf(reasoning), conversation, losses, options)
  const effort = effortOf(reasoning, losses)
  if (effort === "minimal") losses.warnOf("reasoning", "was raised to low")
  return { config: { type: "adaptive" }, effort: effort === "minimal" ? "low" : effort, isOn: true }
}

/** The budget counts towards the limit of the answer. A turn with tool calls must start with signed reasoning. */
const withBudget = (budget: number, conversation: Conversation, losses: Losses, options: Options): ThinkingConfig => {
  const { maxTokens, text } = limitsOf(budget, conversation, options)
  const tokens = Math.max(minimumBudget, Math.min(budget, maxTokens - text))
  const calling = conversation.turns.findLast(({ role }) => role === "assistant" || role === "user")
  const isThoughtless = calling !== undefined && calling.toolCalls.length > 0 &&
    !calling.content.some((part) => part.type === "reasoning" && part.signature?.origin === "anthropic")
  if (tokens >= maxTokens || isThoughtless) {
    losses.warnOf("reasoning")
    return {}
  }
  if (tokens !== budget) losses.warnOf("reasoning", `was set to ${tokens} tokens`)
  return { config: { type: "enabled", budget_tokens: tokens }, isOn: true, maxTokens }
}

/** The limit of the answer, and what the budget must leave of it for the text: only one token if the client sets the limit. */
const limitsOf = (
  budget: number,
  { maxTokens }: Conversation,
  options: Options
): { readonly maxTokens: number; readonly text: number } => {
  if (maxTokens !== undefined) return { maxTokens, text: 1 }
  const usual = defaultLimitOf(options)
  const text = Math.min(usual, defaultLimit)
  return { maxTokens: Math.max(usual, Math.min(budget + text, commonLimit)), text }
}
