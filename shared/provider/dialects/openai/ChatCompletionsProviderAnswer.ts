/** Decodes answers of providers of the chat completions dialect. */
import { Predicate } from "effect"
import { latest, type Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"
import { type CallPiece, CallPieces } from "./CallPieces.ts"
import { findUsage } from "./OpenAiUsage.ts"
import { Choices } from "../conversation/Choices.ts"
import { fromUrlCitation } from "./UrlCitation.ts"
import type { AnswerDecoder } from "../conversation/Dialect.ts"
import * as FinishReasons from "../finish/FinishReasons.ts"
import { fromUrl } from "../conversation/Media.ts"
import type { FinishReason, ModelEvent } from "../conversation/ModelEvent.ts"

interface Choice {
  readonly calls: CallPieces
  /** A piece has arrived. */
  isBegun: boolean
  /** The last piece was reasoning. */
  thinking: boolean
  refused: boolean
  finish: FinishReason | undefined
  stopSequence: string | undefined
}

export class Decoder implements AnswerDecoder {
  readonly #choices = new Choices<Choice>((index) => ({
    calls: new CallPieces(index),
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
    return this.#choices.areFinished && [...this.#choices.values()].every(({ calls }) => calls.areNamed)
  }

  /** Gateways between here and the server send `[DONE]` even if the server breaks off, perhaps within the arguments of a call. */
  get mayEnd(): boolean {
    return [...this.#choices.values()].every(({ calls }) => calls.areNamed && calls.areWhole)
  }

  last(): ReadonlyArray<ModelEvent> {
    if (this.#choices.size === 0) this.#choices.of(0)
    return [...this.#choices].flatMap(([index, choice]) => [
      ...choice.calls.last(),
      ...this.#endReasoning(index, choice),
      { type: "finish", choice: index, reason: finishOf(choice), stopSequence: choice.stopSequence }
    ])
  }

  #read(data: unknown, member: "delta" | "message"): ReadonlyArray<ModelEvent> | undefined {
    if (!Predicate.isReadonlyObject(data)) return undefined
    const { choices } = data
    this.usage = latest(this.usage, findUsage(data)?.usage)
    const events: Array<ModelEvent> = []
    for (const [position, item] of Json.list(choices).entries()) {
      const { [member]: part, message: whole, finish_reason: reason, index, stop_reason: stop } = Json.fields(item)
      const number = Json.count(index) ?? position
      const choice = this.#choices.of(number)
      // some servers send a whole answer as the only event of a stream
      const message = part ?? (choice.isBegun ? undefined : whole)
      choice.isBegun = true
      if (!this.#decodeMessage(number, choice, Json.fields(message), member, events)) return undefined
      if (FinishReasons.isFailure(reason)) return undefined
      const said = FinishReasons.reasonIn(reason)
      if (said !== undefined) choice.finish = FinishReasons.laterOf(choice.finish, FinishReasons.toFinish(said))
      // vLLM's field for the stop sequence
      if (reason === "stop" && typeof stop === "string") choice.stopSequence = stop
    }
    return events
  }

  /** `false` if malformed. */
  #decodeMessage(
    number: number,
    choice: Choice,
    message: Json.Fields,
    member: "delta" | "message",
    events: Array<ModelEvent>
  ): boolean {
    const said: Array<ModelEvent> = []
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
    const calls = callsIn(message, member)
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
    for (const event of choice.calls.say(said)) events.push(event)
    for (const piece of calls) {
      const called = choice.calls.push(piece)
      if (called === undefined) return false
      for (const event of called) events.push(event)
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

/** The pieces of calls in a message. The calls of a whole message are in order; `function_call` is the older form of a single call. */
const callsIn = (message: Json.Fields, member: "delta" | "message"): ReadonlyArray<CallPiece> => {
  const { function_call: only, tool_calls: all } = message
  const calls = Json.list(all)
  const given = calls.length === 0 && Predicate.isReadonlyObject(only) ? [{ index: 0, function: only }] : calls
  return given.map((call, position) => {
    const { function: called, id, index } = Json.fields(call)
    const { arguments: json, name } = Json.fields(called)
    return {
      index: member === "message" ? position : index ?? undefined,
      id: Json.string(id) ?? "",
      name: Json.string(name) ?? "",
      // some servers send the arguments as an object
      delta: Predicate.isReadonlyObject(json) ? JSON.stringify(json) : Json.string(json) ?? ""
    }
  })
}

const finishOf = ({ calls, finish = "stop", refused }: Choice): FinishReason => {
  if (finish !== "stop") return finish
  return refused ? "content_filter" : calls.size > 0 ? "tool_calls" : "stop"
}
