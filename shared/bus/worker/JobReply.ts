/**
 * The worker's side of one job's answer: numbers the frames, keeps to the client's window, and hears of cancellation.
 *
 * Bytes written until something is sent leave as one frame of at most `frameBytes`.
 */
import type { JobError } from "../../contract/JobError.ts"
import type { Workload } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { Claims } from "./Claims.ts"
import type { AnswerEnd, AnswerHead, Control, Frame, Redispatch } from "../protocol/Frame.ts"
import { encodeFrame, payloadOf, replyOf } from "../protocol/Frame.ts"
import * as Limits from "../protocol/Timings.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import * as Subjects from "../protocol/Subjects.ts"

const empty = new Uint8Array(0)

export class JobReply {
  readonly #outbox: Outbox
  readonly #claims: Claims
  readonly #job: string
  readonly #attempt: number
  readonly #behind: number
  readonly #subject: string
  /** Who waits for this answer. */
  readonly ingress: string
  readonly #control: string
  #redispatch: Redispatch = "mayHaveBeenSent"
  #claimed = false
  #sequence = 0
  /** How many bytes were written, and how many may be. */
  #written = 0
  #limit = Limits.windowBytes
  #startedAt: number | undefined
  /** Not yet sent. */
  #head: AnswerHead | undefined
  #pending: Array<Uint8Array> = []
  #pendingBytes = 0
  /** When what is pending leaves: with this turn of the event loop, or in no hurry. */
  #due: "now" | "soon" | undefined
  #over = false
  #lastSent = 0
  readonly #now: () => number
  #onDrain: (() => void) | undefined
  /** What ingress was asked to agree to, and who waits for that. */
  #asked: { readonly redispatch: Redispatch; readonly answer: (go: boolean) => void } | undefined
  /** Runs once when ingress no longer wants this answer. */
  readonly #onCancel: () => void

  constructor(options: {
    readonly outbox: Outbox
    readonly claims: Claims
    readonly workload: Workload
    readonly worker: string
    readonly job: string
    readonly attempt: number
    readonly behind: number
    readonly subject: string
    readonly now: () => number
    readonly onCancel: () => void
  }) {
    this.#outbox = options.outbox
    this.#claims = options.claims
    this.#job = options.job
    this.#attempt = options.attempt
    this.#behind = options.behind
    this.#subject = options.subject
    this.ingress = Subjects.parseReply(options.subject).ingress
    this.#control = Subjects.controlSubject(options.workload, options.worker, options.job, options.attempt)
    this.#now = options.now
    this.#lastSent = options.now()
    this.#onCancel = options.onCancel
  }

  /** Whether the head has been given: from then on an error is part of the answer. */
  get started(): boolean {
    return this.#startedAt !== undefined
  }

  /** When the head was given, in epoch milliseconds. */
  get startedAt(): number | undefined {
    return this.#startedAt
  }

  /** The end was sent, or nobody wants it any more. */
  get over(): boolean {
    return this.#over
  }

  /** Whether ingress was told that nobody else may do the job from now on, and has not refused it. */
  get committed(): boolean {
    return this.#claimed && this.#redispatch === "mayHaveBeenSent"
  }

  /** Tells ingress that this worker has the job and begins. */
  claim(redispatch: Redispatch): void {
    this.#redispatch = redispatch
    this.#claimed = true
    this.#lastSent = this.#now()
    this.#claims.add(this.ingress, { job: this.#job, attempt: this.#attempt, redispatch, behind: this.#behind })
  }

  /** Claims again what may have been lost with the server, so that nobody else is given the job. */
  claimAgain(): void {
    if (this.#claimed && !this.#over) this.claim(this.#redispatch)
  }

  /** The same as `claim`, but waits for ingress to agree; `answer(false)` where it does not want the job done. */
  claimAndWait(redispatch: Redispatch, answer: (go: boolean) => void): void {
    this.#asked = { redispatch, answer }
    this.askAgain()
  }

  /** Asks what ingress has not answered yet: the question or the answer may be lost, and one too many does no harm. */
  askAgain(): void {
    if (this.#asked !== undefined && !this.#over) this.#send({ type: "claim", redispatch: this.#asked.redispatch })
  }

  /** Asks ingress for a part of the request's body. */
  pull(offset: number, length: number): void {
    this.#send({ type: "pull", offset, length })
  }

  /** The head of the answer. Must come before `write`. */
  start(head: AnswerHead): void {
    this.#startedAt = this.#now()
    this.#head = head
    this.#schedule()
  }

  /** Adds bytes to the answer. `false` asks the writer to pause until `onDrain` runs. */
  write(bytes: Uint8Array): boolean {
    if (this.#over || bytes.length === 0) return true
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
    this.#written += bytes.length
    this.#schedule()
    return this.#written < this.#limit
  }

  /** Runs once, when a writer that was told to pause may go on. */
  onDrain(resume: () => void): void {
    if (this.#written < this.#limit || this.#over) resume()
    else this.#onDrain = resume
  }

  end(usage: Usage | undefined): void {
    if (this.#over) return
    this.#flush({ usage })
    this.#over = true
  }

  fail(error: JobError): void {
    if (this.#over) return
    this.#flush()
    this.#over = true
    const frame: Frame = { type: "error", sequence: this.#sequence++, error }
    this.#send(frame, payloadOf(frame))
  }

  /** Called at every heartbeat interval: says that the job lives, unless a frame has just said so. */
  heartbeat(): void {
    if (this.#over || this.#now() - this.#lastSent < Limits.heartbeatMs / 2) return
    this.#flush()
    this.#send({ type: "heartbeat", sequence: this.#sequence })
  }

  receive(control: Control): void {
    switch (control.type) {
      case "credit": {
        this.#limit = control.bytes + Limits.windowBytes
        if (this.#written < this.#limit) this.#drained()
        return
      }
      case "go":
        return this.#agreed(control.redispatch)
      case "no":
        return this.#stop(true)
      case "cancel":
        return this.abandon()
      // about the process as a whole
      case "ping":
      case "noResponders":
        return
    }
  }

  /** Nobody waits for this answer: nothing more is sent and the work is stopped. */
  abandon(): void {
    this.#stop(false)
  }

  /** Whoever waits for ingress to agree hears of a refusal; otherwise the work is just stopped. */
  #stop(refused: boolean): void {
    if (this.#over) return
    this.#over = true
    this.#pending = []
    if (refused) this.#answered(false)
    this.#onCancel()
    this.#drained()
  }

  /** What was agreed to before, asked twice, says nothing of what is asked now. */
  #agreed(redispatch: Redispatch): void {
    if (this.#asked === undefined || this.#over) return
    if (redispatch !== this.#asked.redispatch && redispatch !== "mayHaveBeenSent") return
    this.#redispatch = redispatch
    this.#claimed = true
    this.#answered(true)
  }

  #answered(go: boolean): void {
    const asked = this.#asked
    this.#asked = undefined
    asked?.answer(go)
  }

  #drained(): void {
    const resume = this.#onDrain
    this.#onDrain = undefined
    resume?.()
  }

  /** The beginning leaves at once, and so does a full frame. Anything else may wait for others. */
  #schedule(): void {
    const isUrgent = this.#sequence === 0 || this.#pendingBytes >= Limits.frameBytes
    if (this.#due === "now" || (this.#due === "soon" && !isUrgent)) return
    this.#due = isUrgent ? "now" : "soon"
    const flush = () => {
      this.#due = undefined
      this.#flush()
    }
    if (isUrgent) this.#outbox.beforeFlush(flush)
    else this.#outbox.linger(flush)
  }

  /** Sends what has gathered, in as few frames as it fits: the head with the first, the end with the last. */
  #flush(end?: AnswerEnd): void {
    if (this.#over || (this.#pendingBytes === 0 && this.#head === undefined && end === undefined)) return
    const all = this.#pending.length === 1
      ? this.#pending[0] ?? empty
      : Buffer.concat(this.#pending, this.#pendingBytes)
    this.#pending = []
    this.#pendingBytes = 0
    let at = 0
    do {
      const next = at + Limits.frameBytes
      this.#send({
        type: "data",
        sequence: this.#sequence++,
        redispatch: this.#redispatch,
        head: this.#head,
        end: next >= all.length ? end : undefined
      }, all.length <= Limits.frameBytes ? all : all.subarray(at, next))
      this.#head = undefined
      at = next
    } while (at < all.length)
  }

  /** Every frame carries the control subject, so that whoever gets it can answer. */
  #send(frame: Frame, payload: Uint8Array = empty): void {
    this.#lastSent = this.#now()
    this.#claims.send()
    this.#outbox.publish(this.#subject, payload, encodeFrame(frame), replyOf(this.#control, frame))
  }
}
