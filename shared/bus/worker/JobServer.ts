/**
 * The worker's side of the job bus: takes jobs from the queue, sends heartbeats while they run, and passes ingress's controls to
 * them. The caller supplies what a job does.
 */
import type { Msg } from "@nats-io/nats-core"
import { Clock, Config, Context, Effect, Latch, Layer, type Scope } from "effect"
import { atLeast } from "../../contract/Fields.ts"
import type { Workload } from "../../contract/Operation.ts"
import type { AnswerLost } from "../../contract/JobError.ts"
import { Cancelled, WorkerLost } from "../../contract/JobError.ts"
import { bodyBudgetBytes } from "../../bounds/TenantBudget.ts"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { ReleasingMap } from "../../bounds/ReleasingMap.ts"
import { BodyPull } from "./BodyPull.ts"
import { BundleSender } from "./BundleSender.ts"
import { SingleFrames } from "./SingleFrames.ts"
import type { Redispatch } from "../protocol/Frame.ts"
import { decodeControl, encodeFrame } from "../protocol/Frame.ts"
import { JobReply, type Reply } from "./JobReply.ts"
import type { PulledJob } from "./JobSource.ts"
import { JobSource } from "./JobSource.ts"
import * as Timings from "../protocol/Timings.ts"
import { memoryLimit } from "../../bounds/MemoryLimit.ts"
import { Nats } from "../../nats/Nats.ts"
import { encodeSlots } from "../fairness/Occupancy.ts"
import * as PoolServer from "./PoolServer.ts"
import { every, everyWhile, monotonicMs } from "../../bounds/MonotonicClock.ts"
import * as Subjects from "../protocol/Subjects.ts"

/** A job that this worker runs. */
export interface ServedJob<R extends Reply = Reply> {
  readonly pulled: PulledJob
  readonly reply: R
  /**
   * Tells ingress that this worker has the job, and returns when work on it may start. Waits for ingress to agree if `redispatch`
   * is `mayHaveBeenSent`, or if another worker may have the job: it has waited long, is a repetition, or this process was stalled.
   */
  readonly claim: (redispatch: Redispatch) => Effect.Effect<void, Cancelled>
  /**
   * For a job claimed as `unsent`: asks ingress to dispatch the job to no other worker from now on, and returns when ingress has
   * agreed. Sending the claim is not enough: if the connection has just died, the claim never arrives and ingress dispatches the
   * job again. Fails if ingress refuses, is silent for 6 s while NATS is connected, or for 30 s in all. May run repeatedly and
   * concurrently.
   */
  readonly commit: Effect.Effect<void, Cancelled>
  /** When the worker received the job, by the clock of `now`. */
  readonly takenAt: number
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
  /**
   * Keeps the job unacknowledged after it has ended, until the returned function is called. The job's slot becomes free
   * nevertheless. If this worker dies before that call, JetStream redelivers the job.
   */
  readonly hold: () => () => void
  /**
   * The job begins to wait for a provider, until the returned function is called. After `Timings.waitMs` it frees its slot, and ingress
   * learns of the wait.
   */
  readonly onWait: (provider: string) => () => void
  /** The whole request body, pulled from ingress if it did not come with the job. */
  readonly body: Effect.Effect<Uint8Array, AnswerLost>
}

export interface ServeOptions extends Omit<PoolServer.PoolOptions, "queue"> {
  readonly workload: Workload
  /** Runs one job and ends its reply. Interrupted if ingress cancels the job. */
  readonly run: (job: ServedJob<JobReply>) => Effect.Effect<void>
}

/** If no check has run for this long, in milliseconds, this process was stalled or idle. */
const stalledMs = 750
/** How long an ended job is remembered, in milliseconds: longer than ingress waits for a silent worker. */
const rememberedMs = 60_000
/** The claim to a job whose body has at most this many bytes may wait for other messages to leave with. */
const smallBodyBytes = 16 * 1024
/** After how long a job that another worker runs is delivered again, in milliseconds: ingress may have given up that worker. */
const takenMs = 5_000
/** The least memory for bodies that come with their jobs, in bytes: for 64 of the largest. */
const leastInlineBytes = 64 * Timings.inlineBodyBytes
/** How long the last messages of a closing server may take to leave, in milliseconds. */
const flushWithinMs = 2_000

export class JobServer extends Context.Service<JobServer, {
  /**
   * Serves a pool until the scope closes. Closing the scope takes no more jobs and waits until the running ones have ended. The
   * first pull waits until the queue exists.
   */
  readonly serve: (options: ServeOptions) => Effect.Effect<PoolServer.Serving, never, Scope.Scope>
}>()("shared/bus/worker/JobServer") {
  /**
   * Reads `WORKER_BODY_BYTES`: how many bytes the pulled bodies of running jobs may take together. Those that come with their jobs may
   * take half as many beside them, at least 32 MiB.
   */
  static readonly layer = Layer.effect(
    JobServer,
    Effect.gen(function*() {
      const bodyBytes = yield* Config.schema(atLeast(1), "WORKER_BODY_BYTES").pipe(
        Config.withDefault(bodyBudgetBytes(memoryLimit(), 8))
      )
      const nats = yield* Nats
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<Nats>()
      return JobServer.of({
        serve: (options) =>
          Effect.suspend(() => {
            const server = new Server(nats, { ...options, bodyBytes }, clock, context)
            // not the whole context: it contains this layer's scope, but jobs must end with the caller's scope
            return Effect.provideService(PoolServer.serve({ ...options, queue: options.workload }, server), Nats, nats)
          })
      })
    })
  )
}

/** A job that this worker runs, or that has ended and is held. */
interface Running {
  /** `attemptKey`. */
  readonly id: string
  readonly job: PulledJob
  readonly reply: JobReply
  /** `undefined` before the job's first wait. */
  run: Fiberless.Run | undefined
}

const claimAndWait = (reply: JobReply, redispatch: Redispatch): Effect.Effect<void, Cancelled> =>
  Effect.callback<void, Cancelled>((resume) => {
    reply.claimAndWait(redispatch, (go) => resume(go ? Effect.void : Effect.fail(new Cancelled())))
  }).pipe(Effect.timeoutOrElse({ duration: Timings.awaySilenceMs, orElse: () => Effect.fail(new Cancelled()) }))

const commit = (reply: JobReply): Effect.Effect<void, Cancelled> =>
  Effect.suspend(() => reply.isCommitted ? Effect.void : claimAndWait(reply, "mayHaveBeenSent"))

class Server implements PoolServer.PoolServer {
  readonly #nats: Nats["Service"]
  readonly #options: ServeOptions & { readonly bodyBytes: number }
  readonly #clock: Clock.Clock
  readonly #now: () => number
  readonly #context: Context.Context<never>
  readonly source: JobSource
  /** The channels for jobs in protocol versions 2 and 3. */
  readonly #frames: SingleFrames
  readonly #bundles: BundleSender
  /** Ingresses that have not answered since the reconnect. */
  readonly #unheard = new Set<string>()
  readonly #running = new ReleasingMap<Running>()
  readonly #bodies: BodyPull
  /** Runs when the last running job has ended. */
  #onIdle: (() => void) | undefined
  /** Ingresses whose subjects have no listener, and since when. */
  readonly #missingSince = new Map<string, number>()
  /** Jobs that have not started because there is no room for their bodies, in order of arrival. */
  readonly #waiting = new Map<string, PulledJob>()
  /** The total size of the pulled bodies, including those in transfer, in bytes. */
  #bodyBytes = 0
  /** The total size of the bodies that came with running jobs, in bytes. */
  #inlineBytes = 0
  /**
   * Committed jobs that have ended recently. If both the end and the acknowledgement of one are lost, JetStream redelivers it here,
   * and its ingress, which still believes that this worker runs it, would let it run again.
   */
  #ended = new Set<string>()
  #endedBefore = new Set<string>()
  #forgottenAt: number
  /** Jobs that have ended but are held. */
  readonly #held = new ReleasingMap<Running>()
  readonly #released = Latch.makeUnsafe(true)
  #checkedAt: number
  #stalledAt = Number.NEGATIVE_INFINITY

  constructor(
    nats: Nats["Service"],
    options: ServeOptions & { readonly bodyBytes: number },
    clock: Clock.Clock,
    context: Context.Context<never>
  ) {
    this.#nats = nats
    this.#options = options
    this.#clock = clock
    this.#now = monotonicMs(clock)
    this.#bodies = new BodyPull(this.#now)
    this.#forgottenAt = this.#checkedAt = this.#now()
    this.#context = context
    const { id: worker, outbox } = nats
    const { workload } = options
    this.#frames = new SingleFrames(outbox, workload, worker)
    const onTooLarge = (job: string, bytes: number) => {
      Effect.runForkWith(context)(Effect.logError("part of an answer is too large for NATS", { job, bytes }))
    }
    this.#bundles = new BundleSender({ outbox, workload, worker, now: this.#now, server: nats.server, onTooLarge })
    this.source = new JobSource({
      ...options,
      queue: workload,
      nats,
      now: this.#now,
      room: () => this.#room(),
      onJob: (job) => this.#begin(job)
    })
  }

  readonly open = Effect.suspend(() => {
    const { id } = this.#nats
    this.#nats.subscribe(Subjects.controlInbox(this.#options.workload, id), (message) => this.#control(message))
    this.#nats.subscribe(Subjects.announceSubject(this.#options.workload), () => this.#announce())
    this.#nats.subscribe(Subjects.bodyInbox(this.#options.workload, id), (message) => this.#bodies.receive(message))
    return Effect.all([
      everyWhile(this.source.working, Timings.announcementMs.every, Timings.idleTickMs, () => this.#announce()),
      every(Timings.heartbeatMs, () => {
        // without a connection the outbox would queue every heartbeat, but one after the reconnect is enough
        if (this.#nats.isConnected()) this.#beat()
        const now = this.#now()
        for (const [ingress, since] of this.#missingSince) {
          if (now - since > Timings.ingressGoneAfterMs + Timings.heartbeatMs) this.#missingSince.delete(ingress)
        }
      })
    ], { discard: true })
  })

  /** Tells ingresses and the queue that all jobs here are alive. */
  #beat(): void {
    for (const { job, reply } of this.#running) {
      reply.heartbeat()
      job.working()
    }
    for (const job of this.#waiting.values()) job.working()
    for (const { job } of this.#held) job.working()
  }

  check(): boolean {
    this.#wasStalled()
    this.#checkedAt = this.#now()
    this.#bodies.check()
    if (this.#nats.isConnected()) {
      for (const { reply } of this.#running) reply.repeatClaim()
      this.#bundles.check()
    }
    return this.#running.size > 0 || !this.#bundles.isAcknowledged
  }

  /** Announces the slots before the first claim. */
  started(): void {
    this.#announce()
  }

  /** Announces this worker's slots, or only those in use while it drains. */
  #announce(): void {
    const { pool, workload } = this.#options
    const { id, isConnected, outbox } = this.#nats
    if (!isConnected()) return
    const open = this.source.takesJobs() ? this.source.slots() : this.source.inFlight()
    outbox.publish(Subjects.slotsSubject(workload, pool, id, this.source.version), encodeSlots(open))
  }

  reconnected(): void {
    this.#beat()
    for (const { job, reply } of this.#running) if (job.version === 2) reply.claimAgain()
    this.#unheard.clear()
    for (const { reply } of this.#running) this.#unheard.add(reply.ingress)
    for (const ingress of this.#bundles.reconnected()) this.#unheard.add(ingress)
    if (this.#unheard.size === 0) this.#nats.outbox.release()
  }

  /** The ingress is alive. Once all have answered after a reconnect, the outbox need not hold messages for them. */
  #heard(ingress: string): void {
    this.#missingSince.delete(ingress)
    if (this.#unheard.delete(ingress) && this.#unheard.size === 0) this.#nats.outbox.release()
  }

  readonly close = Effect.gen({ self: this }, function*() {
    yield* this.source.stop
    this.#announce()
    for (const job of this.#waiting.values()) job.giveBack()
    this.#waiting.clear()
    yield* Effect.timeoutOption(this.#idle, this.#options.graceMs)
    for (const { run } of [...this.#running]) run?.stop()
    yield* this.#idle
    // JetStream redelivers jobs that are still held after that
    yield* Effect.timeoutOption(this.#released.await, flushWithinMs)
    this.#announce()
    const { isConnected, outbox } = this.#nats
    if (!isConnected()) return
    const flush = Effect.callback<void>((resume) => outbox.afterFlush(() => resume(Effect.void)))
    yield* Effect.timeoutOption(flush, flushWithinMs)
    const acknowledged = Effect.callback<void>((resume) =>
      this.#bundles.afterAcknowledgement(() => resume(Effect.void))
    )
    yield* Effect.timeoutOption(acknowledged, flushWithinMs)
    if (isConnected()) yield* this.#nats.flush
  })

  /** Returns when no job runs. */
  readonly #idle = Effect.callback<void>((resume) => {
    if (this.#running.size === 0) resume(Effect.void)
    else this.#onIdle = () => resume(Effect.void)
  })

  #begin(job: PulledJob): void {
    const key = Subjects.attemptKey(job.id, job.attempt)
    // the same attempt, redelivered while this worker still has it
    const earlier = (this.#running.get(key) ?? this.#held.get(key))?.job ?? this.#waiting.get(key)
    if (earlier !== undefined) return earlier.join(job)
    if (this.#ended.has(key) || this.#endedBefore.has(key)) return job.acknowledge()
    if (job.body !== undefined) return this.#run(key, job)
    this.#waiting.set(key, job)
    this.#admit()
  }

  /** For how many more jobs there is memory if each brings the largest body that a message can hold. */
  #room(): number {
    const bytes = Math.max(leastInlineBytes, this.#options.bodyBytes / 2) - this.#inlineBytes
    return Math.floor(bytes / Timings.inlineBodyBytes)
  }

  /** Starts waiting jobs while there is room for their bodies. A waiting job is not claimed yet. */
  #admit(): void {
    for (const [key, job] of this.#waiting) {
      // a body larger than the whole budget is pulled while no other is in memory
      if (this.#bodyBytes > 0 && this.#bodyBytes + job.bodySize > this.#options.bodyBytes) return
      this.#waiting.delete(key)
      this.#bodyBytes += job.bodySize
      this.#run(key, job)
    }
  }

  #run(key: string, job: PulledJob): void {
    let isHeld = false
    let hasEnded = false
    const settle = () => {
      if (isHeld || !hasEnded) return
      this.#held.delete(running)
      if (reply.isTaken) job.giveBack(takenMs)
      else job.acknowledge()
      if (this.#held.size === 0) this.#released.openUnsafe()
    }
    const reply = new JobReply({
      outbox: this.#nats.outbox,
      channel: job.version === 2 ? this.#frames : this.#bundles,
      workload: this.#options.workload,
      worker: this.#nats.id,
      job: job.id,
      attempt: job.attempt,
      behind: job.behind,
      subject: job.reply,
      now: this.#now,
      onCancel: () => running.run?.stop()
    })
    const running: Running = { id: key, job, reply, run: undefined }
    this.#running.add(running)
    const inlineBytes = job.body?.length ?? 0
    this.#inlineBytes += inlineBytes
    let committing: Effect.Effect<void, Cancelled> | undefined
    const work = this.#options.run({
      pulled: job,
      reply,
      takenAt: this.#now(),
      now: this.#now,
      hold: () => {
        isHeld = true
        return () => {
          isHeld = false
          settle()
        }
      },
      claim: (redispatch) => this.#claim(job, reply, redispatch),
      onWait: (provider) => this.#wait(job, reply, provider),
      // lazy, since most jobs never commit
      commit: Effect.suspend(() => committing ??= Effect.runSync(Effect.cached(commit(reply)))),
      body: job.body === undefined
        ? this.#bodies.fetch(key, job.bodySize, (offset, length) => reply.pull(offset, length))
        : Effect.succeed(job.body)
    })
    const ended = () => {
      this.#running.delete(running)
      if (job.body === undefined) {
        this.#bodyBytes -= job.bodySize
        this.#admit()
      }
      this.#inlineBytes -= inlineBytes
      if (reply.isCommitted) this.#remember(key)
      if (!reply.isOver) reply.fail(new WorkerLost())
      hasEnded = true
      if (isHeld) {
        this.#held.add(running)
        this.#released.closeUnsafe()
        job.free()
      }
      settle()
      if (this.#running.size === 0) this.#onIdle?.()
    }
    running.run = Fiberless.run(this.#context, work, ended)
  }

  #wait(job: PulledJob, reply: JobReply, provider: string): () => void {
    let unpark: (() => void) | undefined
    const park = Effect.sync(() => {
      unpark = job.park()
      if (unpark !== undefined) reply.wait(provider)
    })
    const parking = Effect.runForkWith(this.#context)(Effect.delay(park, Timings.waitMs))
    return () => {
      parking.interruptUnsafe()
      if (unpark === undefined) return
      unpark()
      unpark = undefined
      reply.work()
    }
  }

  #remember(key: string): void {
    const now = this.#now()
    if (now - this.#forgottenAt > rememberedMs) {
      this.#endedBefore = this.#ended
      this.#ended = new Set()
      this.#forgottenAt = now
    }
    this.#ended.add(key)
  }

  #claim(job: PulledJob, reply: JobReply, redispatch: Redispatch): Effect.Effect<void, Cancelled> {
    // clocks differ, so a job that seems old is a reason to ask ingress, not to drop it
    const now = this.#clock.currentTimeMillisUnsafe()
    const hasWaited = job.delivery > 1 || job.attempt > 1 || now - job.publishedAt > Timings.waitedLongMs ||
      now > job.deadline
    return redispatch === "mayHaveBeenSent" || hasWaited || this.#wasStalled()
      ? claimAndWait(reply, redispatch)
      : Fiberless.suspend(() => {
        reply.claim(redispatch)
        if (job.bodySize <= smallBodyBytes) return Effect.void
        // a large body may stall or kill this process, so ingress must learn first which worker has the job
        this.#nats.outbox.flush()
        // the NATS client writes in a microtask
        return Effect.yieldNow
      })
  }

  /** Whether this process was stalled recently: jobs received right after a stall may be old, whatever the clocks say. */
  #wasStalled(): boolean {
    const now = this.#now()
    if (now - this.#checkedAt > stalledMs) this.#stalledAt = now
    return now - this.#stalledAt < Timings.waitedLongMs
  }

  #control(message: Msg): void {
    const control = decodeControl(message)
    if (control === undefined) return
    if (control.type === "ping" && message.reply !== undefined && message.reply !== "") {
      const { ingress } = Subjects.parseReply(message.reply)
      this.#ask(ingress)
      return this.#heard(ingress)
    }
    const reply = this.#running.get(Subjects.parseControl(message.subject).key)?.reply
    const ingress = reply?.ingress ?? Subjects.linkedIngress(message.subject)
    if (ingress === undefined) return
    if (control.type === "noResponders") {
      if (this.#nats.isSettled()) this.#missing(ingress)
      return
    }
    this.#heard(ingress)
    if (reply !== undefined) reply.receive(control)
    else if (control.type === "ack") this.#bundles.acknowledge(ingress, control.number)
    else if (control.type === "resend") this.#bundles.resend(ingress, control.number)
  }

  /** The ingress's subject has no listener. It is gone if there is still none when the worker asks again. */
  #missing(ingress: string): void {
    const now = this.#now()
    const since = this.#missingSince.get(ingress)
    if (since === undefined) {
      this.#missingSince.set(ingress, now)
      Effect.runForkWith(this.#context)(
        Effect.delay(Effect.sync(() => this.#ask(ingress)), Timings.ingressGoneAfterMs)
      )
    } else if (now - since >= Timings.ingressGoneAfterMs) {
      this.#missingSince.delete(ingress)
      this.#abandon(ingress)
    }
  }

  /** Tells an ingress immediately that this worker is alive, even while the outbox holds messages. The ingress or NATS answers. */
  #ask(ingress: string): void {
    if (this.#bundles.ask(ingress)) return
    const { id, outbox } = this.#nats
    const { workload } = this.#options
    const pong = encodeFrame({ type: "pong", next: this.#bundles.first })
    const subject = Subjects.aboutWorkerSubject(workload, ingress, id)
    outbox.publishNow(subject, undefined, pong, Subjects.linkSubject(workload, id, ingress))
  }

  /** Stops all jobs of an ingress that is gone. */
  #abandon(ingress: string): void {
    for (const { reply } of [...this.#running]) {
      if (reply.ingress === ingress) reply.abandon()
    }
    this.#bundles.forget(ingress)
  }
}
