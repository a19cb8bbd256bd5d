/**
 * The published jobs that no worker has claimed yet: confirms that their stream has them, and finds those that were delivered to a
 * worker that is likely dead.
 */
import type { Outbox } from "../../nats/Outbox.ts"
import * as Timings from "../protocol/Timings.ts"
import type { OpenJob } from "./OpenJob.ts"
import { confirm, queueState, type Verdict } from "./Publication.ts"

/** How long a published job may be unclaimed before ingress confirms it with JetStream, in milliseconds. */
const confirmAfterMs = 300
const confirmTimeoutMs = 2_000

/** When a job that is still unclaimed is confirmed again, in milliseconds: a stream may lose what it has stored. */
const confirmAgainMs: Readonly<Record<Exclude<Verdict, "full">, number>> = {
  stored: 2_000,
  duplicate: 2_000,
  // NATS says at once that the stream has no leader
  leaderless: 200,
  unknown: 1_000
}

/** How much longer than the known workers others may take to reconnect and repeat their claims, in milliseconds. */
const unknownWorkersMs = 500

/** Without an answer for this long, in milliseconds, the queue is stalled. */
const stalledAfterMs = 300

/** How often one unclaimed job is confirmed while its stream does not answer, in milliseconds, to notice when it does again. */
const probeEveryMs = 250

/** An unclaimed job counts as overtaken if it has been known for this long to be delivered, or later jobs claimed. */
const overtakenForMs = 500

/** How often ingress asks at most up to where a queue has been delivered, in milliseconds. */
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

  /** The job is published for the first time, or in a new attempt. */
  published(job: OpenJob): void {
    const now = this.#options.now()
    job.confirmAt = now + confirmAfterMs
    job.confirmingSince = undefined
    job.storedAs = undefined
    job.deliveredBefore = job.pool.delivered.get(job.version) ?? 0
    number(job, now)
  }

  /**
   * Whether the job was delivered, or later ones were claimed, or no worker reads its version, for a while; if not, confirms it
   * when that is due. Runs at every tick for each unclaimed job.
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

  /** The server may be new, with empty streams, and claims may be lost with the old one. */
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

  /** The stream may be electing a leader. */
  #unanswered(pool: OpenJob["pool"], now: number): void {
    pool.stalled(now)
    pool.awaitsStream = true
  }

  /** The first answer of a stream after a silence: it may have lost the jobs that were published meanwhile. */
  #answered(pool: OpenJob["pool"], now: number): void {
    pool.answeredAt = now
    if (!pool.awaitsStream) return
    pool.awaitsStream = false
    for (const each of this.#unclaimed()) {
      if (each.pool === pool && each.storedAs === undefined) each.confirmAt = Math.min(each.confirmAt, now)
    }
  }

  /**
   * Workers of version 0.1.0 do not announce themselves, and read only version 2. If they replace the last newer ones, in a rollback,
   * only their pull requests show that they are there.
   */
  #lookForFormerWorkers({ pool, publishedAt, request, version }: OpenJob, now: number): void {
    if (version === 2 || !pool.isDeserted || now - publishedAt < confirmAfterMs || now < pool.lookAt) return
    pool.lookAt = now + askEveryMs
    void queueState(this.#options.outbox, request, 2, confirmTimeoutMs).then((state) => {
      if ((state?.num_waiting ?? 0) > 0) pool.pulledFormer(this.#options.now())
    })
  }

  /** Finds unclaimed jobs of the same pool that were delivered. */
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
   * Publishes an unclaimed job again under the same message id and waits for JetStream's answer: whether it had the job already,
   * has stored the job now, or could not.
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
      // the stream has answered later questions
      if (hasNoAnswer && job.pool.answeredAt > askedAt) return
      if (hasNoAnswer) this.#unanswered(job.pool, now())
      else this.#answered(job.pool, now())
      if (job.state.state !== "Published" || job.state.attempt !== attempt) return
      if (verdict === "full") return onFull(job)
      // it keeps its place in the stream
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
 * Whether this attempt may be made now. If the stream has lost messages, new ones are stored where the queue was already delivered,
 * and never delivered: the last attempt waits until it would be stored further, or the console has recreated the consumer.
 */
const mayAttempt = ({ deliveredBefore, pool, storedAs = Infinity, version }: OpenJob, attempt: number): boolean =>
  attempt < Timings.maxAttempts ||
  (attempt === Timings.maxAttempts && (storedAs >= deliveredBefore || pool.delivered.get(version) !== deliveredBefore))

/** Numbers the publication, which is behind everything already in the stream. */
const number = (job: OpenJob, publishedAt: number): void => {
  job.publication = job.pool.numbered()
  job.publishedAt = publishedAt
  job.overtakenAt = undefined
}
