/**
 * Tracks every open job of this ingress through its states and relays its answer.
 *
 * This is the hot path of ingress: plain callbacks on one wildcard subscription, and one tick for all deadlines. `JobState.ts`
 * decides; this file runs the commands.
 */
import type { Msg } from "@nats-io/nats-core"
import { type Clock, Latch } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import { Unavailable } from "../../contract/JobError.ts"
import type { Workload } from "../../contract/Operation.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import type { TenantBudget } from "../../bounds/TenantBudget.ts"
import { BundleReceiver, type Receipt } from "./BundleReceiver.ts"
import { decodeBundle } from "../protocol/Bundle.ts"
import { type Claim, decodeFrame, encodeControl, type Frame, isLast } from "../protocol/Frame.ts"
import { JobPool, type PoolLimits } from "./JobPool.ts"
import type { AnswerListener, JobHandle, JobRequest } from "./JobRequest.ts"
import type { JobSpans } from "./JobSpans.ts"
import { attemptOf, type Command, isOver, type JobEvent, step } from "../protocol/JobState.ts"
import * as Timings from "../protocol/Timings.ts"
import type { Nats } from "../../nats/Nats.ts"
import { OccupancyExchange } from "../fairness/OccupancyExchange.ts"
import { OpenJob } from "./OpenJob.ts"
import type { Outbox } from "../../nats/Outbox.ts"
import { encodeHeaders } from "../../nats/Outbox.ts"
import type { PoolOccupancy } from "../fairness/PoolOccupancy.ts"
import { ReleasingMap } from "../../bounds/ReleasingMap.ts"
import { Publications } from "./Publications.ts"
import { monotonicMs } from "../../bounds/MonotonicClock.ts"
import * as Subjects from "../protocol/Subjects.ts"
import { header } from "../protocol/Subjects.ts"
import type { WorkerLink } from "./WorkerLinks.ts"
import { WorkerWatch } from "./WorkerWatch.ts"

export interface QueueDepth {
  readonly waiting: number
  readonly unclaimed: number
  readonly running: number
}

type Pool = JobPool<OpenJob>

const queueStates = ["waiting", "unclaimed", "running"] as const

/** How long an ended job's number of attempts is remembered, in milliseconds: JetStream may redeliver earlier ones. */
const rememberedMs = 60_000
/** Maximum number of such jobs to remember. */
const maxRemembered = 10_000

export class JobTracker {
  readonly #nats: Nats["Service"]
  readonly #outbox: Outbox
  readonly #clock: Clock.Clock
  readonly #now: () => number
  readonly #spans: JobSpans | undefined
  readonly #limits: PoolLimits
  readonly #jobs = new ReleasingMap<OpenJob>()
  /** The latest attempt of each ended job that had several, and until when it is remembered; oldest first. */
  readonly #repeated = new Map<string, { readonly attempt: number; readonly until: number }>()
  readonly #pools = new Map<string, Pool>()
  readonly #poolsByOccupancy = new Map<PoolOccupancy, Pool>()
  readonly occupancyExchange: OccupancyExchange
  /** Open while there is work for `tick`. */
  readonly working = Latch.makeUnsafe(false)
  readonly #bundles: BundleReceiver
  readonly #workers: WorkerWatch
  readonly #publications: Publications
  readonly #gauges: Array<() => void> = []
  readonly #bodies: TenantBudget
  readonly #onPoison: (job: Readonly<Record<string, string>>) => void
  #lastTick: number
  #closed = false

  constructor(
    nats: Nats["Service"],
    clock: Clock.Clock,
    spans: JobSpans | undefined,
    limits: PoolLimits,
    bodies: TenantBudget,
    onPoison: (job: Readonly<Record<string, string>>) => void
  ) {
    this.#nats = nats
    this.#outbox = nats.outbox
    this.#clock = clock
    this.#now = monotonicMs(clock)
    this.#bundles = new BundleReceiver(this.#now)
    this.#workers = new WorkerWatch({
      nats,
      now: this.#now,
      serverOf: (worker) => this.#bundles.serverOf(worker),
      onLost: (link) => this.#workerLost(link),
      onAway: (link) => this.#workerAway(link),
      onStallEnd: () => this.occupancyExchange.resetSilences(),
      onAllHeard: () => {
        this.#outbox.release()
        this.#publications.reclaimed()
      }
    })
    this.#publications = new Publications({
      outbox: nats.outbox,
      ingress: nats.id,
      now: this.#now,
      jobs: this.#jobs,
      onConfirm: ({ span }) => span === undefined ? undefined : this.#spans?.event(span, "published again"),
      onOvertaken: (job) => this.#apply(job, { event: "overtaken" }),
      onFull: (job) => this.#apply(job, { event: "failed", error: job.pool.full(job.request) })
    })
    this.#spans = spans
    this.#limits = limits
    this.#bodies = bodies
    this.#onPoison = onPoison
    nats.subscribe(Subjects.replyInbox(nats.id), (message) => this.#receive(message))
    this.occupancyExchange = new OccupancyExchange(nats, this.#now, (occupancy) => {
      const pool = this.#poolsByOccupancy.get(occupancy)
      if (pool !== undefined) this.#admit(pool)
    })
    nats.onReconnect(() => this.#reconnected())
    this.#lastTick = this.#now()
  }

  submit(request: JobRequest, listener: AnswerListener): JobHandle {
    const patienceMs = request.deadline - this.#clock.currentTimeMillisUnsafe()
    const pool = this.#pool(request.workload, request.pool)
    const job = new OpenJob(request, listener, pool, this.#now() + patienceMs)
    const refusal = this.#refusal(job)
    if (refusal !== undefined) {
      job.state = { state: "Failed" }
      setImmediate(() => listener.onError(refusal))
    } else {
      this.#jobs.add(job)
      this.#wake()
      this.#beginSpan(job, 1)
      this.#admit(job.pool)
    }
    const { id } = job
    // by id: a handle must not keep the body of a job that has ended in memory
    return {
      id,
      taken: (bytes) => this.#whileOpen(id, (job) => this.#taken(job, bytes)),
      flushed: () => this.#whileOpen(id, (job) => this.#apply(job, { event: "flushed" })),
      cancel: () => this.#whileOpen(id, (job) => this.#apply(job, { event: "clientGone" }))
    }
  }

  /** Takes a step of a job, unless the job has ended. */
  #whileOpen(id: string, step: (job: OpenJob) => void): void {
    const job = this.#jobs.get(id)
    return job === undefined ? undefined : step(job)
  }

  depth(workload: Workload, pool: string): QueueDepth {
    const { running, unclaimed, waiting } = this.#pool(workload, pool)
    return { waiting, unclaimed, running }
  }

  close(): void {
    this.#closed = true
    for (const job of this.#jobs) this.#apply(job, { event: "shutdown" })
    for (const forget of this.#gauges) forget()
    this.occupancyExchange.close()
    this.#outbox.flush()
  }

  #pool(workload: Workload, name: string): Pool {
    const key = `${workload}.${name}`
    let pool = this.#pools.get(key)
    if (pool === undefined) {
      const occupancy = this.occupancyExchange.pool(workload, name)
      pool = new JobPool(this.#limits, occupancy)
      this.#poolsByOccupancy.set(occupancy, pool)
      Metrics.update(Metrics.redispatches(workload, name), 0)
      Metrics.update(Metrics.poisonJobs(workload, name), 0)
      for (const state of queueStates) {
        const gauge = Metrics.queueJobs(workload, name, state)
        this.#gauges.push(Metrics.observeUnsafe(gauge, () => this.depth(workload, name)[state]))
      }
      this.#pools.set(key, pool)
    }
    return pool
  }

  #refusal(job: OpenJob): JobError | undefined {
    const { body, reservedBytes: reserved = 0, tenant } = job.request
    const isFull = body.length > reserved && !this.#bodies.reserve(tenant, body.length - reserved)
    const refusal = isFull ? job.pool.full(job.request) : this.#enter(job)
    if (refusal !== undefined) this.#bodies.release(tenant, isFull ? reserved : body.length)
    return refusal
  }

  #enter(job: OpenJob): JobError | undefined {
    const now = this.#now()
    return this.#closed ? Unavailable.briefly() : job.pool.enter(job, job.request, job.expiresAt - now, now)
  }

  /** Publishes waiting jobs while the window has room. */
  #admit(pool: Pool): void {
    while (this.#nats.isConnected() && !this.#closed) {
      const job = pool.next(this.#now())
      if (job === undefined) return
      this.#apply(job, { event: "admitted" })
    }
  }

  #apply(job: OpenJob, event: JobEvent, sender?: string): void {
    const before = job.state
    const { commands, next } = step(before, event)
    job.state = next
    if (!("worker" in next)) job.setWait(undefined)
    const wasUnclaimed = before.state === "Published"
    const isUnclaimed = next.state === "Published"
    if (isUnclaimed && !wasUnclaimed) job.pool.published()
    if (wasUnclaimed && !isUnclaimed) job.pool.unpublished()
    if (before.state === "Queued") {
      if (isUnclaimed) job.pool.admitted(job.request)
      else job.pool.leave(job, job.request)
    }
    if (before.state === "Published" && next.state === "Claimed") {
      if (job.span !== undefined) this.#spans?.end(job.span, "claimed")
      this.#workers.links.link(job, job.request.workload, next.worker)
      job.listener.onClaim()
    }
    if (isOver(next) && !isOver(before)) {
      if ("worker" in before && before.attempt > 1) {
        this.#repeated.set(job.id, { attempt: before.attempt, until: this.#now() + rememberedMs })
        const [oldest = job.id] = this.#repeated.keys()
        if (this.#repeated.size > maxRemembered) this.#repeated.delete(oldest)
      }
      this.#endSpan(job, commands)
      this.#workers.links.unlink(job)
      this.#jobs.delete(job)
      this.#bodies.release(job.request.tenant, job.request.body.length)
      job.pool.ended(job.request, before.state !== "Queued")
    }
    // last, because a listener may call back before it returns
    for (const command of commands) this.#run(job, command, sender)
    if ((wasUnclaimed && !isUnclaimed) || (isOver(next) && !isOver(before))) this.#admit(job.pool)
  }

  #run(job: OpenJob, command: Command, sender: string | undefined): void {
    switch (command.command) {
      case "publish":
        if (command.attempt > 1) this.#beginSpan(job, command.attempt)
        if (job.span !== undefined) this.#spans?.event(job.span, "published")
        this.#workers.links.unlink(job)
        job.version = job.pool.version
        job.sequence = 0
        job.taken = 0
        job.reportedTaken = 0
        this.#publications.published(job)
        return this.#outbox.publish(...job.toMessage(this.#nats.id, command.attempt))
      case "go":
        if (sender !== undefined) {
          this.#outbox.publish(sender, undefined, encodeControl({ type: "go", redispatch: command.redispatch }))
        }
        return
      case "refuse":
        if (sender !== undefined) {
          this.#outbox.publish(
            sender,
            undefined,
            encodeControl({ type: "no", fate: isOver(job.state) ? "over" : "taken" })
          )
        }
        return
      case "cancel":
        return this.#outbox.publish(
          Subjects.controlSubject(job.request.workload, command.worker, job.id, command.attempt),
          undefined,
          encodeControl({ type: "cancel", fate: command.isMoved ? "moved" : "over" })
        )
      case "restart":
        Metrics.update(Metrics.redispatches(job.request.workload, job.request.pool), 1)
        return job.listener.onRestart()
      case "fail":
        if (command.error._tag === "PoisonJob") this.#reportPoison(job)
        return job.listener.onError(command.error)
    }
  }

  #reportPoison({ id, request: { operation, parent, pool, tenant, workload } }: OpenJob): void {
    Metrics.update(Metrics.poisonJobs(workload, pool), 1)
    this.#onPoison({ job: id, operation, tenant, ...(parent === undefined ? {} : { traceId: parent.traceId }) })
  }

  #beginSpan(job: OpenJob, attempt: number): void {
    const { body, model, operation, parent, pool, workload } = job.request
    if (this.#spans === undefined || parent === undefined) return
    const subject = Subjects.jobSubject(workload, pool, job.pool.version)
    job.span = this.#spans.begin(
      { id: job.id, subject, operation, model, bodySize: body.length },
      attempt,
      parent,
      job.span
    )
  }

  /** Ends the span of a job that no worker has claimed; a claim has already ended it. */
  #endSpan(job: OpenJob, commands: ReadonlyArray<Command>): void {
    if (job.span === undefined) return
    const failure = commands.find((command) => command.command === "fail")
    this.#spans?.end(job.span, failure?.error ?? "cancelled")
  }

  #receive(message: Msg): void {
    const { attempt, job } = Subjects.parseReply(message.subject)
    const workload = Subjects.workloadOf(message.subject)
    if (job === Subjects.workerToken && message.headers === undefined) {
      return this.#receiveBundle(attempt, workload, message.data)
    }
    const frame = decodeFrame(message)
    if (frame === undefined) return
    if (job === Subjects.workerToken) return this.#hear(attempt, workload, frame)
    if (message.reply === undefined || message.reply === "") return
    const { worker } = Subjects.parseControl(message.reply)
    this.#receiveFrame(job, Number(attempt), workload, worker, frame, message.data, message.reply)
  }

  #receiveBundle(worker: string, workload: Workload, data: Uint8Array): void {
    const bundle = decodeBundle(data)
    if (bundle === undefined) return
    this.#workers.heard(worker)
    const { isNext, receipt } = this.#bundles.receive(worker, workload, bundle, data.length)
    if (receipt !== undefined) this.#send(worker, workload, receipt)
    if (!isNext) return
    for (const entry of bundle.entries) {
      if (entry.type === "server") this.#bundles.located(worker, entry.server)
      else if (entry.type === "claim") this.#claimed(worker, workload, entry.claim)
      else this.#receiveFrame(entry.job, entry.attempt, workload, worker, entry.frame, entry.payload)
    }
  }

  #receiveFrame(
    id: string,
    attempt: number,
    workload: Workload,
    worker: string,
    frame: Frame,
    bytes: Uint8Array,
    reply?: string
  ): void {
    const job = this.#jobs.get(id)
    // built on demand: ingress answers few frames
    const control = () => reply ?? Subjects.controlSubject(workload, worker, id, attempt)
    if (job === undefined || attemptOf(job.state) !== attempt) {
      // after its last frame a worker has nothing to stop
      if (!isLast(frame)) this.#refuse(control(), frame.type === "claim", id, attempt)
      return
    }
    if (job.worker !== undefined && job.worker.id !== worker) {
      return this.#refuse(control(), frame.type === "claim", id, attempt)
    }
    if (frame.type === "noResponders" || frame.type === "claims") return
    if (frame.type === "claim" || job.state.state === "Published") {
      // the first frame replaces a lost claim
      const redispatch = "redispatch" in frame ? frame.redispatch : "mayHaveBeenSent"
      const awaits = frame.type === "claim"
      if (job.state.state === "Published") this.#noteClaim(job, worker, Number.NaN)
      this.#apply(job, { event: "claimed", attempt, worker, redispatch, awaits }, control())
      if (frame.type === "claim") return
    }
    if (job.worker === undefined) return
    this.#workers.links.markHeard(job.worker)
    job.lastSeen = job.worker.lastSeen
    if (frame.type === "pull") return this.#sendBody(job, attempt, frame.offset, frame.length)
    if (frame.type === "pong") return
    if (frame.type === "waits" || frame.type === "works") {
      job.setWait(frame.type === "waits" ? frame.provider : undefined)
      return this.#admit(job.pool)
    }
    if (frame.sequence !== job.sequence) return this.#apply(job, { event: "frameLost" })
    if (frame.type === "heartbeat") {
      // a silent worker may be waiting for credit that was lost
      if (job.taken > 0) this.#sendCredit(job)
      return
    }
    job.sequence++
    // the end of the wait may be among bundles that the worker had to give up
    job.setWait(undefined)
    if (frame.type === "error") {
      // a worker that shuts down reports the loss itself; another may run the job
      return this.#apply(
        job,
        frame.error._tag === "WorkerLost"
          ? { event: "workerLost", mayBePoison: false }
          : { event: "failed", error: frame.error }
      )
    }
    if (frame.head !== undefined) job.listener.onStart(frame.head)
    // the listener may cancel the job when it sees the head
    if (isOver(job.state)) return
    if (bytes.length > 0) job.listener.onChunk(bytes, frame.end !== undefined)
    if (frame.end !== undefined) {
      this.#apply(job, { event: "ended" })
      job.listener.onEnd(frame.end.usage)
    }
  }

  /** Tells a worker that it does not have the job: `cancel` if it waits for `go` and the job is still open, `no` otherwise. */
  #refuse(sender: string, awaits: boolean, id: string, attempt: number): void {
    const job = this.#jobs.get(id)
    const type = awaits && job !== undefined ? "cancel" : "no"
    // the worker of the last attempt meters the job, so earlier ones must learn that the job has moved
    const isOld = job === undefined
      ? attempt < (this.#repeated.get(id)?.attempt ?? 0)
      : attempt !== attemptOf(job.state)
    const fate = isOld ? "moved" : job === undefined ? "over" : "taken"
    this.#outbox.publish(sender, undefined, encodeControl({ type, fate }))
  }

  /** Handles messages about a worker as a whole: from the worker itself, or the NATS server's `503`. */
  #hear(worker: string, workload: Workload, frame: Frame): void {
    if (frame.type === "noResponders") return this.#workers.missing(worker)
    this.#workers.heard(worker)
    if (frame.type === "claims") { for (const claim of frame.claims) this.#claimed(worker, workload, claim) }
    if (frame.type === "pong") this.#abandoned(worker, frame.next)
  }

  #claimed(worker: string, workload: Workload, { attempt, behind, job: id, redispatch }: Claim): void {
    const sender = Subjects.controlSubject(workload, worker, id, attempt)
    const job = this.#jobs.get(id)
    if (job === undefined || attemptOf(job.state) !== attempt) return this.#refuse(sender, false, id, attempt)
    if (job.state.state === "Published") this.#noteClaim(job, worker, behind)
    this.#apply(job, { event: "claimed", attempt, worker, redispatch, awaits: false }, sender)
  }

  /** A worker has claimed a published job, with `behind` jobs left in the stream. */
  #noteClaim(job: OpenJob, worker: string, behind: number): void {
    this.#publications.claimed(job)
    job.pool.claimed(worker, job.version, behind, this.#now())
  }

  /** The worker has given up its jobs, because this ingress was unreachable for too long. A late pong does not concern newer jobs. */
  #abandoned(worker: string, next: number): void {
    if (this.#bundles.hasReceived(worker, next)) return
    for (const job of [...this.#workers.links.find(worker)?.jobs ?? []]) {
      if (job.version > 2) this.#apply(job, { event: "workerLost", mayBePoison: false })
    }
  }

  /** Sends a worker a receipt for its bundles, even while the outbox holds other messages: both sides depend on receipts. */
  #send(worker: string, workload: Workload, receipt: Receipt): void {
    this.#outbox.publishNow(Subjects.linkSubject(workload, worker, this.#nats.id), undefined, encodeControl(receipt))
  }

  #sendBody(job: OpenJob, attempt: number, offset: number, length: number): void {
    if (job.worker === undefined) return
    const { body, workload } = job.request
    const until = Math.min(offset + length, body.length)
    const subject = Subjects.bodySubject(workload, job.worker.id, job.id, attempt)
    for (let at = offset; at < until; at += Timings.frameBytes) {
      const slice = body.subarray(at, Math.min(at + Timings.frameBytes, until))
      this.#outbox.publish(subject, slice, encodeHeaders({ [header.offset]: at }))
    }
  }

  #taken(job: OpenJob, bytes: number): void {
    job.taken += bytes
    // most answers are smaller than this and need no credit
    if (job.taken - job.reportedTaken >= Timings.windowBytes / 4) this.#sendCredit(job)
  }

  #sendCredit(job: OpenJob): void {
    const attempt = attemptOf(job.state)
    if (job.worker === undefined || attempt === undefined) return
    const subject = Subjects.controlSubject(job.request.workload, job.worker.id, job.id, attempt)
    this.#outbox.publish(subject, undefined, encodeControl({ type: "credit", bytes: job.taken }))
    job.reportedTaken = job.taken
  }

  #workerLost(link: WorkerLink<OpenJob>): void {
    this.occupancyExchange.workerLost(link.id)
    for (const job of [...link.jobs]) this.#apply(job, { event: "workerLost", mayBePoison: true })
  }

  /** The worker, or its NATS server, is frozen. Its jobs move to other workers if that is safe; the rest wait for it. */
  #workerAway(link: WorkerLink<OpenJob>): void {
    for (const job of [...link.jobs]) {
      const { state } = job
      if (state.state === "Claimed" && state.redispatch !== "mayHaveBeenSent" && state.attempt < Timings.maxAttempts) {
        this.#apply(job, { event: "workerLost", mayBePoison: false })
      }
    }
  }

  /** Checks all deadlines and silences. Runs every `tickMs` milliseconds, without open jobs every `idleTickMs`. */
  tick(): void {
    const now = this.#now()
    const isIdle = this.#jobs.size === 0 && !this.occupancyExchange.hasNews && this.#nats.isAlone()
    if (isIdle) this.working.closeUnsafe()
    for (const [worker, workload, receipt] of this.#bundles.due()) this.#send(worker, workload, receipt)
    // if this process itself was stalled, silence does not mean that others are lost
    const sinceMs = now - this.#lastTick
    const wasStalled = sinceMs > 4 * Timings.tickMs + (isIdle ? Timings.idleTickMs : Timings.tickMs)
    this.#lastTick = now
    for (const [id, { until }] of this.#repeated) {
      if (until > now) break
      this.#repeated.delete(id)
    }
    // while NATS is unreachable no job is served, which must not lower the measured rate
    if (this.#nats.isSettled()) { for (const pool of this.#pools.values()) pool.tick(now, sinceMs) }
    const isStalled = this.#workers.isServerStalled()
    if (wasStalled || !this.#nats.isSettled()) this.occupancyExchange.resetSilences()
    else if (!isStalled) this.occupancyExchange.expire()
    if (wasStalled) this.#workers.links.resetSilences()
    if (this.#nats.isSettled() && !wasStalled && !isStalled) this.#workers.check()
    const silenceMs = this.#nats.isConnected() && !isStalled ? Timings.jobSilenceMs : Timings.awaySilenceMs
    for (const job of this.#jobs) {
      const { state } = job.state
      if (state !== "Queued" && state !== "Published") {
        if (now - job.lastSeen > silenceMs) this.#apply(job, { event: "workerLost", mayBePoison: true })
      } else if (now >= job.expiresAt) {
        this.#apply(job, { event: "deadline", retryAfterMs: job.pool.retryAfterMs(job.request) })
      } else if (state === "Published") this.#publications.watch(job)
    }
  }

  /** Starts to tick every `tickMs` again. */
  #wake(): void {
    if (this.working.isOpen()) return
    this.#lastTick = this.#now()
    this.working.openUnsafe()
  }

  #reconnected(): void {
    this.#publications.reconnected()
    this.#workers.reconnected()
    for (const pool of this.#pools.values()) this.#admit(pool)
  }
}
