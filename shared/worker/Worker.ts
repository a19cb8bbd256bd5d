/** A worker service without its workload: pulls the jobs of one pool and runs each. */
import { Clock, Context, Effect, Layer } from "effect"
import { JobServer } from "../bus/worker/JobServer.ts"
import type { Serving } from "../bus/worker/PoolServer.ts"
import { Presence } from "../bus/provision/Presence.ts"
import type { Workload } from "../contract/Operation.ts"
import { UsageLog } from "../usage/UsageLog.ts"
import * as JobLife from "./JobLife.ts"
import { workerSettings } from "./WorkerSettings.ts"

export class Worker extends Context.Service<Worker, {
  /** Connected, with an existing queue, and not draining. */
  readonly isReady: () => boolean
}>()("shared/worker/Worker") {
  /** Reads the variables of `WorkerSettings.ts`; the grace period defaults to 300,000 ms. */
  static readonly layer = (workload: Workload, defaultSlots: number) =>
    Layer.effect(
      Worker,
      Effect.gen(function*() {
        const server = yield* JobServer
        const performer = yield* JobLife.Performer
        const log = yield* UsageLog
        const clock = yield* Clock.Clock
        const { graceMs, pool, slots } = yield* workerSettings({ slots: defaultSlots, graceMs: 300_000 })
        const now = () => clock.currentTimeMillisUnsafe()
        const means = { performer, cost: performer.cost, log, workload, now }
        const serving = yield* server.serve({
          workload,
          pool,
          slots,
          graceMs,
          run: (job) => JobLife.runJob(means, job)
        })
        yield* announcePresence(workload, pool, slots, serving)
        yield* Effect.logInfo("worker started", { workload, pool, slots })
        return Worker.of({ isReady: serving.isReady })
      })
    )
}

/** Makes the worker answer presence requests. */
export const announcePresence = Effect.fnUntraced(
  function*(workload: Workload, pool: string, slots: number, serving: Serving) {
    yield* (yield* Presence).answerWith(() => ({
      service: workload,
      isReady: serving.isReady(),
      work: { workload, pool, slots, inFlight: serving.inFlight() }
    }))
  }
)
