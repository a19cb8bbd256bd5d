/**
 * Relays an answer in the responses format, with the gateway's values of some fields. Holds back the end, which contains the
 * whole response, until the response is stored: a client that has the response can refer to it.
 */
import { skipSpace } from "../../../shared/bounds/JsonBytes.ts"
import * as JsonText from "../../../shared/provider/json/JsonText.ts"
import { dataOf, replaceData, SseFrames } from "../../../shared/bounds/SseFrames.ts"
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

const marksOf = (...types: ReadonlyArray<string>) => types.map((type) => Buffer.from(`"response.${type}"`))

/** The types of the events that begin an answer, each with the response so far. */
const beginnings = marksOf("created", "queued", "in_progress")
const ends = marksOf("completed", "incomplete")
const isEnded = (status: unknown): boolean => status === "completed" || status === "incomplete"

/** More bytes than an event has before its type. */
const headBytes = 256

/** How the type of any event begins. */
const anyMark = Buffer.from("\"response.")

/** Whether the type of an event is among these. Only the first text counts, because a client may have put others into the response. */
const isOf = (frame: Uint8Array, types: ReadonlyArray<Buffer>): boolean => {
  const head = Buffer.from(frame.buffer, frame.byteOffset, Math.min(headBytes, frame.length))
  const at = head.indexOf(anyMark)
  return at !== -1 && types.some((type) => head.indexOf(type) === at)
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
  readonly #frames = new SseFrames()
  /** Whether all events so far are of `beginnings`. */
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
    if (this.#held !== undefined) {
      this.#held.push(bytes)
      return true
    }
    const passed: Array<Uint8Array> = []
    for (const frame of this.#frames.push(bytes)) {
      if (this.#held !== undefined) this.#held.push(frame)
      else if (isOf(frame, ends)) this.#held = [frame]
      else passed.push(this.#isBeginning ? this.#begin(frame) : frame)
    }
    this.#held?.push(this.#frames.rest)
    return passed.length === 0 ? true : this.#answer.write(Buffer.concat(passed))
  }

  /** The gateway's version of one of the first events. */
  #begin(frame: Uint8Array): Uint8Array {
    const data = dataOf(frame)
    if (data === undefined) return frame
    this.#isBeginning = isOf(frame, beginnings)
    const changed = this.#isBeginning ? this.#withFields(data) : undefined
    return changed === undefined ? frame : replaceData(frame, data, changed)
  }

  onDrain(resume: () => void): void {
    if (this.#held === undefined) this.#answer.onDrain(resume)
    else resume()
  }

  /** The response to store; `undefined` if the answer contains no complete one. */
  readonly response = (): AnsweredResponse | undefined => {
    // an answer may end without a blank line
    this.#held ??= [this.#frames.rest]
    const held = Buffer.concat(this.#held)
    const [from, until] = this.#jsonIn(held)
    const json = this.#withFields(held.subarray(from, until))
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

  /** A response, or an event with one, with the gateway's fields; `undefined` if it is neither. */
  #withFields(json: Uint8Array): Uint8Array | undefined {
    const response = this.#isWhole ? json : valueOf(json, "response")
    const all = JsonText.members(response)
    if (all?.some(({ name }) => name === "output") !== true) return undefined
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
