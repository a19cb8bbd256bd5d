/** Converts the canonical conversation to the prompt and options of an AI SDK language model. */
import type {
  JSONObject,
  JSONSchema7,
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4FunctionTool,
  LanguageModelV4Message,
  LanguageModelV4TextPart,
  LanguageModelV4ToolChoice,
  SharedV4ProviderOptions
} from "@ai-sdk/provider"
import * as ExactJson from "../../../bounds/ExactJson.ts"
import type {
  CacheControl,
  ContentPart,
  Conversation,
  MediaPart,
  Setting,
  ToolChoice,
  ToolDefinition,
  Turn
} from "../../dialects/conversation/Conversation.ts"
import { warnOfSummary } from "../../dialects/conversation/Conversation.ts"
import { foreignReasoning, type Losses } from "../../dialects/conversation/Losses.ts"
import { textOf, warnOfDetail } from "../../dialects/conversation/Media.ts"
import { effortOf } from "../../dialects/conversation/ReasoningEffort.ts"
import * as ToolCalls from "../../dialects/conversation/ToolCalls.ts"

/** Models of version 3 take files as bare data, and have no reasoning option. */
export type Version = "v3" | "v4"

export const toOptions = (
  conversation: Conversation,
  version: Version,
  losses: Losses
): LanguageModelV4CallOptions => {
  const { maxTokens, modalities, parallelToolCalls, seed, stop, tools, user } = conversation
  const { frequencyPenalty, presencePenalty, temperature, topK, topP } = conversation.sampling ?? {}
  if (user !== undefined) losses.warnOf("user")
  warnOfSummary(conversation, losses)
  if (conversation.cache !== undefined) losses.warnOf("cache")
  if (parallelToolCalls === false && tools.length > 0) losses.warnOf("parallelToolCalls")
  if (modalities?.some((modality) => modality !== "text") === true) losses.refuseOf("modalities")
  return {
    prompt: toPrompt(conversation.turns, version, losses),
    ...defined({
      maxOutputTokens: maxTokens,
      temperature,
      topP,
      topK,
      presencePenalty,
      frequencyPenalty,
      seed: seed === undefined ? undefined : ExactJson.toNumber(seed),
      stopSequences: stop.length === 0 ? undefined : [...stop],
      responseFormat: toFormat(conversation),
      reasoning: toReasoning(conversation, version, losses)
    }),
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool), toolChoice: toToolChoice(conversation.toolChoice) })
  }
}

const defined = <A extends object>(fields: A): { [K in keyof A]?: Exclude<A[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]?: Exclude<A[K], undefined>
  }

/** A mark for a cache, as the packages that know one expect it. Each reads only its own options. */
const marked = (cache: CacheControl | undefined): { readonly providerOptions?: SharedV4ProviderOptions } => {
  if (cache === undefined) return {}
  // was parsed from JSON
  const cacheControl = cache as JSONObject
  return {
    providerOptions: {
      anthropic: { cacheControl },
      openrouter: { cacheControl },
      bedrock: { cachePoint: { type: "default" } }
    }
  }
}

/** The mark of a turn that takes only one, which is its own or that of its last part. Warns of the others. */
const markOf = ({ cache: own, content, path = "" }: Turn, losses: Losses): CacheControl | undefined => {
  const marks = content.filter(({ cache }) => cache !== undefined)
  const last = own === undefined && content.at(-1)?.cache !== undefined ? marks.pop() : undefined
  for (const part of marks) losses.warn(`${part.path ?? path}.cache_control`)
  return own ?? last?.cache
}

const toPrompt = (
  turns: ReadonlyArray<Turn>,
  version: Version,
  losses: Losses
): Array<LanguageModelV4Message> => {
  const toolNames = new Map<string | undefined, string>()
  return turns.map((turn): LanguageModelV4Message => {
    const partsOf = () => turn.content.flatMap((part) => toParts(part, version, losses))
    switch (turn.role) {
      case "system":
        return { role: "system", content: toText(turn, losses), ...marked(markOf(turn, losses)) }
      case "user":
        return { role: "user", content: partsOf() }
      case "assistant": {
        const calls = turn.toolCalls.map(({ arguments: json, cache, id, name }) => {
          toolNames.set(id, name)
          const input = ToolCalls.toObject(json)
          return { type: "tool-call" as const, toolCallId: id, toolName: name, input, ...marked(cache) }
        })
        return { role: "assistant", content: [...partsOf(), ...calls] }
      }
      case "tool": {
        const { failed, toolCallId = "" } = turn
        const output = { type: failed === true ? "error-text" as const : "text" as const, value: toText(turn, losses) }
        const toolName = toolNames.get(toolCallId) ?? ""
        const mark = marked(markOf(turn, losses))
        return { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output, ...mark }] }
      }
    }
  })
}

/** The text of a turn that can hold only text. */
const toText = ({ content, path = "" }: Turn, losses: Losses): string =>
  content.map((part) => {
    if (part.type === "text") return part.text
    losses.refuse(part.path ?? path)
    return ""
  }).join("\n")

const toParts = (
  part: ContentPart,
  version: Version,
  losses: Losses
): ReadonlyArray<LanguageModelV4TextPart | LanguageModelV4FilePart> => {
  switch (part.type) {
    case "text":
      if (part.text !== "") return [{ type: "text", text: part.text, ...marked(part.cache) }]
      if (part.cache !== undefined) losses.warn(`${part.path ?? ""}.cache_control`)
      return []
    case "reasoning":
      // only the package could prove that the provider itself wrote it
      losses.warn(part.path ?? "", foreignReasoning)
      return []
    case "image":
      warnOfDetail(part, losses)
      return toFile(part, version, losses)
    case "file":
      return toFile(part, version, losses)
  }
}

const toFile = (
  part: MediaPart,
  version: Version,
  losses: Losses
): ReadonlyArray<LanguageModelV4TextPart | LanguageModelV4FilePart> => {
  const text = textOf(part)
  if (text !== undefined) return [{ type: "text", text, ...marked(part.cache) }]
  if (part.media.type !== "base64") {
    losses.refuse(part.path ?? "")
    return []
  }
  const { data } = part.media
  return [{
    type: "file",
    mediaType: part.mediaType === "" ? part.type === "image" ? "image/*" : "application/octet-stream" : part.mediaType,
    // version 3 takes the data itself
    data: (version === "v4" ? { type: "data", data } : data) as LanguageModelV4FilePart["data"],
    ...(part.type === "file" && part.name !== undefined ? { filename: part.name } : {}),
    ...marked(part.cache)
  }]
}

const toTool = ({ cache, description, name, parameters, strict }: ToolDefinition): LanguageModelV4FunctionTool => ({
  type: "function",
  name,
  inputSchema: parameters as JSONSchema7,
  ...(description === undefined ? {} : { description }),
  ...(strict === undefined ? {} : { strict }),
  ...marked(cache)
})

const toToolChoice = (choice: ToolChoice): LanguageModelV4ToolChoice =>
  choice.type === "tool" ? { type: "tool", toolName: choice.name } : { type: choice.type }

const toFormat = ({ format }: Conversation): LanguageModelV4CallOptions["responseFormat"] => {
  switch (format.type) {
    case "text":
      return undefined
    case "json":
      return { type: "json" }
    case "jsonSchema":
      return {
        type: "json",
        schema: format.schema as JSONSchema7,
        ...(format.name === undefined ? {} : { name: format.name }),
        ...(format.description === undefined ? {} : { description: format.description })
      }
  }
}

const toReasoning = (
  { reasoning }: Conversation,
  version: Version,
  losses: Losses
): LanguageModelV4CallOptions["reasoning"] => {
  if (reasoning === undefined) return undefined
  if (version === "v3") {
    losses.warnOf("reasoning")
    return undefined
  }
  switch (reasoning.type) {
    case "off":
      return "none"
    case "auto":
      return "provider-default"
    case "effort":
    case "budget":
      return effortOf(reasoning, losses)
  }
}

/** Settings by the names in packages' warnings. */
export const settings: Readonly<Record<string, Setting>> = {
  temperature: "temperature",
  topP: "topP",
  topK: "topK",
  presencePenalty: "presencePenalty",
  frequencyPenalty: "frequencyPenalty",
  seed: "seed",
  stopSequences: "stop",
  maxOutputTokens: "maxTokens",
  responseFormat: "format",
  toolChoice: "toolChoice",
  reasoning: "reasoning"
}
