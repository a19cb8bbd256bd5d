/**
 * Receives the traces that services send. At a low rate, each body is decoded immediately, and an invalid one is rejected. Under load,
 * bodies wait undecoded until a person opens a trace, because most spans are evicted unseen, and decoding all of them would cost
 * half as much CPU as a worker's share of the requests.
 */
import { Option, Schema } from "effect"
import type { SpanStore } from "./SpanStore.ts"
import type { StoredSpan } from "../api/StoredSpan.ts"

/** Limits on decoding without delay, in bytes: per second, and in one burst. */
const decodedPerSecond = 64 * 1024
const decodedTogether = 1024 * 1024

/** Maximum size of the waiting bodies in bytes: they contain about as many spans as the store keeps. */
const maxWaitingBytes = 4 * 1024 * 1024

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

export class TraceInbox {
  readonly #store: SpanStore
  /** The current time in milliseconds. */
  readonly #now: () => number
  #allowance = decodedTogether
  #at: number
  #waiting: Array<Buffer> = []
  #waitingBytes = 0

  constructor(store: SpanStore, now: () => number) {
    this.#store = store
    this.#now = now
    this.#at = now()
  }

  /** Adds the body of a POST to `/v1/traces`; returns `false` if it is known to be invalid. */
  add(body: Buffer): boolean {
    const now = this.#now()
    this.#allowance = Math.min(decodedTogether, this.#allowance + decodedPerSecond * (now - this.#at) / 1_000)
    this.#at = now
    const isCalm = this.#waiting.length === 0 || this.#allowance === decodedTogether
    if (isCalm && body.length <= this.#allowance) {
      this.#decodeWaiting()
      this.#allowance = Math.max(0, this.#allowance - body.length)
      return this.#decode(body)
    }
    this.#waiting.push(body)
    this.#waitingBytes += body.length
    while (this.#waitingBytes > maxWaitingBytes) this.#waitingBytes -= this.#waiting.shift()?.length ?? 0
    return true
  }

  /** See `SpanStore.find`. */
  find(...wanted: Parameters<SpanStore["find"]>): ReadonlyArray<StoredSpan> {
    this.#decodeWaiting()
    return this.#store.find(...wanted)
  }

  #decodeWaiting(): void {
    const waiting = this.#waiting
    this.#allowance = Math.max(0, this.#allowance - this.#waitingBytes)
    this.#waiting = []
    this.#waitingBytes = 0
    for (const body of waiting) this.#decode(body)
  }

  #decode(body: Buffer): boolean {
    return this.#store.add(Option.getOrUndefined(parse(body.toString())))
  }
}
