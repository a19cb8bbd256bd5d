/**
 * Pulls jobs for the free slots of a worker from the queues of its pool, one for each protocol version.
 *
 * It never prefetches: a job held by a busy worker would wait while another worker is idle. Slots that become free within
 * one turn of the event loop share one pull request, which leaves in the same write as the acknowledgements of the jobs
 * that freed them.
 */
import { Effect, Latch } from "effect"
import type { Msg } from "@nats-io/nats-core"
import * as Metrics from "../../telemetry/Metrics.ts"
import { decodeJob, isForeign, type Job } from "../protocol/JobMessage.ts"
import type { Nats } from "../../nats/Nats.ts"
import { PullRequests } from "./PullRequests.ts"
import * as Subjects from "../protocol/Subjects.ts"

/** What the queue says about a job. */
interface Delivery {
  /** Counts from 1. More than 1 means that a worker had the job before and did not settle it. */
  readonly delivery: number
  /** Epoch milliseconds at which JetStream stored it. */
  readonly publishedAt: number
  /** How many jobs of the pool were left in the stream when this one was delivered. */
  readonly behind: number
}

/** Settles a job in the queue. */
interface Hold extends Delivery {
  /** Frees the slot without settling the job, which is not delivered to other workers. */
  readonly free: () => void
  /**
   * Frees the slot while the job waits for a provider. The returned function takes one again, even if none is free. `undefined` if so
   * many jobs wait that this one must keep its slot.
   */
  readonly park: () => (() => void) | undefined
  /** The job has ended, successfully or not. Frees the slot. */
  readonly acknowledge: () => void
  /** Returns the job to the queue for another worker, immediately or after `delayMs` milliseconds. Frees the slot. */
  readonly giveBack: (delayMs?: number) => void
  /** Tells JetStream that the job is still running. */
  readonly working: () => void
  /** Takes a later delivery of the same job, to be settled together with this one. Frees the later one's slot. */
  readonly join: (later: Hold) => void
}

/** A job as delivered by the queue. */
export interface PulledJob extends Job, Hold {
  /** The subject of its queue. */
  readonly subject: string
}

/** How often `watch` should be called while the source is working, in milliseconds. */
export const watchMs = 250
/** After how long a job in an unknown protocol version is delivered again, to a worker that may read it, in milliseconds. */
const foreignMs = 1_000
/** A queue that has delivered nothing for this long, in milliseconds, is quiet. */
const quietMs = 10_000

/** As many jobs may wait for providers without a slot as there are slots, but at least this many. */
const leastParked = 256

/**
 * How many jobs are requested from a queue at a time, and when the request is renewed. More would not arrive sooner: they only make
 * messages, one for each slot that becomes free.
 */
const mostRequested = 256
const fewRequested = mostRequested / 2

const ack = Buffer.from("+ACK")
const nak = Buffer.from("-NAK")
const nakLater = (delayMs: number) => Buffer.from(`-NAK {"delay":${delayMs * 1_000_000}}`)
const inProgress = Buffer.from("+WPI")

export interface SourceOptions {
  readonly nats: Nats["Service"]
  readonly queue: Subjects.QueueName
  readonly pool: string
  readonly slots: number
  /** How many of the slots new jobs may take at present. Default: all. */
  readonly slotsNow?: () => number
  /** How many more jobs there is memory for; negative if there are too many. Default: any number. */
  readonly room?: () => number
  readonly now: () => number
  readonly onJob: (job: PulledJob) => void
}

export class JobSource {
  readonly #options: SourceOptions
  readonly #nats: Nats["Service"]
  readonly #gauges: ReadonlyArray<() => void>
  /** Opened by each job; the user of this class closes it. */
  readonly working = Latch.makeUnsafe(false)
  /** The queues by version, the newest first. */
  readonly #queues: ReadonlyMap<Subjects.Version, PullRequests>
  /** The queue that delivered last; at first the newest. */
  #latest: PullRequests | undefined
  /** When that queue last delivered; at first the start of this source. */
  #latestAt: number
  #version: Subjects.Version = 2
  /** The jobs that have a slot. */
  #inFlight = 0
  /** The jobs that wait without one. */
  #parked = 0
  /** The jobs in flight that have waited. They have taken their slots again without a request for a job. */
  #returned = 0
  #pulling = false
  #stopped = false

  constructor(options: SourceOptions) {
    this.#options = options
    this.#nats = options.nats
    const { pool, queue: name } = options
    const pullsOf = (version: Subjects.Version): PullRequests => {
      const queue: PullRequests = new PullRequests({
        ...options,
        subject: Subjects.pullSubject(name, pool, version),
        wanted: () => this.#wanted(queue),
        mayRest: () => this.#isResting(),
        onJob: (message) => this.#receive(message, queue, version)
      })
      return queue
    }
    this.#queues = new Map(Subjects.versionsOf(name).toReversed().map((version) => [version, pullsOf(version)]))
    this.#latest = this.#queues.get(Subjects.newestOf(name))
    this.#latestAt = options.now()
    this.#gauges = [
      Metrics.observeUnsafe(Metrics.workerSlots(name, pool), () => this.slots()),
      Metrics.observeUnsafe(Metrics.workerJobs(name, pool), () => this.#inFlight)
    ]
  }

  /** How many jobs may run at present. */
  slots(): number {
    const { slots, slotsNow } = this.#options
    return slotsNow?.() ?? slots
  }

  /** How many jobs are running; without those that wait for a provider. */
  inFlight(): number {
    return this.#inFlight
  }

  /** Whether a job runs, or a queue does not answer. */
  isWorking(): boolean {
    return this.#inFlight + this.#parked > 0 || [...this.#queues.values()].some(({ isLost }) => isLost)
  }

  /** Whether it has started and not stopped, even while it is unknown whether the queues still exist. */
  takesJobs(): boolean {
    return !this.#stopped && [...this.#queues.values()].some(({ isOpen }) => isOpen)
  }

  /** Whether it pulls from an existing queue over a live connection. */
  isReady(): boolean {
    return this.#pulling && this.#nats.isConnected()
  }

  /** Whether it takes no more jobs, although some may still run. */
  isDraining(): boolean {
    return this.#stopped
  }

  /** The newest protocol version whose queue it has pulled from, even after `stop`. */
  get version(): Subjects.Version {
    return this.#version
  }

  /** Starts to pull from the queue of this version, which must exist by now. */
  start(version: Subjects.Version): void {
    if (this.#stopped) return
    this.#pulling = true
    if (version > this.#version) this.#version = version
    this.#queues.get(version)?.begin()
  }

  /**
   * After a reconnect, which loses the standing requests and perhaps the queues: requests jobs again immediately. Call `start` again
   * once the queues exist.
   */
  restart(): void {
    this.#pulling = false
    for (const queue of this.#queues.values()) if (queue.isOpen) queue.begin()
  }

  /** Stops pulling. Returns jobs that the server had already sent to the queues. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.#stopped = true
    this.#pulling = false
    for (const forget of this.#gauges) forget()
    return Effect.forEach(this.#queues.values(), (queue) => queue.stop, { discard: true, concurrency: "unbounded" })
  })

  /** Runs periodically: renews lost pull requests. */
  watch(): void {
    if (this.#stopped) return
    for (const queue of this.#queues.values()) queue.watch()
  }

  /**
   * How many more jobs to request from a queue. A quiet queue has one job requested, even if no slot is free, so that its next job
   * starts immediately; this is why the jobs may exceed the slots by one. The other queues share the free slots. With a single NATS
   * server all queues may be quiet; then their next job triggers the request for the free slots.
   */
  #wanted(queue: PullRequests): number {
    if (queue.outstanding > fewRequested) return 0
    const free = this.slots() - this.#inFlight
    const total = Math.min(free, this.#options.room?.() ?? free) + this.#mostExtra
    let outstanding = 0
    let quiet = 0
    for (const each of this.#queues.values()) {
      outstanding += each.outstanding
      if (this.#isQuiet(each)) quiet++
    }
    const share = this.#isQuiet(queue) ? 1 : Math.floor((total - quiet) / (this.#queues.size - quiet))
    return Math.min(Math.min(share, mostRequested) - queue.outstanding, total - outstanding)
  }

  /** How many jobs there may be beyond the slots, because each queue but one may be quiet. */
  get #mostExtra(): number {
    return this.#queues.size - 1
  }

  #isQuiet(queue: PullRequests): boolean {
    return queue === this.#latest ? this.#isResting() : this.#options.now() - queue.deliveredAt > quietMs
  }

  /** Whether no job has come for `quietMs`, and there is a single NATS server, which forgets no request. */
  #isResting(): boolean {
    return this.#inFlight + this.#parked === 0 && this.#options.now() - this.#latestAt > quietMs && this.#nats.isAlone()
  }

  #receive(message: Msg, queue: PullRequests, version: Subjects.Version): void {
    const isNews = queue !== this.#latest
    this.#latest = queue
    this.#latestAt = this.#options.now()
    this.#inFlight++
    this.working.openUnsafe()
    const hold = this.#hold(message.reply ?? "")
    if (this.#stopped) return hold.giveBack()
    // requests and their replacements were both served; by the time of the redelivery the first ones have expired. A job requested before
    // the slots became fewer, or jobs that had waited took them again, may still run
    const room = this.#options.room?.() ?? 1
    if (this.#inFlight - this.#returned > this.#options.slots + this.#mostExtra || room + this.#mostExtra <= 0) {
      return hold.giveBack(watchMs)
    }
    if (isNews || this.#inFlight === 1) queue.schedule()
    const job = decodeJob(message, version)
    if (job === undefined) return isForeign(message, version) ? hold.giveBack(foreignMs) : hold.acknowledge()
    this.#options.onJob({ ...job, ...hold, subject: message.subject })
  }

  /** The hold on a job that is settled by publishing to this subject. */
  #hold(subject: string): Hold {
    let held = true
    let slot: "pulled" | "returned" | "parked" | "freed" = "pulled"
    const vacate = (next: "parked" | "freed") => {
      if (slot === "parked") this.#parked--
      else this.#inFlight--
      if (slot === "returned") this.#returned--
      if (next === "parked") this.#parked++
      slot = next
      for (const queue of this.#queues.values()) queue.schedule()
    }
    const free = () => slot === "freed" ? undefined : vacate("freed")
    const park = () => {
      const isHere = slot === "pulled" || slot === "returned"
      if (!isHere || this.#parked >= Math.max(leastParked, this.#options.slots)) return undefined
      vacate("parked")
      return () => {
        if (slot !== "parked") return
        slot = "returned"
        this.#parked--
        this.#inFlight++
        this.#returned++
      }
    }
    const { outbox } = this.#nats
    const joined: Array<Hold> = []
    const settle = (say: () => void, settleLater: (later: Hold) => void) => {
      if (!held) return
      held = false
      say()
      free()
      for (const later of joined) settleLater(later)
    }
    const delivery = parseAckSubject(subject)
    // until all servers know that this worker has stopped, they may redeliver the job to it, which wastes a delivery
    const leastMs = () => this.#stopped && delivery.delivery > 1 ? watchMs : undefined
    return {
      ...delivery,
      free,
      park,
      // not urgent: if the acknowledgement is late, JetStream at worst redelivers the job, and ingress rejects the new claim
      acknowledge: () =>
        settle(() => outbox.linger(() => outbox.publish(subject, ack)), (later) => later.acknowledge()),
      giveBack: (delayMs = leastMs()) =>
        settle(
          () => outbox.publish(subject, delayMs === undefined ? nak : nakLater(delayMs)),
          (later) => later.giveBack(delayMs)
        ),
      working: () => {
        if (!held) return
        outbox.publish(subject, inProgress)
        for (const later of joined) later.working()
      },
      join: (later) => {
        later.free()
        joined.push(later)
      }
    }
  }
}

/**
 * Parses `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<nanoseconds>.<pending>`. Newer servers put domain and
 * account before the stream.
 */
const parseAckSubject = (subject: string): Delivery => {
  const tokens = subject.split(".")
  const first = tokens.length > 9 ? 6 : 4
  return {
    delivery: Number(tokens[first]),
    publishedAt: Math.floor(Number(tokens[first + 3]) / 1_000_000),
    behind: Number(tokens[first + 4])
  }
}
