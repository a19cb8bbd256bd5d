/** Encodes requests to providers of the Gemini dialect. */
import { Predicate, Schema } from "effect"
import * as ExactJson from "../../../bounds/ExactJson.ts"
import * as Json from "../../json/Json.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  MediaPart,
  Reasoning,
  Seed,
  ToolChoice,
  Turn
} from "../conversation/Conversation.ts"
import { joinAdjacent, systemTexts, warnOfSummary, withoutMarks } from "../conversation/Conversation.ts"
import type { Target } from "../conversation/Dialect.ts"
import { foreignReasoning, type Losses } from "../conversation/Losses.ts"
import { registeredMediaType, warnOfDetail } from "../conversation/Media.ts"
import { budgetOf, effortUpToHigh, Thinking } from "../conversation/ReasoningEffort.ts"
import { fit, geminiRules } from "../fitting/SchemaSubset.ts"
import { withUserTurn } from "../fitting/UserTurn.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

export const Options = Schema.Struct({ thinking: Schema.optionalKey(Thinking) })
export type Options = typeof Options.Type

export const toRequest = (conversation: Conversation, { losses, model }: Target, options: Options): object => {
  const { choices, maxTokens, modalities, parallelToolCalls, sampling, seed, stop, tools, user } = conversation
  if (user !== undefined) losses.warnOf("user")
  // thoughts are included with reasoning
  if (conversation.reasoning === undefined) warnOfSummary(conversation, losses)
  if (parallelToolCalls === false && tools.length > 0) losses.warnOf("parallelToolCalls")
  if (modalities?.includes("audio") === true) losses.refuseOf("modalities")
  for (const { path = "", strict } of tools) if (strict === true) losses.warn(path, "is not enforced strictly")
  withoutMarks(conversation, losses)
  const turns = withUserTurn(conversation.turns, losses)
  const system = systemTexts(turns, losses).flatMap(({ text }) => toText(text))
  return {
    systemInstruction: system.length === 0 ? undefined : { parts: system },
    contents: toContents(turns, losses, noSignatureOf(model, options)),
    ...(tools.length === 0 ? {} : {
      tools: [{
        functionDeclarations: tools.map(({ description, name, parameters, path = "" }) => ({
          name,
          description,
          parametersJsonSchema: ToolCalls.parametersOrNone(fit(parameters, geminiRules, path, losses))
        }))
      }],
      toolConfig: toToolConfig(conversation.toolChoice)
    }),
    generationConfig: {
      // the names are Gemini's
      ...sampling,
      seed: seed === undefined ? undefined : inRange(seed),
      stopSequences: stop.length === 0 ? undefined : stop,
      maxOutputTokens: maxTokens,
      candidateCount: choices === 1 ? undefined : choices,
      ...toFormat(conversation.format, losses),
      thinkingConfig: toThinking(conversation.reasoning, losses, options),
      responseModalities: modalities?.map((modality) => modality.toUpperCase())
    }
  }
}

const maxSeed = 2n ** 31n

/** Gemini's seeds have 32 bits; the same seed always becomes the same one. */
const inRange = (seed: Seed): Seed => {
  const integer = ExactJson.toBigInt(seed)
  if (integer === undefined) return seed
  const size = integer < 0n ? -integer : integer
  return size < maxSeed ? seed : Number(size % maxSeed)
}

/** Responses refer to calls by the function's name. */
const toContents = (turns: ReadonlyArray<Turn>, losses: Losses, noSignature?: string): ReadonlyArray<object> => {
  const contents: Array<readonly ["user" | "model", ReadonlyArray<object>]> = []
  const names = new Map(turns.flatMap(({ toolCalls }) => toolCalls.map(({ id, name }) => [id, name])))
  /** Pictures from tools, until all tool responses are written. */
  let loose: Array<object> = []
  for (const turn of turns) {
    if (turn.role !== "tool") {
      contents.push(["user", loose])
      loose = []
    }
    switch (turn.role) {
      case "system":
        break
      case "user":
        contents.push(["user", turn.content.flatMap((part) => toParts(part, losses))])
        break
      case "assistant":
        contents.push(["model", toModelParts(turn, losses, noSignature)])
        break
      case "tool": {
        const { content, path = "", toolCallId: id = "" } = turn
        const name = names.get(id)
        if (name === undefined) losses.refuse(path, "answers no tool call of the conversation")
        contents.push(["user", [{ functionResponse: { id, name, response: toResponse(turn) } }]])
        for (const part of content) if (part.type !== "text") loose.push(...toParts(part, losses))
      }
    }
  }
  contents.push(["user", loose])
  return joinAdjacent(contents).map(([role, parts]) => ({ role, parts }))
}

/** A response must be an object: the tool's own JSON object, otherwise its text as `output`. */
const toResponse = ({ content, failed }: Turn): object => {
  const text = content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n\n")
  if (failed === true) return { error: text }
  const value = text.startsWith("{") ? Json.parseBounded(text) : undefined
  return Predicate.isReadonlyObject(value) ? value : { output: text }
}

/**
 * Gemini's placeholder for a missing signature (the call is another model's, or the client dropped it): models from Gemini 3
 * on reject a first call without one. Earlier models do not know the placeholder.
 */
const noSignatureOf = (model: string, { thinking = "effort" }: Options): string | undefined =>
  thinking === "budget" || /\bgemini-[12]\b/.test(model) ? undefined : "skip_thought_signature_validator"

/** The signature goes onto the part after the reasoning, preferably a call. */
const toModelParts = ({ content, toolCalls }: Turn, losses: Losses, noSignature?: string): ReadonlyArray<object> => {
  const parts: Array<object> = []
  let signature: string | undefined
  for (const part of content) {
    if (part.type !== "reasoning") {
      parts.push(...toParts(part, losses))
      continue
    }
    if (part.signature?.origin !== "gemini") {
      losses.warn(part.path ?? "", foreignReasoning)
      continue
    }
    if (part.text !== "") parts.push({ text: part.text, thought: true })
    if (part.signature.value !== "") signature = part.signature.value
  }
  const calls = toolCalls.map(({ arguments: json, id, name }, index) => ({
    functionCall: { id, name, args: ToolCalls.toObject(json) },
    thoughtSignature: index > 0 ? undefined : signature ?? noSignature
  }))
  if (calls.length === 0 && signature !== undefined) {
    parts.push({ ...parts.pop() ?? { text: "" }, thoughtSignature: signature })
  }
  return [...parts, ...calls]
}

/** Gemini rejects empty parts. */
const toText = (text: string): ReadonlyArray<object> => text === "" ? [] : [{ text }]

const toParts = (part: ContentPart, losses: Losses): ReadonlyArray<object> => {
  switch (part.type) {
    case "text":
      return toText(part.text)
    case "reasoning":
      return []
    case "image":
      warnOfDetail(part, losses)
      return toMedia(part, losses)
    case "file":
      if (part.name !== undefined && part.media.type !== "url") losses.warn(part.path ?? "", "loses its name")
      return toMedia(part, losses)
  }
}

const toMedia = ({ media, mediaType, path = "" }: MediaPart, losses: Losses): ReadonlyArray<object> => {
  switch (media.type) {
    case "text":
      return toText(media.text)
    case "url":
      return [{
        fileData: {
          ...(mediaType === "" || mediaType.endsWith("*") ? {} : { mimeType: mediaType }),
          fileUri: media.url
        }
      }]
    case "base64":
      if (mediaType !== "" && !mediaType.endsWith("*")) {
        return [{ inlineData: { mimeType: registeredMediaType(mediaType), data: media.data } }]
      }
      break
    default:
  }
  losses.refuse(path)
  return []
}

const toToolConfig = (choice: ToolChoice): object | undefined => {
  switch (choice.type) {
    case "auto":
      return undefined
    case "none":
      return { functionCallingConfig: { mode: "NONE" } }
    case "required":
      return { functionCallingConfig: { mode: "ANY" } }
    case "tool":
      return { functionCallingConfig: { mode: "ANY", allowedFunctionNames: [choice.name] } }
  }
}

const toFormat = (format: AnswerFormat, losses: Losses): object => {
  switch (format.type) {
    case "text":
      return {}
    case "json":
      return { responseMimeType: "application/json" }
    case "jsonSchema":
      return {
        responseMimeType: "application/json",
        responseJsonSchema: fit(format.schema, geminiRules, format.path ?? losses.nameOf("format"), losses)
      }
  }
}

/** Includes the thoughts in the answer, as clients of other dialects expect. */
const toThinking = (
  reasoning: Reasoning | undefined,
  losses: Losses,
  { thinking = "effort" }: Options
): object | undefined => {
  if (reasoning === undefined) return undefined
  if (reasoning.type === "auto") {
    return { includeThoughts: true, ...(thinking === "budget" ? { thinkingBudget: -1 } : {}) }
  }
  if (reasoning.type === "off") {
    if (thinking === "budget") return { thinkingBudget: 0 }
    losses.warnOf("reasoning", "is left to the model")
    return undefined
  }
  if (thinking === "budget") return { includeThoughts: true, thinkingBudget: budgetOf(reasoning) }
  return { includeThoughts: true, thinkingLevel: effortUpToHigh(reasoning, losses).toUpperCase() }
}
