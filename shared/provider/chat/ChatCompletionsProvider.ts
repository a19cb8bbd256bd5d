/** The chat completions dialect of a provider: from the canonical conversation to its request, from its answer to events. */
import { Predicate, Schema } from "effect"
import type { Usage } from "../../contract/Usage.ts"
import * as Json from "../Json.ts"
import { usageOf } from "../openai/OpenAiUsage.ts"
import { settings } from "./ChatCompletions.ts"
import type {
  AnswerFormat,
  ContentPart,
  Conversation,
  MediaPart,
  Reasoning,
  ToolChoice,
  ToolDefinition,
  Turn
} from "./Conversation.ts"
import type { AnswerDecoder, ProviderDialect, Target } from "./Dialect.ts"
import type { Losses } from "./Losses.ts"
import { fromUrl, textOf, toDataUrl } from "./Media.ts"
import type { FinishReason, ModelEvent } from "./ModelEvent.ts"
import { effortOf } from "./ReasoningEffort.ts"
import * as ToolCalls from "./ToolCalls.ts"

// Request

const Options = Schema.Struct({
  /** What the limit of tokens is called: some servers know only the older name, OpenAI's newer models only the newer. */
  maxTokensField: Schema.optionalKey(Schema.Literals(["max_completion_tokens", "max_tokens"]))
})

const toRequest = (
  conversation: Conversation,
  { losses, model, streams }: Target,
  { maxTokensField = "max_completion_tokens" }: typeof Options.Type
): object => {
  const { maxTokens, modalities, sampling, seed, stop, tools, user } = conversation
  if (sampling?.topK !== undefined) losses.warnOf("topK")
  if (modalities?.includes("audio") === true) losses.refuseOf("modalities")
  return {
    model,
    messages: toMessages(conversation.turns, losses),
    ...(streams ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...(tools.length === 0 ? {} : {
      tools: tools.map((tool) => toTool(tool, losses)),
      tool_choice: toToolChoice(conversation.toolChoice),
      parallel_tool_calls: conversation.parallelToolCalls
    }),
    response_format: toFormat(conversation.format),
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
    user
  }
}

const toMessages = (turns: ReadonlyArray<Turn>, losses: Losses): ReadonlyArray<object> => {
  const messages: Array<object> = []
  /** What only a message of the user can hold, until the results of tools are through. */
  let loose: Array<object> = []
  const settle = () => {
    if (loose.length > 0) messages.push({ role: "user", content: loose })
    loose = []
  }
  for (const turn of turns) {
    if (turn.role !== "tool") settle()
    const others = turn.content.filter((part) => part.type === "image" || part.type === "file")
    switch (turn.role) {
      case "system":
        for (const part of others) losses.refuse(part.path ?? "")
        messages.push({ role: "system", content: toText(turn.content) })
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
          tool_call_id: turn.toolCallId,
          content: turn.failed === true ? `Error: ${text}` : text
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

const toText = (content: ReadonlyArray<ContentPart>): string =>
  content.flatMap((part) => part.type === "text" ? [part.text] : []).join("\n\n")

/** One text is a string, which every server takes. */
const toContent = (parts: ReadonlyArray<object>): unknown => {
  const [only] = parts
  return parts.length === 1 && only !== undefined && "text" in only ? only.text : parts
}

const toAssistant = ({ content, toolCalls }: Turn, losses: Losses): object => {
  const texts = content.filter((part) => part.type === "text")
  const reasoning = content.flatMap((part) => {
    if (part.type !== "reasoning") return []
    if (part.signature === undefined || part.signature.origin === "openai") return [part.text]
    losses.warn(part.path ?? "", "was not thought by this provider")
    return []
  }).join("")
  return {
    role: "assistant",
    content: texts.length === 0 ? null : toContent(texts.map(({ text }) => ({ type: "text", text }))),
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(toolCalls.length === 0 ? {} : {
      tool_calls: toolCalls.map(({ arguments: json, id, name }) => ({
        id,
        type: "function",
        function: { name, arguments: json }
      }))
    })
  }
}

const audioFormats: ReadonlyMap<string, string> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/mp3", "mp3"],
  ["audio/mpeg", "mp3"]
])

const toPart = (part: ContentPart, losses: Losses): ReadonlyArray<object> => {
  const refuse = () => {
    losses.refuse(part.path ?? "")
    return []
  }
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }]
    case "reasoning":
      return []
    case "image": {
      const url = urlOf(part)
      return url === undefined ? refuse() : [{ type: "image_url", image_url: { url, detail: part.detail } }]
    }
    case "file": {
      const { media, mediaType, name } = part
      const text = textOf(part)
      if (text !== undefined) return [{ type: "text", text }]
      if (mediaType.startsWith("video/")) {
        const url = urlOf(part)
        return url === undefined ? refuse() : [{ type: "video_url", video_url: { url } }]
      }
      if (media.type !== "base64") return refuse()
      if (mediaType.startsWith("audio/")) {
        const format = audioFormats.get(mediaType)
        return format === undefined ? refuse() : [{ type: "input_audio", input_audio: { data: media.data, format } }]
      }
      return [{ type: "file", file: { filename: name ?? "file", file_data: toDataUrl(mediaType, media.data) } }]
    }
  }
}

const urlOf = ({ media, mediaType }: MediaPart): string | undefined => {
  if (media.type === "url") return media.url
  return media.type === "base64" ? toDataUrl(mediaType, media.data) : undefined
}

const toTool = ({ description, name, parameters, path = "", strict }: ToolDefinition, losses: Losses): object => {
  const isStrict = strict === true && isClosed(parameters)
  if (strict === true && !isStrict) losses.warn(path, "is not kept to the letter: its schema is open")
  return {
    type: "function",
    function: {
      name,
      description,
      parameters: ToolCalls.parametersOrNone(parameters),
      ...(isStrict ? { strict } : {})
    }
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

const toFormat = (format: AnswerFormat): object | undefined => {
  switch (format.type) {
    case "text":
      return undefined
    case "json":
      return { type: "json_object" }
    case "jsonSchema": {
      const { description, name = "answer", schema, strict = isClosed(schema) } = format
      return { type: "json_schema", json_schema: { name, description, schema, ...(strict ? { strict } : {}) } }
    }
  }
}

/** Other dialects keep to every schema; this one only to those whose objects are closed and have no optional fields. */
const isClosed = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.every(isClosed)
  if (!Predicate.isReadonlyObject(schema)) return true
  if (schema["type"] === "object" || schema["properties"] !== undefined) {
    const names = Object.keys(Json.fields(schema["properties"]))
    const required = Json.list(schema["required"])
    if (schema["additionalProperties"] !== false || !names.every((name) => required.includes(name))) return false
  }
  return Object.values(schema).every(isClosed)
}

const toEffort = (reasoning: Reasoning | undefined, losses: Losses): string | undefined => {
  if (reasoning === undefined) return undefined
  if (reasoning.type === "off" || reasoning.type === "auto") {
    losses.warnOf("reasoning", "is left to the model")
    return undefined
  }
  const effort = effortOf(reasoning)
  if (reasoning.type === "budget") losses.warnOf("reasoning", `was turned into the effort ${effort}`)
  if (effort !== "xhigh" && effort !== "max") return effort
  losses.warnOf("reasoning", "was lowered to high")
  return "high"
}

// Answer

interface Choice {
  /** The calls so far by the provider's number and id, where it gave them; the last is open. */
  readonly calls: Array<{ readonly index: unknown; readonly id: string }>
  /** Reasoning was the last that was said. */
  thinking: boolean
  refused: boolean
  finish: FinishReason | undefined
  stopSequence: string | undefined
}

class Decoder implements AnswerDecoder {
  readonly #choices = new Map<number, Choice>()
  #usage: Usage | undefined

  frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    return this.#read(data, "delta")
  }

  whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    return this.#read(answer, "message")
  }

  isComplete(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every(({ finish }) => finish !== undefined)
  }

  last(): ReadonlyArray<ModelEvent> {
    if (this.#choices.size === 0) this.#of(0)
    return [...this.#choices].flatMap(([index, choice]) => [
      ...this.#thought(index, choice),
      {
        type: "finish",
        choice: index,
        reason: finishOf(choice),
        ...(choice.stopSequence === undefined ? {} : { stopSequence: choice.stopSequence })
      }
    ])
  }

  usage(): Usage | undefined {
    return this.#usage
  }

  #read(data: unknown, member: "delta" | "message"): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    const { choices, usage } = data
    if (Predicate.isReadonlyObject(usage)) this.#usage = usageOf(usage) ?? this.#usage
    const events: Array<ModelEvent> = []
    for (const [position, item] of Json.list(choices).entries()) {
      const { [member]: said, finish_reason: reason, index, stop_reason: stop } = Json.fields(item)
      const number = Json.count(index) ?? position
      const choice = this.#of(number)
      if (!this.#said(number, choice, Json.fields(said), events)) return undefined
      if (typeof reason === "string") choice.finish = toFinish(reason)
      // vLLM's word for which sequence it was
      if (reason === "stop" && typeof stop === "string") choice.stopSequence = stop
    }
    return events
  }

  /** `false` where it makes no sense. */
  #said(number: number, choice: Choice, said: Json.Fields, events: Array<ModelEvent>): boolean {
    const content = contentOf(said["content"])
    // DeepSeek's name for it, and that of vLLM and OpenRouter
    const reasoning = Json.string(said["reasoning_content"]) || Json.string(said["reasoning"]) || content.reasoning
    if (reasoning !== "") {
      choice.thinking = true
      events.push({ type: "reasoning", choice: number, delta: reasoning })
    }
    const { text } = content
    const refusal = Json.string(said["refusal"]) ?? ""
    const calls = Json.list(said["tool_calls"])
    const images = Json.list(said["images"])
    if (text + refusal !== "" || calls.length > 0 || images.length > 0) events.push(...this.#thought(number, choice))
    if (text !== "") events.push({ type: "text", choice: number, delta: text })
    if (refusal !== "") {
      choice.refused = true
      events.push({ type: "refusal", choice: number, delta: refusal })
    }
    for (const image of images) {
      const url = Json.string(Json.fields(Json.fields(image)["image_url"])["url"]) ?? ""
      const { media, mediaType } = fromUrl(url)
      if (media.type === "base64") events.push({ type: "media", choice: number, mediaType, data: media.data })
    }
    return calls.every((call) => this.#called(number, choice, Json.fields(call), events))
  }

  #called(number: number, choice: Choice, called: Json.Fields, events: Array<ModelEvent>): boolean {
    const { arguments: json, name: given } = Json.fields(called["function"])
    const { index } = called
    const id = Json.string(called["id"]) ?? ""
    const name = Json.string(given) ?? ""
    const at = placeOf(choice, index, id, name)
    // some servers do not print the arguments
    const delta = Predicate.isReadonlyObject(json) ? JSON.stringify(json) : Json.string(json) ?? ""
    if (at === -1) {
      if (name === "") return false
      choice.calls.push({ index, id })
      events.push({
        type: "toolCall",
        choice: number,
        call: choice.calls.length - 1,
        id: id || ToolCalls.newId(),
        name
      })
    } else if (at !== choice.calls.length - 1) return delta === ""
    if (delta !== "") {
      events.push({ type: "toolArguments", choice: number, call: choice.calls.length - 1, delta })
    }
    return true
  }

  /** Reasoning here is not signed. That it is over is marked as if it were, so that it finds its way back. */
  #thought(number: number, choice: Choice): ReadonlyArray<ModelEvent> {
    if (!choice.thinking) return []
    choice.thinking = false
    return [{ type: "signature", choice: number, signature: { origin: "openai", value: "" } }]
  }

  #of(index: number): Choice {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      choice = { calls: [], thinking: false, refused: false, finish: undefined, stopSequence: undefined }
      this.#choices.set(index, choice)
    }
    return choice
  }
}

/** Text, or Mistral's list of what was thought and what is said. */
const contentOf = (content: unknown): { readonly text: string; readonly reasoning: string } => {
  if (typeof content === "string") return { text: content, reasoning: "" }
  const of = (type: string): ReadonlyArray<Json.Fields> =>
    Json.list(content).map(Json.fields).filter((part) => part["type"] === type)
  const thoughts = of("thinking").flatMap((part) => Json.list(part["thinking"]))
  return { text: textIn(of("text")), reasoning: textIn(thoughts) }
}

const textIn = (parts: ReadonlyArray<unknown>): string =>
  parts.map((part) => Json.string(Json.fields(part)["text"]) ?? "").join("")

/** Where it stands among the calls so far; -1 where it begins one. */
const placeOf = ({ calls }: Choice, index: unknown, id: string, name: string): number => {
  // some servers do not number their calls: what has a name begins one
  const isNumbered = index !== undefined && index !== null
  if (!isNumbered && name !== "") return -1
  const at = isNumbered ? calls.findLastIndex((call) => call.index === index) : calls.length - 1
  // others give all of them the same number
  const known = calls[at]?.id ?? ""
  return name !== "" && id !== "" && known !== "" && id !== known ? -1 : at
}

const toFinish = (reason: string): FinishReason => {
  switch (reason) {
    case "length":
    case "tool_calls":
    case "content_filter":
      return reason
    case "function_call":
      return "tool_calls"
    default:
      return "stop"
  }
}

const finishOf = ({ calls, finish = "stop", refused }: Choice): FinishReason => {
  if (finish !== "stop") return finish
  return refused ? "content_filter" : calls.length > 0 ? "tool_calls" : "stop"
}

export const chatCompletionsProvider: ProviderDialect<typeof Options.Type> = {
  origin: "openai",
  settings: { ...settings, maxTokens: "max_completion_tokens" },
  takesChoices: true,
  needsInline: (_url, { mediaType, type }) => type === "file" && !mediaType.startsWith("video/"),
  options: Options,
  toRequest,
  decoder: () => new Decoder()
}
