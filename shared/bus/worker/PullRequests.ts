/**
 * Keeps a worker's pull requests standing at one queue, whatever happens to the queue: a rejected request, a new leader, or a
 * server that has forgotten its requests.
 */
import type { Msg, Subscription } from "@nats-io/nats-core"
import { Effect } from "effect"
import type { Nats } from "../../nats/Nats.ts"
import * as Subjects from "../protocol/Subjects.ts"

/**
 * How long a pull request stands, in milliseconds. JetStream cannot withdraw it, so a slot requested from one queue is lost to the
 * others for this long. Less than `ackWaitMs`, so that a job that a frozen worker has received through a request is not redelivered
 * to the frozen worker through the same request.
 */
const expiresMs = 1_000
/** The same for the single request at a quiet queue if there is only one NATS server. */
const restMs = 2_000
/** A request that the server has not ended this long after its expiry, in milliseconds, counts as forgotten: the leader is gone. */
const overdueMs = 250
/**
 * How long a pull request stands that follows a forgotten or rejected one, in milliseconds. Until a leader is elected it reaches
 * none, so it is repeated whenever `watch` runs.
 */
const retryExpiresMs = 200
/** The pause after a rejected pull request, in milliseconds: the consumer has a new leader, or none yet. */
const rejectedMs = 200
/**
 * How long jobs for replaced requests are still accepted, in milliseconds. Over a slow route each request looks forgotten and is
 * replaced before its answer arrives. It stands for `expiresMs` at the far end; the rest is for the way back.
 */
const lateMs = expiresMs + 1_000
/** How long a stopping worker waits for a server that may be frozen, in milliseconds. */
const drainWithinMs = 2_000

export interface PullOptions {
  readonly nats: Nats["Service"]
  readonly now: () => number
  /** JetStream's subject for pull requests to the queue. */
  readonly subject: string
  /** How many more jobs to request now. */
  readonly wanted: () => number
  /** Whether a request may stand for `restMs`. */
  readonly mayRest: () => boolean
  readonly onJob: (message: Msg) => void
}

export class PullRequests {
  readonly #options: PullOptions
  readonly #nats: Nats["Service"]
  readonly #now: () => number
  #subscription: Subscription | undefined
  /** The current subscription and those of replaced requests, for which jobs may still arrive. */
  readonly #subscriptions = new Set<Subscription>()
  #inbox = ""
  /** The standing requests, oldest first: how many jobs are still to come, and when the request counts as forgotten. */
  #standing: Array<{ left: number; readonly until: number }> = []
  #outstanding = 0
  #deliveredAt = Number.NEGATIVE_INFINITY
  #scheduled = false
  #backOffUntil = 0
  /** Whether the queue has served a request, or reported its expiry, since it last forgot or rejected one. */
  #hasLeader = true

  constructor(options: PullOptions) {
    this.#options = options
    this.#nats = options.nats
    this.#now = options.now
  }

  /** Whether it has begun and not stopped. */
  get isOpen(): boolean {
    return this.#subscription !== undefined
  }

  /** Whether the queue has forgotten or rejected a request, and has answered none since. */
  get isLost(): boolean {
    return this.isOpen && !this.#hasLeader
  }

  /** How many jobs are requested but not delivered. */
  get outstanding(): number {
    return this.#outstanding
  }

  /** When the queue last delivered a job. */
  get deliveredAt(): number {
    return this.#deliveredAt
  }

  /**
   * Starts, or starts again after the server has forgotten the standing requests. In case it has not, their jobs are still
   * accepted, but their status messages are ignored: each would trigger another request, endlessly.
   */
  begin(): void {
    const former = this.#subscription
    if (former !== undefined) setTimeout(() => void this.#drain(former), lateMs).unref()
    this.#standing = []
    this.#outstanding = 0
    const inbox = this.#inbox = this.#nats.inbox()
    this.#subscription = this.#nats.subscribe(inbox, (message) => this.#receive(message, inbox === this.#inbox))
    this.#subscriptions.add(this.#subscription)
    this.schedule()
  }

  /**
   * Ends all requests, including replaced ones: otherwise they would get the jobs that this worker returns. Returns once all jobs
   * that were in transit have arrived, or after `drainWithinMs` if the server does not answer.
   */
  readonly stop: Effect.Effect<unknown> = Effect.promise(() => {
    this.#subscription = undefined
    return Promise.all([...this.#subscriptions].map((each) => this.#drain(each)))
  }).pipe(Effect.timeoutOption(drainWithinMs))

  /** Requests the wanted number of jobs, together with the next write. */
  schedule(): void {
    if (this.#scheduled || this.#options.wanted() <= 0) return
    this.#scheduled = true
    const request = () => this.#request()
    // not urgent while a request stands, because it already brings the next job
    if (this.#outstanding > 0) this.#nats.outbox.linger(request)
    else this.#nats.outbox.beforeFlush(request)
  }

  /** Replaces forgotten requests: a server silently drops pull requests to a missing consumer. */
  watch(): void {
    if (this.#subscription === undefined || !this.#nats.isConnected()) return
    const [first] = this.#standing
    if (first === undefined || first.until >= this.#now()) return this.schedule()
    this.#hasLeader = false
    this.begin()
  }

  /** Ends requests: the server drops those whose inbox has no listener. Draining fails on a closed connection, which has no jobs. */
  #drain(subscription: Subscription): Promise<void> {
    this.#subscriptions.delete(subscription)
    return subscription.drain().catch(() => undefined)
  }

  /** `count` of the requested jobs were delivered or will not be. The server serves the oldest request first. */
  #ended(count: number): void {
    let left = Math.min(count, this.#outstanding)
    this.#outstanding -= left
    for (let [first] = this.#standing; first !== undefined && left > 0; [first] = this.#standing) {
      const taken = Math.min(left, first.left)
      first.left -= taken
      left -= taken
      if (first.left === 0) this.#standing.shift()
    }
  }

  /** `isCurrent`: the message does not answer a replaced request. */
  #receive(message: Msg, isCurrent: boolean): void {
    const now = this.#now()
    // status messages have no reply subject
    if (message.reply === "") return isCurrent ? this.#status(message) : undefined
    if (isCurrent) {
      this.#hasLeader = true
      this.#ended(1)
    }
    this.#deliveredAt = now
    this.#options.onJob(message)
  }

  /** Ends a pull request that has expired, which states how many jobs were not delivered, or starts again after a rejection. */
  #status({ headers }: Msg): void {
    if (headers === undefined || !this.isOpen) return
    this.#hasLeader = headers.code === 408
    if (!this.#hasLeader) {
      this.#backOffUntil = this.#now() + rejectedMs
      return this.begin()
    }
    const pending = headers.has(Subjects.header.pendingMessages)
    this.#ended(pending ? Number(headers.get(Subjects.header.pendingMessages)) : this.#outstanding)
    this.schedule()
  }

  #request(): void {
    this.#scheduled = false
    if (this.#subscription === undefined || !this.#nats.isConnected()) return
    const batch = this.#options.wanted()
    if (batch <= 0 || this.#now() < this.#backOffUntil) return
    this.#outstanding += batch
    const [forMs, overdueAfterMs] = this.#hasLeader
      ? [this.#options.mayRest() ? restMs : expiresMs, overdueMs]
      : [retryExpiresMs, 0]
    this.#standing.push({ left: batch, until: this.#now() + forMs + overdueAfterMs })
    const request = { batch, expires: forMs * 1_000_000 }
    this.#nats.outbox.publish(this.#options.subject, Buffer.from(JSON.stringify(request)), undefined, this.#inbox)
  }
}
