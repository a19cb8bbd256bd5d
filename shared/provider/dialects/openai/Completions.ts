/** The completions dialect for clients. */
import * as Contract from "../../../contract/operations/Completions.ts"
import { Chunks } from "./Chunks.ts"
import { toTokenUsage } from "./OpenAiUsage.ts"
import { Decoder } from "./ChatCompletionsProviderAnswer.ts"
import { settings, toSampling } from "./ChatCompletionsRequest.ts"
import { type Conversation, textTurn, type Turn } from "../conversation/Conversation.ts"
import { type AnswerIdentity, type ClientDialect, idOf } from "../conversation/Dialect.ts"
import { carried, type Fate, type Losses, meaning } from "../conversation/Losses.ts"
import type { FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import * as Json from "../../json/Json.ts"
import * as JsonText from "../../json/JsonText.ts"

// Request

const fates: Fate = {
  ...carried("model", "stream"),
  stream_options: carried("include_usage"),
  ...carried("prompt", "suffix", "echo", "max_tokens", "n", "stop", "seed", "user"),
  ...carried("temperature", "top_p", "presence_penalty", "frequency_penalty"),
  ...meaning("logit_bias", "logprobs")
}

const promptsOf = ({ prompt }: Contract.CompletionRequest): ReadonlyArray<string> =>
  typeof prompt === "string" ? [prompt] : prompt

const textsPerPrompt = ({ n }: Contract.CompletionRequest): number => n ?? 1

/** One conversation for each prompt. */
const toConversations = (request: Contract.CompletionRequest, losses: Losses): ReadonlyArray<Conversation> => {
  if (request.suffix) losses.warn("suffix", "was turned into an instruction")
  return promptsOf(request).map((prompt): Conversation => ({
    turns: [...insertion(request), textTurn("user", prompt)],
    continues: true,
    tools: [],
    toolChoice: { type: "none" },
    format: { type: "text" },
    stop: typeof request.stop === "string" ? [request.stop] : request.stop ?? [],
    maxTokens: request.max_tokens ?? undefined,
    choices: textsPerPrompt(request),
    seed: request.seed ?? undefined,
    sampling: toSampling(request),
    // answers in this dialect are only text
    modalities: ["text"],
    user: request.user ?? undefined
  }))
}

/** An instruction for models that cannot insert text before a suffix. */
const insertion = ({ suffix }: Contract.CompletionRequest): ReadonlyArray<Turn> =>
  suffix
    ? [
      textTurn(
        "system",
        `Answer only with the text that belongs between the user's text and this: ${JSON.stringify(suffix)}`
      )
    ]
    : []

// Answer

/** The text before each choice. */
const echoes = (request: Contract.CompletionRequest): (choice: number) => string => {
  const prompts = promptsOf(request)
  return (choice) => request.echo === true ? prompts[Math.floor(choice / textsPerPrompt(request))] ?? "" : ""
}

const toFinish = (reason: FinishReason): Contract.Completion["choices"][number]["finish_reason"] =>
  reason === "tool_calls" ? "stop" : reason

const toBody = (
  request: Contract.CompletionRequest,
  identity: AnswerIdentity,
  events: ReadonlyArray<ModelEvent>
): Contract.Completion => {
  const echo = echoes(request)
  const choices = Array.from({ length: promptsOf(request).length * textsPerPrompt(request) }, (_, index) => ({
    text: echo(index),
    index,
    logprobs: null,
    finish_reason: toFinish("stop")
  }))
  let usage = toTokenUsage(UsageSum.none)
  for (const event of events) {
    if (event.type === "usage") {
      usage = toTokenUsage(event.usage)
      continue
    }
    const choice = choices[event.choice]
    if (choice === undefined) continue
    if (event.type === "text" || event.type === "refusal") choice.text += event.delta
    if (event.type === "finish") choice.finish_reason = toFinish(event.reason)
  }
  return {
    id: idOf("cmpl-", identity),
    object: "text_completion",
    created: identity.created,
    model: identity.model,
    choices,
    usage,
    ...(identity.fingerprint === undefined ? {} : { system_fingerprint: identity.fingerprint })
  }
}

/** Encodes events as the frames of a streamed answer. */
class AnswerFrames {
  readonly #chunks: Chunks
  readonly #echo: (choice: number) => string
  readonly #begun = new Set<number>()

  constructor(request: Contract.CompletionRequest, identity: AnswerIdentity) {
    const head = { id: idOf("cmpl-", identity), object: "text_completion" }
    this.#chunks = new Chunks(head, identity, request.stream_options?.include_usage === true)
    this.#echo = echoes(request)
  }

  encode(event: ModelEvent): string {
    switch (event.type) {
      case "usage":
        return this.#chunks.usage(event.usage)
      case "text":
      case "refusal":
        return this.#opening(event.choice) + this.#piece(event.choice, event.delta)
      case "finish":
        return this.#opening(event.choice) + this.#piece(event.choice, "", toFinish(event.reason))
      default:
        return ""
    }
  }

  #opening(choice: number): string {
    if (this.#begun.has(choice)) return ""
    this.#begun.add(choice)
    const echo = this.#echo(choice)
    return echo === "" ? "" : this.#piece(choice, echo)
  }

  #piece(index: number, text: string, reason: FinishReason | null = null): string {
    return this.#chunks.choice({ text, index, logprobs: null, finish_reason: reason })
  }
}

// Continuation

/** Reads answers of this dialect: the text of a choice is where chat completions have a delta or a message. */
class TextDecoder extends Decoder {
  override frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    return super.frame(this.#inChat(data, "delta"))
  }

  override whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    return super.whole(this.#inChat(answer, "message"))
  }

  #inChat(data: unknown, member: "delta" | "message"): object {
    const choices = Json.list(Json.fields(data)["choices"]).map(Json.fields)
    return {
      ...Json.fields(data),
      choices: choices.map(({ text, ...choice }) => ({ ...choice, [member]: { content: text } }))
    }
  }
}

export const completions: ClientDialect<Contract.CompletionRequest> = {
  operation: Contract.completions.name,
  request: Contract.CompletionRequest,
  settings,
  fates,
  toConversation: toConversations,
  streams: (request) => request.stream === true,
  encoder: (request, identity) => {
    const frames = new AnswerFrames(request, identity)
    return {
      frames: (event) => frames.encode(event),
      lastFrames: () => "data: [DONE]\n\n",
      body: (events) => toBody(request, identity, events)
    }
  },
  continuation: {
    decoder: () => new TextDecoder(),
    prefill: (body, text) => {
      const members = JsonText.members(body) ?? []
      const valueOf = (name: string) => JsonText.valueOf(body, members, name)
      const prompt = [valueOf("prompt")].flat()[0]
      if (typeof prompt !== "string" || valueOf("suffix") || valueOf("echo") === true) return undefined
      return JsonText.setMembers(body, members, new Map([["prompt", prompt + text]]))
    }
  }
}
