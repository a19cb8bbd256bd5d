/**
 * Both sides of the job bus in one process, each with a connection of its own, as if they were processes: what an ingress
 * and a worker are made of, without what is above the bus.
 */
import { Clock, ConfigProvider, Context, Effect, Exit, Layer, Logger, Schedule, Scope } from "effect"
import type { AnswerHead } from "../../shared/bus/protocol/Frame.ts"
import { JobClient } from "../../shared/bus/ingress/JobClient.ts"
import type { QueueDepth } from "../../shared/bus/ingress/JobTracker.ts"
import type { AnswerListener, JobHandle, JobRequest } from "../../shared/bus/ingress/JobRequest.ts"
import type { ServedJob, ServeOptions } from "../../shared/bus/worker/JobServer.ts"
import { JobServer } from "../../shared/bus/worker/JobServer.ts"
import { Nats } from "../../shared/nats/Nats.ts"
import type { JobError } from "../../shared/contract/JobError.ts"
import type { Usage } from "../../shared/contract/Usage.ts"

type Settings = Readonly<Record<string, string>>

const build = <A, E>(url: string, layer: Layer.Layer<A, E>, scope: Scope.Scope, settings: Settings) =>
  Layer.buildWithScope(Layer.fresh(layer), scope).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url, ...settings })),
      // connections that are lost are what some of these tests are about
      Logger.layer([])
    ]),
    Effect.orDie
  )

/** A scope that ends with the test's, or before. */
const ownScope = Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))

const clockOf = (clock: Clock.Clock, now: () => number, steady: () => bigint): Clock.Clock =>
  Object.create(clock, { currentTimeMillisUnsafe: { value: now }, monotonicTimeNanosUnsafe: { value: steady } })

/** A clock that goes `ms` milliseconds ahead of the real one. */
const clockAhead = (ms: number): Effect.Effect<Clock.Clock> =>
  Effect.map(
    Clock.Clock,
    (clock) => clockOf(clock, () => clock.currentTimeMillisUnsafe() + ms, () => clock.monotonicTimeNanosUnsafe())
  )

/** A clock that can be stopped, for what has to happen before time is up, however busy the machine is. */
export const stoppableClock = Effect.map(Clock.Clock, (clock) => {
  let stopped: { readonly at: number; readonly steady: bigint } | undefined
  return {
    clock: clockOf(
      clock,
      () => stopped?.at ?? clock.currentTimeMillisUnsafe(),
      () => stopped?.steady ?? clock.monotonicTimeNanosUnsafe()
    ),
    stop: () => {
      stopped = { at: clock.currentTimeMillisUnsafe(), steady: clock.monotonicTimeNanosUnsafe() }
    }
  }
})

/** How an answer ended: with its usage, or with an error. */
export type Outcome = { readonly usage: Usage | undefined } | { readonly error: JobError }

export interface AnswerOptions {
  /** Whether every piece is handed to the client and taken by it at once. Default `true`. */
  readonly takes?: boolean
}

/** What came of one job, as a client would see it. */
export class Answer implements AnswerListener {
  readonly #options: AnswerOptions
  readonly #watchers = new Set<() => void>()
  #handle: JobHandle | undefined
  #outcome: Outcome | undefined
  claims = 0
  restarts = 0
  head: AnswerHead | undefined
  chunks: Array<Uint8Array> = []
  received = 0
  taken = 0

  constructor(options: AnswerOptions) {
    this.#options = options
  }

  submitted(handle: JobHandle): void {
    this.#handle = handle
  }

  get job(): JobHandle {
    if (this.#handle === undefined) throw new Error("the job was not submitted yet")
    return this.#handle
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks)
  }

  get outcome(): Outcome | undefined {
    return this.#outcome
  }

  /** The usage of an answer that came whole; dies where it did not. */
  readonly usage = this.#until(() => this.#outcome).pipe(
    Effect.flatMap((outcome) => "error" in outcome ? Effect.die(outcome.error) : Effect.succeed(outcome.usage))
  )
  /** The error that ended it; dies where there was none. */
  readonly error = this.#until(() => this.#outcome).pipe(
    Effect.flatMap((outcome) =>
      "error" in outcome ? Effect.succeed(outcome.error) : Effect.die(new Error("the answer came whole"))
    )
  )
  /** Returns when so many workers have claimed it, one after another. */
  readonly claimedTimes = (times: number) => this.#until(() => this.claims >= times ? true : undefined)
  readonly claimed = this.claimedTimes(1)
  readonly restarted = this.#until(() => this.restarts > 0 ? true : undefined)
  /** Returns when so many bytes have come. */
  readonly receivedBytes = (bytes: number) => this.#until(() => this.received >= bytes ? true : undefined)

  /** The client takes everything that has come. */
  take(): void {
    this.job.flushed()
    const bytes = this.received - this.taken
    this.taken = this.received
    this.job.taken(bytes)
  }

  onClaim(): void {
    this.claims++
    this.#changed()
  }
  onStart(head: AnswerHead): void {
    this.head = head
    this.#changed()
  }
  onChunk(bytes: Uint8Array): void {
    this.chunks.push(Uint8Array.from(bytes))
    this.received += bytes.length
    if (this.#options.takes !== false) this.take()
    this.#changed()
  }
  onRestart(): void {
    this.restarts++
    this.chunks = []
    this.received = 0
    this.taken = 0
    this.#changed()
  }
  onEnd(usage: Usage | undefined): void {
    this.#end({ usage })
  }
  onError(error: JobError): void {
    this.#end({ error })
  }

  #end(outcome: Outcome): void {
    if (this.#outcome !== undefined) throw new Error("the answer ended twice")
    this.#outcome = outcome
    this.#changed()
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher()
  }

  #until<A>(look: () => A | undefined): Effect.Effect<A> {
    return Effect.callback<A>((resume) => {
      const watcher = () => {
        const seen = look()
        if (seen === undefined) return
        this.#watchers.delete(watcher)
        resume(Effect.succeed(seen))
      }
      this.#watchers.add(watcher)
      watcher()
      return Effect.sync(() => this.#watchers.delete(watcher))
    })
  }
}

export interface Ingress {
  readonly nats: Nats["Service"]
  readonly submit: (request?: Partial<JobRequest>, options?: AnswerOptions) => Answer
  readonly depth: (pool?: string) => QueueDepth
  /** Shuts it down in good order. */
  readonly close: Effect.Effect<void>
}

export const ingress = Effect.fnUntraced(function*(url: string, settings: Settings = {}, ownClock?: Clock.Clock) {
  const scope = yield* ownScope
  const clock = ownClock ?? (yield* Clock.Clock)
  const built = yield* build(url, JobClient.layer.pipe(Layer.provideMerge(Nats.layer)), scope, settings).pipe(
    Effect.provideService(Clock.Clock, clock)
  )
  const jobs = Context.get(built, JobClient)
  return {
    nats: Context.get(built, Nats),
    submit: (request = {}, options = {}) => {
      const answer = new Answer(options)
      answer.submitted(jobs.submit({
        workload: "chat",
        pool: "default",
        operation: "chat.completions",
        model: "model",
        tenant: "tenant",
        weight: 1,
        priority: "standard",
        contentType: "application/json",
        body: Buffer.from("{}"),
        deadline: clock.currentTimeMillisUnsafe() + 60_000,
        traceparent: undefined,
        ...request
      }, answer))
      return answer
    },
    depth: (pool = "default") => jobs.depth("chat", pool),
    close: Scope.close(scope, Exit.void)
  } satisfies Ingress
})

export interface WorkerOptions {
  readonly run: ServeOptions["run"]
  readonly pool?: string
  /** Default 4. */
  readonly slots?: number
  /** Default 200. */
  readonly graceMs?: number
  /** By how much its clock is ahead of the others', in milliseconds. */
  readonly aheadMs?: number
  /** Its clock, where that is not the real one. */
  readonly clock?: Clock.Clock
  readonly settings?: Settings
}

/** A worker; returns when it pulls. */
export const worker = Effect.fnUntraced(function*(url: string, options: WorkerOptions) {
  const clock = options.clock ?? (yield* clockAhead(options.aheadMs ?? 0))
  const scope = yield* ownScope
  const serving = yield* ownScope
  const layer = JobServer.layer.pipe(Layer.provideMerge(Nats.layer))
  const built = yield* build(url, layer, scope, options.settings ?? {}).pipe(Effect.provideService(Clock.Clock, clock))
  const served = yield* Context.get(built, JobServer).serve({
    workload: "chat",
    pool: options.pool ?? "default",
    slots: options.slots ?? 4,
    graceMs: options.graceMs ?? 200,
    run: options.run
  }).pipe(
    Scope.provide(serving),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(options.settings ?? {})))
  )
  yield* Effect.sync(served.isReady).pipe(
    Effect.repeat({ until: (isReady) => isReady, schedule: Schedule.spaced("2 millis") })
  )
  return {
    nats: Context.get(built, Nats),
    isReady: served.isReady,
    /** Shuts it down in good order; returns when its jobs have ended. */
    close: Scope.close(serving, Exit.void)
  }
})

export const head: AnswerHead = { status: 200, contentType: "application/json", headers: {} }

/** Writes one piece of an answer, and waits where the client's window asks for it. */
export const write = (job: ServedJob, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.suspend(() =>
    job.reply.write(bytes)
      ? Effect.void
      : Effect.callback<void>((resume) => job.reply.onDrain(() => resume(Effect.void)))
  )

export interface Reply {
  readonly redispatch?: "always" | "neverSent"
  readonly pieces?: Iterable<Uint8Array>
  readonly usage?: Usage
}

/** A worker's whole job: claims it, answers with the given pieces, ends. Gives up where ingress does not want it. */
export const reply = (job: ServedJob, options: Reply = {}): Effect.Effect<void> =>
  job.claim(options.redispatch ?? "always").pipe(
    Effect.andThen(Effect.sync(() => job.reply.start(head))),
    Effect.andThen(Effect.forEach(options.pieces ?? [], (piece) => write(job, piece), { discard: true })),
    Effect.andThen(Effect.sync(() => job.reply.end(options.usage))),
    Effect.catch(() => Effect.sync(() => job.reply.abandon()))
  )

/** An ingress or a worker. */
export interface Side {
  readonly nats: Nats["Service"]
}

/** Returns when every side has noticed that the server is away. */
export const disconnected = (...sides: ReadonlyArray<Side>) =>
  Effect.sync(() => sides.some(({ nats }) => nats.isConnected())).pipe(
    Effect.repeat({ until: (connected) => !connected, schedule: Schedule.spaced("2 millis") })
  )

/** Returns when every side has its connection back and the server knows what each listens to. */
export const connected = (...sides: ReadonlyArray<Side>) =>
  Effect.forEach(sides, ({ nats }) =>
    Effect.sync(() => nats.isConnected()).pipe(
      Effect.repeat({ until: (connected) => connected, schedule: Schedule.spaced("2 millis") }),
      Effect.andThen(Effect.promise(() => nats.connection.flush()))
    ))

export const piece = (text: string): Uint8Array => Buffer.from(text)
