/** The ingress's side of the job bus: publishes jobs and relays their answers. */
import { Clock, Config, Context, Effect, Layer, Tracer } from "effect"
import { atLeast } from "../../contract/Fields.ts"
import type { Workload } from "../../contract/Operation.ts"
import { bodyBudgetBytes, TenantBudget } from "../../bounds/TenantBudget.ts"
import type { AnswerListener, JobHandle, JobRequest } from "./JobRequest.ts"
import { JobSpans } from "./JobSpans.ts"
import type { PoolLimits } from "./JobPool.ts"
import { JobTracker, type QueueDepth } from "./JobTracker.ts"
import { memoryLimit } from "../../bounds/MemoryLimit.ts"
import { Nats } from "../../nats/Nats.ts"
import { everyWhile } from "../../bounds/MonotonicClock.ts"
import { occupancyTickMs } from "../fairness/OccupancyExchange.ts"
import { idleTickMs, tickMs } from "../protocol/Timings.ts"

/** A class whose oldest job has waited for this many milliseconds gets a share of the turns. */
const ageingMs = 5_000

export class JobClient extends Context.Service<JobClient, {
  /** Never throws. Reports a rejection through `listener.onError`, at the earliest in the next turn of the event loop. */
  readonly submit: (request: JobRequest, listener: AnswerListener) => JobHandle
  readonly depth: (workload: Workload, pool: string) => QueueDepth
  /** The budget for the bodies of all open jobs and of uploads. */
  readonly bodies: TenantBudget
}>()("shared/bus/ingress/JobClient") {
  /**
   * Reads `GATEWAY_QUEUE_LIMIT` (waiting jobs per pool in this process, default 4,000), `GATEWAY_TENANT_QUEUE_LIMIT` (waiting
   * jobs of one key, default half of that), `GATEWAY_QUEUE_BYTES` (bytes of the bodies of all open jobs, of which one key may
   * use half; default: see `TenantBudget.ts`) and `GATEWAY_WINDOW` (unclaimed jobs per pool in the stream, default 64).
   */
  static readonly layer = Layer.effect(
    JobClient,
    Effect.gen(function*() {
      const nats = yield* Nats
      const clock = yield* Clock.Clock
      const tracer = yield* Tracer.Tracer
      const spans = tracer === Tracer.nativeTracer
        ? undefined
        : new JobSpans(tracer, () => clock.currentTimeNanosUnsafe())
      const items = yield* Config.schema(atLeast(0), "GATEWAY_QUEUE_LIMIT").pipe(Config.withDefault(4_000))
      const bytes = yield* Config.schema(atLeast(1), "GATEWAY_QUEUE_BYTES").pipe(
        Config.withDefault(bodyBudgetBytes(memoryLimit(), 4))
      )
      const bodies = new TenantBudget(bytes)
      const limits: PoolLimits = {
        items,
        itemsPerTenant: yield* Config.schema(atLeast(0), "GATEWAY_TENANT_QUEUE_LIMIT").pipe(
          Config.withDefault(Math.ceil(items / 2))
        ),
        window: yield* Config.schema(atLeast(1), "GATEWAY_WINDOW").pipe(Config.withDefault(64)),
        ageingMs
      }
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const logPoison = (job: Readonly<Record<string, string>>): void => {
        fork(Effect.logError("poison job: two workers in a row were lost while running it", job))
      }
      const tracker = yield* Effect.acquireRelease(
        Effect.sync(() => new JobTracker(nats, clock, spans, limits, bodies, logPoison)),
        (tracker) => Effect.sync(() => tracker.close())
      )
      const { occupancyExchange, working } = tracker
      yield* everyWhile(working, tickMs, idleTickMs, () => tracker.tick())
      yield* everyWhile(working, occupancyTickMs, idleTickMs, () => occupancyExchange.tick())
      return JobClient.of({
        bodies,
        submit: (request, listener) => tracker.submit(request, listener),
        depth: (workload, pool) => tracker.depth(workload, pool)
      })
    })
  )
}
