/** The workers that run jobs of this ingress: when each was last heard, and when it counts as lost. */
import type { Workload } from "../../contract/Operation.ts"
import * as Timings from "../protocol/Timings.ts"
import { ReleasingMap } from "../../bounds/ReleasingMap.ts"

/** A living worker with jobs was heard within this time, in milliseconds, because it is pinged when it is silent. */
const heardWithinMs = Timings.pingAfterMs + 3 * Timings.tickMs

export interface WorkerLink<Job extends { readonly id: string }> {
  readonly id: string
  readonly workload: Workload
  readonly jobs: ReleasingMap<Job>
  lastSeen: number
  pingedAt: number | undefined
  /** Since when the worker's subject has had no listener. */
  missingSince: number | undefined
}

interface Linked<Job extends { readonly id: string }> {
  readonly id: string
  worker: WorkerLink<Job> | undefined
  /** When its worker last sent something about it. */
  lastSeen: number
}

export class WorkerLinks<Job extends Linked<Job>> {
  readonly #links = new Map<string, WorkerLink<Job>>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  find(worker: string): WorkerLink<Job> | undefined {
    return this.#links.get(worker)
  }

  link(job: Job, workload: Workload, worker: string): void {
    const now = this.#now()
    let link = this.#links.get(worker)
    if (link === undefined) {
      link = {
        id: worker,
        workload,
        jobs: new ReleasingMap(),
        lastSeen: now,
        pingedAt: undefined,
        missingSince: undefined
      }
      this.#links.set(worker, link)
    }
    link.jobs.add(job)
    job.worker = link
    job.lastSeen = now
  }

  unlink(job: Job): void {
    const link = job.worker
    if (link === undefined) return
    job.worker = undefined
    link.jobs.delete(job)
    if (link.jobs.size === 0) this.#links.delete(link.id)
  }

  markHeard(link: WorkerLink<Job>): void {
    alive(link, this.#now())
  }

  /** The worker's subject has no listener. The worker is gone if repeated pings find none for `workerGoneAfterMs`. */
  isGone(link: WorkerLink<Job>): boolean {
    link.missingSince ??= this.#now()
    return this.#now() - link.missingSince >= Timings.workerGoneAfterMs
  }

  all(): Iterable<WorkerLink<Job>> {
    return this.#links.values()
  }

  /** Whether any of these workers was heard within `heardWithinMs`. */
  hasHeard(isMeant: (worker: string) => boolean): boolean {
    const since = this.#now() - heardWithinMs
    for (const { id, lastSeen } of this.#links.values()) if (lastSeen >= since && isMeant(id)) return true
    return false
  }

  /** The silent workers, and for how long each has not answered a ping, in milliseconds. */
  *silent(): Generator<readonly [link: WorkerLink<Job>, silentMs: number]> {
    const now = this.#now()
    for (const link of this.#links.values()) {
      if (now - link.lastSeen <= Timings.pingAfterMs) continue
      link.pingedAt ??= now
      yield [link, now - link.pingedAt]
    }
  }

  /** Restarts all silences from now. */
  resetSilences(): void {
    const now = this.#now()
    for (const link of this.#links.values()) {
      alive(link, now)
      for (const job of link.jobs) job.lastSeen = now
    }
  }
}

const alive = (link: Omit<WorkerLink<never>, "jobs">, now: number): void => {
  link.lastSeen = now
  link.pingedAt = undefined
  link.missingSince = undefined
}
