/** The worker of the video workload: takes tasks of its pool from the queue and lives each one. */
import { Config, Effect, Layer } from "effect"
import { Nats } from "../../shared/bus/Nats.ts"
import { TaskQueue } from "../../shared/bus/TaskQueue.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { costOf } from "../../shared/catalogue/Price.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import { VideoProviders } from "../../shared/provider/VideoProviders.ts"
import { VideoTasks } from "../../shared/tasks/VideoTasks.ts"
import { UsageLog } from "../../shared/usage/UsageLog.ts"
import { tell, Worker } from "../../shared/worker/Worker.ts"
import * as TaskLife from "./TaskLife.ts"

/** How long the store is waited for before a task is given back, in milliseconds. */
const patienceMs = 60_000

/**
 * Reads `WORKER_SLOTS` (tasks at once, default 2), `WORKER_POOL` (default `default`) and `WORKER_GRACE_MS`: how long
 * running tasks may take to finish on SIGTERM before they are left to another worker, which goes on with them (default
 * 5,000).
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
    const cost = (model: string, usage: Usage | undefined) =>
      costOf(catalogue.current().models.get(model)?.price, usage)
    const slots = yield* Config.Int("WORKER_SLOTS").pipe(Config.withDefault(2))
    const pool = yield* Config.String("WORKER_POOL").pipe(Config.withDefault("default"))
    const graceMs = yield* Config.Int("WORKER_GRACE_MS").pipe(Config.withDefault(5_000))
    const serving = yield* queue.serve({
      workload: "video",
      pool,
      slots,
      graceMs,
      run: (job) => TaskLife.live({ tasks, providers, worker, log, cost }, job)
    })
    yield* tell("video", pool, slots, serving)
    yield* Effect.logInfo("worker started", { workload: "video", pool, slots })
    return Worker.of({ isReady: serving.isReady })
  })
).pipe(
  Layer.provide([TaskQueue.layer, VideoTasks.layer({ patienceMs }), VideoProviders.layer, UsageLog.layer])
)
