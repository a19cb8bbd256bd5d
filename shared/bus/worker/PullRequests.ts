/**
 * The pull requests of a worker that stand at one queue. They survive whatever happens to the queue: a rejection, another
 * leader, or a server that has forgotten them.
 */
import type { Msg, Subscription } from "@nats-io/nats-core"
import { Effect } from "effect"
import type { Nats } from "../../nats/Nats.ts"
import * as Subjects from "../protocol/Subjects.ts"

/**
 * When a pull request expires. JetStream cannot withdraw one, so a slot that stands at the wrong queue is lost to the others for
 * this long. Less than `ackWaitMs`: a job that a frozen worker received through a request from before the freeze is not
 * delivered to that worker a second time.
 */
const expiresMs = 1_000
/** The same for the single request at a quiet queue of a server that is alone. */
const restMs = 2_000
/** A request that the server has not ended this long after its expiry is forgotten, in milliseconds: its leader is gone. */
const overdueMs = 250
/**
 * When a pull request expires that follows a forgotten or rejected one. No leader gets it until one is elected, so it is repeated
 * whenever `watch` runs.
 */
const retryExpiresMs = 200
/** The pause after a rejected pull request: the consumer has another leader, or none yet. */
const rejectedMs = 200
/**
 * How long jobs for former requests are still received, in milliseconds: until these expire at the far end of a slow route, and the
 * way back. Over such a route, each request looks forgotten and is replaced before it can be answered.
 */
const lateMs = expiresMs + 1_000

export interface PullOptions {
  readonly nats: Nats["Service"]
  readonly now: () => number
  /** JetStream's subject for pull requests to the queue. */
  readonly subject: string
  /** How many more jobs to request now. */
  readonly wanted: () => number
  /** Whether a request may stand longer than usual. */
  readonly mayRest: () => boolean
  readonly onJob: (message: Msg) => void
}

export class PullRequests {
  readonly #options: PullOptions
  readonly #nats: Nats["Service"]
  readonly #now: () => number
  #subscription: Subscription | undefined
  /** That one and those of former requests, for which jobs may still arrive. */
  readonly #subscriptions = new Set<Subscription>()
  #inbox = ""
  /** How many jobs are requested but not delivered, and until when at the latest, the oldest first. */
  #standing: Array<{ left: number; readonly until: number }> = []
  #outstanding = 0
  #deliveredAt = Number.NEGATIVE_INFINITY
  #scheduled = false
  #backOffUntil = 0
  /** Whether the queue has served a request or let it expire since it last forgot or rejected one. */
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
   * Starts, or starts afresh after the server has forgotten standing requests. If it has not, answers to them do not count: each
   * would cause another request, for ever. Only their jobs are received.
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
   * Ends all requests, also former ones: otherwise they would get the jobs that this worker gives back. Returns once all jobs that
   * were on their way have arrived.
   */
  readonly stop: Effect.Effect<unknown> = Effect.promise(() => {
    this.#subscription = undefined
    return Promise.all([...this.#subscriptions].map((each) => this.#drain(each)))
  })

  /** Requests what is wanted, with the next write. */
  schedule(): void {
    if (this.#scheduled || this.#options.wanted() <= 0) return
    this.#scheduled = true
    const request = () => this.#request()
    // while a request stands, the next job comes without another one
    if (this.#outstanding > 0) this.#nats.outbox.linger(request)
    else this.#nats.outbox.beforeFlush(request)
  }

  /** Requests again what the server has forgotten: it drops pull requests to a missing consumer without an answer. */
  watch(): void {
    if (this.#subscription === undefined || !this.#nats.isConnected()) return
    const [first] = this.#standing
    if (first === undefined || first.until >= this.#now()) return this.schedule()
    this.#hasLeader = false
    this.begin()
  }

  /** The server drops requests whose inbox has no listener. Draining fails if the connection is closed, and its jobs are gone. */
  #drain(subscription: Subscription): Promise<void> {
    this.#subscriptions.delete(subscription)
    return subscription.drain().catch(() => undefined)
  }

  /** So many of the requested jobs were delivered, or will not be. The server serves the oldest request first. */
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

  /** `isCurrent` unless it comes from a request that no longer counts. */
  #receive(message: Msg, isCurrent: boolean): void {
    const now = this.#now()
    // the server's own messages have no reply subject
    if (message.reply === "") return isCurrent ? this.#status(message) : undefined
    if (isCurrent) {
      this.#hasLeader = true
      this.#ended(1)
    }
    this.#deliveredAt = now
    this.#options.onJob(message)
  }

  /** Ends a pull request: it has expired, and states how much of it was not served, or was rejected, and others may be gone, too. */
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
