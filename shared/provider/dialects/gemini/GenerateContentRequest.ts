/** Decodes requests in the Gemini dialect. */
import * as ExactJson from "../../../bounds/ExactJson.ts"
import type * as Contract from "../../../contract/operations/GenerateContent.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  Media,
  Modality,
  Reasoning,
  SettingNames,
  ToolCall,
  ToolChoice,
  Turn
} from "../conversation/Conversation.ts"
import { efforts } from "../conversation/Conversation.ts"
import { carried, type Fate, type Losses, meaning, tools } from "../conversation/Losses.ts"
import * as Signature from "../conversation/Signature.ts"

export const settings: SettingNames = {
  temperature: "generationConfig.temperature",
  topP: "generationConfig.topP",
  topK: "generationConfig.topK",
  presencePenalty: "generationConfig.presencePenalty",
  frequencyPenalty: "generationConfig.frequencyPenalty",
  seed: "generationConfig.seed",
  stop: "generationConfig.stopSequences",
  maxTokens: "generationConfig.maxOutputTokens",
  choices: "generationConfig.candidateCount",
  reasoning: "generationConfig.thinkingConfig",
  format: "generationConfig.responseMimeType",
  toolChoice: "toolConfig.functionCallingConfig",
  modalities: "generationConfig.responseModalities"
}

const part: Fate = {
  ...carried("text", "thought", "thoughtSignature"),
  inlineData: carried("mimeType", "data"),
  fileData: carried("mimeType", "fileUri"),
  functionCall: carried("id", "name", "args"),
  functionResponse: { ...carried("id", "name", "response"), parts: "meaning" },
  ...meaning("executableCode", "codeExecutionResult", "videoMetadata")
}

/** Instructions hold no calls. */
const systemPart: Fate = { ...part, ...meaning("functionCall", "functionResponse") }

export const contentFates: Fate = { role: "carried", parts: [part] }

export const fates: Fate = {
  model: "carried",
  contents: [contentFates],
  systemInstruction: { role: "carried", parts: [systemPart] },
  tools: [{
    functionDeclarations: [carried("name", "description", "parameters", "parametersJsonSchema")],
    ...tools("googleSearch", "googleSearchRetrieval", "googleMaps", "enterpriseWebSearch", "urlContext"),
    ...tools("codeExecution", "computerUse", "fileSearch", "retrieval", "mcpServers")
  }],
  toolConfig: { functionCallingConfig: carried("mode", "allowedFunctionNames") },
  generationConfig: {
    ...carried("temperature", "topP", "topK", "presencePenalty", "frequencyPenalty", "seed"),
    ...carried("candidateCount", "maxOutputTokens", "stopSequences"),
    ...carried("responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities"),
    thinkingConfig: carried("includeThoughts", "thinkingBudget", "thinkingLevel"),
    ...meaning("imageConfig", "speechConfig", "responseLogprobs", "logprobs")
  },
  // earlier input of the model
  ...meaning("cachedContent", "continuationToken")
}

type Config = Contract.GenerateContentRequest["generationConfig"]

export const toConversation = (request: Contract.GenerateContentRequest, losses: Losses): Conversation => {
  const config = request.generationConfig
  const system = request.systemInstruction?.parts ?? []
  const calls = new CallIds()
  return {
    turns: [
      ...(system.length === 0 ? [] : [{
        role: "system" as const,
        content: system.flatMap((part, index) => toParts(part, `systemInstruction.parts[${index}]`)),
        toolCalls: [],
        path: "systemInstruction"
      }]),
      ...request.contents.flatMap((content, index) => toTurns(content, `contents[${index}]`, calls))
    ],
    tools: toTools(request, losses),
    toolChoice: toToolChoice(request),
    format: toFormat(config, losses),
    stop: config?.stopSequences ?? [],
    maxTokens: config?.maxOutputTokens ?? undefined,
    choices: config?.candidateCount ?? 1,
    seed: config?.seed ?? undefined,
    sampling: {
      temperature: config?.temperature ?? undefined,
      topP: config?.topP ?? undefined,
      topK: config?.topK ?? undefined,
      presencePenalty: config?.presencePenalty ?? undefined,
      frequencyPenalty: config?.frequencyPenalty ?? undefined
    },
    reasoning: toReasoning(config, losses),
    modalities: config?.responseModalities?.map((modality) => modalities[modality])
  }
}

const modalities = { TEXT: "text", IMAGE: "image", AUDIO: "audio" } as const satisfies Record<string, Modality>

/**
 * Ids of calls, which are optional in this dialect. A call without one gets a generated id; a response without one belongs to
 * the earliest call of its function that has no response yet.
 */
class CallIds {
  readonly #byName = new Map<string, Calls>()
  #made = 0

  ofCall(id: string | null | undefined, name: string): string {
    const given = id || `call_${name.slice(0, 24)}_${this.#made++}`
    let calls = this.#byName.get(name)
    if (calls === undefined) {
      calls = { ids: [], earliest: 0, open: new Set() }
      this.#byName.set(name, calls)
    }
    calls.ids.push(given)
    calls.open.add(given)
    return given
  }

  ofResponse(id: string | null | undefined, name: string): string {
    const calls = this.#byName.get(name)
    if (calls === undefined) return id || name
    while (calls.earliest < calls.ids.length && !calls.open.has(calls.ids[calls.earliest] ?? "")) calls.earliest++
    const given = id || calls.ids[calls.earliest] || name
    calls.open.delete(given)
    return given
  }
}

/** The calls of one function in order; those before `earliest` have responses. */
interface Calls {
  readonly ids: Array<string>
  earliest: number
  readonly open: Set<string>
}

const toTurns = (
  content: Contract.GenerateContentRequest["contents"][number],
  path: string,
  calls: CallIds
): ReadonlyArray<Turn> => {
  const results: Array<Turn> = []
  const toolCalls: Array<ToolCall> = []
  const parts: Array<ContentPart> = []
  for (const [index, part] of content.parts.entries()) {
    const at = `${path}.parts[${index}]`
    parts.push(...toParts(part, at))
    if (part.functionCall) {
      const { args, id, name } = part.functionCall
      toolCalls.push({ id: calls.ofCall(id, name), name, arguments: JSON.stringify(args ?? {}) })
    }
    if (part.functionResponse) {
      const { id, name, response } = part.functionResponse
      const { failed, text } = toResult(response ?? {})
      results.push({
        role: "tool",
        content: [{ type: "text", text, path: at }],
        toolCalls: [],
        toolCallId: calls.ofResponse(id, name),
        ...(failed ? { failed } : {}),
        path: at
      })
    }
  }
  if (parts.length === 0 && toolCalls.length === 0) return results
  const role = roleOf(content.role)
  const whole = role === "assistant" ? Signature.withoutCopies(joinPieces(parts)) : parts
  return [...results, { role, content: whole, toolCalls, path }]
}

/** Joins the pieces of a streamed answer, which clients send back separately. Reasoning ends at its signature. */
const joinPieces = (parts: ReadonlyArray<ContentPart>): ReadonlyArray<ContentPart> => {
  const whole: Array<ContentPart> = []
  for (const part of parts) {
    const last = whole.at(-1)
    if (part.type === "text" && last?.type === "text") whole.splice(-1, 1, { ...last, text: last.text + part.text })
    else if (part.type === "reasoning" && last?.type === "reasoning" && last.signature === undefined) {
      whole.splice(-1, 1, { ...part, text: last.text + part.text })
    } else whole.push(part)
  }
  return whole
}

/** A function's response is an object; with a single `output` or `error`, the text itself is the result. */
const toResult = (response: { readonly [key: string]: unknown }) => {
  const { error, output } = response
  const isAlone = Object.keys(response).length === 1
  if (isAlone && typeof error === "string") return { failed: true, text: error }
  return { failed: false, text: isAlone && typeof output === "string" ? output : JSON.stringify(response) }
}

const roleOf = (role: string | null | undefined): Turn["role"] => {
  if (role === "model") return "assistant"
  return role === "system" ? "system" : "user"
}

/** Any part can have a signature, which belongs to the reasoning before it. */
const toParts = (part: Contract.Part, path: string): ReadonlyArray<ContentPart> => {
  const signature = part.thoughtSignature ? Signature.fromClient(part.thoughtSignature, "gemini") : undefined
  if (part.thought === true) {
    return [{ type: "reasoning", text: part.text ?? "", signature, path }, ...toOwnParts({ ...part, text: null }, path)]
  }
  const signed: ReadonlyArray<ContentPart> = signature === undefined
    ? []
    : [Signature.reasoningOf(signature, path)]
  return [...toOwnParts(part, path), ...signed]
}

const toOwnParts = ({ fileData, inlineData, text }: Contract.Part, path: string): ReadonlyArray<ContentPart> => [
  ...(typeof text === "string" ? [{ type: "text" as const, text, path }] : []),
  ...(inlineData ? [toMedia(inlineData.mimeType, { type: "base64", data: inlineData.data }, path)] : []),
  ...(fileData ? [toMedia(fileData.mimeType ?? "", { type: "url", url: fileData.fileUri }, path)] : [])
]

const toMedia = (mediaType: string, media: Media, path: string): ContentPart =>
  mediaType.startsWith("image/")
    ? { type: "image", mediaType, media, path }
    : { type: "file", mediaType, name: media.type === "url" ? media.url : undefined, media, path }

/** The tools, without the functions that the client does not allow. */
const toTools = (
  { toolConfig, tools }: Contract.GenerateContentRequest,
  losses: Losses
): Conversation["tools"] => {
  const { allowedFunctionNames, mode } = toolConfig?.functionCallingConfig ?? {}
  const isLimited = mode === "ANY" || mode === "VALIDATED"
  const allowed = new Set(isLimited ? allowedFunctionNames : [])
  if (!isLimited && (allowedFunctionNames ?? []).length > 0) {
    losses.warn("toolConfig.functionCallingConfig.allowedFunctionNames", "needs the mode ANY or VALIDATED")
  }
  return (tools ?? []).flatMap(({ functionDeclarations }, at) =>
    (functionDeclarations ?? []).flatMap((tool, index) => {
      const path = `tools[${at}].functionDeclarations[${index}]`
      if (tool.parameters && tool.parametersJsonSchema) {
        losses.warn(`${path}.parameters`, "gives way to parametersJsonSchema")
      }
      return allowed.size > 0 && !allowed.has(tool.name) ? [] : [{
        name: tool.name,
        description: tool.description ?? undefined,
        parameters: tool.parametersJsonSchema ?? toJsonSchema(tool.parameters ?? {}),
        ...(mode === "VALIDATED" ? { strict: true } : {}),
        path
      }]
    })
  )
}

const toToolChoice = (request: Contract.GenerateContentRequest): ToolChoice => {
  const config = request.toolConfig?.functionCallingConfig
  const [only, ...others] = config?.allowedFunctionNames ?? []
  switch (config?.mode) {
    case "ANY":
      return only !== undefined && others.length === 0 ? { type: "tool", name: only } : { type: "required" }
    case "NONE":
      return { type: "none" }
    default:
      return { type: (request.tools ?? []).length > 0 ? "auto" : "none" }
  }
}

const toFormat = (config: Config, losses: Losses): AnswerFormat => {
  const schema = config?.responseJsonSchema ??
    (config?.responseSchema ? toJsonSchema(config.responseSchema) : undefined)
  if (schema !== undefined && schema !== null) {
    const name = config?.responseJsonSchema ? "responseJsonSchema" : "responseSchema"
    return { type: "jsonSchema", schema, path: `generationConfig.${name}` }
  }
  const mediaType = config?.responseMimeType ?? "text/plain"
  if (mediaType === "application/json") return { type: "json" }
  if (mediaType !== "text/plain") losses.refuseOf("format")
  return { type: "text" }
}

/** 64-bit integers, which Google writes as strings. */
const sizes = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"]

/** This dialect's schemas differ from JSON Schema by upper-case types, numbers as strings, and `nullable`. */
const toJsonSchema = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(toJsonSchema)
  if (typeof schema !== "object" || schema === null || ExactJson.isExact(schema)) return schema
  const isNullable = "nullable" in schema && schema.nullable === true
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]) => {
      // a property named `nullable` has a schema, not a boolean
      if (key === "nullable" && typeof value === "boolean") return []
      if (sizes.includes(key) && typeof value === "string") return [[key, Number(value)]]
      if (key === "anyOf" && isNullable && Array.isArray(value)) return [[key, [...value.map(toJsonSchema), nothing]]]
      if (key === "enum" && isNullable && Array.isArray(value)) return [[key, [...new Set([...value, null])]]]
      if (key !== "type" || typeof value !== "string") return [[key, toJsonSchema(value)]]
      return [[key, isNullable ? [value.toLowerCase(), "null"] : value.toLowerCase()]]
    })
  )
}

const nothing = { type: "null" }

const toReasoning = (config: Config, losses: Losses): Reasoning | undefined => {
  const { includeThoughts, thinkingBudget: tokens, thinkingLevel } = config?.thinkingConfig ?? {}
  if (tokens !== undefined && tokens !== null) {
    if (tokens === 0) return { type: "off" }
    return tokens < 0 ? { type: "auto" } : { type: "budget", tokens }
  }
  const effort = efforts.find((effort) => effort === thinkingLevel?.toLowerCase())
  if (effort !== undefined) return { type: "effort", effort }
  if (thinkingLevel) losses.warn("generationConfig.thinkingConfig.thinkingLevel")
  return includeThoughts === true ? { type: "auto" } : undefined
}
