/**
 * Takes jobs from a pool's queue, exactly as many as there are free slots.
 *
 * Nothing is fetched ahead: a job that lies at a busy worker would wait while another worker is idle. Slots that become
 * free within one turn of the event loop are asked for in one pull request, which leaves in the same write as the
 * acknowledgements of the jobs that freed them.
 */
import type { Msg, Subscription } from "@nats-io/nats-core"
import type { Workload } from "../../contract/Operation.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { decodeJob, type JobHeader } from "../protocol/JobHeader.ts"
import type { Nats } from "../../nats/Nats.ts"
import * as Subjects from "../protocol/Subjects.ts"
import { header } from "../protocol/Subjects.ts"

/** What the queue says of a job. */
interface Delivery {
  /** From 1: more than 1 where another worker had it before and did not finish. */
  readonly delivery: number
  /** Epoch milliseconds at which JetStream took it. */
  readonly publishedAt: number
  /** How many jobs of the pool were left in the stream when it was given out. */
  readonly behind: number
}

/** What becomes of a job in the queue. */
interface Hold extends Delivery {
  /** The slot is free for another, while this one is still kept from other workers. */
  readonly free: () => void
  /** Done with it, for good or bad. Frees the slot. */
  readonly acknowledge: () => void
  /** Gives it back for another worker to take, at once or after so many milliseconds. Frees the slot. */
  readonly giveBack: (delayMs?: number) => void
  /** Tells JetStream that it is still being worked on. */
  readonly working: () => void
}

/** A job as it came from the queue. */
export interface PulledJob extends JobHeader, Hold {
  /** Of the queue that it came from. */
  readonly subject: string
  /** The request's body, or `undefined` where it must be pulled from ingress. */
  readonly body: Uint8Array | undefined
}

/**
 * How long one pull request stands: less than `ackWaitMs`, so that a job which a frozen worker swallowed by a request of
 * before the freeze is not given to it a second time.
 */
const expiresMs = 5_000
/** How often the server shows that it still knows of a request; it refuses more than half of `expiresMs`. */
const idleHeartbeatMs = 2_000
/** A server that has said nothing for this long while requests stood has forgotten them: two heartbeats and some slack. */
const silenceMs = 2 * idleHeartbeatMs + 1_000
const watchMs = 1_000

const ack = Buffer.from("+ACK")
const nak = Buffer.from("-NAK")
const nakLater = (delayMs: number) => Buffer.from(`-NAK {"delay":${delayMs * 1_000_000}}`)
const inProgress = Buffer.from("+WPI")

export class JobSource {
  readonly #nats: Nats["Service"]
  readonly #pull: string
  readonly #slots: number
  readonly #now: () => number
  readonly #onJob: (job: PulledJob) => void
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
  #watchdog: NodeJS.Timeout | undefined

  constructor(options: {
    readonly nats: Nats["Service"]
    readonly workload: Workload
    readonly pool: string
    readonly slots: number
    readonly now: () => number
    readonly onJob: (job: PulledJob) => void
  }) {
    this.#nats = options.nats
    this.#pull = Subjects.pullSubject(options.workload, options.pool)
    this.#slots = options.slots
    this.#now = options.now
    this.#onJob = options.onJob
    const { pool, workload } = options
    this.#gauges = [
      Metrics.observeUnsafe(Metrics.workerSlots(workload, pool), () => this.#slots),
      Metrics.observeUnsafe(Metrics.workerJobs(workload, pool), () => this.#inFlight)
    ]
  }

  /** How many jobs are being worked on. */
  inFlight(): number {
    return this.#inFlight
  }

  /** Whether it pulls from a queue that is there, and a server hears it. */
  isReady(): boolean {
    return this.#pulling && this.#nats.isConnected()
  }

  /** Begins to pull from the queue, which is there by now. */
  start(): void {
    if (this.#stopped) return
    this.#pulling = true
    this.#begin()
  }

  /** The server may be another, without the queue: it is to be started once more when that is there. */
  forget(): void {
    this.#pulling = false
  }

  /** Begins anew where the server has forgotten the requests that stood. */
  #begin(): void {
    // a job may be on its way there; where the connection is gone, so is the job
    this.#subscription?.drain().catch(() => undefined)
    this.#outstanding = 0
    this.#lastHeard = this.#now()
    this.#inbox = this.#nats.inbox()
    this.#subscription = this.#nats.subscribe(this.#inbox, (message) => this.#receive(message))
    this.#watchdog ??= setInterval(() => this.#watch(), watchMs)
    this.#schedule()
  }

  /** Stops pulling. What the server had already sent is given back to it. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#pulling = false
    clearInterval(this.#watchdog)
    for (const forget of this.#gauges) forget()
    const subscription = this.#subscription
    this.#subscription = undefined
    await subscription?.drain()
  }

  #receive(message: Msg): void {
    this.#lastHeard = this.#now()
    // what arrives without a reply subject is a word from the server
    if (message.reply === "") return this.#status(message)
    this.#outstanding = Math.max(0, this.#outstanding - 1)
    this.#inFlight++
    const hold = this.#hold(message.reply ?? "")
    if (this.#subscription === undefined) return hold.giveBack()
    const job = decodeJob(message)
    if (job === undefined) return hold.acknowledge()
    const body = message.data.length === 0 && job.bodySize > 0 ? undefined : message.data
    this.#onJob({ ...job, ...hold, subject: message.subject, body })
  }

  /** The job that is settled by what is published to this subject. */
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
      // in no hurry: the worst that comes of a late word is that the job is given out again, which nobody wants then
      acknowledge: () => settle(() => outbox.linger(() => outbox.publish(subject, ack))),
      giveBack: (delayMs) => settle(() => outbox.publish(subject, delayMs === undefined ? nak : nakLater(delayMs))),
      working: () => {
        if (held) outbox.publish(subject, inProgress)
      }
    }
  }

  /** 100 is a heartbeat. Anything else ends a pull request, and says how much of it was not served. */
  #status(message: Msg): void {
    const headers = message.headers
    if (headers === undefined || headers.code === 100) return
    const unserved = headers.has(header.pendingMessages)
      ? Number(headers.get(header.pendingMessages))
      : this.#outstanding
    this.#outstanding = Math.max(0, this.#outstanding - unserved)
    if (headers.code !== 408) this.#backOffUntil = this.#now() + watchMs
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    const request = () => this.#request()
    // while a request stands, the next job is on its way without a further one
    if (this.#outstanding > 0) this.#nats.outbox.linger(request)
    else this.#nats.outbox.beforeFlush(request)
  }

  #request(): void {
    this.#scheduled = false
    const want = this.#slots - this.#inFlight - this.#outstanding
    if (this.#subscription === undefined || want <= 0 || !this.#nats.isConnected()) return
    if (this.#now() < this.#backOffUntil) return
    // of a server that was asked for nothing nothing could be heard
    if (this.#outstanding === 0) this.#lastHeard = this.#now()
    this.#outstanding += want
    const request = {
      batch: want,
      expires: expiresMs * 1_000_000,
      idle_heartbeat: idleHeartbeatMs * 1_000_000
    }
    this.#nats.outbox.publish(this.#pull, Buffer.from(JSON.stringify(request)), undefined, this.#inbox)
  }

  /** A consumer that does not exist swallows pull requests without a word: silence means to begin anew. */
  #watch(): void {
    if (!this.#nats.isConnected()) return
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
