/** Encodes answers for clients of the Gemini dialect. */
import type * as Contract from "../../../contract/operations/GenerateContent.ts"
import type { Usage } from "../../../contract/Usage.ts"
import { toUsageMetadata } from "./GeminiUsage.ts"
import { Choices } from "../conversation/Choices.ts"
import { type AnswerEncoder, type AnswerIdentity, idOf } from "../conversation/Dialect.ts"
import { toGrounding } from "./Grounding.ts"
import type { Citation, FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as Signature from "../conversation/Signature.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"

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

interface Candidate {
  readonly parts: Array<Record<string, unknown>>
  readonly calls: Map<number, { readonly id: string; readonly name: string; text: string }>
  text: string
  readonly citations: Array<Citation>
  finish: FinishReason | undefined
}

/** A function call is a single part in this dialect, so the encoder collects its arguments first. */
export class Encoder implements AnswerEncoder {
  readonly #identity: AnswerIdentity
  readonly #candidates = new Choices<Candidate>(() => ({
    parts: [],
    calls: new Map(),
    text: "",
    citations: [],
    finish: undefined
  }))
  #usage = UsageSum.none

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  frames(event: ModelEvent): string {
    const part = this.#take(event)
    return part === undefined || event.type === "usage" ? "" : this.#frame([this.#candidate(event.choice, [part])])
  }

  /** One frame with the finish reason of each candidate and the usage. */
  lastFrames(): string {
    const last = [...this.#candidates].map(([index, candidate]) =>
      this.#candidate(index, callParts(candidate), candidate)
    )
    return this.#frame(last, this.#usage)
  }

  body(events: ReadonlyArray<ModelEvent>): Contract.GenerateContentAnswer {
    for (const event of events) {
      const part = this.#take(event)
      if (part !== undefined && event.type !== "usage") append(this.#candidates.of(event.choice).parts, part)
    }
    const candidates = [...this.#candidates].map(([index, candidate]) =>
      this.#candidate(index, [...candidate.parts, ...callParts(candidate)], candidate)
    )
    return this.#answer(candidates, this.#usage)
  }

  /** Records the event. Returns the part that it adds immediately, if any. */
  #take(event: ModelEvent): Record<string, unknown> | undefined {
    if (event.type === "usage") {
      this.#usage = event.usage
      return undefined
    }
    const candidate = this.#candidates.of(event.choice)
    switch (event.type) {
      case "text":
        candidate.text += event.delta
        return { text: event.delta }
      case "refusal":
        return { text: event.delta }
      case "citation":
        candidate.citations.push(event.citation)
        return undefined
      case "reasoning":
        return { text: event.delta, thought: true }
      case "signature":
        return { text: "", thought: true, thoughtSignature: Signature.toClient(event.signature, "gemini") }
      case "media":
        return { inlineData: { mimeType: event.mediaType, data: event.data } }
      case "toolCall":
        candidate.calls.set(event.call, { id: event.id, name: event.name, text: "" })
        return undefined
      case "toolArguments": {
        const call = candidate.calls.get(event.call)
        if (call !== undefined) call.text += event.delta
        return undefined
      }
      case "finish":
        candidate.finish = event.reason
        return undefined
    }
  }

  #candidate(
    index: number,
    parts: ReadonlyArray<Record<string, unknown>>,
    { citations = [], finish, text = "" }: Partial<Candidate> = {}
  ): Contract.GenerateContentAnswer["candidates"][number] {
    return {
      content: { role: "model", parts },
      ...(finish === undefined ? {} : { finishReason: toFinishReason(finish) }),
      ...(citations.length === 0 ? {} : { groundingMetadata: toGrounding(citations, text) }),
      index,
      safetyRatings: []
    }
  }

  #answer(candidates: Contract.GenerateContentAnswer["candidates"], usage?: Usage): Contract.GenerateContentAnswer {
    return {
      candidates,
      ...(usage === undefined ? {} : { usageMetadata: toUsageMetadata(usage) }),
      modelVersion: this.#identity.model,
      responseId: idOf("", this.#identity)
    }
  }

  #frame(candidates: Contract.GenerateContentAnswer["candidates"], usage?: Usage): string {
    return `data: ${JSON.stringify(this.#answer(candidates, usage))}\n\n`
  }
}

const callParts = ({ calls }: Candidate) =>
  [...calls.values()].map(({ id, name, text }) => ({ functionCall: { id, name, args: ToolCalls.toObject(text) } }))

/** Joins pieces of text into one part, up to a signature. */
const append = (parts: Array<Record<string, unknown>>, part: Record<string, unknown>): void => {
  const last = parts.at(-1)
  if (
    typeof last?.["text"] === "string" && typeof part["text"] === "string" && last["thought"] === part["thought"] &&
    last["thoughtSignature"] === undefined
  ) Object.assign(last, part, { text: last["text"] + part["text"] })
  else parts.push({ ...part })
}
