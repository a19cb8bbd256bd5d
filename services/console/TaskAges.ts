/**
 * Metrics of the oldest task of each pool. The console reports them because it runs once per gateway and may read the messages of
 * the queues.
 */
import { Effect, Layer } from "effect"
import { queueState } from "../../shared/bus/provision/QueueState.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { poolsOf } from "../../shared/catalogue/Model.ts"
import * as TaskQueueMetrics from "../../shared/process/TaskQueueMetrics.ts"
import * as Metrics from "../../shared/telemetry/Metrics.ts"

export const layer = Layer.effectDiscard(Effect.flatMap(Catalogue, (catalogue) =>
  TaskQueueMetrics.report({
    everyMs: 15_000,
    pools: () => poolsOf(catalogue.current()),
    read: queueState,
    seriesOf: ({ oldestAt }, queue, pool, now) => [
      [Metrics.oldestTask(queue, pool), oldestAt === null ? 0 : Math.max(0, now - oldestAt) / 1_000]
    ]
  })))
