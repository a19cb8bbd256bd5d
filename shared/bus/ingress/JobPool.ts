/** The jobs of one pool at this ingress: those that wait for their turn, and how many may lie in the stream. */
import { QueueFull, QueueTimeout } from "../../contract/JobError.ts"
import { DrainRate } from "../fairness/DrainRate.ts"
import { type Claimant, FairQueue, type QueueLimits } from "../fairness/FairQueue.ts"
import { PoolOccupancy } from "../fairness/PoolOccupancy.ts"
import { Window } from "./Window.ts"

export interface PoolLimits extends QueueLimits {
  /** The most jobs that may lie unclaimed in the stream. */
  readonly window: number
}

/** When clients should come again where nothing better is known, in milliseconds. */
const unknownRetryMs = 1_000

/** Nobody is told to stay away for longer than this, in milliseconds: much may change until then. */
const longestRetryMs = 60_000

/** Of its patience a job may use up so much by waiting: one that is begun when time is up is of no use to anybody. */
const mostOfPatience = 0.8

export class JobPool<Job> {
  readonly #waiting: FairQueue<Job>
  readonly #window: Window
  readonly #drain = new DrainRate()
  readonly #occupancy: PoolOccupancy
  #unclaimed = 0
  #jobs = 0
  /** How many publications there were, and up to which of them a claim has come. */
  #publications = 0
  #claimedUpTo = 0

  constructor(limits: PoolLimits, occupancy: PoolOccupancy = new PoolOccupancy()) {
    this.#occupancy = occupancy
    this.#waiting = new FairQueue(limits)
    this.#window = new Window(limits.window)
  }

  /** How many are in the stream, or believed to be, and have no worker. */
  get unclaimed(): number {
    return this.#unclaimed
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Those that a worker has. */
  get running(): number {
    return this.#jobs - this.#waiting.size - this.#unclaimed
  }

  /**
   * Takes a job in, unless it would have to wait for most of its `patienceMs`, or there is no room: who cannot be served is
   * told so at once.
   */
  enter(job: Job, claimant: Claimant, patienceMs: number, now: number): QueueFull | QueueTimeout | undefined {
    const mostMs = mostOfPatience * patienceMs
    const waitMs = this.#mayGo(claimant, now) ? 0 : this.#waitMs(claimant, mostMs)
    if (waitMs !== undefined && waitMs > mostMs) return new QueueTimeout({ retryAfterMs: retryAfter(waitMs) })
    if (!this.#waiting.offer(job, claimant, now)) return this.full(claimant)
    this.#jobs++
    this.#occupancy.entered(claimant)
    return undefined
  }

  /** What whoever finds no room is told. */
  full(claimant: Claimant): QueueFull {
    return new QueueFull({ retryAfterMs: this.retryAfterMs(claimant) })
  }

  /** When whoever was not served should come again: once those who now are before him have been. */
  retryAfterMs(claimant: Claimant): number {
    return retryAfter(this.#waitMs(claimant, 0))
  }

  /** The next job to be published, where the window has room and there is one whose tenant may take a slot. */
  next(now: number): Job | undefined {
    if (this.#unclaimed >= this.#window.size || this.#occupancy.isFull) return undefined
    return this.#waiting.take(now, (claimant) => this.#occupancy.mayTake(claimant, now))
  }

  /** A job leaves while it waits. */
  leave(job: Job, claimant: Claimant): void {
    this.#waiting.remove(job)
    this.#occupancy.left(claimant)
  }

  /** A job that waited is published for the first time. */
  admitted(claimant: Claimant): void {
    this.#occupancy.took(claimant)
  }

  /** A job is unclaimed from now on. */
  published(): void {
    this.#unclaimed++
  }

  /** A job is not unclaimed any more. */
  unpublished(): void {
    this.#unclaimed--
  }

  /** A job has ended, for good or bad; `wasAdmitted` where it did not wait any more. */
  ended(claimant: Claimant, wasAdmitted: boolean): void {
    this.#jobs--
    if (wasAdmitted) this.#occupancy.freed(claimant)
  }

  /** Numbers a publication: the stream gives them out in this order. */
  numbered(): number {
    return ++this.#publications
  }

  /** Whether a later publication than that of this number has been claimed. */
  hasOvertaken(publication: number): boolean {
    return publication < this.#claimedUpTo
  }

  /** A worker has claimed the publication of this number, with so many jobs left in the stream behind it. */
  claimed(worker: string, publication: number, behind: number, now: number): void {
    this.#occupancy.claimedBy(worker, now)
    this.#claimedUpTo = Math.max(this.#claimedUpTo, publication)
    this.#drain.add()
    if (!Number.isNaN(behind)) this.#window.claimed(behind, this.#unclaimed - 1, this.#drain.perSecond)
  }

  /** To be called now and then, `ms` milliseconds after the last time. */
  tick(now: number, ms: number): void {
    this.#drain.tick(now, ms, this.#waiting.size > 0)
    this.#occupancy.tick(now, ms)
  }

  /** Whether a job of this claimant would be published at once, whatever waits for others. */
  #mayGo(claimant: Claimant, now: number): boolean {
    return this.#unclaimed < this.#window.size && this.#occupancy.slots !== undefined &&
      !this.#occupancy.hasWaitingOf(claimant) && this.#occupancy.mayTake(claimant, now)
  }

  /** For how long a job of this claimant would wait; `undefined` where that is not known. Exact only beyond `fromMs`. */
  #waitMs(claimant: Claimant, fromMs: number): number | undefined {
    const turnMs = this.#turnMs(claimant, fromMs)
    const heldMs = this.#occupancy.waitMs(claimant)
    return turnMs === undefined || heldMs === undefined ? turnMs ?? (heldMs || undefined) : Math.max(turnMs, heldMs)
  }

  /** The same as far as it depends on the turns of others. */
  #turnMs(claimant: Claimant, fromMs: number): number | undefined {
    const { perSecond } = this.#drain
    if (perSecond === undefined) return this.#waiting.size === 0 ? 0 : undefined
    const most = 1_000 * this.#waiting.size / perSecond
    return most <= fromMs ? most : 1_000 * this.#waiting.ahead(claimant) / perSecond
  }
}

const retryAfter = (waitMs = 0): number => waitMs === 0 ? unknownRetryMs : Math.min(longestRetryMs, Math.ceil(waitMs))
