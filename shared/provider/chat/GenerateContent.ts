/** The Gemini dialect: from a request to the canonical conversation, from canonical events to the answer. */
import * as Contract from "../../contract/GenerateContent.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { AnswerFormat, ContentPart, Conversation, ToolChoice, Turn } from "./Conversation.ts"
import type { AnswerEncoder, AnswerIdentity, Dialect } from "./Dialect.ts"
import type { FinishReason, ModelEvent } from "./ModelEvent.ts"

// Request

const toConversation = (request: Contract.GenerateContentRequest): Conversation => {
  const config = request.generationConfig
  const system = request.systemInstruction?.parts ?? []
  return {
    turns: [
      ...(system.length === 0 ? [] : [turn("system", system.flatMap(toParts))]),
      ...request.contents.flatMap(toTurns)
    ],
    tools: (request.tools ?? []).flatMap(({ functionDeclarations }) =>
      (functionDeclarations ?? []).map((tool) => ({
        name: tool.name,
        description: tool.description ?? undefined,
        parameters: tool.parametersJsonSchema ?? toJsonSchema(tool.parameters ?? {})
      }))
    ),
    toolChoice: toToolChoice(request),
    format: toFormat(config),
    stop: config?.stopSequences ?? [],
    maxTokens: config?.maxOutputTokens ?? undefined,
    choices: config?.candidateCount ?? 1,
    seed: config?.seed ?? undefined
  }
}

const turn = (role: Turn["role"], content: ReadonlyArray<ContentPart>): Turn => ({
  role,
  content,
  toolCalls: [],
  toolCallId: undefined
})

/** Calls have no ids in this dialect unless the client gives them: a call and its response share the function's name. */
const toTurns = (content: Contract.GenerateContentRequest["contents"][number]): ReadonlyArray<Turn> => {
  const results = content.parts.flatMap(({ functionResponse }): ReadonlyArray<Turn> =>
    functionResponse === undefined || functionResponse === null ? [] : [{
      role: "tool",
      content: [{ type: "text", text: JSON.stringify(functionResponse.response ?? {}) }],
      toolCalls: [],
      toolCallId: functionResponse.id ?? functionResponse.name
    }]
  )
  const parts = content.parts.flatMap(toParts)
  const toolCalls = content.parts.flatMap(({ functionCall }) =>
    functionCall === undefined || functionCall === null ? [] : [{
      id: functionCall.id ?? functionCall.name,
      name: functionCall.name,
      arguments: JSON.stringify(functionCall.args ?? {})
    }]
  )
  if (parts.length === 0 && toolCalls.length === 0) return results
  return [...results, { role: roleOf(content.role), content: parts, toolCalls, toolCallId: undefined }]
}

const roleOf = (role: string | null | undefined): Turn["role"] => {
  switch (role) {
    case "model":
      return "assistant"
    case "system":
      return "system"
    default:
      return "user"
  }
}

const toParts = (part: Contract.Part): ReadonlyArray<ContentPart> => {
  // what the model thought is no part of what it said
  if (part.thought === true) return []
  if (typeof part.text === "string") return [{ type: "text", text: part.text }]
  if (part.inlineData !== undefined && part.inlineData !== null) {
    const { data, mimeType } = part.inlineData
    return [
      mimeType.startsWith("image/")
        ? { type: "image", url: `data:${mimeType};base64,${data}` }
        : { type: "file", mediaType: mimeType, name: undefined }
    ]
  }
  if (part.fileData !== undefined && part.fileData !== null) {
    const { fileUri, mimeType } = part.fileData
    return [
      mimeType?.startsWith("image/") === true
        ? { type: "image", url: fileUri }
        : { type: "file", mediaType: mimeType ?? "", name: fileUri }
    ]
  }
  return []
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

const toFormat = (config: Contract.GenerateContentRequest["generationConfig"]): AnswerFormat => {
  const schema = config?.responseJsonSchema ??
    (config?.responseSchema ? toJsonSchema(config.responseSchema) : undefined)
  if (schema !== undefined && schema !== null) return { type: "jsonSchema", schema }
  return config?.responseMimeType === "application/json" ? { type: "json" } : { type: "text" }
}

/** This dialect's schemas are JSON Schema but for types in capitals. */
const toJsonSchema = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(toJsonSchema)
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === "type" && typeof value === "string" ? value.toLowerCase() : toJsonSchema(value)
    ])
  )
}

// Answer

const toFinishReason = (reason: FinishReason | undefined): string => {
  switch (reason) {
    case "length":
      return "MAX_TOKENS"
    case "content_filter":
      return "SAFETY"
    default:
      return "STOP"
  }
}

export const toUsageMetadata = (usage: Usage) => ({
  promptTokenCount: usage.inputTokens,
  candidatesTokenCount: usage.outputTokens,
  totalTokenCount: usage.inputTokens + usage.outputTokens
})

const toArgs = (text: string): unknown => {
  try {
    return JSON.parse(text === "" ? "{}" : text)
  } catch {
    return { invalid_json: text }
  }
}

interface Candidate {
  readonly parts: Array<Record<string, unknown>>
  readonly calls: Map<number, { readonly id: string; readonly name: string; text: string }>
  finish: FinishReason | undefined
}

/** Encodes events. A function call is one part in this dialect, so its arguments are gathered first. */
class Encoder implements AnswerEncoder {
  readonly #identity: AnswerIdentity
  readonly #candidates = new Map<number, Candidate>()
  #usage: Usage = { inputTokens: 0, outputTokens: 0 }

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  frames(event: ModelEvent): string {
    const part = this.#take(event)
    return part === undefined || event.type === "usage" ? "" : this.#frame([this.#candidate(event.choice, [part])])
  }

  /** The last frame of each candidate says why it ended, and the very last what it all consumed. */
  lastFrames(): string {
    const last = [...this.#candidates].map(([index, candidate]) =>
      this.#candidate(index, callParts(candidate), candidate.finish)
    )
    return this.#frame(last, this.#usage)
  }

  body(events: ReadonlyArray<ModelEvent>): Contract.GenerateContentAnswer {
    for (const event of events) {
      const part = this.#take(event)
      if (part !== undefined && event.type !== "usage") append(this.#of(event.choice).parts, part)
    }
    const candidates = [...this.#candidates].map(([index, candidate]) =>
      this.#candidate(index, [...candidate.parts, ...callParts(candidate)], candidate.finish)
    )
    return this.#answer(candidates, this.#usage)
  }

  /** Notes the event; the part that it adds at once, if any. */
  #take(event: ModelEvent): Record<string, unknown> | undefined {
    switch (event.type) {
      case "text":
        this.#of(event.choice)
        return { text: event.delta }
      case "reasoning":
        this.#of(event.choice)
        return { text: event.delta, thought: true }
      case "toolCall":
        this.#of(event.choice).calls.set(event.call, { id: event.id, name: event.name, text: "" })
        return undefined
      case "toolArguments": {
        const call = this.#of(event.choice).calls.get(event.call)
        if (call !== undefined) call.text += event.delta
        return undefined
      }
      case "finish":
        this.#of(event.choice).finish = event.reason
        return undefined
      case "usage":
        this.#usage = event.usage
        return undefined
    }
  }

  #of(index: number): Candidate {
    let candidate = this.#candidates.get(index)
    if (candidate === undefined) {
      candidate = { parts: [], calls: new Map(), finish: undefined }
      this.#candidates.set(index, candidate)
    }
    return candidate
  }

  #candidate(
    index: number,
    parts: ReadonlyArray<Record<string, unknown>>,
    finish?: FinishReason
  ): Contract.GenerateContentAnswer["candidates"][number] {
    return {
      content: { role: "model", parts },
      ...(finish === undefined ? {} : { finishReason: toFinishReason(finish) }),
      index,
      safetyRatings: []
    }
  }

  #answer(candidates: Contract.GenerateContentAnswer["candidates"], usage?: Usage): Contract.GenerateContentAnswer {
    return {
      candidates,
      ...(usage === undefined ? {} : { usageMetadata: toUsageMetadata(usage) }),
      modelVersion: this.#identity.model,
      responseId: this.#identity.id
    }
  }

  #frame(candidates: Contract.GenerateContentAnswer["candidates"], usage?: Usage): string {
    return `data: ${JSON.stringify(this.#answer(candidates, usage))}\n\n`
  }
}

const callParts = ({ calls }: Candidate) =>
  [...calls.values()].map(({ id, name, text }) => ({ functionCall: { id, name, args: toArgs(text) } }))

/** Pieces of one text are one part of a whole answer. */
const append = (parts: Array<Record<string, unknown>>, part: Record<string, unknown>): void => {
  const last = parts.at(-1)
  if (last !== undefined && typeof last["text"] === "string" && last["thought"] === part["thought"]) {
    last["text"] += String(part["text"])
  } else parts.push({ ...part })
}

const dialect = (operation: string, streams: boolean): Dialect<Contract.GenerateContentRequest> => ({
  operation,
  request: Contract.GenerateContentRequest,
  toConversation,
  streams: () => streams,
  encoder: (_request, identity) => new Encoder(identity)
})

export const generateContent = dialect(Contract.generateContent.name, false)
export const streamGenerateContent = dialect(Contract.streamGenerateContent.name, true)
