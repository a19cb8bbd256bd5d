/**
 * Watches the published jobs that no worker has claimed yet: confirms that the stream has them, and finds jobs that were delivered
 * to a worker that is probably dead.
 */
import type { Outbox } from "../../nats/Outbox.ts"
import * as Timings from "../protocol/Timings.ts"
import type { OpenJob } from "./OpenJob.ts"
import type { Publication, StreamQueue } from "./Publication.ts"
import { confirm, queueState, type Verdict } from "./StreamRequests.ts"

/** How long a published job may be unclaimed before ingress confirms it with JetStream, in milliseconds. */
const confirmAfterMs = 300
const confirmTimeoutMs = 2_000

/** After how long a job that is still unclaimed is confirmed again, in milliseconds: a stream may lose what it has stored. */
const confirmAgainMs: Readonly<Record<Exclude<Verdict, "full">, number>> = {
  stored: 2_000,
  duplicate: 2_000,
  // NATS says immediately that the stream has no leader
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
  /** A worker that is probably dead has the job, the stream has lost it, or not all workers read its version: attempt it again. */
  readonly onOvertaken: (job: OpenJob) => void
  /** The stream has no room for the job. */
  readonly onFull: (job: OpenJob) => void
}

export class Publications {
  readonly #options: PublicationsOptions

  constructor(options: PublicationsOptions) {
    this.#options = options
  }

  /** A new attempt at the job is being published. */
  published({ pool, publication, version }: OpenJob): void {
    const now = this.#options.now()
    publication.confirmAt = now + confirmAfterMs
    publication.confirmingSince = undefined
    publication.storedAs = undefined
    publication.deliveredBefore = pool.queue.delivered.get(version) ?? 0
    moveToEnd(publication, pool.queue, now)
  }

  /** A worker has claimed the job, so that earlier ones that are still unclaimed have been overtaken. */
  claimed({ pool: { queue }, publication }: OpenJob): void {
    queue.claimedUpTo = Math.max(queue.claimedUpTo, publication.number)
  }

  /** Runs at every tick for each unclaimed job: has it attempted again or confirmed when that is due. */
  watch(job: OpenJob): void {
    const now = this.#options.now()
    this.#observe(job, now)
    this.#lookForFormerWorkers(job, now)
    if (mustRepeat(job, now)) return this.#options.onOvertaken(job)
    const { pool: { queue }, publication: { confirmAt, storedAs } } = job
    if (now >= confirmAt || (queue.awaitsAnswer && storedAs === undefined && now >= queue.probeAt)) {
      queue.probeAt = now + probeEveryMs
      this.#confirm(job)
    }
    this.#askForDelivery(job, now)
  }

  /** The NATS server may be a new one with empty streams, and claims may have been lost with the old one. */
  reconnected(): void {
    const at = this.#options.now() + Timings.reclaimMs
    for (const { pool, publication } of this.#unclaimed()) {
      publication.confirmAt = at
      moveToEnd(publication, pool.queue, at)
    }
  }

  /** Since the reconnect, all known workers have repeated the claims that were lost, except those of version 2. */
  reclaimed(): void {
    const at = this.#options.now() + unknownWorkersMs
    for (const { publication, version } of this.#unclaimed()) {
      if (version > 2) publication.confirmAt = Math.min(publication.confirmAt, at)
    }
  }

  *#unclaimed(): Generator<OpenJob> {
    for (const job of this.#options.jobs) if (job.state.state === "Published") yield job
  }

  /** Notes what has changed since the last tick. */
  #observe({ pool, publication, version }: OpenJob, now: number): void {
    const { queue } = pool
    if (hasWaited(publication.confirmingSince, now)) this.#unanswered(pool, now)
    if (hasWaited(queue.askingSince, now)) pool.stalled(now)
    if (publication.number < queue.claimedUpTo) publication.overtakenAt ??= now
    if (version <= pool.version) publication.unreadableAt = undefined
    else publication.unreadableAt ??= now
  }

  /** The stream does not answer: it may be electing a leader. */
  #unanswered(pool: OpenJob["pool"], now: number): void {
    pool.stalled(now)
    pool.queue.awaitsAnswer = true
  }

  /** The stream has answered. After a silence, it may have lost the jobs that were published meanwhile. */
  #answered(pool: OpenJob["pool"], now: number): void {
    const { queue } = pool
    queue.answeredAt = now
    if (!queue.awaitsAnswer) return
    queue.awaitsAnswer = false
    for (const { pool: { queue: other }, publication } of this.#unclaimed()) {
      if (other === queue && publication.storedAs === undefined) {
        publication.confirmAt = Math.min(publication.confirmAt, now)
      }
    }
  }

  /**
   * Workers of release 0.1.0 do not announce themselves, and read only version 2 of the protocol. If they replace the last newer
   * workers, in a rollback, only their pull requests show that they are there.
   */
  #lookForFormerWorkers({ pool, publication, request, version }: OpenJob, now: number): void {
    if (version === 2 || !pool.isDeserted || now - publication.at < confirmAfterMs || now < pool.queue.lookAt) return
    pool.queue.lookAt = now + askEveryMs
    void queueState(this.#options.outbox, request, 2, confirmTimeoutMs).then((state) => {
      if ((state?.num_waiting ?? 0) > 0) pool.pulledFormer(this.#options.now())
    })
  }

  /** Finds the unclaimed jobs of this job's pool that were delivered. */
  #askForDelivery({ pool, publication: { storedAs }, request, version }: OpenJob, now: number): void {
    const { queue } = pool
    if (storedAs === undefined || now < queue.askAt) return
    queue.askAt = now + askEveryMs
    queue.askingSince ??= now
    void queueState(this.#options.outbox, request, version, confirmTimeoutMs).then((state) => {
      queue.askingSince = undefined
      const delivered = state?.delivered?.stream_seq
      if (delivered === undefined) return pool.stalled(this.#options.now())
      pool.served()
      queue.delivered.set(version, delivered)
      for (const each of this.#unclaimed()) {
        if (each.pool !== pool || each.version !== version) continue
        const { publication } = each
        if (publication.storedAs === undefined || publication.storedAs > delivered) continue
        publication.overtakenAt ??= this.#options.now()
      }
    })
  }

  /**
   * Publishes an unclaimed job again under the same message id and evaluates JetStream's answer: it already had the job, has
   * stored it now, or could not.
   */
  #confirm(job: OpenJob): void {
    const { ingress, now, onConfirm, onFull, outbox } = this.#options
    const { pool, publication, state } = job
    if (state.state !== "Published") return
    const { attempt } = state
    const { at, number, overtakenAt } = publication
    const askedAt = now()
    publication.confirmAt = askedAt + confirmTimeoutMs + confirmAgainMs.unknown
    publication.confirmingSince ??= askedAt
    onConfirm(job)
    moveToEnd(publication, pool.queue, now())
    void confirm(outbox, job.toMessage(ingress, attempt), confirmTimeoutMs).then(({ sequence, verdict }) => {
      const hasNoAnswer = verdict === "leaderless" || verdict === "unknown"
      publication.confirmingSince = undefined
      // the stream has answered a later question
      if (hasNoAnswer && pool.queue.answeredAt > askedAt) return
      if (hasNoAnswer) this.#unanswered(pool, now())
      else this.#answered(pool, now())
      if (job.state.state !== "Published" || job.state.attempt !== attempt) return
      if (verdict === "full") return onFull(job)
      // the job keeps its place in the stream
      if (verdict === "duplicate") {
        Object.assign(publication, { at, number, overtakenAt: overtakenAt ?? publication.overtakenAt })
      }
      publication.storedAs = sequence ?? publication.storedAs
      // the deadline bounds the retries
      publication.confirmAt = now() + confirmAgainMs[verdict]
    })
  }
}

const hasWaited = (since: number | undefined, now: number): boolean =>
  since !== undefined && now - since > stalledAfterMs

/**
 * Whether to start a new attempt: for `overtakenForMs` the job has been delivered but not claimed, later jobs have been claimed,
 * or not all workers read its version.
 */
const mustRepeat = (job: OpenJob, now: number): boolean => {
  const { publication: { at, overtakenAt, unreadableAt }, state } = job
  const since = overtakenAt ?? unreadableAt
  // the last attempt stays in the stream, which redelivers it
  if (since === undefined || state.state !== "Published" || !mayAttempt(job, state.attempt + 1)) return false
  // a worker may be waiting for `go`, or may return the job
  if (now - since <= overtakenForMs || now - at <= Timings.overtakenAfterMs) return false
  return true
}

/**
 * Whether this attempt may be made now. A stream that has lost messages reuses sequences that its consumer has already delivered,
 * and a new message there is never delivered. The last attempt therefore waits until the stream is past those sequences, or the
 * console has recreated the consumer.
 */
const mayAttempt = ({ pool, publication, version }: OpenJob, attempt: number): boolean => {
  const { deliveredBefore, storedAs = Infinity } = publication
  return attempt < Timings.maxAttempts ||
    (attempt === Timings.maxAttempts &&
      (storedAs >= deliveredBefore || pool.queue.delivered.get(version) !== deliveredBefore))
}

/** Gives a publication a new number: its message is behind everything already in the stream. */
const moveToEnd = (publication: Publication, queue: StreamQueue, at: number): void => {
  publication.number = ++queue.publications
  publication.at = at
  publication.overtakenAt = undefined
}
