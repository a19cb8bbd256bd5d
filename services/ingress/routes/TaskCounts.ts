/**
 * Tells how many tasks wait and run in each pool. They outlive the ingress that took them, and a pool may have no worker to
 * tell of it: so every ingress reads it from the queues.
 */
import { Effect, Layer, Option, Schedule } from "effect"
import { queueCounts } from "../../../shared/bus/provision/QueueState.ts"
import { poolsOf } from "../../../shared/catalogue/Model.ts"
import { Models } from "../../../shared/catalogue/Models.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"

/** How often the queues are read, in milliseconds. */
const everyMs = 5_000

const taskWorkloads = new Set(operations.flatMap(({ kind, workloads }) => kind === "task" ? workloads : []))

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const models = yield* Models
  let told: ReadonlyArray<() => void> = []

  const look = Effect.gen(function*() {
    const pools = poolsOf(models.current()).filter(({ workload }) => taskWorkloads.has(workload))
    const counts = yield* Effect.forEach(pools, ({ pool, workload }) => Effect.option(queueCounts(workload, pool)), {
      concurrency: "unbounded"
    })
    for (const forget of told) forget()
    told = pools.flatMap(({ pool, workload }, index) => {
      const found = Option.getOrNull(counts[index] ?? Option.none())
      // of a queue that does not answer nothing is told: what it last said may be long over
      return found === null ? [] : [
        Metrics.observeUnsafe(Metrics.queueTasks(workload, pool, "waiting"), () => found.pending),
        Metrics.observeUnsafe(Metrics.queueTasks(workload, pool, "running"), () => found.ackPending)
      ]
    })
  })

  yield* look.pipe(
    Effect.repeat(Schedule.spaced(everyMs)),
    // a trace for every look would drown those of requests
    Effect.withTracerEnabled(false),
    Effect.ensuring(Effect.sync(() => told.forEach((forget) => forget()))),
    Effect.forkScoped
  )
}))
