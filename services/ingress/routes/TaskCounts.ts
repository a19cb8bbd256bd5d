/** Metrics of the tasks that wait and run in each pool, from every ingress: a pool may have no worker to report them. */
import { Effect, Layer } from "effect"
import { queueCounts } from "../../../shared/bus/provision/QueueState.ts"
import { poolsOf } from "../../../shared/catalogue/Model.ts"
import { Models } from "../../../shared/catalogue/Models.ts"
import * as TaskQueueMetrics from "../../../shared/process/TaskQueueMetrics.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"

export const layer = Layer.effectDiscard(Effect.flatMap(Models, (models) =>
  TaskQueueMetrics.report({
    everyMs: 5_000,
    pools: () => poolsOf(models.current()),
    read: queueCounts,
    seriesOf: ({ ackPending, pending }, queue, pool) => [
      [Metrics.queueTasks(queue, pool, "waiting"), pending],
      [Metrics.queueTasks(queue, pool, "running"), ackPending]
    ]
  })))
