/** Encodes answers for clients of the chat completions dialect. */
import type * as Contract from "../../../contract/operations/ChatCompletions.ts"
import { Choices } from "../conversation/Choices.ts"
import { type AnswerEncoder, type AnswerIdentity, idOf } from "../conversation/Dialect.ts"
import { inputIn } from "./CustomTools.ts"
import { toUrlCitation } from "./UrlCitation.ts"
import { Chunks } from "./Chunks.ts"
import { toTokenUsage } from "./OpenAiUsage.ts"
import { toDataUrl } from "../conversation/Media.ts"
import type { Citation, FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as Signature from "../conversation/Signature.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"

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

const toAnnotation = (citation: Citation): Contract.AnswerAnnotation => ({
  type: "url_citation",
  url_citation: toUrlCitation(citation)
})

interface Choice {
  text: string | undefined
  refusal: string | undefined
  reasoning: string | undefined
  /** The reasoning since the last signature. */
  unsigned: string
  readonly details: Array<Contract.ReasoningDetail>
  readonly annotations: Array<Contract.AnswerAnnotation>
  readonly images: Array<Contract.AnswerImage>
  readonly calls: Array<{ readonly id: string; readonly extra: object; readonly name: string; arguments: string }>
  /** The last signature, until a call has it as well: most clients drop `reasoning_details`. */
  signature: Signature.Signature | undefined
  finish: FinishReason
}

export interface AnswerSettings {
  /** Whether the client wants usage in the stream. */
  readonly includeUsage: boolean
  /** The names of the client's tools that take text. */
  readonly customTools: ReadonlySet<string>
}

/** Collects events into the body of a JSON answer. */
class AnswerFold {
  readonly #customTools: ReadonlySet<string>
  /** By the provider's index, which may have gaps. */
  readonly #choices = new Choices<Choice>(() => ({
    text: undefined,
    refusal: undefined,
    reasoning: undefined,
    unsigned: "",
    details: [],
    annotations: [],
    images: [],
    calls: [],
    signature: undefined,
    finish: "stop"
  }))
  #usage = UsageSum.none

  constructor({ customTools }: AnswerSettings) {
    this.#customTools = customTools
  }

  push(event: ModelEvent): void {
    if (event.type === "usage") {
      this.#usage = event.usage
      return
    }
    const choice = this.#choices.of(event.choice)
    switch (event.type) {
      case "text":
        choice.text = (choice.text ?? "") + event.delta
        return
      case "citation":
        choice.annotations.push(toAnnotation(event.citation))
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
        choice.signature = { ...event.signature, text: choice.unsigned }
        choice.unsigned = ""
        return
      case "toolCall": {
        const extra = Signature.toExtraContent(choice.signature)
        choice.signature = undefined
        choice.calls[event.call] = { id: event.id, extra, name: event.name, arguments: "" }
        return
      }
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
      id: idOf("chatcmpl-", identity),
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
          ...(choice.annotations.length === 0 ? {} : { annotations: choice.annotations }),
          ...(choice.images.length === 0 ? {} : { images: choice.images }),
          ...(choice.calls.length === 0 ? {} : {
            tool_calls: choice.calls.map(({ extra, id, ...call }) =>
              this.#customTools.has(call.name)
                ? { id, type: "custom" as const, custom: { name: call.name, input: inputIn(call.arguments) }, ...extra }
                : { id, type: "function" as const, function: call, ...extra }
            )
          })
        },
        logprobs: null,
        finish_reason: choice.finish
      })),
      usage: toTokenUsage(this.#usage),
      ...(identity.fingerprint === undefined ? {} : { system_fingerprint: identity.fingerprint })
    }
  }
}

/** Encodes events as the frames of a streamed answer. */
class AnswerFrames {
  readonly #chunks: Chunks
  /** For each started choice, the reasoning since the last signature. */
  readonly #unsigned = new Map<number, string>()
  /** The last signature of each choice, until a call has it as well. */
  readonly #signatures = new Map<number, Signature.Signature>()
  readonly #customTools: ReadonlySet<string>
  /** By choice, the arguments of its calls of custom tools: their text is known only when they are complete. */
  readonly #customCalls = new Map<number, Map<number, string>>()

  constructor(identity: AnswerIdentity, { customTools, includeUsage }: AnswerSettings) {
    this.#customTools = customTools
    const head = { id: idOf("chatcmpl-", identity), object: "chat.completion.chunk" }
    this.#chunks = new Chunks(head, identity, includeUsage)
  }

  encode(event: ModelEvent): string {
    switch (event.type) {
      case "usage":
        return this.#chunks.usage(event.usage)
      case "text":
        return this.#opening(event.choice, "") + this.#delta(event.choice, { content: event.delta })
      case "citation":
        return this.#opening(event.choice, "") +
          this.#delta(event.choice, { annotations: [toAnnotation(event.citation)] })
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
        this.#signatures.set(event.choice, { ...event.signature, text: this.#unsigned.get(event.choice) ?? "" })
        this.#unsigned.set(event.choice, "")
        return opening + this.#delta(event.choice, { reasoning_details: [detail] })
      }
      case "toolCall": {
        const extra = Signature.toExtraContent(this.#signatures.get(event.choice))
        this.#signatures.delete(event.choice)
        const { call: index, choice, id, name } = event
        const isCustom = this.#customTools.has(name)
        if (isCustom) this.#customCalls.set(choice, (this.#customCalls.get(choice) ?? new Map()).set(index, ""))
        const call = isCustom
          ? { type: "custom", custom: { name, input: "" } }
          : { type: "function", function: { name, arguments: "" } }
        return this.#opening(choice, null) + this.#delta(choice, { tool_calls: [{ index, id, ...call, ...extra }] })
      }
      case "toolArguments": {
        const { call: index, choice, delta } = event
        const custom = this.#customCalls.get(choice)
        const before = custom?.get(index)
        if (before === undefined) {
          return this.#delta(choice, { tool_calls: [{ index, function: { arguments: delta } }] })
        }
        custom?.set(index, before + delta)
        return ""
      }
      case "media":
        return this.#opening(event.choice, "") +
          this.#delta(event.choice, { images: [toImage(event.mediaType, event.data)] })
      case "finish":
        return this.#opening(event.choice, "") + this.#customInputs(event.choice) +
          this.#delta(event.choice, {}, event.reason)
    }
  }

  /** The texts of all calls of custom tools. */
  #customInputs(choice: number): string {
    const calls = [...this.#customCalls.get(choice) ?? []]
    return calls.map(([index, json]) =>
      this.#delta(choice, { tool_calls: [{ index, custom: { input: inputIn(json) } }] })
    ).join("")
  }

  /** Every choice starts with its role. */
  #opening(choice: number, content: "" | null): string {
    if (this.#unsigned.has(choice)) return ""
    this.#unsigned.set(choice, "")
    return this.#delta(choice, { role: "assistant", content, refusal: null })
  }

  #delta(index: number, delta: object, reason: FinishReason | null = null): string {
    return this.#chunks.choice({ index, delta, logprobs: null, finish_reason: reason })
  }
}

export const encoder = (identity: AnswerIdentity, settings: AnswerSettings): AnswerEncoder => {
  const frames = new AnswerFrames(identity, settings)
  return {
    frames: (event) => frames.encode(event),
    lastFrames: () => "data: [DONE]\n\n",
    body: (events) => {
      const fold = new AnswerFold(settings)
      for (const event of events) fold.push(event)
      return fold.toBody(identity)
    }
  }
}
