/**
 * Watches the published jobs that no worker has claimed yet: confirms that the stream has them, and finds jobs that were delivered
 * to a worker that is probably dead.
 */
import type { Outbox } from "../../nats/Outbox.ts"
import * as Timings from "../protocol/Timings.ts"
import type { OpenJob } from "./OpenJob.ts"
import { confirm, queueState, type Verdict } from "./StreamRequests.ts"

/** How long a published job may be unclaimed before ingress confirms it with JetStream, in milliseconds. */
const confirmAfterMs = 300
const confirmTimeoutMs = 2_000

/** After how long a job that is still unclaimed is confirmed again, in milliseconds: a stream may lose what it has stored. */
const confirmAgainMs: Readonly<Record<Exclude<Verdict, "full">, number>> = {
  stored: 2_000,
  duplicate: 2_000,
  // NATS says at once that the stream has no leader
  leaderless: 200,
  unknown: 1_000
}

/** How much longer than the known workers unknown ones may take to reconnect and repeat their claims, in milliseconds. */
const unknownWorkersMs = 500

/** The queue counts as stalled if JetStream does not answer for this long, in milliseconds. */
const stalledAfterMs = 300

/** While a stream does not answer, one unclaimed job is confirmed this often, in milliseconds, to notice when it answers again. */
const probeEveryMs = 250

/** How long ingress must have known that an unclaimed job was delivered, or later jobs claimed, to treat it as overtaken. */
const overtakenForMs = 500

/** The shortest interval between two questions about the state of a queue, in milliseconds. */
const askEveryMs = 500

export interface PublicationsOptions {
  readonly outbox: Outbox
  /** The id of this ingress. */
  readonly ingress: string
  readonly now: () => number
  /** All open jobs. */
  readonly jobs: Iterable<OpenJob>
  readonly onConfirm: (job: OpenJob) => void
  /** The stream has no room for the job. */
  readonly onFull: (job: OpenJob) => void
}

export class Publications {
  readonly #options: PublicationsOptions

  constructor(options: PublicationsOptions) {
    this.#options = options
  }

  /** A new attempt at the job is being published. */
  published(job: OpenJob): void {
    const now = this.#options.now()
    job.confirmAt = now + confirmAfterMs
    job.confirmingSince = undefined
    job.storedAs = undefined
    job.deliveredBefore = job.pool.delivered.get(job.version) ?? 0
    number(job, now)
  }

  /**
   * Whether to start a new attempt: for `overtakenForMs` the job has been delivered but not claimed, later jobs have been claimed,
   * or not all workers read its version. If not, confirms the job when that is due. Runs at every tick for each unclaimed job.
   */
  isOvertaken(job: OpenJob): boolean {
    const now = this.#options.now()
    const { pool } = job
    if (job.confirmingSince !== undefined && now - job.confirmingSince > stalledAfterMs) this.#unanswered(pool, now)
    if (pool.askingSince !== undefined && now - pool.askingSince > stalledAfterMs) pool.stalled(now)
    if (pool.hasOvertaken(job.publication)) job.overtakenAt ??= now
    this.#lookForFormerWorkers(job, now)
    if (job.version <= pool.version) job.unreadableAt = undefined
    else job.unreadableAt ??= now
    const since = job.overtakenAt ?? job.unreadableAt
    const { state } = job
    // the last attempt stays in the stream, which redelivers it
    if (since !== undefined && state.state === "Published" && mayAttempt(job, state.attempt + 1)) {
      // a worker may be waiting for `go`, or may return the job
      if (now - since > overtakenForMs && now - job.publishedAt > Timings.overtakenAfterMs) return true
    }
    if (now >= job.confirmAt || (pool.awaitsStream && job.storedAs === undefined && now >= pool.probeAt)) {
      pool.probeAt = now + probeEveryMs
      this.#confirm(job)
    }
    this.#askForDelivery(job, now)
    return false
  }

  /** The NATS server may be a new one with empty streams, and claims may have been lost with the old one. */
  reconnected(): void {
    const at = this.#options.now() + Timings.reclaimMs
    for (const job of this.#unclaimed()) {
      job.confirmAt = at
      number(job, at)
    }
  }

  /** Since the reconnect, all known workers have repeated the claims that were lost, except those of version 2. */
  reclaimed(): void {
    const at = this.#options.now() + unknownWorkersMs
    for (const job of this.#unclaimed()) if (job.version > 2) job.confirmAt = Math.min(job.confirmAt, at)
  }

  *#unclaimed(): Generator<OpenJob> {
    for (const job of this.#options.jobs) if (job.state.state === "Published") yield job
  }

  /** The stream does not answer: it may be electing a leader. */
  #unanswered(pool: OpenJob["pool"], now: number): void {
    pool.stalled(now)
    pool.awaitsStream = true
  }

  /** The stream has answered. After a silence, it may have lost the jobs that were published meanwhile. */
  #answered(pool: OpenJob["pool"], now: number): void {
    pool.answeredAt = now
    if (!pool.awaitsStream) return
    pool.awaitsStream = false
    for (const each of this.#unclaimed()) {
      if (each.pool === pool && each.storedAs === undefined) each.confirmAt = Math.min(each.confirmAt, now)
    }
  }

  /**
   * Workers of release 0.1.0 do not announce themselves, and read only version 2 of the protocol. If they replace the last newer
   * workers, in a rollback, only their pull requests show that they are there.
   */
  #lookForFormerWorkers({ pool, publishedAt, request, version }: OpenJob, now: number): void {
    if (version === 2 || !pool.isDeserted || now - publishedAt < confirmAfterMs || now < pool.lookAt) return
    pool.lookAt = now + askEveryMs
    void queueState(this.#options.outbox, request, 2, confirmTimeoutMs).then((state) => {
      if ((state?.num_waiting ?? 0) > 0) pool.pulledFormer(this.#options.now())
    })
  }

  /** Finds the unclaimed jobs of this job's pool that were delivered. */
  #askForDelivery(job: OpenJob, now: number): void {
    const { pool, storedAs, version } = job
    if (storedAs === undefined || now < pool.askAt) return
    pool.askAt = now + askEveryMs
    pool.askingSince ??= now
    void queueState(this.#options.outbox, job.request, version, confirmTimeoutMs).then((state) => {
      pool.askingSince = undefined
      const delivered = state?.delivered?.stream_seq
      if (delivered === undefined) return pool.stalled(this.#options.now())
      pool.served()
      pool.delivered.set(version, delivered)
      for (const each of this.#unclaimed()) {
        if (each.pool !== pool || each.version !== version) continue
        if (each.storedAs === undefined || each.storedAs > delivered) continue
        each.overtakenAt ??= this.#options.now()
      }
    })
  }

  /**
   * Publishes an unclaimed job again under the same message id and evaluates JetStream's answer: it already had the job, has
   * stored it now, or could not.
   */
  #confirm(job: OpenJob): void {
    const { ingress, now, onConfirm, onFull, outbox } = this.#options
    const { overtakenAt, publication, publishedAt, state } = job
    if (state.state !== "Published") return
    const { attempt } = state
    const askedAt = now()
    job.confirmAt = askedAt + confirmTimeoutMs + confirmAgainMs.unknown
    job.confirmingSince ??= askedAt
    onConfirm(job)
    number(job, now())
    void confirm(outbox, job.toMessage(ingress, attempt), confirmTimeoutMs).then(({ sequence, verdict }) => {
      const hasNoAnswer = verdict === "leaderless" || verdict === "unknown"
      job.confirmingSince = undefined
      // the stream has answered a later question
      if (hasNoAnswer && job.pool.answeredAt > askedAt) return
      if (hasNoAnswer) this.#unanswered(job.pool, now())
      else this.#answered(job.pool, now())
      if (job.state.state !== "Published" || job.state.attempt !== attempt) return
      if (verdict === "full") return onFull(job)
      // the job keeps its place in the stream
      if (verdict === "duplicate") {
        Object.assign(job, { overtakenAt: overtakenAt ?? job.overtakenAt, publication, publishedAt })
      }
      job.storedAs = sequence ?? job.storedAs
      // the deadline bounds the retries
      job.confirmAt = now() + confirmAgainMs[verdict]
    })
  }
}

/**
 * Whether this attempt may be made now. A stream that has lost messages reuses sequences that its consumer has already delivered,
 * and a new message there is never delivered. The last attempt therefore waits until the stream is past those sequences, or the
 * console has recreated the consumer.
 */
const mayAttempt = ({ deliveredBefore, pool, storedAs = Infinity, version }: OpenJob, attempt: number): boolean =>
  attempt < Timings.maxAttempts ||
  (attempt === Timings.maxAttempts && (storedAs >= deliveredBefore || pool.delivered.get(version) !== deliveredBefore))

/** Gives the job a new publication number: its message is behind everything already in the stream. */
const number = (job: OpenJob, publishedAt: number): void => {
  job.publication = job.pool.numbered()
  job.publishedAt = publishedAt
  job.overtakenAt = undefined
}
