/**
 * A worker's answer to the request of a task: written to storage in pages instead of to an ingress in frames. The first page begins
 * with a line about the answer, its `AnswerHead`.
 *
 * A page is written when it is full, or a moment after its first bytes. While one is on its way, the next one grows; if it grows
 * too much, the provider is asked to wait.
 */
import { Effect, Latch, Schema } from "effect"
import type { AnswerEnd, AnswerHead } from "../bus/protocol/Frame.ts"
import type { Reply } from "../bus/worker/JobReply.ts"
import type { JobError } from "../contract/JobError.ts"
import type { Usage } from "../contract/Usage.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { type ClaimedTask, TaskRefused } from "./RecordStore.ts"
import { maxPageBytes } from "./TaskPages.ts"

/** A page is written after this many milliseconds, or with this many bytes. */
const pageAfterMs = 250
const pageBytes = 64 * 1024

/** How many bytes may wait to be written before the provider has to wait. */
const windowBytes = 1024 * 1024

const Head = Schema.Struct({
  status: Schema.Int,
  contentType: Schema.String,
  headers: Schema.Record(Schema.String, Schema.String)
})
const encodeHead = Schema.encodeSync(Schema.fromJsonString(Head))
const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(Head))

const newline = 0x0a

/** The line about the answer, and the bytes after it, in the first page. */
export const splitFirstPage = (page: Uint8Array) => {
  const end = page.indexOf(newline)
  return { head: decodeHead(Buffer.from(page.subarray(0, end)).toString()), bytes: page.subarray(end + 1) }
}

export interface TaskReplyOptions {
  readonly claimed: ClaimedTask
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Stores a page; `false` if another worker has stored one of this number. */
  readonly append: (page: number, bytes: Uint8Array) => Effect.Effect<boolean, JetStreamFailed>
}

export class TaskReply implements Reply {
  readonly #options: TaskReplyOptions
  #startedAt: number | undefined
  #waiting: Array<Uint8Array> = []
  #waitingBytes = 0
  #page = 0
  #isOver = false
  #onDrain: (() => void) | undefined
  #end: AnswerEnd | JobError | undefined
  /** There is something to write, or the answer is over. */
  readonly #isDue = Latch.makeUnsafe(false)
  /** It is to be written at once. */
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
    return this.#isOver || this.#options.claimed.refusal() !== undefined
  }

  /** Whether another worker has the task, and meters it. */
  get isMoved(): boolean {
    return this.#options.claimed.refusal() === "fenced"
  }

  get isCommitted(): boolean {
    return this.#options.claimed.current().providerTask !== null
  }

  /** The number of pages, and how the answer ended; `undefined` if it was given up. */
  get outcome(): { readonly pages: number; readonly end: AnswerEnd | JobError | undefined } {
    return { pages: this.#page, end: this.#end }
  }

  start(head: AnswerHead): void {
    this.#startedAt = this.#options.now()
    this.#add(Buffer.from(`${encodeHead(head)}\n`))
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isOver || bytes.length === 0) return true
    this.#add(bytes)
    return this.#waitingBytes < windowBytes
  }

  onDrain(resume: () => void): void {
    if (this.#isOver || this.#waitingBytes < windowBytes) resume()
    else this.#onDrain = resume
  }

  end(usage: Usage | undefined): void {
    this.#close({ usage })
  }

  fail(error: JobError): void {
    this.#close(error)
  }

  abandon(): void {
    this.#waiting = []
    this.#waitingBytes = 0
    this.#close(undefined)
  }

  /** Writes the pages, and returns when the last one is stored. Fails if another worker has the task. */
  readonly writePages: Effect.Effect<void, TaskRefused | JetStreamFailed> = Effect.gen({ self: this }, function*() {
    for (;;) {
      yield* this.#isDue.await
      yield* Effect.timeoutOption(this.#isUrgent.await, pageAfterMs)
      const bytes = this.#take()
      if (bytes.length > 0) {
        if (!(yield* this.#options.append(this.#page, bytes))) return yield* new TaskRefused({ refusal: "fenced" })
        this.#page++
      }
      if (this.#isOver && this.#waitingBytes === 0) return
    }
  })

  #add(bytes: Uint8Array): void {
    // the original may be a part of a much larger buffer
    this.#waiting.push(Buffer.from(bytes))
    this.#waitingBytes += bytes.length
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

  #take(): Uint8Array {
    const all = Buffer.concat(this.#waiting, this.#waitingBytes)
    const rest = all.subarray(maxPageBytes)
    this.#waiting = rest.length === 0 ? [] : [rest]
    this.#waitingBytes = rest.length
    if (!this.#isOver) {
      if (rest.length === 0) this.#isDue.closeUnsafe()
      if (rest.length < pageBytes) this.#isUrgent.closeUnsafe()
    }
    this.#resume()
    return all.subarray(0, maxPageBytes)
  }

  #resume(): void {
    const resume = this.#onDrain
    if (resume === undefined || (this.#waitingBytes >= windowBytes && !this.#isOver)) return
    this.#onDrain = undefined
    resume()
  }
}
