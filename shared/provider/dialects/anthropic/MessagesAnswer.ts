/** Encodes answers for clients of the messages dialect. */
import type * as Contract from "../../../contract/operations/Messages.ts"
import type { Usage } from "../../../contract/Usage.ts"
import { type AnswerEncoder, type AnswerIdentity, idOf } from "../conversation/Dialect.ts"
import type { Citation, ModelEvent } from "../conversation/ModelEvent.ts"
import * as Signature from "../conversation/Signature.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"

/** `input_tokens` excludes tokens read from or written to the cache. */
const toMessageUsage = (usage: Usage): typeof Contract.MessageUsage.Type => {
  const { cacheWriteTokens = 0, cachedTokens = 0, estimatedTokens, inputTokens, outputTokens, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, inputTokens - cachedTokens - cacheWriteTokens),
    output_tokens: outputTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cachedTokens,
    ...(reasoningTokens === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoningTokens } }),
    ...(estimatedTokens === undefined ? {} : { estimated_tokens: estimatedTokens })
  }
}

type Finish = Extract<ModelEvent, { readonly type: "finish" }>

const toStop = (finish: Finish | undefined): Pick<Contract.MessageAnswer, "stop_reason" | "stop_sequence"> => {
  if (finish?.stopSequence !== undefined) return { stop_reason: "stop_sequence", stop_sequence: finish.stopSequence }
  switch (finish?.reason) {
    case "length":
      return { stop_reason: "max_tokens", stop_sequence: null }
    case "tool_calls":
      return { stop_reason: "tool_use", stop_sequence: null }
    case "content_filter":
      return { stop_reason: "refusal", stop_sequence: null }
    default:
      return { stop_reason: "end_turn", stop_sequence: null }
  }
}

const emptyThinking = { type: "thinking", thinking: "", signature: "" }

/** The block for hidden reasoning; any other signature belongs to the thinking before it. */
const toRedacted = (signature: Signature.Signature): Contract.AnswerBlock | undefined =>
  signature.redacted === true
    ? { type: "redacted_thinking", data: Signature.toClient(signature, "anthropic") }
    : undefined

const toImage = (mediaType: string, data: string): Contract.AnswerBlock => ({
  type: "image",
  source: { type: "base64", media_type: mediaType, data }
})

/** Its index marks it as made by this gateway, which removes it on its way to Anthropic: only Anthropic's own are valid there. */
const toCitation = ({ quote, title, url }: Citation) => ({
  type: "web_search_result_location",
  url,
  title,
  cited_text: quote,
  encrypted_index: Signature.toClient({ origin: "openai", value: "" }, "anthropic")
})

type Thinking = { readonly kind: "thinking"; text: string; signature: string | undefined }
type ToolBlock = { readonly kind: "tool"; readonly id: string; readonly name: string; text: string }

type OpenBlock =
  | Thinking
  | ToolBlock
  | { readonly kind: "text"; text: string; readonly citations: Array<ReturnType<typeof toCitation>> }
  | { readonly kind: "whole"; readonly block: Contract.AnswerBlock }

/**
 * Whether the block has a signature and no thinking. One that follows other blocks is sent only before a tool's call: it is the
 * signature of a text, which Gemini does not require back, and clients such as Claude Code take the last block as the answer.
 */
const isBareSignature = (block: OpenBlock | undefined): boolean => block?.kind === "thinking" && block.text === ""

/** Collects events into blocks, in order. */
const toBlocks = (events: ReadonlyArray<ModelEvent>): ReadonlyArray<Contract.AnswerBlock> => {
  const blocks: Array<OpenBlock> = []
  const calls = new Map<number, ToolBlock>()
  const thinking = (): Thinking => {
    const last = blocks.at(-1)
    if (last?.kind === "thinking" && last.signature === undefined) return last
    const block: Thinking = { kind: "thinking", text: "", signature: undefined }
    blocks.push(block)
    return block
  }
  for (const event of events) {
    switch (event.type) {
      case "text":
      case "refusal": {
        const last = blocks.at(-1)
        if (last?.kind === "text") last.text += event.delta
        else blocks.push({ kind: "text", text: event.delta, citations: [] })
        break
      }
      case "citation": {
        const last = blocks.findLast((block) => block.kind === "text")
        if (last?.kind === "text") last.citations.push(toCitation(event.citation))
        break
      }
      case "reasoning":
        thinking().text += event.delta
        break
      case "signature": {
        const block = toRedacted(event.signature)
        if (block === undefined) thinking().signature = Signature.toClient(event.signature, "anthropic")
        else blocks.push({ kind: "whole", block })
        break
      }
      case "media":
        blocks.push({ kind: "whole", block: toImage(event.mediaType, event.data) })
        break
      case "toolCall": {
        const block: ToolBlock = { kind: "tool", id: event.id, name: event.name, text: "" }
        calls.set(event.call, block)
        blocks.push(block)
        break
      }
      case "toolArguments": {
        const block = calls.get(event.call)
        if (block !== undefined) block.text += event.delta
      }
    }
  }
  while (blocks.length > 1 && isBareSignature(blocks.at(-1))) blocks.pop()
  return blocks.map((block) => {
    switch (block.kind) {
      case "text":
        return {
          type: "text",
          text: block.text,
          ...(block.citations.length === 0 ? {} : { citations: block.citations })
        }
      case "thinking":
        return { type: "thinking", thinking: block.text, signature: block.signature ?? "" }
      case "tool":
        return { type: "tool_use", id: block.id, name: block.name, input: ToolCalls.toObject(block.text) }
      case "whole":
        return block.block
    }
  })
}

/**
 * Encodes events as named frames. Blocks are sent one after another. The finish waits for the usage: one frame has both.
 */
export class Encoder implements AnswerEncoder {
  readonly #identity: AnswerIdentity
  #begun = false
  #index = -1
  /** The open block; a number is a tool call. */
  #open: "text" | "thinking" | number | undefined
  /** Signatures without thinking, until another block follows: see `isBareSignature`. */
  #bare: Array<Signature.Signature> = []
  #finish: Finish | undefined
  #usage = UsageSum.none

  constructor(identity: AnswerIdentity) {
    this.#identity = identity
  }

  frames(event: ModelEvent): string {
    const begin = this.#begin()
    switch (event.type) {
      case "text":
      case "refusal":
        return begin + this.#block("text", { type: "text", text: "" }) +
          this.#delta({ type: "text_delta", text: event.delta })
      // a block that has ended cannot take citations
      case "citation":
        return this.#open === "text"
          ? begin + this.#delta({ type: "citations_delta", citation: toCitation(event.citation) })
          : begin
      case "reasoning":
        return begin + this.#block("thinking", emptyThinking)
          + this.#delta({ type: "thinking_delta", thinking: event.delta })
      case "signature": {
        const block = toRedacted(event.signature)
        if (block !== undefined) return begin + this.#whole(block)
        if (this.#open === "thinking" || this.#index < 0) return begin + this.#signature(event.signature)
        this.#bare.push(event.signature)
        return begin
      }
      case "media":
        return begin + this.#whole(toImage(event.mediaType, event.data))
      case "toolCall":
        return begin + this.#block(event.call, { type: "tool_use", id: event.id, name: event.name, input: {} })
      case "toolArguments":
        return begin + this.#delta({ type: "input_json_delta", partial_json: event.delta })
      case "finish":
        this.#finish = event
        return begin + this.#close()
      case "usage":
        this.#usage = event.usage
        return begin
    }
  }

  lastFrames(): string {
    return this.#begin() + this.#close() +
      frame("message_delta", { delta: toStop(this.#finish), usage: toMessageUsage(this.#usage) }) +
      frame("message_stop", {})
  }

  body(events: ReadonlyArray<ModelEvent>): Contract.MessageAnswer {
    return {
      ...this.#head(),
      content: toBlocks(events),
      ...toStop(events.find((event) => event.type === "finish")),
      usage: toMessageUsage(events.find((event) => event.type === "usage")?.usage ?? UsageSum.none)
    }
  }

  #head() {
    return {
      id: idOf("msg_", this.#identity),
      type: "message",
      role: "assistant",
      model: this.#identity.model
    } as const
  }

  #begin(): string {
    if (this.#begun) return ""
    this.#begun = true
    return frame("message_start", {
      message: {
        ...this.#head(),
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: toMessageUsage(UsageSum.none)
      }
    })
  }

  /** The frames that end thinking with its signature. */
  #signature(signature: Signature.Signature): string {
    return this.#block("thinking", emptyThinking)
      + this.#delta({ type: "signature_delta", signature: Signature.toClient(signature, "anthropic") }) + this.#close()
  }

  #bareSignatures(): string {
    const signatures = this.#bare
    this.#bare = []
    return signatures.map((signature) => this.#signature(signature)).join("")
  }

  #block(kind: "text" | "thinking" | number, content: object): string {
    if (this.#open === kind && this.#bare.length === 0) return ""
    const closed = this.#bareSignatures() + this.#close()
    this.#open = kind
    this.#index++
    return closed + frame("content_block_start", { index: this.#index, content_block: content })
  }

  /** The frames of a complete block. */
  #whole(block: Contract.AnswerBlock): string {
    const closed = this.#bareSignatures() + this.#close()
    this.#index++
    return closed + frame("content_block_start", { index: this.#index, content_block: block }) +
      frame("content_block_stop", { index: this.#index })
  }

  #delta(delta: object): string {
    return frame("content_block_delta", { index: this.#index, delta })
  }

  #close(): string {
    if (this.#open === undefined) return ""
    this.#open = undefined
    return frame("content_block_stop", { index: this.#index })
  }
}

const frame = (type: string, content: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...content })}\n\n`
