/** Assembles a worker process, except for the built-in engines of its workload. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer } from "effect"
import { JobServer } from "../bus/worker/JobServer.ts"
import { Nats } from "../nats/Nats.ts"
import { Presence } from "../bus/provision/Presence.ts"
import { Catalogue } from "../catalogue/Catalogue.ts"
import { costAt } from "../catalogue/Model.ts"
import type { Workload } from "../contract/Operation.ts"
import { Guardrail } from "../guardrail/Guardrail.ts"
import { Limits } from "../limits/Limits.ts"
import { GuardedFetch } from "../provider/transport/GuardedFetch.ts"
import type { LocalEngines } from "../provider/protocols/local/Local.ts"
import { Providers } from "../provider/routing/Providers.ts"
import { ResultStore } from "../provider/call/ResultStore.ts"
import { Secrets } from "../provider/transport/Secrets.ts"
import { SharedLimits } from "../provider/routing/SharedLimits.ts"
import { Upstream } from "../provider/transport/Upstream.ts"
import { lines } from "../batches/lines/LineWork.ts"
import * as AnswerWorker from "../tasks/answers/AnswerWorker.ts"
import * as Deliverer from "../webhooks/Deliverer.ts"
import { UsageLog } from "../usage/UsageLog.ts"
import { Performer } from "../worker/JobLife.ts"
import { type Perform, Preparation } from "../worker/Preparation.ts"
import { Worker } from "../worker/Worker.ts"
import * as CatalogueAgreement from "./CatalogueAgreement.ts"
import * as CatalogueKeys from "./CatalogueKeys.ts"
import { HealthServer } from "./HealthServer.ts"

const readiness = Layer.effectDiscard(Effect.gen(function*() {
  const { isReady } = yield* Worker
  yield* (yield* HealthServer).report(isReady)
}))

/** Limits of providers, shared by all workers of all workloads. */
const sharedLimits = Layer.effect(SharedLimits, Limits).pipe(Layer.provide(Limits.layerProviders))

/** Dependencies of calls to providers. */
export const layerProviderTools = Layer.mergeAll(
  Upstream.layer,
  GuardedFetch.layer,
  Secrets.layer.pipe(Layer.provide(NodeFileSystem.layer)),
  sharedLimits
)

/** Performs requests: the workload's own steps enclose the guardrail, which encloses the call to a provider. */
const performer = Layer.effect(
  Performer,
  Effect.gen(function*() {
    const { delays, isIdempotent, perform } = yield* Providers
    const { around } = yield* Preparation
    const guardrail = yield* Guardrail
    const guarded: Perform = (work, answer) => guardrail.around(work, answer, perform)
    const catalogue = yield* Catalogue
    return Performer.of({
      delays,
      isIdempotent,
      perform: (work, reply) => around(work, reply, guarded),
      cost: (...about) => costAt(catalogue.current().models, ...about),
      costInBatch: (...about) => costAt(catalogue.current().models, ...about, true)
    })
  })
)

/** The catalogue of a worker, which takes no edit without the keys for it. */
const catalogue = (workload: Workload) =>
  Catalogue.layer.pipe(
    Layer.provide([CatalogueAgreement.layer, CatalogueKeys.layer(workload).pipe(Layer.provide(Secrets.layer))])
  )

/** Adds health, NATS and the catalogue to a worker. */
export const layerProcess = <E>(workload: Workload, worker: Layer.Layer<Worker, E, Nats | Catalogue | Presence>) =>
  readiness.pipe(
    Layer.provide(worker),
    Layer.provide(Presence.layer),
    Layer.provide(catalogue(workload)),
    Layer.provide(Nats.layerPatient),
    // built first, so that it answers probes while the worker waits for NATS and while it drains
    Layer.provide([HealthServer.layer(8081), NodeFileSystem.layer])
  )

/** The worker service of any workload except video, whose results are tasks. */
export const layer = <E>(options: {
  readonly workload: Workload
  /** The built-in engines of this workload. */
  readonly engines: Layer.Layer<LocalEngines, E, Nats | GuardedFetch | ResultStore>
  /** Steps around the call to a provider. Default: none. */
  readonly preparation?: Layer.Layer<Preparation, E, Nats>
  /** Stores results for clients that ask for a URL. Default: none. */
  readonly results?: Layer.Layer<ResultStore, E, Nats>
}) =>
  layerProcess(
    options.workload,
    Worker.layer(options.workload).pipe(
      Layer.merge([AnswerWorker.layer(options.workload, lines), Deliverer.layer]),
      Layer.provide([performer, JobServer.layer, UsageLog.layer]),
      Layer.provide([Providers.layer, Guardrail.layer, options.preparation ?? Preparation.layerNone]),
      Layer.provide(options.engines),
      Layer.provide([layerProviderTools, options.results ?? ResultStore.layerNone])
    )
  )
