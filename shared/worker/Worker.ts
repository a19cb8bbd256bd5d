/** Pulls the jobs of one pool and runs each. Every worker service has this part, whatever its workload. */
import { Clock, Context, Effect, Layer } from "effect"
import { JobServer, type ServedJob } from "../bus/worker/JobServer.ts"
import type { Serving } from "../bus/worker/PoolServer.ts"
import { Presence } from "../bus/provision/Presence.ts"
import type { Workload } from "../contract/Operation.ts"
import { UsageLog } from "../usage/UsageLog.ts"
import { adapt } from "./AdaptSlots.ts"
import * as JobLife from "./JobLife.ts"
import { SlotLimit } from "./SlotLimit.ts"
import { defaultSlots, longestAnswerMs, workerSettings } from "./WorkerSettings.ts"

export class Worker extends Context.Service<Worker, {
  /** Whether the worker is connected, has an existing queue, and is not draining. */
  readonly isReady: () => boolean
}>()("shared/worker/Worker") {
  /** Reads the variables of `WorkerSettings.ts`; the grace period defaults to 300,000 ms. */
  static readonly layer = (workload: Workload) =>
    Layer.effect(
      Worker,
      Effect.gen(function*() {
        const server = yield* JobServer
        const performer = yield* JobLife.Performer
        const log = yield* UsageLog
        const clock = yield* Clock.Clock
        const { graceMs, pool, slots } = yield* workerSettings({
          slots: defaultSlots[workload],
          graceMs: longestAnswerMs
        })
        const now = () => clock.currentTimeMillisUnsafe()
        const dependencies = { performer, cost: performer.cost, log, workload, now }
        const run = (job: ServedJob) => JobLife.runJob(dependencies, job)
        const limit = new SlotLimit(slots)
        const slotsNow = () => limit.current
        const serving = yield* server.serve({ workload, pool, slots, slotsNow, graceMs, run })
        yield* adapt(limit, serving)
        return yield* start(workload, pool, serving, performer.delays)
      })
    )
}

/** Answers presence requests for a worker that serves its pool. */
export const start = Effect.fnUntraced(function*(
  workload: Workload,
  pool: string,
  serving: Serving,
  delays?: JobLife.Performer["Service"]["delays"]
) {
  yield* (yield* Presence).answerWith(() => ({
    service: workload,
    isReady: serving.isReady(),
    isDraining: serving.isDraining(),
    ...(delays === undefined ? {} : { delays: delays() }),
    work: { workload, pool, slots: serving.slots(), inFlight: serving.inFlight() }
  }))
  yield* Effect.logInfo("worker started", { workload, pool, slots: serving.slots() })
  return Worker.of({ isReady: serving.isReady })
})
