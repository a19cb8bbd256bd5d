/** Environment variables of a worker of any workload. */
import { Config } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { PoolName } from "../contract/Operation.ts"

/**
 * Reads `WORKER_SLOTS` (concurrent jobs), `WORKER_POOL` (default `default`) and `WORKER_GRACE_MS` (how long running jobs may
 * take to finish on SIGTERM).
 */
export const workerSettings = (defaults: { readonly slots: number; readonly graceMs: number }) =>
  Config.all({
    slots: Config.schema(atLeast(1), "WORKER_SLOTS").pipe(Config.withDefault(defaults.slots)),
    pool: Config.schema(PoolName, "WORKER_POOL").pipe(Config.withDefault("default")),
    graceMs: Config.schema(atLeast(0), "WORKER_GRACE_MS").pipe(Config.withDefault(defaults.graceMs))
  })
