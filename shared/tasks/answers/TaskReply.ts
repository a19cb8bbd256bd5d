/**
 * Writes a worker's answer to the request of a task into storage, in pages, instead of to an ingress in frames. A page of a stream
 * consists of whole events, unless an event is larger than a page.
 *
 * A page is written when it is full, or 250 ms after its first bytes. Bytes that arrive while a page is being written wait for the
 * next one; if too many wait, the provider is paused.
 */
import { Effect, Latch } from "effect"
import type { AnswerEnd, AnswerHead } from "../../bus/protocol/Frame.ts"
import type { Reply } from "../../bus/worker/JobReply.ts"
import type { JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { JetStreamFailed } from "../../nats/JetStream.ts"
import { NumberedEvents } from "./NumberedEvents.ts"
import * as Page from "./Page.ts"
import { maxPageBytes } from "./TaskPages.ts"
import { TaskRefused } from "../RecordStore.ts"

/** A page is written after this many milliseconds, or once it has this many bytes. */
const pageAfterMs = 250
const pageBytes = 64 * 1024

/** How many bytes may wait to be written before the provider is paused. */
const windowBytes = 1024 * 1024

/** Bytes of the answer: one event of a stream, with its number, or any bytes of another answer. */
interface Piece {
  readonly bytes: Uint8Array
  readonly number?: number | undefined
}

/** A worker's claim to the work that the answer is for. */
export interface Claim {
  /** Why this worker has lost the work; `undefined` if it has not, as far as it knows. */
  readonly refusal: () => TaskRefused["refusal"] | undefined
  /** Whether storage records that a provider may have been called. */
  readonly isCommitted: () => boolean
}

export interface TaskReplyOptions {
  readonly claim: Claim
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Stores a page; `false` if another worker has stored a page with this number. */
  readonly append: (page: number, about: Page.About, bytes: Uint8Array) => Effect.Effect<boolean, JetStreamFailed>
}

export class TaskReply implements Reply {
  readonly #options: TaskReplyOptions
  #startedAt: number | undefined
  /** The head of the answer, until the first page is written. */
  #head: AnswerHead | undefined
  /** Splits a stream into events; `undefined` for other answers. */
  #events: NumberedEvents | undefined
  #waiting: Array<Piece> = []
  #waitingBytes = 0
  #page = 0
  /** The size of all written pages. */
  #bytes = 0
  #isOver = false
  #onDrain: (() => void) | undefined
  #end: AnswerEnd | JobError | undefined
  /** Open while there is something to write, or the answer is over. */
  readonly #isDue = Latch.makeUnsafe(false)
  /** Open while the next page should be written immediately. */
  readonly #isUrgent = Latch.makeUnsafe(false)

  constructor(options: TaskReplyOptions) {
    this.#options = options
  }

  get hasStarted(): boolean {
    return this.#startedAt !== undefined
  }

  get startedAt(): number | undefined {
    return this.#startedAt
  }

  get isOver(): boolean {
    return this.#isOver || this.#options.claim.refusal() !== undefined
  }

  /** Whether another worker has the task, and meters it. */
  get isMoved(): boolean {
    return this.#options.claim.refusal() === "fenced"
  }

  get isCommitted(): boolean {
    return this.#options.claim.isCommitted()
  }

  /** The size of the written answer. `end` is `undefined` if the answer was abandoned, or has not ended. */
  get outcome(): { readonly pages: number; readonly bytes: number; readonly end: AnswerEnd | JobError | undefined } {
    return { pages: this.#page, bytes: this.#bytes, end: this.#end }
  }

  start(head: AnswerHead): void {
    this.#startedAt = this.#options.now()
    this.#head = head
    if (Page.isStream(head)) this.#events = new NumberedEvents()
    this.#isDue.openUnsafe()
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isOver || bytes.length === 0) return true
    // copied, because `bytes` may be part of a much larger buffer
    const copy = Buffer.from(bytes)
    this.#add(this.#events?.push(copy) ?? [{ bytes: copy }])
    return !this.#isFull
  }

  onDrain(resume: () => void): void {
    if (this.#isOver || !this.#isFull) resume()
    else this.#onDrain = resume
  }

  end(usage: Usage | undefined): void {
    // a stream may end without a blank line
    const rest = this.#events?.rest ?? new Uint8Array(0)
    if (rest.length > 0 && !this.#isOver) this.#add([{ bytes: rest }])
    this.#close({ usage })
  }

  fail(error: JobError): void {
    this.#close(error)
  }

  abandon(): void {
    this.#head = undefined
    this.#waiting = []
    this.#waitingBytes = 0
    this.#close(undefined)
  }

  /** Writes the pages, and returns when the last one is stored. Fails if another worker has the task. */
  readonly writePages: Effect.Effect<void, TaskRefused | JetStreamFailed> = Effect.gen({ self: this }, function*() {
    for (;;) {
      yield* this.#isDue.await
      yield* Effect.timeoutOption(this.#isUrgent.await, pageAfterMs)
      const page = this.#take()
      if (page !== undefined) {
        const isMine = yield* this.#options.append(this.#page, page.about, page.bytes)
        if (!isMine) return yield* new TaskRefused({ refusal: "fenced" })
        this.#page++
        this.#bytes += page.bytes.length
      }
      if (this.#isOver && this.#waitingBytes === 0) return
    }
  })

  get #isFull(): boolean {
    return this.#waitingBytes >= windowBytes
  }

  #add(pieces: ReadonlyArray<Piece>): void {
    if (pieces.length === 0) return
    for (const piece of pieces) {
      this.#waiting.push(piece)
      this.#waitingBytes += piece.bytes.length
    }
    this.#isDue.openUnsafe()
    if (this.#waitingBytes >= pageBytes) this.#isUrgent.openUnsafe()
  }

  #close(end: AnswerEnd | JobError | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#end = end
    this.#isDue.openUnsafe()
    this.#isUrgent.openUnsafe()
    this.#resume()
  }

  /** The next page; `undefined` if there is nothing to write. */
  #take(): { readonly about: Page.About; readonly bytes: Uint8Array } | undefined {
    const head = this.#head
    const [first] = this.#waiting
    if (head === undefined && first === undefined) return undefined
    const taken = this.#takePieces()
    this.#head = undefined
    if (!this.#isOver) {
      if (this.#waiting.length === 0) this.#isDue.closeUnsafe()
      if (this.#waitingBytes < pageBytes) this.#isUrgent.closeUnsafe()
    }
    this.#resume()
    return {
      about: {
        ...(head === undefined ? {} : { head }),
        ...(first?.number === undefined ? {} : { event: first.number })
      },
      bytes: Buffer.concat(taken)
    }
  }

  /** Takes as many waiting bytes as a page holds. */
  #takePieces(): ReadonlyArray<Uint8Array> {
    const taken: Array<Uint8Array> = []
    let [left, count] = [maxPageBytes, 0]
    for (const { bytes } of this.#waiting) {
      // only an event that no page could hold is split
      if (bytes.length > left && count > 0) break
      taken.push(bytes.subarray(0, left))
      this.#waitingBytes -= Math.min(bytes.length, left)
      if (bytes.length > left) {
        this.#waiting[0] = { bytes: bytes.subarray(left) }
        break
      }
      left -= bytes.length
      count++
    }
    this.#waiting.splice(0, count)
    return taken
  }

  #resume(): void {
    const resume = this.#onDrain
    if (resume === undefined || (this.#isFull && !this.#isOver)) return
    this.#onDrain = undefined
    resume()
  }
}
