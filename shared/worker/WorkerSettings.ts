/** The environment variables that workers of all workloads read. */
import { Config } from "effect"
import { atLeast } from "../contract/Fields.ts"
import { PoolName } from "../contract/Operation.ts"

/**
 * Reads `WORKER_SLOTS` (concurrent jobs, at least 1), `WORKER_POOL` (default `default`) and `WORKER_GRACE_MS` (how long running jobs
 * may continue after SIGTERM, in milliseconds).
 */
export const workerSettings = (defaults: { readonly slots: number; readonly graceMs: number }) =>
  Config.all({
    slots: Config.schema(atLeast(1), "WORKER_SLOTS").pipe(Config.withDefault(defaults.slots)),
    pool: Config.schema(PoolName, "WORKER_POOL").pipe(Config.withDefault("default")),
    graceMs: Config.schema(atLeast(0), "WORKER_GRACE_MS").pipe(Config.withDefault(defaults.graceMs))
  })
