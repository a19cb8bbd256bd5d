/** Reports metrics of task queues. Polls the queues, because tasks outlive the processes that create and run them. */
import { Clock, Effect, type Metric, Option, Schedule, type Scope } from "effect"
import { isTaskQueue, queuesIn, type TaskQueueName } from "../bus/protocol/Subjects.ts"
import type { poolsOf } from "../catalogue/Model.ts"
import * as Metrics from "../telemetry/Metrics.ts"

export interface TaskQueueMetrics<State, E, R> {
  readonly everyMs: number
  readonly pools: () => ReturnType<typeof poolsOf>
  /** Reads the state of a queue; `null` if the queue does not exist yet. */
  readonly read: (queue: TaskQueueName, pool: string) => Effect.Effect<State | null, E, R>
  /** The series of a queue at `now` in epoch milliseconds. */
  readonly seriesOf: (
    state: State,
    queue: TaskQueueName,
    pool: string,
    now: number
  ) => ReadonlyArray<readonly [gauge: Metric.Gauge<number>, value: number]>
}

/** Reports the queues of these pools every `everyMs`. A queue that does not answer has no series, since its last state may be outdated. */
export const report = <State, E, R>(
  { everyMs, pools, read, seriesOf }: TaskQueueMetrics<State, E, R>
): Effect.Effect<void, never, R | Scope.Scope> =>
  Effect.gen(function*() {
    const replace = yield* Metrics.replaceable
    const update = Effect.gen(function*() {
      const queues = queuesIn(pools()).flatMap(({ pool, queue }) => isTaskQueue(queue) ? { pool, queue } : [])
      const states = yield* Effect.forEach(
        queues,
        ({ pool, queue }) => Effect.map(Effect.option(read(queue, pool)), (state) => ({ pool, queue, state })),
        { concurrency: "unbounded" }
      )
      const now = yield* Clock.currentTimeMillis
      replace(states.flatMap(({ pool, queue, state }) => {
        const found = Option.getOrNull(state)
        return found === null ? [] : seriesOf(found, queue, pool, now)
      }))
    })
    yield* update.pipe(
      Effect.repeat(Schedule.spaced(everyMs)),
      // these frequent traces would drown out those of requests
      Effect.withTracerEnabled(false),
      Effect.forkScoped
    )
  })
