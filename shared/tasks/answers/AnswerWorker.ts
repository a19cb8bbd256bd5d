/** Serves, in a worker, the tasks whose results are answers to requests, beside the worker's jobs. */
import { Clock, type Config, Effect, Layer, Schedule } from "effect"
import type { Workload } from "../../contract/Operation.ts"
import { backOff, type JetStreamFailed, whileJetStreamFails } from "../../nats/JetStream.ts"
import { openBucket } from "../../nats/KeyValue.ts"
import { Nats } from "../../nats/Nats.ts"
import { buckets } from "../../nats/Storage.ts"
import { taskQueueOf } from "../../bus/protocol/Subjects.ts"
import { Holds } from "../../limits/Holds.ts"
import type { PulledJob } from "../../bus/worker/JobSource.ts"
import * as Seal from "../../records/Seal.ts"
import { UsageLog } from "../../usage/UsageLog.ts"
import { type Dependencies, Performer } from "../../worker/JobLife.ts"
import { defaultSlots, longestAnswerMs, taskSlots, workerSettings } from "../../worker/WorkerSettings.ts"
import { openAnnouncer } from "../../webhooks/Announcer.ts"
import * as AnswerWork from "./AnswerWork.ts"
import * as StoredAnswer from "./StoredAnswer.ts"
import * as RecordStore from "../RecordStore.ts"
import { runTask } from "../TaskLife.ts"
import type { Settlement } from "../TaskState.ts"
import * as TaskBytes from "../TaskBytes.ts"
import * as TaskHints from "./TaskHints.ts"
import * as TaskPages from "./TaskPages.ts"
import { TaskQueue } from "../TaskQueue.ts"

/** How long a worker waits for the store before it releases a task, in milliseconds. */
const patienceMs = 60_000

export interface Tools {
  readonly dependencies: Dependencies
  readonly holds: Holds["Service"]
  readonly worker: string
  /** How to wait for the store. */
  readonly patience: Schedule.Schedule<unknown>
}

/** Handles jobs in the same queue that have no task record, such as lines of batches. */
export interface OtherJobs {
  readonly isOne: (id: string) => boolean
  readonly open: (
    tools: Tools
  ) => Effect.Effect<
    (job: PulledJob) => Effect.Effect<Settlement>,
    Config.ConfigError | Effect.Error<typeof Seal.fromSecret> | JetStreamFailed,
    Nats
  >
}

/**
 * Reads the variables of `WorkerSettings.ts`. The worker's jobs are not delayed while the storage of tasks is unavailable.
 */
export const layer = (workload: Workload, others?: OtherJobs) =>
  Layer.effectDiscard(Effect.gen(function*() {
    const nats = yield* Nats
    const queue = yield* TaskQueue
    const holds = yield* Holds
    const performer = yield* Performer
    const log = yield* UsageLog
    const clock = yield* Clock.Clock
    const { graceMs, pool, slots: jobSlots } = yield* workerSettings({
      slots: defaultSlots[workload],
      graceMs: longestAnswerMs
    })
    const slots = yield* taskSlots(jobSlots)
    const seal = yield* Seal.fromSecret
    const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
    const serve = Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.tasks).pipe(Effect.retry(whileJetStreamFails))
      const { cost } = performer
      const dependencies = { performer, log, workload, cost, now: () => clock.currentTimeMillisUnsafe() }
      const hints = TaskHints.make(nats)
      const { answer: countAnswer } = yield* TaskBytes.make(bucket, patience)
      const pages = TaskPages.make(bucket, seal, hints, patience, countAnswer)
      const work = AnswerWork.make(StoredAnswer.make(dependencies), pages, holds, yield* openAnnouncer)
      const store = RecordStore.make(bucket, patience, hints.give)
      const runOther = yield* others?.open({ dependencies, holds, worker: nats.id, patience }) ?? Effect.undefined
      const run = (job: PulledJob) =>
        runOther !== undefined && others?.isOne(job.id) === true
          ? runOther(job)
          : runTask({ store, workload, metering: { log, cost }, work, worker: nats.id }, job)
      yield* queue.serve({ queue: taskQueueOf(workload), pool, slots, graceMs, run })
    })
    yield* Effect.forkScoped(serve)
  })).pipe(Layer.provide([TaskQueue.layer, Holds.layer(workload)]))
