/** Decodes answers of providers of the chat completions dialect. */
import { Predicate } from "effect"
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"
import { JsonEnd } from "../../json/JsonEnd.ts"
import { usageOf } from "./OpenAiUsage.ts"
import { Choices } from "../conversation/Choices.ts"
import { fromUrlCitation } from "./UrlCitation.ts"
import type { AnswerDecoder } from "../conversation/Dialect.ts"
import * as FinishReasons from "../conversation/FinishReasons.ts"
import { fromUrl } from "../conversation/Media.ts"
import type { FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

interface Choice {
  /** Ids of the calls so far, empty if the provider sent none; the last call is open. */
  readonly calls: Array<string>
  /** Position of the last call by the provider's index. */
  readonly places: Map<unknown, number>
  /** The end of the last call's arguments. */
  end: JsonEnd
  /** What the provider said after the start of the last call, until its arguments are whole. */
  readonly late: Array<ModelEvent>
  /** Whether something was said after the last call, which cannot take further arguments. */
  isClosed: boolean
  /** A piece has arrived. */
  isBegun: boolean
  /** The last piece was reasoning. */
  thinking: boolean
  refused: boolean
  finish: FinishReason | undefined
  stopSequence: string | undefined
}

export class Decoder implements AnswerDecoder {
  readonly #choices = new Choices<Choice>(() => ({
    calls: [],
    places: new Map(),
    end: new JsonEnd(),
    late: [],
    isClosed: false,
    isBegun: false,
    thinking: false,
    refused: false,
    finish: undefined,
    stopSequence: undefined
  }))
  usage: Usage | undefined

  frame(data: unknown): ReadonlyArray<ModelEvent> | undefined {
    return this.#read(data, "delta")
  }

  whole(answer: unknown): ReadonlyArray<ModelEvent> | undefined {
    return this.#read(answer, "message")
  }

  get isComplete(): boolean {
    return this.#choices.areFinished
  }

  /** Gateways between here and the server send `[DONE]` even if the server breaks off, perhaps within the arguments of a call. */
  get mayEnd(): boolean {
    return [...this.#choices.values()].every(({ calls, end }) => calls.length === 0 || end.isWhole)
  }

  last(): ReadonlyArray<ModelEvent> {
    if (this.#choices.size === 0) this.#choices.of(0)
    return [...this.#choices].flatMap(([index, choice]) => [
      ...choice.late.splice(0),
      ...this.#endReasoning(index, choice),
      { type: "finish", choice: index, reason: finishOf(choice), stopSequence: choice.stopSequence }
    ])
  }

  #read(data: unknown, member: "delta" | "message"): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    const { choices, usage } = data
    if (Predicate.isReadonlyObject(usage)) this.usage = usageOf(usage) ?? this.usage
    const events: Array<ModelEvent> = []
    for (const [position, item] of Json.list(choices).entries()) {
      const { [member]: part, message: whole, finish_reason: reason, index, stop_reason: stop } = Json.fields(item)
      const number = Json.count(index) ?? position
      const choice = this.#choices.of(number)
      // some servers send a whole answer as the only event of a stream
      const message = part ?? (choice.isBegun ? undefined : whole)
      choice.isBegun = true
      if (!this.#decodeMessage(number, choice, Json.fields(message), events)) return undefined
      if (FinishReasons.isFailure(reason)) return undefined
      const said = FinishReasons.reasonIn(reason)
      if (said !== undefined) choice.finish = FinishReasons.laterOf(choice.finish, FinishReasons.toFinish(said))
      // vLLM's field for the stop sequence
      if (reason === "stop" && typeof stop === "string") choice.stopSequence = stop
    }
    return events
  }

  /** `false` if malformed. */
  #decodeMessage(number: number, choice: Choice, message: Json.Fields, events: Array<ModelEvent>): boolean {
    const said = choice.calls.length === 0 || choice.end.isWhole ? events : choice.late
    const before = events.length
    const content = contentOf(message["content"])
    // DeepSeek's name, and that of vLLM and OpenRouter
    const reasoning = Json.string(message["reasoning_content"]) || Json.string(message["reasoning"]) ||
      content.reasoning
    if (reasoning !== "") {
      choice.thinking = true
      said.push({ type: "reasoning", choice: number, delta: reasoning })
    }
    const { text } = content
    const refusal = Json.string(message["refusal"]) ?? ""
    const calls = Json.list(message["tool_calls"])
    const images = Json.list(message["images"])
    if (text + refusal !== "" || calls.length > 0 || images.length > 0) {
      said.push(...this.#endReasoning(number, choice))
    }
    if (text !== "") said.push({ type: "text", choice: number, delta: text })
    for (const annotation of Json.list(message["annotations"])) {
      for (const citation of fromUrlCitation(Json.fields(annotation)["url_citation"])) {
        said.push({ type: "citation", choice: number, citation })
      }
    }
    if (refusal !== "") {
      choice.refused = true
      said.push({ type: "refusal", choice: number, delta: refusal })
    }
    for (const image of images) {
      const url = Json.string(Json.fields(Json.fields(image)["image_url"])["url"]) ?? ""
      const { media, mediaType } = fromUrl(url)
      if (media.type === "base64") said.push({ type: "media", choice: number, mediaType, data: media.data })
    }
    choice.isClosed ||= events.length > before
    return calls.every((call) => this.#decodeCall(number, choice, Json.fields(call), events))
  }

  #decodeCall(number: number, choice: Choice, called: Json.Fields, events: Array<ModelEvent>): boolean {
    const { arguments: json, name: given } = Json.fields(called["function"])
    const { index } = called
    const id = Json.string(called["id"]) ?? ""
    const name = Json.string(given) ?? ""
    const at = placeOf(choice, index, id, name)
    // some servers send the arguments as an object
    const delta = Predicate.isReadonlyObject(json) ? JSON.stringify(json) : Json.string(json) ?? ""
    if (at === -1) {
      if (name === "") return false
      choice.places.set(index, choice.calls.length)
      choice.calls.push(id)
      choice.end = new JsonEnd()
      choice.isClosed = false
      for (const event of choice.late.splice(0)) events.push(event)
      const call = choice.calls.length - 1
      events.push({ type: "toolCall", choice: number, call, id: id || ToolCalls.newId(), name })
    } else if (at !== choice.calls.length - 1) return delta === ""
    else if (choice.isClosed) return delta.trim() === ""
    if (delta !== "") {
      choice.end.push(delta)
      events.push({ type: "toolArguments", choice: number, call: choice.calls.length - 1, delta })
      if (choice.end.isWhole && choice.late.length > 0) {
        choice.isClosed = true
        for (const event of choice.late.splice(0)) events.push(event)
      }
    }
    return true
  }

  /** Marks the end of reasoning with an empty signature, so that clients send it back: this dialect has none. */
  #endReasoning(number: number, choice: Choice): ReadonlyArray<ModelEvent> {
    if (!choice.thinking) return []
    choice.thinking = false
    return [{ type: "signature", choice: number, signature: { origin: "openai", value: "" } }]
  }
}

/** Text, or Mistral's list of reasoning and text. */
const contentOf = (content: unknown): { readonly text: string; readonly reasoning: string } => {
  if (typeof content === "string") return { text: content, reasoning: "" }
  const of = (type: string): ReadonlyArray<Json.Fields> =>
    Json.list(content).map(Json.fields).filter((part) => part["type"] === type)
  const thoughts = of("thinking").flatMap((part) => Json.list(part["thinking"]))
  return { text: textIn(of("text")), reasoning: textIn(thoughts) }
}

const textIn = (parts: ReadonlyArray<unknown>): string =>
  parts.map((part) => Json.string(Json.fields(part)["text"]) ?? "").join("")

/** Position among the calls so far; -1 for a new call. */
const placeOf = ({ calls, places }: Choice, index: unknown, id: string, name: string): number => {
  // some servers send no index: a piece with a name starts a call
  const isNumbered = index !== undefined && index !== null
  if (!isNumbered && name !== "") return -1
  const at = isNumbered ? places.get(index) ?? -1 : calls.length - 1
  // others send the same index for all calls
  const known = calls[at] ?? ""
  return name !== "" && id !== "" && known !== "" && id !== known ? -1 : at
}

const finishOf = ({ calls, finish = "stop", refused }: Choice): FinishReason => {
  if (finish !== "stop") return finish
  return refused ? "content_filter" : calls.length > 0 ? "tool_calls" : "stop"
}
