/** The gateway's public HTTP server, its routes and their dependencies. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Effect, Layer, Random } from "effect"
import { HttpMiddleware, HttpRouter } from "effect/http"
import { atLeast } from "../../shared/contract/Fields.ts"
import { JobClient } from "../../shared/bus/ingress/JobClient.ts"
import { provisionPatiently } from "../../shared/bus/provision/JobStreams.ts"
import { mayCreate } from "../../shared/nats/JetStream.ts"
import { layerBothPatient, Nats } from "../../shared/nats/Nats.ts"
import { Presence } from "../../shared/bus/provision/Presence.ts"
import { newestOf, queuesIn, versionsOf } from "../../shared/bus/protocol/Subjects.ts"
import { poolsOf } from "../../shared/catalogue/Model.ts"
import { Models } from "../../shared/catalogue/Models.ts"
import { ResultFiles } from "../../shared/files/ResultFiles.ts"
import { KeyRing } from "../../shared/keys/KeyRing.ts"
import { Limits } from "../../shared/limits/Limits.ts"
import { Owners } from "../../shared/records/Owners.ts"
import * as CatalogueAgreement from "../../shared/process/CatalogueAgreement.ts"
import { HealthServer } from "../../shared/process/HealthServer.ts"
import * as HttpServer from "../../shared/process/http/HttpServer.ts"
import { refuseWhileStarting } from "../../shared/process/http/RefuseWhileStarting.ts"
import { Batches } from "../../shared/batches/Batches.ts"
import { AnswerTasks } from "../../shared/tasks/answers/AnswerTasks.ts"
import { Spending } from "../../shared/usage/Spending.ts"
import { BodyMemory } from "./body/BodyMemory.ts"
import { Admission } from "./request/Admission.ts"
import { Drain, onRelease } from "../../shared/process/Drain.ts"
import { CrossOrigin } from "./exchange/CrossOrigin.ts"
import { Front } from "./exchange/Front.ts"
import { Upgrades } from "./exchange/Upgrades.ts"
import * as AnswerTaskRoutes from "./owned/AnswerTasks.ts"
import * as BatchRoutes from "./owned/batches/Batches.ts"
import * as MessageBatchRoutes from "./owned/batches/MessageBatches.ts"
import * as ClientFileRoutes from "./owned/ClientFiles.ts"
import { Principals } from "./identity/Principals.ts"
import * as TokenKeys from "./identity/TokenKeys.ts"
import * as NotReady from "./answer/NotReady.ts"
import * as ModelRoutes from "./routes/Models.ts"
import * as Docs from "./reference/page/Docs.ts"
import * as Operations from "./routes/Operations.ts"
import { RequestLog } from "./record/RequestLog.ts"
import { RequestRecords } from "./record/RequestRecords.ts"
import * as Results from "./routes/Results.ts"
import * as RouteRecords from "./routes/RouteRecords.ts"
import * as Sockets from "./routes/Sockets.ts"
import * as StoredResponses from "./owned/StoredResponses.ts"
import * as WorkAdmission from "./request/WorkAdmission.ts"
import * as TaskCounts from "./routes/TaskCounts.ts"
import * as Tasks from "./routes/Tasks.ts"
import * as UnreadableRequest from "./answer/UnreadableRequest.ts"

/**
 * How long an ingress stays ready without NATS, in milliseconds. Most reconnects take less, and requests wait for them. The time
 * differs between ingresses, so that an outage does not take all of them out of the load balancer at the same time.
 */
const readyWithoutNatsMs = { least: 5_000, most: 15_000 }

/** Ready while it serves, has the keys, has not been without NATS for long and is not draining. */
const readiness = Layer.effectDiscard(Effect.gen(function*() {
  const { least, most } = readyWithoutNatsMs
  const withoutNatsMs = yield* Random.nextBetween(least, most)
  const nats = yield* Nats
  const keys = yield* KeyRing
  const drain = yield* Drain
  const jobs = yield* JobClient
  const models = yield* Models
  const isReady = () => nats.awayForMs() < withoutNatsMs && keys.isLoaded() && !drain.isDraining()
  yield* (yield* Presence).answerWith(() => ({
    service: "ingress",
    isReady: isReady(),
    isDraining: drain.isDraining(),
    queues: poolsOf(models.current()).map((pool) => ({ ...pool, ...jobs.depth(pool.workload, pool.pool) }))
  }))
  yield* (yield* HealthServer).report(isReady)
}))

/**
 * Creates the queues of every model in the catalogue, before the first job and after each reconnect. Does not wait for queues of
 * older protocol versions, which may have no leader, nor for any that only `provision` may create: a pool that was not provisioned
 * must not keep ingress from serving the others.
 */
const queues = Layer.effectDiscard(Effect.gen(function*() {
  const nats = yield* Nats
  const models = yield* Models
  const scope = yield* Effect.scope
  const run = Effect.runForkWith(yield* Effect.context<Nats>())
  const ensure = Effect.suspend(() =>
    Effect.forEach(
      queuesIn(poolsOf(models.current())).flatMap(({ pool, queue }) =>
        versionsOf(queue).map((version) => ({ queue, pool, version }))
      ),
      ({ pool, queue, version }) => {
        const provision = provisionPatiently(queue, pool, version)
        return version === newestOf(queue) ? provision : Effect.forkIn(provision, scope)
      },
      { discard: true, concurrency: "unbounded" }
    )
  )
  yield* (yield* mayCreate) ? ensure : Effect.forkScoped(ensure)
  yield* Effect.acquireRelease(
    Effect.sync(() => nats.onReconnect(() => void run(ensure))),
    (forget) => Effect.sync(forget)
  )
}))

/** Reads `PORT` (default 8080), `HOST` (default 127.0.0.1) and `GRACE_MS` (for running requests, default 1,800,000: the longest answer). */
const server = Layer.unwrap(Effect.gen(function*() {
  const port = yield* Config.Port("PORT").pipe(Config.withDefault(8080))
  const host = yield* Config.String("HOST").pipe(Config.withDefault("127.0.0.1"))
  const { take } = yield* Front
  const upgrades = yield* Upgrades
  const crossOrigin = yield* CrossOrigin
  const graceMs = yield* Config.schema(atLeast(0), "GRACE_MS").pipe(Config.withDefault(1_800_000))
  return NodeHttpServer.layer(
    // a request's headers must arrive within 10 s and the whole request within 10 minutes: 200 MB at 2.7 Mbit/s
    () =>
      refuseWhileStarting(
        UnreadableRequest.handle(
          HttpServer.make({
            headersTimeout: 10_000,
            requestTimeout: 600_000,
            connectionsCheckingInterval: 1_000,
            keepAliveTimeout: 65_000,
            answerRejected: UnreadableRequest.answerRejected,
            take: (request, response) => crossOrigin.take(request, response) || take(request, response),
            upgrades
          })
        ),
        NotReady.refusalOf
      ),
    { port, host, gracefulShutdownTimeout: graceMs }
  )
}))

/** All routes of the public port. */
export const routes = Layer.mergeAll(
  Operations.layer,
  Sockets.layer,
  StoredResponses.layer,
  ModelRoutes.layer,
  Tasks.layer,
  AnswerTaskRoutes.layer,
  ClientFileRoutes.layer,
  BatchRoutes.layer,
  MessageBatchRoutes.layer,
  Results.layer,
  Docs.layer
).pipe(
  Layer.provide(RouteRecords.layer),
  Layer.provide(RequestRecords.layer)
)

export const layer = Layer.merge(readiness, onRelease).pipe(
  Layer.provideMerge(HttpRouter.serve(routes, { disableLogger: true, routerConfig: { maxParamLength: 512 } })),
  // `RequestRecord` makes the span of each request, which ends with the answer's last byte
  Layer.provide(Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)),
  Layer.provide([queues, TaskCounts.layer, WorkAdmission.layer, BodyMemory.layer]),
  Layer.provide([
    TokenKeys.layer.pipe(Layer.provide([KeyRing.layer, Principals.layer])),
    Owners.layer,
    Admission.layer,
    JobClient.layer,
    ResultFiles.layer,
    Drain.layer
  ]),
  Layer.provide([
    Tasks.services,
    StoredResponses.services,
    ClientFileRoutes.services,
    AnswerTasks.layer,
    Batches.layer
  ]),
  Layer.provide([Limits.layerKeys, Spending.layer]),
  Layer.provide(Presence.layer),
  Layer.provide(Models.layer.pipe(Layer.provide(CatalogueAgreement.layer))),
  Layer.provide(layerBothPatient),
  // listens first: requests get 503 with `retry-after` until NATS is connected
  Layer.provide([server, NodeFileSystem.layer]),
  // closes after the server: answers that exceed the grace period end only when `JobClient` closes
  Layer.provide(RequestLog.layer),
  Layer.provide([Front.layer, Upgrades.layer, CrossOrigin.layer]),
  Layer.provide(HealthServer.layer(8081))
)
