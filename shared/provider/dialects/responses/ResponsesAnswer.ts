/** Encodes answers for clients of the responses dialect: items, and the events that build them. */
import type * as Contract from "../../../contract/operations/Responses.ts"
import { settingsOf } from "../../../contract/operations/ResponseSettings.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import { toUrlCitation } from "../openai/UrlCitation.ts"
import { type AnswerEncoder, type AnswerIdentity, idOf } from "../conversation/Dialect.ts"
import type { Citation, FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as Signature from "../conversation/Signature.ts"
import * as Json from "../../json/Json.ts"
import { toResponsesUsage } from "../openai/OpenAiUsage.ts"
import { encryptedReasoning } from "./ResponsesRequest.ts"
import { inputIn } from "../openai/CustomTools.ts"
import { type OwnTool, toolsIn } from "./ResponsesTools.ts"

type TextPart = { type: "output_text"; text: string; annotations: Array<object>; logprobs: [] } | {
  type: "refusal"
  refusal: string
}

interface Message {
  readonly type: "message"
  readonly content: Array<TextPart>
}
interface Reasoning {
  readonly type: "reasoning"
  text: string
  encrypted: string | undefined
}
interface Call {
  readonly type: "function_call" | "custom_tool_call"
  readonly callId: string
  readonly name: string
  readonly namespace: string | undefined
  arguments: string
}
type Item = Message | Reasoning | Call

/** An item of the output. */
const toItem = (item: Item, id: string, status: "in_progress" | "completed" | "incomplete"): object => {
  const { type } = item
  switch (type) {
    case "message":
      return { id, type, role: "assistant", status, content: item.content }
    case "reasoning": {
      const summary = item.text === "" ? [] : [{ type: "summary_text", text: item.text }]
      return { id, type, summary, ...(item.encrypted === undefined ? {} : { encrypted_content: item.encrypted }) }
    }
    default: {
      const { arguments: json, callId: call_id, name, namespace } = item
      const said = type === "function_call" ? { arguments: json } : { input: json === "" ? "" : inputIn(json) }
      return { id, type, status, call_id, name, ...(namespace === undefined ? {} : { namespace }), ...said }
    }
  }
}

const prefixes = { message: "msg", reasoning: "rs", function_call: "fc", custom_tool_call: "ctc", media: "ig" } as const

export class Encoder implements AnswerEncoder {
  readonly #identity: AnswerIdentity
  readonly #settings: object
  /** The same as JSON, without the opening brace. */
  readonly #settingsJson: string
  readonly #tools: ReadonlyMap<string, OwnTool>
  readonly #returnsEncrypted: boolean
  readonly #output: Array<object> = []
  #open: Item | undefined
  #textLength = 0
  /** Where the text of the last part begins in the text of the answer. */
  #partStart = 0
  #sequence = 0
  #finish: FinishReason = "stop"
  #hasRefused = false
  #usage = UsageSum.none
  /** Only the body is wanted. */
  #isWhole = false
  /** The id of the first item, if another encoder has begun it. */
  #givenItemId: string | undefined

  constructor(request: Contract.ResponsesRequest, identity: AnswerIdentity) {
    this.#identity = identity
    this.#settings = settingsOf(request)
    this.#settingsJson = JSON.stringify(this.#settings).slice(1)
    this.#tools = new Map(toolsIn(request).own.map((tool) => [tool.functionName, tool]))
    this.#returnsEncrypted = request.include?.includes(encryptedReasoning) === true
  }

  /** An encoder in the middle of the only item of an answer, which has this text so far; `undefined` if it had others. */
  static after(
    request: Contract.ResponsesRequest,
    identity: AnswerIdentity,
    text: string,
    lastFrame: unknown
  ): Encoder | undefined {
    const { content_index: part, item_id: item, output_index: index, sequence_number: number, type } = Json.fields(
      lastFrame
    )
    if (type !== "response.output_text.delta" || index !== 0 || part !== 0) return undefined
    const encoder = new Encoder(request, { ...identity, id: identity.givenId?.replace(/^resp_/, "") ?? "" })
    encoder.frames({ type: "text", choice: 0, delta: text })
    encoder.#sequence = (Json.count(number) ?? 0) + 1
    encoder.#givenItemId = Json.string(item)
    return encoder
  }

  frames(event: ModelEvent): string {
    const begin = this.#begin()
    switch (event.type) {
      case "text":
        return begin + this.#text({ type: "output_text", text: "", annotations: [], logprobs: [] }, event.delta)
      case "citation":
        return begin + this.#citation(event.citation)
      case "refusal":
        this.#hasRefused = true
        return begin + this.#text({ type: "refusal", refusal: "" }, event.delta)
      case "reasoning":
        return begin + this.#reasoning(event.delta)
      case "signature":
        return begin + this.#signature(event.signature)
      case "toolCall": {
        const { namespace, tool } = this.#tools.get(event.name) ?? {}
        const type = tool?.type === "custom" ? "custom_tool_call" : "function_call"
        const name = tool?.name ?? event.name
        return begin + this.#start({ type, callId: event.id, name, namespace, arguments: "" })
      }
      case "toolArguments":
        return begin + this.#arguments(event.delta)
      case "media": {
        const [, format = "png"] = event.mediaType.split("/")
        const closed = begin + this.#close()
        const id = this.#idOf("media")
        const item = {
          id,
          type: "image_generation_call",
          status: "completed",
          result: event.data,
          output_format: format
        }
        return closed + this.wholeItem(item)
      }
      case "finish":
        this.#finish = event.reason
        return begin + this.#close(event.reason === "length" ? "incomplete" : "completed")
      case "usage":
        this.#usage = event.usage
        return begin
    }
  }

  /** The frames of an item that is complete from the start. */
  wholeItem(item: object): string {
    const begin = this.#begin()
    const at = { output_index: this.#output.length, item }
    this.#output.push(item)
    return begin + this.#event("response.output_item.added", at) + this.#event("response.output_item.done", at)
  }

  lastFrames(): string {
    const end = this.#begin() + this.#close()
    return end + this.#lifecycle(`response.${this.#status}`, this.#last())
  }

  body(events: ReadonlyArray<ModelEvent>): object {
    this.#isWhole = true
    for (const event of events) this.frames(event)
    this.#close()
    return { ...this.#last(), ...this.#settings }
  }

  get #status(): "completed" | "incomplete" {
    return this.#incomplete === null ? "completed" : "incomplete"
  }

  /** A refusal is a complete answer. */
  get #incomplete(): { readonly reason: string } | null {
    if (this.#finish === "length") return { reason: "max_output_tokens" }
    return this.#finish === "content_filter" && !this.#hasRefused ? { reason: "content_filter" } : null
  }

  #last(): object {
    const { created, now } = this.#identity
    return {
      ...this.#head(this.#status),
      completed_at: this.#status === "completed" ? now?.() ?? created : null,
      incomplete_details: this.#incomplete,
      output: this.#output,
      usage: toResponsesUsage(this.#usage)
    }
  }

  #head(status: string): object {
    return {
      id: idOf("resp_", this.#identity),
      object: "response",
      created_at: this.#identity.created,
      completed_at: null,
      status,
      incomplete_details: null,
      error: null,
      model: this.#identity.model,
      output: [],
      usage: null
    }
  }

  #begin(): string {
    if (this.#sequence > 0 || this.#isWhole) return ""
    const response = this.#head("in_progress")
    return this.#lifecycle("response.created", response) + this.#lifecycle("response.in_progress", response)
  }

  #lifecycle(type: string, response: object): string {
    const json = `${JSON.stringify(response).slice(0, -1)},${this.#settingsJson}`
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},"response":${json}}\n\n`
  }

  #event(type: string, fields: object): string {
    if (this.#isWhole) return ""
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...fields })
    return `event: ${type}\ndata: ${data}\n\n`
  }

  // Items

  /** The id of the next item. */
  #idOf(type: keyof typeof prefixes): string {
    const index = this.#output.length
    return (index === 0 ? this.#givenItemId : undefined) ?? `${prefixes[type]}_${this.#identity.id}${index}`
  }

  #start(item: Item): string {
    const closed = this.#close()
    this.#open = item
    const id = this.#idOf(item.type)
    const added = { output_index: this.#output.length, item: toItem(item, id, "in_progress") }
    return closed + this.#event("response.output_item.added", added)
  }

  /** An event within the open item. */
  #within({ type }: Item, event: string, fields: object): string {
    return this.#event(event, { item_id: this.#idOf(type), output_index: this.#output.length, ...fields })
  }

  #close(status: "completed" | "incomplete" = "completed"): string {
    const item = this.#open
    if (item === undefined) return ""
    this.#open = undefined
    const done = this.#endOf(item)
    const whole = toItem(item, this.#idOf(item.type), status)
    const frames = done + this.#event("response.output_item.done", { output_index: this.#output.length, item: whole })
    this.#output.push(whole)
    return frames
  }

  /** The frames that end the last part of an item. */
  #endOf(item: Item): string {
    switch (item.type) {
      case "message":
        return this.#endPart(item)
      case "reasoning": {
        if (item.text === "") return ""
        const at = { summary_index: 0 }
        const part = { type: "summary_text", text: item.text }
        return this.#within(item, "response.reasoning_summary_text.done", { ...at, text: item.text }) +
          this.#within(item, "response.reasoning_summary_part.done", { ...at, part })
      }
      case "function_call":
        return this.#within(item, "response.function_call_arguments.done", {
          arguments: item.arguments,
          name: item.name
        })
      case "custom_tool_call": {
        // only now: the text is within the arguments
        const input = inputIn(item.arguments)
        return this.#within(item, "response.custom_tool_call_input.delta", { delta: input }) +
          this.#within(item, "response.custom_tool_call_input.done", { input })
      }
    }
  }

  #endPart(item: Message): string {
    const part = item.content.at(-1)
    if (part === undefined) return ""
    const at = { content_index: item.content.length - 1 }
    const done = part.type === "refusal"
      ? this.#within(item, "response.refusal.done", { ...at, refusal: part.refusal })
      : this.#within(item, "response.output_text.done", { ...at, text: part.text, logprobs: [] })
    return done + this.#within(item, "response.content_part.done", { ...at, part })
  }

  /** Adds to the open part, or to this one if it is of another type. */
  #text(empty: TextPart, delta: string): string {
    let frames = ""
    let item = this.#open
    if (item?.type !== "message") {
      item = { type: "message", content: [] }
      frames = this.#start(item)
    }
    let part = item.content.at(-1)
    if (part?.type !== empty.type) {
      frames += this.#endPart(item)
      part = empty
      this.#partStart = this.#textLength
      const content_index = item.content.push(part) - 1
      frames += this.#within(item, "response.content_part.added", { content_index, part })
    }
    const at = { content_index: item.content.length - 1, delta }
    if (part.type === "refusal") {
      part.refusal += delta
      return frames + this.#within(item, "response.refusal.delta", at)
    }
    part.text += delta
    this.#textLength += delta.length
    return frames + this.#within(item, "response.output_text.delta", { ...at, logprobs: [] })
  }

  /** A source belongs to the part that it is about: it has no place after the end of that. */
  #citation(citation: Citation): string {
    const item = this.#open
    const part = item?.type === "message" ? item.content.at(-1) : undefined
    if (item?.type !== "message" || part?.type !== "output_text" || citation.start < this.#partStart) return ""
    const annotation = { type: "url_citation", ...toUrlCitation(citation, this.#partStart) }
    const annotation_index = part.annotations.push(annotation) - 1
    const at = { content_index: item.content.length - 1, annotation_index }
    return this.#within(item, "response.output_text.annotation.added", { ...at, annotation })
  }

  #reasoning(delta: string): string {
    let frames = ""
    let item = this.#open
    if (item?.type !== "reasoning") {
      item = { type: "reasoning", text: "", encrypted: undefined }
      frames = this.#start(item)
    }
    const at = { summary_index: 0 }
    if (item.text === "") {
      frames += this.#within(item, "response.reasoning_summary_part.added", {
        ...at,
        part: { type: "summary_text", text: "" }
      })
    }
    item.text += delta
    return frames + this.#within(item, "response.reasoning_summary_text.delta", { ...at, delta })
  }

  /** A signature ends an item. Hidden reasoning is an item of its own, if the client can send it back. */
  #signature(signature: Signature.Signature): string {
    const isOpen = this.#open?.type === "reasoning" && signature.redacted !== true
    if (!isOpen && !this.#returnsEncrypted) return ""
    const item = isOpen && this.#open?.type === "reasoning"
      ? this.#open
      : { type: "reasoning", text: "", encrypted: undefined } satisfies Reasoning
    const frames = isOpen ? "" : this.#start(item)
    if (this.#returnsEncrypted) item.encrypted = Signature.toClient(signature, "responses")
    return frames + this.#close()
  }

  #arguments(delta: string): string {
    const item = this.#open
    if (item?.type !== "function_call" && item?.type !== "custom_tool_call") return ""
    item.arguments += delta
    return item.type === "function_call"
      ? this.#within(item, "response.function_call_arguments.delta", { delta })
      : ""
  }
}
