/** The batch service: runs each batch from its creation until its results are complete. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Schedule } from "effect"
import { TenantBudget } from "../../shared/bounds/TenantBudget.ts"
import * as LineLog from "../../shared/batches/lines/LineLog.ts"
import * as BatchWork from "../../shared/batches/BatchWork.ts"
import { batchPool, batchQueue } from "../../shared/bus/protocol/Subjects.ts"
import { Presence } from "../../shared/bus/provision/Presence.ts"
import type { PulledJob } from "../../shared/bus/worker/JobSource.ts"
import { Models } from "../../shared/catalogue/Models.ts"
import { ClientFiles } from "../../shared/files/ClientFiles.ts"
import { backOff, whileJetStreamFails } from "../../shared/nats/JetStream.ts"
import { openBucket } from "../../shared/nats/KeyValue.ts"
import { Nats } from "../../shared/nats/Nats.ts"
import { buckets } from "../../shared/nats/Storage.ts"
import * as CatalogueAgreement from "../../shared/process/CatalogueAgreement.ts"
import { HealthServer } from "../../shared/process/HealthServer.ts"
import * as RecordStore from "../../shared/tasks/RecordStore.ts"
import * as TaskLife from "../../shared/tasks/TaskLife.ts"
import { TaskQueue } from "../../shared/tasks/TaskQueue.ts"
import { openAnnouncer } from "../../shared/webhooks/Announcer.ts"
import { workerSettings } from "../../shared/worker/WorkerSettings.ts"

/** How long to wait for the store before releasing a batch, in milliseconds. */
const patienceMs = 60_000

/** When a batch is delivered again whose tenant holds half of the slots, in milliseconds. */
const othersFirstMs = 5_000

/**
 * Reads the variables of `WorkerSettings.ts`. By default, runs 16 batches concurrently, with a grace period of 5,000 ms, after which other
 * processes continue them.
 */
const holder = Layer.effectDiscard(Effect.gen(function*() {
  const nats = yield* Nats
  const queue = yield* TaskQueue
  const files = yield* ClientFiles
  const models = yield* Models
  const { graceMs, slots } = yield* workerSettings({ slots: 16, graceMs: 5_000 })
  const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
  const bucket = yield* openBucket(buckets.batches).pipe(Effect.retry(whileJetStreamFails))
  const worker = nats.id
  const log = yield* LineLog.open(patience)
  const work = BatchWork.make({ files, log, queue, worker, models: models.current, announcer: yield* openAnnouncer })
  const dependencies = { work, worker, workload: batchQueue, store: RecordStore.make(bucket, patience) }
  // a batch may take a day: without shares, one tenant's slow batches would keep those of all others waiting until they expire
  const shares = new TenantBudget(Math.max(2, slots), 0)
  const run = (job: PulledJob) =>
    Effect.acquireUseRelease(
      Effect.sync(() => shares.reserve(job.tenant, 1)),
      (isReserved) => isReserved ? TaskLife.runTask(dependencies, job) : Effect.succeed({ afterMs: othersFirstMs }),
      (isReserved) => Effect.sync(() => isReserved && shares.release(job.tenant, 1))
    )
  const { inFlight, isDraining, isReady } = yield* queue.serve({
    queue: batchQueue,
    pool: batchPool,
    slots,
    graceMs,
    run
  })
  yield* (yield* Presence).answerWith(() => ({
    service: "batches",
    isReady: isReady(),
    isDraining: isDraining()
  }))
  yield* (yield* HealthServer).report(isReady)
  yield* Effect.logInfo("service of batches started", { slots, inFlight: inFlight() })
}))

export const layer = holder.pipe(
  Layer.provide([TaskQueue.layer, ClientFiles.layer({ patienceMs }), Presence.layer]),
  Layer.provide(Models.layer.pipe(Layer.provide(CatalogueAgreement.layer))),
  Layer.provide(Nats.layerPatient),
  // first, so that it answers probes while the service waits for NATS
  Layer.provide([HealthServer.layer(8081), NodeFileSystem.layer])
)
