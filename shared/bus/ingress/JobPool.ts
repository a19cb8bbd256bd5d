/** One pool at this ingress: queues its jobs, and limits how many are in the stream without a worker. */
import { QueueFull, QueueTimeout } from "../../contract/JobError.ts"
import { DrainRate } from "../fairness/DrainRate.ts"
import { type Claimant, FairQueue, type QueueLimits } from "../fairness/FairQueue.ts"
import { PoolOccupancy } from "../fairness/PoolOccupancy.ts"
import type { Version } from "../protocol/Subjects.ts"
import { StreamQueue } from "./Publication.ts"
import { Window } from "./Window.ts"

export interface PoolLimits extends QueueLimits {
  /** Maximum number of unclaimed jobs in the stream. */
  readonly window: number
}

/** The retry time for clients if no better one is known, in milliseconds. */
const unknownRetryMs = 1_000

/** The longest retry time, in milliseconds: predictions beyond it are unreliable. */
const longestRetryMs = 60_000

/** A longer time between two ticks, in milliseconds, says nothing about the workers: this process was stalled. */
const longestTickMs = 500

/** How long a queue counts as stalled after a request to JetStream went unanswered, in milliseconds: until after the next try. */
const stalledForMs = 3_000

/** The part of the time until its deadline that a job may spend in the queue: a job that starts at its deadline is useless. */
const queueShare = 0.8

export class JobPool<Job> {
  readonly #waiting: FairQueue<Job>
  readonly #window: Window
  readonly #drain = new DrainRate()
  readonly #occupancy: PoolOccupancy
  #unclaimed = 0
  #jobs = 0
  /** What `Publications` knows of the pool's queue in JetStream. */
  readonly queue = new StreamQueue()
  #stalledUntil = Number.NEGATIVE_INFINITY
  /** Whether JetStream has served the queue since the last tick, and whether it has failed to. */
  #wasServed = false
  #wasStalled = false

  constructor(limits: PoolLimits, occupancy: PoolOccupancy = new PoolOccupancy()) {
    this.#occupancy = occupancy
    this.#waiting = new FairQueue(limits)
    this.#window = new Window(limits.window)
  }

  /** The version of the protocol for the next publication. */
  get version(): Version {
    return this.#occupancy.version
  }

  /** Whether no known worker takes jobs. */
  get isDeserted(): boolean {
    return this.#occupancy.isDeserted
  }

  /** The oldest version's queue has pull requests, although the pool is deserted. */
  pulledFormer(now: number): void {
    this.#occupancy.pulledFormer(now)
  }

  /** Jobs in the stream, as far as ingress knows, without a worker. */
  get unclaimed(): number {
    return this.#unclaimed
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Jobs claimed by a worker. */
  get running(): number {
    return this.#jobs - this.#waiting.size - this.#unclaimed
  }

  /**
   * Queues a job. Rejects it if the queue is full, or if the job would spend more than `queueShare` of its `patienceMs` there.
   */
  enter(job: Job, claimant: Claimant, patienceMs: number, now: number): QueueFull | QueueTimeout | undefined {
    const mostMs = queueShare * patienceMs
    // the past rate says nothing about a job for which a slot is free, nor while no job reaches a worker
    const isExempt = this.#mayGo(claimant, now) || this.#occupancy.hasRoom || this.#rests(now)
    const waitMs = isExempt ? 0 : this.#waitMs(claimant, mostMs)
    if (waitMs !== undefined && waitMs > mostMs) return new QueueTimeout({ retryAfterMs: retryAfter(waitMs) })
    if (!this.#waiting.offer(job, claimant, now)) return this.full(claimant)
    this.#jobs++
    this.#occupancy.entered(claimant)
    return undefined
  }

  /** The error for a job that finds no room. */
  full(claimant: Claimant): QueueFull {
    return new QueueFull({ retryAfterMs: this.retryAfterMs(claimant) })
  }

  /** When a rejected client should retry: once the jobs ahead of it have been served. */
  retryAfterMs(claimant: Claimant): number {
    return retryAfter(this.#waitMs(claimant, 0))
  }

  /** The next job to publish, if the window has room and its tenant may take a slot. */
  next(now: number): Job | undefined {
    if (this.#unclaimed >= this.#window.size || this.#occupancy.isFull) return undefined
    return this.#waiting.take(now, (claimant) => this.#occupancy.mayTake(claimant, now))
  }

  /** A waiting job leaves without being published. */
  leave(job: Job, claimant: Claimant): void {
    this.#waiting.remove(job)
    this.#occupancy.left(claimant)
  }

  /** A waiting job is published for the first time. */
  admitted(claimant: Claimant): void {
    this.#occupancy.took(claimant)
  }

  /** A claimed job waits for a provider, and holds no slot until it has `resumed`. */
  parked(claimant: Claimant): void {
    this.#occupancy.freed(claimant)
  }

  resumed(claimant: Claimant): void {
    this.#occupancy.retook(claimant)
  }

  /** A published job is unclaimed until `unpublished`. */
  published(): void {
    this.#unclaimed++
  }

  unpublished(): void {
    this.#unclaimed--
  }

  /** A job has ended, successfully or not; `wasAdmitted` if it no longer waited. */
  ended(claimant: Claimant, wasAdmitted: boolean): void {
    this.#jobs--
    if (wasAdmitted) this.#occupancy.freed(claimant)
  }

  /** A worker has claimed a job of this version, with `behind` jobs left in the stream. */
  claimed(worker: string, version: Version, behind: number, now: number): void {
    this.#occupancy.claimedBy(worker, version, now)
    this.#drain.add()
    this.#stalledUntil = Number.NEGATIVE_INFINITY
    this.#wasServed = true
    if (!Number.isNaN(behind)) this.#window.claimed(behind, this.#unclaimed - 1, this.#drain.perSecond)
  }

  /** JetStream does not answer: the queue's stream may be electing a leader. Until then no worker gets a job, however fast it is. */
  stalled(now: number): void {
    this.#stalledUntil = now + stalledForMs
    this.#wasStalled = true
  }

  /** JetStream has reported the state of the queue, so workers could get its jobs. */
  served(): void {
    this.#wasServed = true
  }

  /** Runs periodically, `ms` milliseconds after the last time. */
  tick(now: number, ms: number): void {
    this.#occupancy.age(now)
    const rests = this.#rests(now)
    // if the stream holds no jobs, those at ingress wait for slots, not for NATS
    const isServed = this.#wasServed || this.#unclaimed === 0
    const isInterrupted = this.#wasStalled || rests
    this.#wasServed = this.#wasStalled = false
    if (isInterrupted) {
      this.#drain.interrupt()
      this.#occupancy.interrupt()
    }
    if (rests || ms > longestTickMs) return
    this.#drain.tick(now, ms, this.#waiting.size > 0, isServed)
    this.#occupancy.tick(now, ms, isServed)
  }

  /** Whether no worker can get a job, so that the rate says nothing about them. */
  #rests(now: number): boolean {
    return now < this.#stalledUntil || this.#occupancy.isDeserted
  }

  /** Whether a job of this claimant would be published immediately, even if jobs of other tenants wait. */
  #mayGo(claimant: Claimant, now: number): boolean {
    return this.#unclaimed < this.#window.size && this.#occupancy.slots !== undefined &&
      !this.#occupancy.hasWaitingOf(claimant) && this.#occupancy.mayTake(claimant, now)
  }

  /** How long a job of this claimant would wait; `undefined` if unknown. Exact only above `fromMs`. */
  #waitMs(claimant: Claimant, fromMs: number): number | undefined {
    const turnMs = this.#turnMs(claimant, fromMs)
    const heldMs = this.#occupancy.waitMs(claimant)
    return turnMs === undefined || heldMs === undefined ? turnMs ?? (heldMs || undefined) : Math.max(turnMs, heldMs)
  }

  /** The part of that wait that is due to the turns of other jobs. */
  #turnMs(claimant: Claimant, fromMs: number): number | undefined {
    const { perSecond } = this.#drain
    if (perSecond === undefined) return this.#waiting.size === 0 ? 0 : undefined
    const most = 1_000 * this.#waiting.size / perSecond
    return most <= fromMs ? most : 1_000 * this.#waiting.ahead(claimant) / perSecond
  }
}

const retryAfter = (waitMs = 0): number => waitMs === 0 ? unknownRetryMs : Math.min(longestRetryMs, Math.ceil(waitMs))
