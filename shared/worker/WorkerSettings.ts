/** The environment variables that workers of all workloads read. */
import { Config } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { PoolName, type Workload } from "../contract/Operation.ts"

/**
 * How many jobs a worker runs concurrently by default. Where providers do the work, slots are a bound against overload: a stream of a
 * model that thinks costs memory but no CPU time. Pictures and videos take both.
 */
export const defaultSlots: Readonly<Record<Workload, number>> = {
  chat: 1_280,
  images: 4,
  video: 2,
  embeddings: 16,
  rerank: 16,
  speech: 16
}

/** How many tasks a worker runs concurrently by default. Unlike jobs, each writes its answer to the store. */
const defaultTaskSlots = 16

/** How long an answer may take by default, in milliseconds, and therefore a job after SIGTERM. The default of `timeouts.totalMs`. */
export const longestAnswerMs = 1_800_000

/** Reads `WORKER_POOL` (default `default`). */
export const workerPool = Config.schema(PoolName, "WORKER_POOL").pipe(Config.withDefault("default"))

/**
 * Reads `WORKER_SLOTS` (concurrent jobs, at least 1), `WORKER_POOL` and `WORKER_GRACE_MS` (how long running jobs
 * may continue after SIGTERM, in milliseconds).
 */
export const workerSettings = (defaults: { readonly slots: number; readonly graceMs: number }) =>
  Config.all({
    slots: Config.schema(atLeast(1), "WORKER_SLOTS").pipe(Config.withDefault(defaults.slots)),
    pool: workerPool,
    graceMs: Config.schema(atLeast(0), "WORKER_GRACE_MS").pipe(Config.withDefault(defaults.graceMs))
  })

/** The default of `taskSlots`. */
export const taskSlotsBeside = (slots: number): number => Math.min(defaultTaskSlots, slots)

/** Reads `WORKER_TASK_SLOTS`: how many tasks run concurrently, beside this many jobs; default 16, or as many as jobs if those are fewer. */
export const taskSlots = (slots: number) =>
  Config.schema(atLeast(1), "WORKER_TASK_SLOTS").pipe(Config.withDefault(taskSlotsBeside(slots)))
