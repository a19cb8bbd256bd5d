/**
 * The worker's side of one job's answer: numbers the frames, respects the client's window, and handles ingress's controls.
 *
 * Bytes written between two sends leave as one frame of at most `frameBytes`.
 */
import type { JobError } from "../../contract/JobError.ts"
import type { Workload } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { FrameChannel, FrameSource } from "./FrameChannel.ts"
import type { AnswerEnd, AnswerHead, Control, Fate, Frame, Redispatch } from "../protocol/Frame.ts"
import * as Timings from "../protocol/Timings.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import * as Subjects from "../protocol/Subjects.ts"

const empty = new Uint8Array(0)

/**
 * How many times a claim that waits for `go` is sent, at four per second while NATS is connected: for longer than it takes to
 * detect that an ingress is gone.
 */
const mostClaims = 24

export interface ReplyOptions {
  readonly outbox: Outbox
  readonly channel: FrameChannel
  readonly workload: Workload
  readonly worker: string
  readonly job: string
  readonly attempt: number
  readonly behind: number
  /** The subject for the frames of the answer. */
  readonly subject: string
  readonly now: () => number
  /** Runs once when ingress cancels or rejects the job. */
  readonly onCancel: () => void
}

/** The destination of a job's answer: the ingress that waits for it, or the log of a task. */
export type Reply = Pick<
  JobReply,
  | "hasStarted"
  | "startedAt"
  | "isOver"
  | "isMoved"
  | "isCommitted"
  | "start"
  | "write"
  | "onDrain"
  | "end"
  | "fail"
  | "abandon"
>

export class JobReply {
  readonly #options: ReplyOptions
  readonly #source: FrameSource
  #redispatch: Redispatch = "mayHaveBeenSent"
  #claimed = false
  #sequence = 0
  /** How many bytes were written, and how many may be, by ingress's credit. */
  #written = 0
  #limit = Timings.windowBytes
  #startedAt: number | undefined
  /** The head and bytes that are not sent yet. */
  #head: AnswerHead | undefined
  #pending: Array<Uint8Array> = []
  #pendingBytes = 0
  /** When the pending bytes leave: with this turn of the event loop, or along with other messages. */
  #due: "now" | "soon" | undefined
  #over = false
  #fate: Fate = "over"
  #lastSent = 0
  #onDrain: (() => void) | undefined
  /** The claim that ingress has not answered yet, its callback, and how often it may still be sent. */
  #asked: { readonly redispatch: Redispatch; readonly answer: (go: boolean) => void; left: number } | undefined

  constructor(options: ReplyOptions) {
    this.#options = options
    const { attempt, job, subject, worker, workload } = options
    const control = Subjects.controlSubject(workload, worker, job, attempt)
    this.#source = { job, attempt, ingress: Subjects.parseReply(subject).ingress, subject, control }
    this.#lastSent = options.now()
  }

  /** The ingress that waits for this answer. */
  get ingress(): string {
    return this.#source.ingress
  }

  /** Whether the answer has started. From then on, an error must be reported within the answer. */
  get hasStarted(): boolean {
    return this.#startedAt !== undefined
  }

  /** When the answer started, by the clock of `now`. */
  get startedAt(): number | undefined {
    return this.#startedAt
  }

  /** Whether the end was sent, or ingress no longer wants the answer. */
  get isOver(): boolean {
    return this.#over
  }

  /** Whether another worker runs the job now, and meters it. */
  get isMoved(): boolean {
    return this.#fate !== "over"
  }

  /** Whether another worker runs the same attempt, so that the job's message in the queue is still needed. */
  get isTaken(): boolean {
    return this.#fate === "taken"
  }

  /** Whether ingress dispatches the job to no other worker from now on: this worker has claimed it as `mayHaveBeenSent`. */
  get isCommitted(): boolean {
    return this.#claimed && this.#redispatch === "mayHaveBeenSent"
  }

  /** Tells ingress that this worker has the job and starts. */
  claim(redispatch: Redispatch): void {
    this.#redispatch = redispatch
    this.#claimed = true
    const { attempt, behind, channel, job, now } = this.#options
    this.#lastSent = now()
    channel.claim(this.ingress, { job, attempt, redispatch, behind })
  }

  /** Repeats a claim that may have been lost with the NATS server, so that ingress dispatches the job to no other worker. */
  claimAgain(): void {
    if (this.#claimed && !this.#over) this.claim(this.#redispatch)
  }

  /** Like `claim`, but waits for ingress: calls `answer(true)` once it agrees, `answer(false)` if it refuses or is gone. */
  claimAndWait(redispatch: Redispatch, answer: (go: boolean) => void): void {
    this.#asked = { redispatch, answer, left: mostClaims }
    this.repeatClaim()
  }

  /** Runs while NATS is connected: repeats an unanswered claim, since it or its answer may be lost. A duplicate does no harm. */
  repeatClaim(): void {
    if (this.#asked === undefined || this.#over) return
    if (this.#asked.left-- === 0) return this.#answerClaim(false)
    this.#send({ type: "claim", redispatch: this.#asked.redispatch })
  }

  /** Tells ingress that the job waits for this provider, and takes no slot meanwhile. */
  wait(provider: string): void {
    if (this.#over) return
    // bytes that follow would mean that it works again
    this.#flush()
    this.#send({ type: "waits", provider })
  }

  /** Tells ingress that the job no longer waits. */
  work(): void {
    if (!this.#over) this.#send({ type: "works" })
  }

  /** Asks ingress for a part of the request's body. */
  pull(offset: number, length: number): void {
    this.#send({ type: "pull", offset, length })
  }

  /** Starts the answer. Must come before `write`. */
  start(head: AnswerHead): void {
    this.#startedAt = this.#options.now()
    this.#head = head
    this.#schedule()
  }

  /** Adds bytes to the answer. `false` asks the writer to pause until `onDrain` calls back. */
  write(bytes: Uint8Array): boolean {
    if (this.#over || bytes.length === 0) return true
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
    this.#written += bytes.length
    this.#schedule()
    return this.#written < this.#limit
  }

  /** Runs `resume` once, when a paused writer may continue. */
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
    this.#send({ type: "error", sequence: this.#sequence++, error })
  }

  /** Runs at every heartbeat interval: sends a heartbeat unless a frame was sent just before. */
  heartbeat(): void {
    if (this.#over || this.#options.now() - this.#lastSent < Timings.heartbeatMs / 2) return
    this.#flush()
    this.#send({ type: "heartbeat", sequence: this.#sequence })
  }

  receive(control: Control): void {
    switch (control.type) {
      case "credit": {
        this.#limit = control.bytes + Timings.windowBytes
        if (this.#written < this.#limit) this.#resumeWriter()
        return
      }
      case "go":
        return this.#acceptClaim(control.redispatch)
      case "no":
      case "cancel":
        this.#fate = control.fate
        return this.#stop(control.type === "no")
      // `JobServer` handles these, because they concern the whole process
      case "ping":
      case "noResponders":
        return
    }
  }

  /** Stops the work and sends nothing more: ingress no longer waits for this answer. */
  abandon(): void {
    this.#stop(false)
  }

  /** Stops the work. If `refused`, also answers the waiting claim. */
  #stop(refused: boolean): void {
    if (this.#over) return
    this.#over = true
    this.#pending = []
    if (refused) this.#answerClaim(false)
    this.#options.onCancel()
    this.#resumeWriter()
  }

  /** Ignores a late answer to an earlier, weaker claim. */
  #acceptClaim(redispatch: Redispatch): void {
    if (this.#asked === undefined || this.#over) return
    if (redispatch !== this.#asked.redispatch && redispatch !== "mayHaveBeenSent") return
    this.#redispatch = redispatch
    this.#claimed = true
    this.#answerClaim(true)
  }

  #answerClaim(go: boolean): void {
    const asked = this.#asked
    this.#asked = undefined
    asked?.answer(go)
  }

  #resumeWriter(): void {
    const resume = this.#onDrain
    this.#onDrain = undefined
    resume?.()
  }

  /** The first frame and full frames leave immediately. Others wait for further bytes or messages. */
  #schedule(): void {
    const isUrgent = this.#sequence === 0 || this.#pendingBytes >= Timings.frameBytes
    if (this.#due === "now" || (this.#due === "soon" && !isUrgent)) return
    this.#due = isUrgent ? "now" : "soon"
    const flush = () => {
      this.#due = undefined
      this.#flush()
    }
    if (isUrgent) this.#options.outbox.beforeFlush(flush)
    else this.#options.outbox.linger(flush)
  }

  /** Sends the pending bytes in as few frames as possible: the head with the first, the end with the last. */
  #flush(end?: AnswerEnd): void {
    if (this.#over || (this.#pendingBytes === 0 && this.#head === undefined && end === undefined)) return
    const all = this.#pending.length === 1
      ? this.#pending[0] ?? empty
      : Buffer.concat(this.#pending, this.#pendingBytes)
    this.#pending = []
    this.#pendingBytes = 0
    let at = 0
    do {
      const next = at + Timings.frameBytes
      this.#send({
        type: "data",
        sequence: this.#sequence++,
        redispatch: this.#redispatch,
        head: this.#head,
        end: next >= all.length ? end : undefined
      }, all.length <= Timings.frameBytes ? all : all.subarray(at, next))
      this.#head = undefined
      at = next
    } while (at < all.length)
  }

  #send(frame: Frame, payload?: Uint8Array): void {
    const { channel, now } = this.#options
    this.#lastSent = now()
    channel.send(this.#source, frame, payload)
  }
}
