/** The worker of the video workload: runs the tasks of its pool. */
import { Effect, Layer } from "effect"
import { Nats } from "../../shared/nats/Nats.ts"
import type { PulledJob } from "../../shared/bus/worker/JobSource.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { costAt, hasPrice } from "../../shared/catalogue/Model.ts"
import { Guardrail } from "../../shared/guardrail/Guardrail.ts"
import { Holds } from "../../shared/limits/Holds.ts"
import { VideoProviders } from "../../shared/provider/routing/VideoProviders.ts"
import * as TaskLife from "../../shared/tasks/TaskLife.ts"
import { TaskQueue } from "../../shared/tasks/TaskQueue.ts"
import { TaskStore } from "../../shared/tasks/TaskStore.ts"
import { UsageLog } from "../../shared/usage/UsageLog.ts"
import { start, Worker } from "../../shared/worker/Worker.ts"
import { defaultSlots, workerSettings } from "../../shared/worker/WorkerSettings.ts"
import * as VideoWork from "./VideoWork.ts"

/** The wait for the store before the worker releases a task, in milliseconds. */
const patienceMs = 60_000

/**
 * Reads the variables of `WorkerSettings.ts`. By default it runs 2 tasks concurrently, with a grace period of 5,000 ms, after
 * which other workers continue its running tasks.
 */
export const layer = Layer.effect(
  Worker,
  Effect.gen(function*() {
    const queue = yield* TaskQueue
    const store = yield* TaskStore
    const providers = yield* VideoProviders
    const guardrail = yield* Guardrail
    const { id: worker } = yield* Nats
    const catalogue = yield* Catalogue
    const log = yield* UsageLog
    const holds = yield* Holds
    /** Reserves the cost of work at an ingress. Work without a cost needs no ingress. */
    const reserve: Holds["Service"]["around"] = (work, use, hasBegun) => {
      const model = catalogue.current().models.get(work.model)
      return model !== undefined && hasPrice(model) ? holds.around(work, use, hasBegun) : use(() => undefined)
    }
    const { graceMs, pool, slots } = yield* workerSettings({ slots: defaultSlots.video, graceMs: 5_000 })
    const dependencies: TaskLife.Dependencies = {
      workload: "video",
      work: VideoWork.make({ store, providers, guardrail, reserve }),
      store,
      worker,
      metering: { log, cost: (...about) => costAt(catalogue.current().models, ...about) }
    }
    const run = (job: PulledJob) => TaskLife.runTask(dependencies, job)
    return yield* start("video", pool, yield* queue.serve({ queue: "video", pool, slots, graceMs, run }))
  })
).pipe(
  Layer.provide([
    TaskQueue.layer,
    TaskStore.layer({ patienceMs }),
    VideoProviders.layer,
    Guardrail.layer,
    Holds.layer("video"),
    UsageLog.layer
  ])
)
