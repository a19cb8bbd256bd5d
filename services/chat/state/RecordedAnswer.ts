/**
 * Relays an answer in the responses format, with the gateway's values of some fields. Holds back the end, which contains the
 * whole response, until the response is stored: a client that has the response can refer to it.
 */
import { skipSpace } from "../../../shared/bounds/JsonBytes.ts"
import { firstEvents, lastEvents } from "../../../shared/contract/http/ResponseEvents.ts"
import * as JsonText from "../../../shared/provider/json/JsonText.ts"
import { dataOf, replaceData, SseFrames } from "../../../shared/bounds/SseFrames.ts"
import { OutputItems } from "./OutputItems.ts"
import { maxWholeBytes } from "../../../shared/provider/exchange/AnswerReader.ts"
import { joinItems } from "../../../shared/records/Responses.ts"
import type { Answer } from "../../../shared/worker/Preparation.ts"

/** A complete response. */
export interface AnsweredResponse {
  readonly id: string
  /** Its items, as JSON texts with commas between them. */
  readonly output: Uint8Array
  /** The response without its output. */
  readonly response: Uint8Array
  readonly isIncomplete: boolean
}

const isEnded = (status: unknown): boolean => status === "completed" || status === "incomplete"

/** More bytes than stand before the end of a type that comes first. */
const headBytes = 256
const typeFirst = /^\s*\{\s*"type"\s*:\s*"([\w.]+)"/

/** The type of an event with this data. OpenAI writes it first; vLLM and SGLang write it after the response, which may hold any text. */
const typeOf = (data: Uint8Array): unknown => {
  const head = Buffer.from(data.buffer, data.byteOffset, Math.min(headBytes, data.length))
  const [, first] = typeFirst.exec(head.toString("latin1")) ?? []
  return first ?? JsonText.valueOf(data, JsonText.members(data) ?? [], "type")
}

const dataField = Buffer.from("data:")
const empty = Buffer.alloc(0)

type Head = Parameters<Answer["start"]>[0]

export class RecordedAnswer implements Answer {
  readonly #answer: Answer
  /** Fields of the response as the gateway answers them, whatever the provider did. */
  readonly #fields: ReadonlyMap<string, unknown>
  #head: Head | undefined
  /** Whether the answer is one JSON text, which is held back from its start. */
  #isWhole = false
  #held: Array<Uint8Array> | undefined
  #heldBytes = 0
  /** Whether the answer was too large to be held. Then it passes as the provider sent it, and there is no response to store. */
  isTooLarge = false
  readonly #frames = new SseFrames()
  readonly #items = new OutputItems(maxWholeBytes)
  /** Whether all events so far are of `firstEvents`. */
  #isBeginning = true

  constructor(answer: Answer, fields: Readonly<Record<string, unknown>>) {
    this.#answer = answer
    this.#fields = new Map(Object.entries(fields))
  }

  get hasStarted(): boolean {
    return this.#head !== undefined
  }

  start(head: Head): void {
    this.#head = head
    this.#isWhole = head.status === 200 && head.contentType.startsWith("application/json")
    if (this.#isWhole) {
      this.#held = []
      return
    }
    this.#answer.start(head)
  }

  write(bytes: Uint8Array): boolean {
    if (this.#held !== undefined && this.#heldBytes + bytes.length > maxWholeBytes) {
      this.release()
      this.isTooLarge = true
    }
    if (this.isTooLarge) return this.#answer.write(bytes)
    if (this.#held !== undefined) {
      this.#hold(bytes)
      return true
    }
    const passed: Array<Uint8Array> = []
    for (const frame of this.#frames.push(bytes)) {
      if (this.#held !== undefined) {
        this.#hold(frame)
        continue
      }
      const data = dataOf(frame)
      const type = data && typeOf(data)
      if (data !== undefined) this.#items.push(type, data)
      if (lastEvents.has(type)) this.#hold(frame)
      else passed.push(data !== undefined && this.#isBeginning ? this.#begin(frame, data, type) : frame)
    }
    if (this.#held !== undefined) this.#hold(this.#frames.rest)
    return passed.length === 0 ? true : this.#answer.write(Buffer.concat(passed))
  }

  #hold(bytes: Uint8Array): void {
    ;(this.#held ??= []).push(bytes)
    this.#heldBytes += bytes.length
  }

  /** The gateway's version of one of the first events. */
  #begin(frame: Uint8Array, data: Uint8Array, type: unknown): Uint8Array {
    this.#isBeginning = firstEvents.has(type)
    const changed = this.#isBeginning ? this.#withFields(data) : undefined
    return changed === undefined ? frame : replaceData(frame, data, changed)
  }

  onDrain(resume: () => void): void {
    if (this.#held === undefined) this.#answer.onDrain(resume)
    else resume()
  }

  /** The response to store; `undefined` if the answer contains no complete one. */
  readonly response = (): AnsweredResponse | undefined => {
    if (this.isTooLarge) return undefined
    // an answer may end without a blank line
    this.#held ??= [this.#frames.rest]
    const held = Buffer.concat(this.#held)
    const [from, until] = this.#jsonIn(held)
    const json = this.#withFields(this.#withOutput(held.subarray(from, until)))
    if (json === undefined) return undefined
    this.#held = [held.subarray(0, from), json, held.subarray(until)]
    const response = this.#isWhole ? json : valueOf(json, "response")
    const all = JsonText.members(response) ?? []
    const id = JsonText.valueOf(response, all, "id")
    const output = all.findLast(({ name }) => name === "output")
    if (typeof id !== "string" || output === undefined) return undefined
    const status = JsonText.valueOf(response, all, "status")
    if (!isEnded(status)) return undefined
    return {
      id,
      isIncomplete: status === "incomplete",
      output: joinItems([...JsonText.items(response, output)]),
      response: JsonText.setMembers(response, all, new Map([["output", []]]))
    }
  }

  /** The last event with the items of the events before it, if it has none. */
  #withOutput(json: Uint8Array): Uint8Array {
    const { items } = this.#items
    const response = this.#isWhole || items.length === 0 ? empty : valueOf(json, "response")
    const all = JsonText.members(response)
    if (all === undefined) return json
    const output = all.findLast(({ name }) => name === "output")
    if (output !== undefined && [...JsonText.items(response, output)].length > 0) return json
    const list = Buffer.concat([Buffer.from("["), joinItems(items), Buffer.from("]")])
    const whole = JsonText.setMembers(response, all, new Map([["output", list]]))
    return JsonText.setMembers(json, JsonText.members(json) ?? [], new Map([["response", whole]]))
  }

  /** A response, or an event with one, with the gateway's fields; `undefined` if it is neither. */
  #withFields(json: Uint8Array): Uint8Array | undefined {
    const response = this.#isWhole ? json : valueOf(json, "response")
    const all = JsonText.members(response)
    const mark = this.#isWhole ? "output" : "id"
    if (all?.some(({ name }) => name === mark) !== true) return undefined
    const changed = JsonText.setMembers(response, all, this.#fields)
    return this.#isWhole
      ? changed
      : JsonText.setMembers(json, JsonText.members(json) ?? [], new Map([["response", changed]]))
  }

  /** Passes on what was held back. */
  readonly release = (): void => {
    if (this.#held === undefined || this.#head === undefined) return
    if (this.#isWhole) this.#answer.start(this.#head)
    this.#answer.write(Buffer.concat(this.#held))
    this.#held = undefined
  }

  /** Where the JSON text of the answer, or of the held event, begins and ends. */
  #jsonIn(held: Buffer): readonly [from: number, until: number] {
    if (this.#isWhole) return [0, held.length]
    const data = held.indexOf(dataField)
    if (data === -1) return [0, 0]
    const end = held.indexOf("\n", data)
    return [skipSpace(held, data + dataField.length), end === -1 ? held.length : end]
  }
}

const valueOf = (json: Uint8Array, name: string): Uint8Array => {
  const member = JsonText.members(json)?.findLast((member) => member.name === name)
  return member === undefined ? empty : JsonText.bytesOf(json, member)
}
