/**
 * Puts the pieces of a choice's tool calls in order, for clients whose calls cannot overlap: all arguments of a call precede whatever the server
 * says after its start, and the next call. Servers number calls differently, or not at all, and send id, name and arguments in any order.
 */
import { JsonEnd } from "../../json/JsonEnd.ts"
import type { ModelEvent } from "../conversation/ModelEvent.ts"
import * as ToolCalls from "../conversation/ToolCalls.ts"

/** A piece of a call; texts are empty if absent. */
export interface CallPiece {
  /** The server's number of the call; `undefined` if it numbers none. */
  readonly index: unknown
  readonly id: string
  readonly name: string
  readonly delta: string
}

interface Call {
  id: string
  name: string
  readonly end: JsonEnd
  /** Whether any argument has arrived. */
  hasArguments: boolean
  /** All arguments that have arrived. */
  said: string
  /** The arguments that have arrived before the call could start. */
  held: string
  /** What the server said after the start of the call, until its arguments are whole. */
  readonly after: Array<ModelEvent>
  /** Whether something else has followed, so that the call cannot take further arguments. */
  isClosed: boolean
}

export class CallPieces {
  readonly #choice: number
  readonly #calls: Array<Call> = []
  /** The latest call by the server's number. */
  readonly #places = new Map<unknown, Call>()
  readonly #byId = new Map<string, Call>()
  /** The number of calls that have started. The last of them is open. */
  #started = 0

  constructor(choice: number) {
    this.#choice = choice
  }

  /** The number of calls. A piece without a name and arguments is none. */
  get size(): number {
    return this.#calls.filter(isCall).length
  }

  /** Whether every call has a name. */
  get areNamed(): boolean {
    return this.#calls.every((call) => call.name !== "" || !isCall(call))
  }

  /** Whether the arguments of every call are whole, or none have arrived. */
  get areWhole(): boolean {
    return this.#calls.every(({ end, hasArguments }) => end.isWhole || !hasArguments)
  }

  /** Adds what the server says beside calls. Returns the events that can be passed on. */
  say(events: ReadonlyArray<ModelEvent>): ReadonlyArray<ModelEvent> {
    const last = this.#calls.at(-1)
    if (last === undefined || events.length === 0) return events
    if (this.#started === this.#calls.length && last.end.isWhole) {
      last.isClosed = true
      return events
    }
    for (const event of events) last.after.push(event)
    return []
  }

  /** Adds a piece of a call. Returns the events that can be passed on; `undefined` if the piece belongs to a call that has ended. */
  push(piece: CallPiece): ReadonlyArray<ModelEvent> | undefined {
    const { delta, id, index, name } = piece
    const call = this.#callOf(piece) ?? this.#add()
    if (index !== undefined) this.#places.set(index, call)
    if (id !== "" && !this.#byId.has(id)) this.#byId.set(id, call)
    if (call.id === "") call.id = id
    if (call.name === "") call.name = name
    if (call.isClosed && delta.trim() === "") return []
    // some servers repeat a whole call at its end; anything else behind whole arguments would break them
    if (call.isClosed || (call.end.isWhole && delta.trim() !== "")) {
      return call.end.isWhole && delta.trim() === call.said.trim() ? this.#drain(false) : undefined
    }
    call.end.push(delta)
    call.said += delta
    call.hasArguments ||= delta !== ""
    const at = this.#calls.indexOf(call, Math.max(0, this.#started - 1))
    if (at !== this.#started - 1) {
      call.held += delta
      return this.#drain(false)
    }
    const events = delta === "" ? [] : [this.#arguments(at, delta)]
    return [...events, ...this.#drain(false)]
  }

  /** The events that are still held, at the end of the choice. */
  last(): ReadonlyArray<ModelEvent> {
    return this.#drain(true)
  }

  /** Starts calls while the one before is whole, or all of them. */
  #drain(all: boolean): ReadonlyArray<ModelEvent> {
    const events: Array<ModelEvent> = []
    for (;;) {
      const open = this.#calls[this.#started - 1]
      if (open !== undefined) {
        if (!open.end.isWhole && !all) break
        if (open.after.length > 0) open.isClosed = true
        for (const event of open.after.splice(0)) events.push(event)
      }
      const next = this.#calls[this.#started]
      if (next === undefined || (next.name === "" && !all)) break
      if (open !== undefined) open.isClosed = true
      const call = this.#started++
      if (!isCall(next)) continue
      const { id, name } = next
      events.push({ type: "toolCall", choice: this.#choice, call, id: id || ToolCalls.newId(), name })
      if (next.held !== "") events.push(this.#arguments(call, next.held))
      next.held = ""
    }
    return events
  }

  #arguments(call: number, delta: string): ModelEvent {
    return { type: "toolArguments", choice: this.#choice, call, delta }
  }

  #add(): Call {
    const call = { id: "", name: "", end: new JsonEnd(), ...fresh, after: [] }
    this.#calls.push(call)
    return call
  }

  /** The call of a piece; `undefined` for a new one. */
  #callOf({ delta, id, index, name }: CallPiece): Call | undefined {
    const last = this.#calls.at(-1)
    const known = id === "" ? undefined : this.#byId.get(id)
    if (known !== undefined) return known
    const numbered = index === undefined ? undefined : this.#places.get(index)
    if (numbered !== undefined) {
      // some servers number all calls alike, and some repeat the name, or make another id, in every piece
      const isOther = name !== "" && numbered.name !== "" &&
        (id !== "" && numbered.id !== "" || (numbered.end.isWhole && delta !== ""))
      return isOther ? undefined : numbered
    }
    if (last === undefined) return undefined
    // arguments under the number of no call belong to the open one
    if (name === "" && (index === undefined || id === "")) {
      return last.end.isWhole && delta !== "" && index !== undefined ? undefined : last
    }
    // servers without numbers: a name starts a call, unless every piece repeats it
    const repeats = index === undefined && id === "" && name === last.name && last.hasArguments && !last.end.isWhole
    return repeats || (index === undefined && last.name === "") ? last : undefined
  }
}

const fresh = { hasArguments: false, said: "", held: "", isClosed: false }

const isCall = ({ hasArguments, id, name }: Call): boolean => name !== "" || hasArguments || id !== ""
