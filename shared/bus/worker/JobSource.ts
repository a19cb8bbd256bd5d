/**
 * Pulls jobs from a pool's queues, one for each version of the protocol, as many as there are free slots.
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
  /** Settles a later delivery of the same job together with this one. Frees the slot of the later one. */
  readonly join: (later: Hold) => void
}

/** A job as it came from the queue. */
export interface PulledJob extends Job, Hold {
  /** The subject of its queue. */
  readonly subject: string
}

/** How often `watch` should be called while it works. */
export const watchMs = 250
/** After how long a job in an unknown version of the protocol is delivered again, to a worker that may read it. */
const foreignMs = 1_000
/** A queue that has delivered nothing for this long is quiet. */
const quietMs = 10_000

const ack = Buffer.from("+ACK")
const nak = Buffer.from("-NAK")
const nakLater = (delayMs: number) => Buffer.from(`-NAK {"delay":${delayMs * 1_000_000}}`)
const inProgress = Buffer.from("+WPI")

export interface SourceOptions {
  readonly nats: Nats["Service"]
  readonly queue: Subjects.QueueName
  readonly pool: string
  readonly slots: number
  readonly now: () => number
  readonly onJob: (job: PulledJob) => void
}

export class JobSource {
  readonly #options: SourceOptions
  readonly #nats: Nats["Service"]
  readonly #gauges: ReadonlyArray<() => void>
  /** Opens with each job. Its user closes it. */
  readonly working = Latch.makeUnsafe(false)
  /** The queues by version, the newest first. */
  readonly #queues: ReadonlyMap<Subjects.Version, PullRequests>
  /** The queue that delivered last; at first the newest. */
  #latest: PullRequests | undefined
  /** When it did, or this began. */
  #latestAt: number
  #version: Subjects.Version = 2
  #inFlight = 0
  #pulling = false
  #stopped = false

  constructor(options: SourceOptions) {
    this.#options = options
    this.#nats = options.nats
    const { pool, queue: name, slots } = options
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
      Metrics.observeUnsafe(Metrics.workerSlots(name, pool), () => slots),
      Metrics.observeUnsafe(Metrics.workerJobs(name, pool), () => this.#inFlight)
    ]
  }

  /** How many jobs are running. */
  inFlight(): number {
    return this.#inFlight
  }

  /** Whether a job runs, or a queue does not answer. */
  isWorking(): boolean {
    return this.#inFlight > 0 || [...this.#queues.values()].some(({ isLost }) => isLost)
  }

  /** Whether it has started and not stopped: it pulls also while it does not know whether its queues still exist. */
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

  /** The newest version of the protocol that it reads, also while it only finishes its jobs. */
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
   * After a reconnect: the standing requests are lost, and perhaps the queues. Requests jobs again at once; call `start` again once
   * the queues exist.
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

  /** Keeps the pull requests standing. */
  watch(): void {
    if (this.#stopped) return
    for (const queue of this.#queues.values()) queue.watch()
  }

  /**
   * How many more jobs to request from a queue. A quiet queue has one request standing, even if no slot is free, so that its
   * next job starts at once; this is why the jobs may exceed the slots by one. The others share the free slots. A single server's
   * queues may all be quiet: the first job of one of them causes the request for the free slots.
   */
  #wanted(queue: PullRequests): number {
    const total = this.#mostInFlight - this.#inFlight
    let outstanding = 0
    let quiet = 0
    for (const each of this.#queues.values()) {
      outstanding += each.outstanding
      if (this.#isQuiet(each)) quiet++
    }
    const share = this.#isQuiet(queue) ? 1 : Math.floor((total - quiet) / (this.#queues.size - quiet))
    return Math.min(share - queue.outstanding, total - outstanding)
  }

  /** Each queue but one may be quiet. */
  get #mostInFlight(): number {
    return this.#options.slots + this.#queues.size - 1
  }

  #isQuiet(queue: PullRequests): boolean {
    return queue === this.#latest ? this.#isResting() : this.#options.now() - queue.deliveredAt > quietMs
  }

  /** Whether it has had no job for long, and its only server forgets no request. */
  #isResting(): boolean {
    return this.#inFlight === 0 && this.#options.now() - this.#latestAt > quietMs && this.#nats.isAlone()
  }

  #receive(message: Msg, queue: PullRequests, version: Subjects.Version): void {
    const isNews = queue !== this.#latest
    this.#latest = queue
    this.#latestAt = this.#options.now()
    this.#inFlight++
    this.working.openUnsafe()
    const hold = this.#hold(message.reply ?? "")
    if (this.#stopped) return hold.giveBack()
    // former requests and those that replaced them were served; by then the former ones will have expired
    if (this.#inFlight > this.#mostInFlight) return hold.giveBack(watchMs)
    if (isNews || this.#inFlight === 1) queue.schedule()
    const job = decodeJob(message, version)
    if (job === undefined) return isForeign(message, version) ? hold.giveBack(foreignMs) : hold.acknowledge()
    this.#options.onJob({ ...job, ...hold, subject: message.subject })
  }

  /** Settles the job by publishing to this subject. */
  #hold(subject: string): Hold {
    let held = true
    let hasSlot = true
    const free = () => {
      if (!hasSlot) return
      hasSlot = false
      this.#inFlight--
      for (const queue of this.#queues.values()) queue.schedule()
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
    // until all servers know that it has stopped, the job may come back at once, which costs one of its few deliveries
    const leastMs = () => this.#stopped && delivery.delivery > 1 ? watchMs : undefined
    return {
      ...delivery,
      free,
      // not urgent: if it comes late, JetStream at worst redelivers the job, and ingress rejects that claim
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
