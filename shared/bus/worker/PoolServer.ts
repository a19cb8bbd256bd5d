/** Serves a pool of jobs or tasks: starts to pull, starts again after a reconnect, and ends within a grace period. */
import { Effect, Fiber, FiberMap, type Scope } from "effect"
import { everyWhile } from "../../bounds/MonotonicClock.ts"
import { type JobSource, watchMs } from "./JobSource.ts"
import * as Timings from "../protocol/Timings.ts"
import { provisionPatiently } from "../provision/JobStreams.ts"
import { Nats } from "../../nats/Nats.ts"
import { type QueueName, type Version, versionsOf } from "../protocol/Subjects.ts"

/** A pool that is being served. */
export type Serving = Pick<JobSource, "isReady" | "isDraining" | "inFlight" | "slots" | "working">

export interface PoolOptions {
  readonly queue: QueueName
  readonly pool: string
  /** How many jobs run concurrently, at least 1. */
  readonly slots: number
  /** How many of the slots new jobs may take at present. Default: all. */
  readonly slotsNow?: () => number
  /** How long running jobs may continue once the scope closes, in milliseconds; then they are interrupted. */
  readonly graceMs: number
}

export interface PoolServer {
  readonly source: JobSource
  /** Runs every `watchMs`, or every `idleTickMs` while idle, until `close` has returned. Returns whether there is open work. */
  readonly check?: () => boolean
  /** Subscribes, and keeps jobs alive until `close` has returned. */
  readonly open: Effect.Effect<void, never, Scope.Scope>
  /** The source has started to pull from one of its queues. */
  readonly started?: () => void
  /** NATS is connected again, perhaps to a server that has lost its state. */
  readonly reconnected?: () => void
  /** Takes no more jobs, and returns when the running ones have ended. */
  readonly close: Effect.Effect<void>
}

/**
 * Serves a pool until the scope closes. Pulls from each version's queue as soon as that queue exists, so that a queue without a
 * leader does not delay the others.
 */
export const serve = Effect.fnUntraced(function*(
  { pool, queue }: PoolOptions,
  server: PoolServer
): Effect.fn.Return<Serving, never, Nats | Scope.Scope> {
  const nats = yield* Nats
  const { source } = server
  yield* server.open
  yield* everyWhile(source.working, watchMs, Timings.idleTickMs, () => {
    source.watch()
    const hasWork = server.check?.() === true || source.isWorking()
    // in a cluster, a server may forget requests at any time
    if (hasWork || !nats.isAlone()) source.working.openUnsafe()
    else source.working.closeUnsafe()
  })
  const run = yield* FiberMap.makeRuntime<Nats, Version>()
  const begin = () => {
    for (const version of versionsOf(queue)) {
      run(
        version,
        provisionPatiently(queue, pool, version).pipe(
          Effect.orDie,
          Effect.andThen(Effect.sync(() => {
            source.start(version)
            server.started?.()
          }))
        )
      )
    }
  }
  begin()
  const unsubscribe = nats.onReconnect(() => {
    server.reconnected?.()
    source.restart()
    begin()
  })
  yield* Effect.addFinalizer(() => Effect.sync(unsubscribe))
  // added last, so that it runs first: jobs still get heartbeats, checks and controls while `close` waits for them
  yield* Effect.addFinalizer(() => server.close)
  return {
    isReady: () => source.isReady(),
    isDraining: () => source.isDraining(),
    inFlight: () => source.inFlight(),
    slots: () => source.slots(),
    working: source.working
  }
})

/** Returns when all fibers have ended; interrupts those that run for longer than `graceMs`. */
export const endWithin = (graceMs: number, fibers: Iterable<Fiber.Fiber<unknown, unknown>>): Effect.Effect<void> =>
  Fiber.awaitAll(fibers).pipe(
    Effect.timeoutOption(graceMs),
    Effect.andThen(Fiber.interruptAll(fibers))
  )
