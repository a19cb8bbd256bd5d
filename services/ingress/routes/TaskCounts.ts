/**
 * Metrics of the tasks that wait and run in each pool. Every ingress reads them from the queues, because tasks outlive the
 * ingress that created them and a pool may have no worker to report them.
 */
import { Effect, Layer, Option, Schedule } from "effect"
import { isTaskQueue, queuesIn } from "../../../shared/bus/protocol/Subjects.ts"
import { queueCounts } from "../../../shared/bus/provision/QueueState.ts"
import { poolsOf } from "../../../shared/catalogue/Model.ts"
import { Models } from "../../../shared/catalogue/Models.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"

/** How often the queues are read, in milliseconds. */
const everyMs = 5_000

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const models = yield* Models
  let reported: ReadonlyArray<() => void> = []

  const update = Effect.gen(function*() {
    const queues = queuesIn(poolsOf(models.current())).filter(({ queue }) => isTaskQueue(queue))
    const counts = yield* Effect.forEach(queues, ({ pool, queue }) => Effect.option(queueCounts(queue, pool)), {
      concurrency: "unbounded"
    })
    for (const forget of reported) forget()
    reported = queues.flatMap(({ pool, queue }, index) => {
      const found = Option.getOrNull(counts[index] ?? Option.none())
      // a queue that does not answer has no metric: its last count may be outdated
      return found === null ? [] : [
        Metrics.observeUnsafe(Metrics.queueTasks(queue, pool, "waiting"), () => found.pending),
        Metrics.observeUnsafe(Metrics.queueTasks(queue, pool, "running"), () => found.ackPending)
      ]
    })
  })

  yield* update.pipe(
    Effect.repeat(Schedule.spaced(everyMs)),
    // the frequent traces would hide those of requests
    Effect.withTracerEnabled(false),
    Effect.ensuring(Effect.sync(() => reported.forEach((forget) => forget()))),
    Effect.forkScoped
  )
}))
