/**
 * The worker's side of the job bus: takes jobs from the queue, keeps each one alive, and carries what ingress says about
 * a job to it. What a job does is the caller's business.
 */
import type { Msg } from "@nats-io/nats-core"
import { Clock, Config, Context, Effect, type Fiber, Layer, type Scope } from "effect"
import { atLeast } from "../../contract/Fields.ts"
import type { AnswerLost } from "../../contract/JobError.ts"
import { Cancelled, WorkerLost } from "../../contract/JobError.ts"
import { bodyBytesWithin } from "../../bounds/BodyBudget.ts"
import { BodyPull } from "./BodyPull.ts"
import { Claims } from "./Claims.ts"
import type { Redispatch } from "../protocol/Frame.ts"
import { decodeControl, encodeFrame } from "../protocol/Frame.ts"
import { JobReply } from "./JobReply.ts"
import type { PulledJob } from "./JobSource.ts"
import { JobSource } from "./JobSource.ts"
import * as Limits from "../protocol/Timings.ts"
import { memoryLimit } from "../../bounds/MemoryLimit.ts"
import { Nats } from "../../nats/Nats.ts"
import { encodeSlots } from "../fairness/Occupancy.ts"
import * as PoolServer from "./PoolServer.ts"
import { steady } from "../../nats/Steady.ts"
import * as Subjects from "../protocol/Subjects.ts"

/** A job in the hands of this worker. */
export interface ServedJob {
  readonly pulled: PulledJob
  readonly reply: JobReply
  /**
   * Tells ingress that this worker has the job, and returns when work on it may begin. For `mayHaveBeenSent` that is once ingress
   * has agreed, and so for a job that has waited long or that another worker had before.
   */
  readonly claim: (redispatch: Redispatch) => Effect.Effect<void, Cancelled>
  /**
   * Of a job that was claimed as `unsent`: asks that from now on nobody else may do it, and returns when ingress has
   * agreed. A word that has left is not enough: on a wire that has just died it never arrives, and ingress gives the job to
   * another. Fails where ingress refuses, or is silent for 5 s. May be run again, and by several at once.
   */
  readonly commit: Effect.Effect<void, Cancelled>
  /** When it came, by the clock of `now`. */
  readonly takenAt: number
  /** A clock that nobody sets: see `Steady.ts`. */
  readonly now: () => number
  /**
   * Keeps the job unacknowledged, without its slot, after its end until the function that it returns is called: were this
   * worker to die before that, another would be given the job.
   */
  readonly hold: () => () => void
  /** The whole request body, fetched from ingress where it did not come with the job. */
  readonly body: Effect.Effect<Uint8Array, AnswerLost>
}

export interface ServeOptions extends PoolServer.PoolOptions {
  /** Runs one job to its end; it has to end the reply itself. Interrupted when ingress cancels the job. */
  readonly run: (job: ServedJob) => Effect.Effect<void>
}

/** This process was held up where it looks at the clock so much later than it meant to, in milliseconds. */
const lookMs = 250
const heldUpMs = 500
/** Longer than ingress waits for a worker that has fallen silent, in milliseconds. */
const rememberedMs = 60_000
/** The claim to a job with a body of up to this many bytes leaves with whatever else is sent. */
const smallBodyBytes = 16 * 1024
/** How long to wait for ingress's word on a claim. */
const answerWithinMs = 5_000
/** How long the last words of a server that closes may take to leave, in milliseconds. */
const flushWithinMs = 2_000

export class JobServer extends Context.Service<JobServer, {
  /**
   * Serves a pool until the scope closes; then takes no more jobs and returns when those that run have ended. Waits with
   * the first pull until the queue exists.
   */
  readonly serve: (options: ServeOptions) => Effect.Effect<PoolServer.Serving, never, Scope.Scope>
}>()("shared/bus/JobServer") {
  /** Reads `WORKER_BODY_BYTES`: how much the bodies of large requests that are worked on may have together. */
  static readonly layer = Layer.effect(
    JobServer,
    Effect.gen(function*() {
      const bodyBytes = yield* Config.schema(atLeast(1), "WORKER_BODY_BYTES").pipe(
        Config.withDefault(bodyBytesWithin(memoryLimit(), 8))
      )
      const nats = yield* Nats
      const clock = yield* Clock.Clock
      const context = yield* Effect.context<Nats>()
      return JobServer.of({
        serve: (options) =>
          Effect.suspend(() => {
            const server = new Server(nats, { ...options, bodyBytes }, clock, context)
            // not the whole context: that holds the scope of this layer, and jobs end with the scope of the caller
            return Effect.provideService(PoolServer.serve(options, server), Nats, nats)
          })
      })
    })
  )
}

const agreed = (reply: JobReply, redispatch: Redispatch): Effect.Effect<void, Cancelled> =>
  Effect.callback<void, Cancelled>((resume) => {
    reply.claimAndWait(redispatch, (go) => resume(go ? Effect.void : Effect.fail(new Cancelled())))
  }).pipe(Effect.timeoutOrElse({ duration: answerWithinMs, orElse: () => Effect.fail(new Cancelled()) }))

const committed = (reply: JobReply): Effect.Effect<void, Cancelled> =>
  Effect.suspend(() => reply.committed ? Effect.void : agreed(reply, "mayHaveBeenSent"))

class Server implements PoolServer.PoolServer {
  readonly #nats: Nats["Service"]
  readonly #options: ServeOptions & { readonly bodyBytes: number }
  readonly #clock: Clock.Clock
  readonly #now: () => number
  readonly #fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  readonly source: JobSource
  readonly #claims: Claims
  readonly #replies = new Map<string, { readonly reply: JobReply; readonly job: PulledJob }>()
  readonly #bodies = new BodyPull()
  readonly #fibers = new Set<Fiber.Fiber<void>>()
  /** Ingresses on whose subjects nobody listens, and since when. */
  readonly #missingSince = new Map<string, number>()
  /** Taken, and not begun: there is no room for their bodies. In their order. */
  readonly #waiting = new Map<string, PulledJob>()
  /** The bodies that were fetched, or are being fetched. */
  #bodyBytes = 0
  /**
   * Jobs that nobody may do again, and that have ended of late. Where the end and the acknowledgement were lost on their way
   * one is given out once more, and its ingress, which still believes that it is being done here, would agree to it.
   */
  #ended = new Set<string>()
  #endedBefore = new Set<string>()
  #forgottenAt = performance.now()
  /** Ended, but held. */
  readonly #held = new Map<string, PulledJob>()
  #onReleased: (() => void) | undefined
  #heartbeats: NodeJS.Timeout | undefined
  #looks: NodeJS.Timeout | undefined
  #announcements: NodeJS.Timeout | undefined
  #lookedAt = performance.now()
  #heldUpAt = Number.NEGATIVE_INFINITY

  constructor(
    nats: Nats["Service"],
    options: ServeOptions & { readonly bodyBytes: number },
    clock: Clock.Clock,
    context: Context.Context<never>
  ) {
    this.#nats = nats
    this.#options = options
    this.#clock = clock
    this.#now = steady(clock)
    this.#fork = Effect.runForkWith(context)
    this.#claims = new Claims(nats.outbox, options.workload, nats.id)
    this.source = new JobSource({ ...options, nats, now: this.#now, onJob: (job) => this.#begin(job) })
  }

  open(): void {
    const { id } = this.#nats
    this.#nats.subscribe(Subjects.controlInbox(this.#options.workload, id), (message) => this.#control(message))
    this.#nats.subscribe(Subjects.bodyInbox(this.#options.workload, id), (message) => this.#bodies.receive(message))
    this.#looks = setInterval(() => {
      this.#wasHeldUp()
      this.#lookedAt = performance.now()
      for (const { reply } of this.#replies.values()) reply.askAgain()
    }, lookMs)
    this.#announcements = setInterval(() => this.#announce(), Limits.announcementMs.every)
    this.#heartbeats = setInterval(() => {
      for (const { job, reply } of this.#replies.values()) {
        reply.heartbeat()
        job.working()
      }
      const now = this.#now()
      for (const [ingress, since] of this.#missingSince) {
        if (now - since > Limits.heartbeatMs) this.#missingSince.delete(ingress)
      }
      for (const job of this.#waiting.values()) job.working()
      for (const job of this.#held.values()) job.working()
    }, Limits.heartbeatMs)
  }

  started(): void {
    this.#announce()
  }

  /** Before its first claim of a job, and while it drains as many slots as it still uses. */
  #announce(): void {
    const { pool, slots, workload } = this.#options
    const { id, isConnected, outbox } = this.#nats
    if (!isConnected()) return
    const open = this.source.isReady() ? slots : this.source.inFlight()
    outbox.publish(Subjects.slotsSubject(workload, pool, id), encodeSlots(open))
  }

  reconnected(): void {
    for (const { reply } of this.#replies.values()) reply.claimAgain()
  }

  async close(): Promise<void> {
    await this.source.stop()
    this.#announce()
    for (const job of this.#waiting.values()) job.giveBack()
    this.#waiting.clear()
    await PoolServer.endWithin(this.#options.graceMs, [...this.#fibers])
    await this.#released()
    clearInterval(this.#heartbeats)
    clearInterval(this.#looks)
    clearInterval(this.#announcements)
    this.#announce()
    await this.#sent()
  }

  /** Returns when no job is held any more, or they have been waited for long enough: another worker gets those. */
  async #released(): Promise<void> {
    if (this.#held.size === 0) return
    const released = new Promise<void>((resolve) => {
      this.#onReleased = resolve
    })
    await Promise.race([released, new Promise((resolve) => setTimeout(resolve, flushWithinMs).unref())])
  }

  /** Returns when everything said so far has reached the server, or cannot. */
  async #sent(): Promise<void> {
    if (!this.#nats.isConnected()) return
    const flushed = new Promise<void>((resolve) => this.#nats.outbox.afterFlush(resolve))
    await Promise.race([flushed, new Promise((resolve) => setTimeout(resolve, flushWithinMs).unref())])
    if (this.#nats.isConnected()) await this.#nats.connection.flush()
  }

  #begin(job: PulledJob): void {
    const key = Subjects.attemptKey(job.id, job.attempt)
    // the same attempt, given out again while it is still here
    if (this.#replies.has(key) || this.#held.has(key) || this.#waiting.has(key)) return job.acknowledge()
    if (this.#ended.has(key) || this.#endedBefore.has(key)) return job.acknowledge()
    if (job.body !== undefined) return this.#run(key, job)
    this.#waiting.set(key, job)
    this.#admit()
  }

  /** Begins jobs that wait while there is room for their bodies: until then another worker may claim them. */
  #admit(): void {
    for (const [key, job] of this.#waiting) {
      // one that is larger than all the room there is goes alone
      if (this.#bodyBytes > 0 && this.#bodyBytes + job.bodySize > this.#options.bodyBytes) return
      this.#waiting.delete(key)
      this.#bodyBytes += job.bodySize
      this.#run(key, job)
    }
  }

  #run(key: string, job: PulledJob): void {
    let fiber: Fiber.Fiber<void> | undefined
    let isHeld = false
    let hasEnded = false
    const settle = () => {
      if (isHeld || !hasEnded) return
      this.#held.delete(key)
      job.acknowledge()
      if (this.#held.size === 0) this.#onReleased?.()
    }
    const reply = new JobReply({
      outbox: this.#nats.outbox,
      claims: this.#claims,
      workload: this.#options.workload,
      worker: this.#nats.id,
      job: job.id,
      attempt: job.attempt,
      behind: job.behind,
      subject: job.reply,
      now: this.#now,
      onCancel: () => fiber?.interruptUnsafe()
    })
    this.#replies.set(key, { reply, job })
    let commit: Effect.Effect<void, Cancelled> | undefined
    fiber = this.#fork(this.#options.run({
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
      // most jobs are never committed to
      commit: Effect.suspend(() => commit ??= Effect.runSync(Effect.cached(committed(reply)))),
      body: job.body === undefined
        ? this.#bodies.fetch(key, job.bodySize, (offset, length) => reply.pull(offset, length))
        : Effect.succeed(job.body)
    }))
    const ended = () => {
      this.#replies.delete(key)
      if (job.body === undefined) {
        this.#bodyBytes -= job.bodySize
        this.#admit()
      }
      if (reply.committed) this.#remember(key)
      // whatever became of the work, ingress is told
      if (!reply.over) reply.fail(new WorkerLost())
      if (fiber !== undefined) this.#fibers.delete(fiber)
      hasEnded = true
      if (isHeld) {
        this.#held.set(key, job)
        job.free()
      }
      settle()
    }
    if (fiber.pollUnsafe() !== undefined) return ended()
    this.#fibers.add(fiber)
    fiber.addObserver(ended)
  }

  #remember(key: string): void {
    const now = performance.now()
    if (now - this.#forgottenAt > rememberedMs) {
      this.#endedBefore = this.#ended
      this.#ended = new Set()
      this.#forgottenAt = now
    }
    this.#ended.add(key)
  }

  #claim(job: PulledJob, reply: JobReply, redispatch: Redispatch): Effect.Effect<void, Cancelled> {
    // clocks differ: that a job seems to be old is a reason to ask whether it is wanted, and none to leave it
    const now = this.#clock.currentTimeMillisUnsafe()
    const hasWaited = job.delivery > 1 || job.attempt > 1 || now - job.publishedAt > Limits.waitedLongMs ||
      now > job.deadline
    return redispatch === "mayHaveBeenSent" || hasWaited || this.#wasHeldUp()
      ? agreed(reply, redispatch)
      : job.bodySize <= smallBodyBytes
      ? Effect.sync(() => reply.claim(redispatch))
      // work on a large body may hold this process up, or end it: ingress has to know by then who has the job
      : Effect.andThen(
        Effect.sync(() => {
          reply.claim(redispatch)
          this.#nats.outbox.flush()
        }),
        // the client writes in a microtask
        Effect.yieldNow
      )
  }

  /** What it has been given meanwhile is old, whatever its clock and the server's say. */
  #wasHeldUp(): boolean {
    const now = performance.now()
    if (now - this.#lookedAt > lookMs + heldUpMs) this.#heldUpAt = now
    return now - this.#heldUpAt < Limits.waitedLongMs
  }

  #control(message: Msg): void {
    const control = decodeControl(message)
    if (control === undefined) return
    if (control.type === "ping" && message.reply !== undefined && message.reply !== "") {
      return this.#nats.outbox.publish(message.reply, undefined, encodeFrame({ type: "pong" }))
    }
    const { key } = Subjects.parseControl(message.subject)
    if (control.type === "noResponders") {
      const ingress = Subjects.ingressGone(message.subject) ?? this.#replies.get(key)?.reply.ingress
      if (ingress !== undefined && this.#nats.isSettled()) this.#missing(ingress)
      return
    }
    this.#replies.get(key)?.reply.receive(control)
  }

  /** Nobody listens where an ingress should. It is gone where that is still so when it is asked again. */
  #missing(ingress: string): void {
    const now = this.#now()
    const since = this.#missingSince.get(ingress)
    if (since === undefined) {
      this.#missingSince.set(ingress, now)
      setTimeout(() => this.#ask(ingress), Limits.ingressGoneAfterMs)
    } else if (now - since >= Limits.ingressGoneAfterMs) {
      this.#missingSince.delete(ingress)
      this.#abandon(ingress)
    }
  }

  #ask(ingress: string): void {
    const { id, outbox } = this.#nats
    const { workload } = this.#options
    outbox.publish(
      Subjects.aboutWorkerSubject(workload, ingress, id),
      undefined,
      encodeFrame({ type: "pong" }),
      Subjects.ingressGoneSubject(workload, id, ingress)
    )
  }

  /** Everything that an ingress wanted, which is there no more. */
  #abandon(ingress: string): void {
    for (const { reply } of [...this.#replies.values()]) {
      if (reply.ingress === ingress) reply.abandon()
    }
  }
}
