/** What it takes to serve a pool, whatever its jobs are: to begin, to begin anew after a reconnect, and to end in time. */
import { Effect, Fiber, FiberHandle, type Scope } from "effect"
import type { Workload } from "../../contract/Operation.ts"
import type { JobSource } from "./JobSource.ts"
import { provisionPatiently } from "../provision/JobStreams.ts"
import { Nats } from "../../nats/Nats.ts"

/** A pool that is being served. */
export type Serving = Pick<JobSource, "isReady" | "inFlight">

export interface PoolOptions {
  readonly workload: Workload
  readonly pool: string
  /** How many jobs run at once, at least 1. */
  readonly slots: number
  /** How long running jobs may take to finish once the scope closes, in milliseconds; then they are interrupted. */
  readonly graceMs: number
}

export interface PoolServer {
  readonly source: JobSource
  /** Listens, and keeps alive what it will have. */
  readonly open: () => void
  /** It pulls from now on. */
  readonly started?: () => void
  /** The connection is there again, perhaps to a server that knows nothing of what was. */
  readonly reconnected?: () => void
  /** Takes no more jobs, and returns when those that run have ended. */
  readonly close: () => Promise<void>
}

/** Serves a pool until the scope closes. Waits with the first pull until the queue exists. */
export const serve = Effect.fnUntraced(function*(
  { pool, workload }: PoolOptions,
  server: PoolServer
): Effect.fn.Return<Serving, never, Nats | Scope.Scope> {
  const nats = yield* Nats
  yield* Effect.acquireRelease(Effect.sync(() => server.open()), () => Effect.promise(() => server.close()))
  const run = yield* FiberHandle.makeRuntime<Nats>()
  const begin = () => {
    server.source.forget()
    run(
      provisionPatiently(workload, pool).pipe(
        Effect.orDie,
        Effect.andThen(Effect.sync(() => {
          server.source.start()
          server.started?.()
        }))
      )
    )
  }
  begin()
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      nats.onReconnect(() => {
        server.reconnected?.()
        begin()
      })
    ),
    (unsubscribe) => Effect.sync(unsubscribe)
  )
  return { isReady: () => server.source.isReady(), inFlight: () => server.source.inFlight() }
})

/** Returns when all of them have ended; those that have not within `graceMs` are interrupted. */
export const endWithin = (graceMs: number, fibers: Iterable<Fiber.Fiber<unknown, unknown>>): Promise<void> =>
  Effect.runPromise(
    Fiber.awaitAll(fibers).pipe(
      Effect.timeoutOption(graceMs),
      Effect.andThen(Fiber.interruptAll(fibers))
    )
  )
