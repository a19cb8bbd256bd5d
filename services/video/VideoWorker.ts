/** The worker of the video workload: runs the tasks of its pool. */
import { Effect, Layer } from "effect"
import { Nats } from "../../shared/nats/Nats.ts"
import type { PulledJob } from "../../shared/bus/worker/JobSource.ts"
import { TaskQueue } from "../../shared/bus/tasks/TaskQueue.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { costAt } from "../../shared/catalogue/Model.ts"
import { VideoProviders } from "../../shared/provider/routing/VideoProviders.ts"
import { VideoTasks } from "../../shared/tasks/VideoTasks.ts"
import { UsageLog } from "../../shared/usage/UsageLog.ts"
import { start, Worker } from "../../shared/worker/Worker.ts"
import { workerSettings } from "../../shared/worker/WorkerSettings.ts"
import * as TaskLife from "./TaskLife.ts"
import type { TaskMetering } from "./TaskUsage.ts"

/** The wait for the store before the worker releases a task, in milliseconds. */
const patienceMs = 60_000

/**
 * Reads the variables of `WorkerSettings.ts`. By default it runs 2 tasks at once, with a grace period of 5,000 ms, after
 * which other workers continue its running tasks.
 */
export const layer = Layer.effect(
  Worker,
  Effect.gen(function*() {
    const queue = yield* TaskQueue
    const tasks = yield* VideoTasks
    const providers = yield* VideoProviders
    const { id: worker } = yield* Nats
    const catalogue = yield* Catalogue
    const log = yield* UsageLog
    const cost: TaskMetering["cost"] = (...about) => costAt(catalogue.current().models, ...about)
    const { graceMs, pool, slots } = yield* workerSettings({ slots: 2, graceMs: 5_000 })
    const run = (job: PulledJob) => TaskLife.runTask({ tasks, providers, worker, log, cost }, job)
    return yield* start("video", pool, slots, yield* queue.serve({ workload: "video", pool, slots, graceMs, run }))
  })
).pipe(
  Layer.provide([TaskQueue.layer, VideoTasks.layer({ patienceMs }), VideoProviders.layer, UsageLog.layer])
)
