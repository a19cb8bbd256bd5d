/**
 * Pulls jobs from a pool's queue, exactly as many as there are free slots.
 *
 * It never prefetches: a job held by a busy worker would wait while another worker is idle. Slots that become free within
 * one turn of the event loop share one pull request, which leaves in the same write as the acknowledgements of the jobs
 * that freed them.
 */
import { Effect } from "effect"
import type { Msg, Subscription } from "@nats-io/nats-core"
import type { Workload } from "../../contract/Operation.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { decodeJob, isForeign, type JobHeader } from "../protocol/JobHeader.ts"
import type { Nats } from "../../nats/Nats.ts"
import * as Subjects from "../protocol/Subjects.ts"

/** What the queue says about a job. */
interface Delivery {
  /** From 1; more than 1 if another worker had the job before and did not finish it. */
  readonly delivery: number
  /** Epoch milliseconds at which JetStream stored it. */
  readonly publishedAt: number
  /** How many jobs of the pool were left in the stream when this one was delivered. */
  readonly behind: number
}

/** Settles a job in the queue. */
interface Hold extends Delivery {
  /** Frees the slot without settling the job, which stays hidden from other workers. */
  readonly free: () => void
  /** The job has ended, successfully or not. Frees the slot. */
  readonly acknowledge: () => void
  /** Returns the job to the queue for another worker, at once or after `delayMs` milliseconds. Frees the slot. */
  readonly giveBack: (delayMs?: number) => void
  /** Tells JetStream that the job is still running. */
  readonly working: () => void
}

/** A job as it came from the queue. */
export interface PulledJob extends JobHeader, Hold {
  /** The subject of its queue. */
  readonly subject: string
  /** The request's body, or `undefined` if the worker must pull it from ingress. */
  readonly body: Uint8Array | undefined
}

/**
 * When a pull request expires. Less than `ackWaitMs`: a job that a frozen worker received through a request from before
 * the freeze is not delivered to that worker a second time.
 */
const expiresMs = 5_000
/** How often the server confirms a standing request; it rejects more than half of `expiresMs`. */
const idleHeartbeatMs = 500
/** A server that is silent for this long has forgotten the standing requests: two heartbeats and some slack. */
const silenceMs = 2 * idleHeartbeatMs + 500
/** How often `watch` should be called. */
export const watchMs = 250
/** After how long a job in an unknown version of the protocol is delivered again, to a worker that may read it. */
const foreignMs = 1_000
/** The pause after a rejected pull request: the consumer has another leader, or none yet. */
const rejectedMs = 200

const ack = Buffer.from("+ACK")
const nak = Buffer.from("-NAK")
const nakLater = (delayMs: number) => Buffer.from(`-NAK {"delay":${delayMs * 1_000_000}}`)
const inProgress = Buffer.from("+WPI")

export interface SourceOptions {
  readonly nats: Nats["Service"]
  readonly workload: Workload
  readonly pool: string
  readonly slots: number
  readonly now: () => number
  readonly onJob: (job: PulledJob) => void
}

export class JobSource {
  readonly #options: SourceOptions
  readonly #nats: Nats["Service"]
  readonly #now: () => number
  readonly #gauges: ReadonlyArray<() => void>
  #subscription: Subscription | undefined
  #inbox = ""
  #outstanding = 0
  #inFlight = 0
  #lastHeard = 0
  #scheduled = false
  #pulling = false
  #stopped = false
  #backOffUntil = 0

  constructor(options: SourceOptions) {
    this.#options = options
    this.#nats = options.nats
    this.#now = options.now
    const { pool, slots, workload } = options
    this.#gauges = [
      Metrics.observeUnsafe(Metrics.workerSlots(workload, pool), () => slots),
      Metrics.observeUnsafe(Metrics.workerJobs(workload, pool), () => this.#inFlight)
    ]
  }

  /** How many jobs are running. */
  inFlight(): number {
    return this.#inFlight
  }

  /** Whether it pulls from an existing queue over a live connection. */
  isReady(): boolean {
    return this.#pulling && this.#nats.isConnected()
  }

  /** Starts to pull. The queue must exist by now. */
  start(): void {
    if (this.#stopped) return
    this.#pulling = true
    this.#begin()
  }

  /** The server may have lost the queue: call `start` again once it exists. */
  pause(): void {
    this.#pulling = false
  }

  /** Starts afresh after the server has forgotten the standing requests. */
  #begin(): void {
    // a job may still be on its way to the old subscription; if the connection is gone, so is the job
    this.#subscription?.drain().catch(() => undefined)
    this.#outstanding = 0
    this.#lastHeard = this.#now()
    this.#inbox = this.#nats.inbox()
    this.#subscription = this.#nats.subscribe(this.#inbox, (message) => this.#receive(message))
    this.#schedule()
  }

  /** Stops pulling. Returns jobs that the server had already sent to the queue. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.#stopped = true
    this.#pulling = false
    for (const forget of this.#gauges) forget()
    const subscription = this.#subscription
    this.#subscription = undefined
    return subscription === undefined ? Effect.void : Effect.promise(() => subscription.drain())
  })

  #receive(message: Msg): void {
    this.#lastHeard = this.#now()
    // the server's own messages have no reply subject
    if (message.reply === "") return this.#status(message)
    this.#outstanding = Math.max(0, this.#outstanding - 1)
    this.#inFlight++
    const hold = this.#hold(message.reply ?? "")
    if (this.#subscription === undefined) return hold.giveBack()
    const job = decodeJob(message)
    if (job === undefined) return isForeign(message) ? hold.giveBack(foreignMs) : hold.acknowledge()
    const body = message.data.length === 0 && job.bodySize > 0 ? undefined : message.data
    this.#options.onJob({ ...job, ...hold, subject: message.subject, body })
  }

  /** Settles the job by publishing to this subject. */
  #hold(subject: string): Hold {
    let held = true
    let hasSlot = true
    const free = () => {
      if (!hasSlot) return
      hasSlot = false
      this.#inFlight--
      this.#schedule()
    }
    const { outbox } = this.#nats
    const settle = (say: () => void) => {
      if (!held) return
      held = false
      say()
      free()
    }
    return {
      ...parseAckSubject(subject),
      free,
      // not urgent: if it comes late, JetStream at worst redelivers the job, and ingress rejects that claim
      acknowledge: () => settle(() => outbox.linger(() => outbox.publish(subject, ack))),
      giveBack: (delayMs) => settle(() => outbox.publish(subject, delayMs === undefined ? nak : nakLater(delayMs))),
      working: () => {
        if (held) outbox.publish(subject, inProgress)
      }
    }
  }

  /** 100 is a heartbeat. Any other code ends a pull request and states how much of it was not served. */
  #status(message: Msg): void {
    const headers = message.headers
    if (headers === undefined || headers.code === 100) return
    const unserved = headers.has(Subjects.header.pendingMessages)
      ? Number(headers.get(Subjects.header.pendingMessages))
      : this.#outstanding
    this.#outstanding = Math.max(0, this.#outstanding - unserved)
    if (headers.code !== 408) this.#backOffUntil = this.#now() + rejectedMs
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const request = () => this.#request()
    // while a request stands, the next job comes without another one
    if (this.#outstanding > 0) this.#nats.outbox.linger(request)
    else this.#nats.outbox.beforeFlush(request)
  }

  #request(): void {
    this.#scheduled = false
    const { pool, slots, workload } = this.#options
    const want = slots - this.#inFlight - this.#outstanding
    if (this.#subscription === undefined || want <= 0 || !this.#nats.isConnected()) return
    if (this.#now() < this.#backOffUntil) return
    // without a standing request the server has nothing to say
    if (this.#outstanding === 0) this.#lastHeard = this.#now()
    this.#outstanding += want
    const request = {
      batch: want,
      expires: expiresMs * 1_000_000,
      idle_heartbeat: idleHeartbeatMs * 1_000_000
    }
    const subject = Subjects.pullSubject(workload, pool)
    this.#nats.outbox.publish(subject, Buffer.from(JSON.stringify(request)), undefined, this.#inbox)
  }

  /** Starts afresh after a silence: JetStream drops pull requests to a missing consumer without an answer. */
  watch(): void {
    if (this.#subscription === undefined || !this.#nats.isConnected()) return
    if (this.#outstanding > 0 && this.#now() - this.#lastHeard > silenceMs) return this.#begin()
    this.#schedule()
  }
}

/** `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>`; newer servers put domain and account before the stream. */
const parseAckSubject = (subject: string): Delivery => {
  const tokens = subject.split(".")
  const first = tokens.length > 9 ? 6 : 4
  return {
    delivery: Number(tokens[first]),
    publishedAt: Math.floor(Number(tokens[first + 3]) / 1_000_000),
    behind: Number(tokens[first + 4])
  }
}
