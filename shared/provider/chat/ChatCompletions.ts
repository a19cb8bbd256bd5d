/** The chat completions dialect of a client: from its request to the canonical conversation, from events to its answer. */
import * as Contract from "../../contract/ChatCompletions.ts"
import type { CompactionItem } from "../../contract/CompactionItem.ts"
import type { Usage } from "../../contract/Usage.ts"
import { string } from "../Json.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  Modality,
  Sampling,
  SettingNames,
  ToolChoice,
  Turn
} from "./Conversation.ts"
import type { AnswerIdentity, ClientDialect } from "./Dialect.ts"
import type { Fate, Losses } from "./Losses.ts"
import { fromUrl, toDataUrl, typeOfName } from "./Media.ts"
import type { FinishReason, ModelEvent } from "./ModelEvent.ts"
import * as Signature from "./Signature.ts"

// Request

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

const fates: Fate = {
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

const toConversation = (request: Contract.ChatCompletionRequest, losses: Losses): Conversation => ({
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

// Answer

export const toTokenUsage = (usage: Usage) => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: {
    cached_tokens: usage.cachedTokens ?? 0,
    ...(usage.cacheWriteTokens === undefined ? {} : { cache_write_tokens: usage.cacheWriteTokens })
  },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 }
})

const toDetail = (signature: Signature.Signature, text: string): Contract.ReasoningDetail => {
  const opaque = Signature.toClient(signature, "openai")
  return signature.redacted === true
    ? { type: "reasoning.encrypted", data: opaque }
    : { type: "reasoning.text", text, signature: opaque }
}

const toImage = (mediaType: string, data: string): Contract.AnswerImage => ({
  type: "image_url",
  image_url: { url: toDataUrl(mediaType, data) }
})

interface Choice {
  text: string | undefined
  refusal: string | undefined
  reasoning: string | undefined
  /** Of the reasoning, what no signature has ended yet. */
  unsigned: string
  readonly details: Array<Contract.ReasoningDetail>
  readonly images: Array<Contract.AnswerImage>
  readonly calls: Array<{ readonly id: string; readonly name: string; arguments: string }>
  finish: FinishReason
}

/** Gathers the events of a whole answer into its JSON body. */
class AnswerFold {
  /** By their numbers, which are as the provider gives them: not every one up to the last need be there. */
  readonly #choices = new Map<number, Choice>()
  usage: Usage = { inputTokens: 0, outputTokens: 0 }

  push(event: ModelEvent): void {
    if (event.type === "usage") {
      this.usage = event.usage
      return
    }
    const choice = this.#choice(event.choice)
    switch (event.type) {
      case "text":
        choice.text = (choice.text ?? "") + event.delta
        return
      case "refusal":
        choice.refusal = (choice.refusal ?? "") + event.delta
        return
      case "reasoning":
        choice.reasoning = (choice.reasoning ?? "") + event.delta
        choice.unsigned += event.delta
        return
      case "signature":
        choice.details.push(toDetail(event.signature, choice.unsigned))
        choice.unsigned = ""
        return
      case "toolCall":
        choice.calls[event.call] = { id: event.id, name: event.name, arguments: "" }
        return
      case "toolArguments": {
        const call = choice.calls[event.call]
        if (call !== undefined) call.arguments += event.delta
        return
      }
      case "media":
        choice.images.push(toImage(event.mediaType, event.data))
        return
      case "finish":
        choice.finish = event.reason
    }
  }

  toBody(identity: AnswerIdentity): Contract.ChatCompletion {
    return {
      id: `chatcmpl-${identity.id}`,
      object: "chat.completion",
      created: identity.created,
      model: identity.model,
      choices: [...this.#choices].toSorted(([one], [other]) => one - other).map(([index, choice]) => ({
        index,
        message: {
          role: "assistant",
          content: choice.text ?? (choice.calls.length > 0 || choice.refusal !== undefined ? null : ""),
          refusal: choice.refusal ?? null,
          ...(choice.reasoning === undefined ? {} : { reasoning_content: choice.reasoning }),
          ...(choice.details.length === 0 ? {} : { reasoning_details: choice.details }),
          ...(choice.images.length === 0 ? {} : { images: choice.images }),
          ...(choice.calls.length === 0 ? {} : {
            tool_calls: choice.calls.map((call) => ({
              id: call.id,
              type: "function" as const,
              function: { name: call.name, arguments: call.arguments }
            }))
          })
        },
        logprobs: null,
        finish_reason: choice.finish
      })),
      usage: toTokenUsage(this.usage),
      ...(identity.fingerprint === undefined ? {} : { system_fingerprint: identity.fingerprint })
    }
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      choice = {
        text: undefined,
        refusal: undefined,
        reasoning: undefined,
        unsigned: "",
        details: [],
        images: [],
        calls: [],
        finish: "stop"
      }
      this.#choices.set(index, choice)
    }
    return choice
  }
}

/** Encodes events as the frames of a streamed answer. */
class AnswerFrames {
  readonly #identity: AnswerIdentity
  readonly #includeUsage: boolean
  /** For each choice that has begun, of its reasoning what no signature has ended yet. */
  readonly #unsigned = new Map<number, string>()

  constructor(identity: AnswerIdentity, includeUsage: boolean) {
    this.#identity = identity
    this.#includeUsage = includeUsage
  }

  encode(event: ModelEvent): string {
    switch (event.type) {
      case "usage":
        return this.#includeUsage ? this.#frame({ choices: [], usage: toTokenUsage(event.usage) }) : ""
      case "text":
        return this.#opening(event.choice, "") + this.#delta(event.choice, { content: event.delta })
      case "refusal":
        return this.#opening(event.choice, null) + this.#delta(event.choice, { refusal: event.delta })
      case "reasoning": {
        const opening = this.#opening(event.choice, "")
        this.#unsigned.set(event.choice, (this.#unsigned.get(event.choice) ?? "") + event.delta)
        return opening + this.#delta(event.choice, { reasoning_content: event.delta })
      }
      case "signature": {
        const opening = this.#opening(event.choice, "")
        const detail = toDetail(event.signature, this.#unsigned.get(event.choice) ?? "")
        this.#unsigned.set(event.choice, "")
        return opening + this.#delta(event.choice, { reasoning_details: [detail] })
      }
      case "toolCall":
        return this.#opening(event.choice, null) + this.#delta(event.choice, {
          tool_calls: [{
            index: event.call,
            id: event.id,
            type: "function",
            function: { name: event.name, arguments: "" }
          }]
        })
      case "toolArguments":
        return this.#delta(event.choice, {
          tool_calls: [{ index: event.call, function: { arguments: event.delta } }]
        })
      case "media":
        return this.#opening(event.choice, "") +
          this.#delta(event.choice, { images: [toImage(event.mediaType, event.data)] })
      case "finish":
        return this.#opening(event.choice, "") + this.#delta(event.choice, {}, event.reason)
    }
  }

  /** Every choice begins with its role, before anything else of it. */
  #opening(choice: number, content: "" | null): string {
    if (this.#unsigned.has(choice)) return ""
    this.#unsigned.set(choice, "")
    return this.#delta(choice, { role: "assistant", content, refusal: null })
  }

  #delta(index: number, delta: object, reason: FinishReason | null = null): string {
    return this.#frame({
      choices: [{ index, delta, logprobs: null, finish_reason: reason }],
      ...(this.#includeUsage ? { usage: null } : {})
    })
  }

  #frame(content: object): string {
    const { created, fingerprint, id, model } = this.#identity
    const chunk = {
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created,
      model,
      system_fingerprint: fingerprint,
      ...content
    }
    return `data: ${JSON.stringify(chunk)}\n\n`
  }
}

export const chatCompletions: ClientDialect<Contract.ChatCompletionRequest> = {
  operation: Contract.chatCompletions.name,
  request: Contract.ChatCompletionRequest,
  settings,
  fates,
  toConversation,
  streams: (request) => request.stream === true,
  encoder: (request, identity) => {
    const frames = new AnswerFrames(identity, request.stream_options?.include_usage === true)
    return {
      frames: (event) => frames.encode(event),
      lastFrames: () => "data: [DONE]\n\n",
      body: (events) => {
        const fold = new AnswerFold()
        for (const event of events) fold.push(event)
        return fold.toBody(identity)
      }
    }
  }
}
