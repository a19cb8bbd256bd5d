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

type Part = Record<string, unknown>

/** What Google sends with the reason: clients take a content without parts for an error. */
const noText: Part = { text: "" }

interface Candidate {
  readonly parts: Array<Part>
  /** The last call, until the next part shows that its arguments are whole. */
  call: { readonly id: string; readonly name: string; text: string; readonly thoughtSignature?: string } | undefined
  /** The reasoning since the last signature. */
  unsigned: string
  /** The last signature, until a call has it as well: Gemini CLI keeps only those of calls. */
  signature: Signature.Signature | undefined
  text: string
  readonly citations: Array<Citation>
  finish: FinishReason | undefined
}

/** A function call is a single part in this dialect, so the encoder collects its arguments first. */
export class Encoder implements AnswerEncoder {
  readonly #identity: AnswerIdentity
  readonly #candidates = new Choices<Candidate>(() => ({
    parts: [],
    call: undefined,
    unsigned: "",
    signature: undefined,
    text: "",
    citations: [],
    finish: undefined
  }))
  #usage = UsageSum.none

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  frames(event: ModelEvent): string {
    const parts = this.#take(event)
    return parts.length === 0 || event.type === "usage" ? "" : this.#frame([this.#candidate(event.choice, parts)])
  }

  /** One frame with the finish reason of each candidate and the usage. */
  lastFrames(): string {
    const last = [...this.#candidates].map(([index, candidate]) => {
      const parts = takeCall(candidate)
      return this.#candidate(index, parts.length === 0 ? [noText] : parts, candidate)
    })
    return this.#frame(last, this.#usage)
  }

  body(events: ReadonlyArray<ModelEvent>): Contract.GenerateContentAnswer {
    for (const event of events) {
      const parts = this.#take(event)
      if (event.type === "usage") continue
      for (const part of parts) append(this.#candidates.of(event.choice).parts, part)
    }
    const candidates = [...this.#candidates].map(([index, candidate]) =>
      this.#candidate(index, [...candidate.parts, ...takeCall(candidate)], candidate)
    )
    return this.#answer(candidates, this.#usage)
  }

  /** Records the event. Returns the parts that it completes. */
  #take(event: ModelEvent): ReadonlyArray<Part> {
    if (event.type === "usage") {
      this.#usage = event.usage
      return []
    }
    const candidate = this.#candidates.of(event.choice)
    switch (event.type) {
      case "text":
        candidate.text += event.delta
        return [...takeCall(candidate), { text: event.delta }]
      case "refusal":
        return [...takeCall(candidate), { text: event.delta }]
      case "citation":
        candidate.citations.push(event.citation)
        return []
      case "reasoning":
        candidate.unsigned += event.delta
        return [...takeCall(candidate), { text: event.delta, thought: true }]
      case "signature": {
        candidate.signature = { ...event.signature, text: candidate.unsigned }
        candidate.unsigned = ""
        const thoughtSignature = Signature.toClient(event.signature, "gemini")
        return [...takeCall(candidate), { text: "", thought: true, thoughtSignature }]
      }
      case "media":
        return [...takeCall(candidate), { inlineData: { mimeType: event.mediaType, data: event.data } }]
      case "toolCall": {
        const before = takeCall(candidate)
        const { signature } = candidate
        candidate.signature = undefined
        candidate.call = {
          id: event.id,
          name: event.name,
          text: "",
          ...(signature === undefined ? {} : { thoughtSignature: Signature.toClient(signature, "gemini") })
        }
        return before
      }
      case "toolArguments":
        if (candidate.call !== undefined) candidate.call.text += event.delta
        return []
      case "finish":
        candidate.finish = event.reason
        return []
    }
  }

  #candidate(
    index: number,
    parts: ReadonlyArray<Part>,
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

/** The part of the last call, if it is not part of the answer yet. */
const takeCall = (candidate: Candidate): ReadonlyArray<Part> => {
  const { call } = candidate
  candidate.call = undefined
  return call === undefined
    ? []
    : [{
      functionCall: { id: call.id, name: call.name, args: ToolCalls.toObject(call.text) },
      ...(call.thoughtSignature === undefined ? {} : { thoughtSignature: call.thoughtSignature })
    }]
}

/** Joins pieces of text into one part, up to a signature. */
const append = (parts: Array<Part>, part: Part): void => {
  const last = parts.at(-1)
  if (
    typeof last?.["text"] === "string" && typeof part["text"] === "string" && last["thought"] === part["thought"] &&
    last["thoughtSignature"] === undefined
  ) Object.assign(last, part, { text: last["text"] + part["text"] })
  else parts.push({ ...part })
}
