/** The console's server: the admin API, the web app, the trace intake, and the playground's proxy to ingress. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { ByteSize, Config, Effect, Layer, Schema } from "effect"
import { HttpIncomingMessage, HttpMiddleware, HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ControlNats, layerBothPatient, Nats } from "../../shared/nats/Nats.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { KeyAudit } from "../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../shared/keys/KeyStore.ts"
import * as CatalogueAgreement from "../../shared/process/CatalogueAgreement.ts"
import { HealthServer } from "../../shared/process/HealthServer.ts"
import * as HttpServer from "../../shared/process/http/HttpServer.ts"
import { refuseWhileStarting } from "../../shared/process/http/RefuseWhileStarting.ts"
import { TeamStore } from "../../shared/teams/TeamStore.ts"
import * as TeamsOfKeys from "../../shared/teams/TeamsOfKeys.ts"
import { Spending } from "../../shared/usage/Spending.ts"
import { TeamTree } from "../../shared/teams/TeamTree.ts"
import { UsageCounters } from "../../shared/usage/UsageCounters.ts"
import { AdminToken } from "./access/AdminToken.ts"
import * as BudgetAlerts from "./BudgetAlerts.ts"
import { ConsoleApi } from "./api/Api.ts"
import { Unavailable } from "./api/Errors.ts"
import { OidcSettings } from "./access/OidcSettings.ts"
import { TokenThrottle } from "./access/TokenThrottle.ts"
import * as Authorization from "./access/Authorization.ts"
import { Fleet } from "./handlers/Fleet.ts"
import * as FleetHandlers from "./handlers/FleetHandlers.ts"
import * as GatewayProxy from "./handlers/GatewayProxy.ts"
import * as KeyHandlers from "./handlers/KeyHandlers.ts"
import * as ProblemDetails from "./ProblemDetails.ts"
import * as QueueKeeper from "./QueueKeeper.ts"
import { RequestLog } from "./handlers/RequestLog.ts"
import * as SameOrigin from "./access/SameOrigin.ts"
import * as SecurityHeaders from "./access/SecurityHeaders.ts"
import * as SessionHandlers from "./handlers/SessionHandlers.ts"
import { Sessions } from "./access/Sessions.ts"
import { OpenIdProvider } from "./signin/OpenIdProvider.ts"
import * as SignInRoutes from "./signin/SignInRoutes.ts"
import * as TaskAges from "./TaskAges.ts"
import * as TaskHandlers from "./handlers/TaskHandlers.ts"
import { Tasks } from "./handlers/Tasks.ts"
import * as TeamHandlers from "./handlers/TeamHandlers.ts"
import { TokenOwners } from "./handlers/TokenOwners.ts"
import * as TraceHandlers from "./handlers/TraceHandlers.ts"
import * as TraceIntake from "./traces/TraceIntake.ts"
import { Traces } from "./traces/Traces.ts"
import * as UsageHandlers from "./handlers/UsageHandlers.ts"
import * as WebhookHandlers from "./handlers/WebhookHandlers.ts"
import * as WebApp from "./WebApp.ts"

/** Reports ready while the server listens and is connected to NATS. */
const readiness = Layer.effectDiscard(Effect.gen(function*() {
  const nats = yield* Nats
  const control = yield* ControlNats
  yield* (yield* HealthServer).report(() => nats.isConnected() && control.isConnected())
}))

/** Maximum size of a request to the admin API. */
const maxBodyBytes = 64 * 1024

const notStarted = { body: JSON.stringify(Schema.encodeSync(Unavailable)(new Unavailable())) }

/** Reads `PORT` (default 8090) and `HOST` (default 127.0.0.1). */
const server = Layer.unwrap(Effect.gen(function*() {
  const port = yield* Config.Port("PORT").pipe(Config.withDefault(8090))
  const host = yield* Config.String("HOST").pipe(Config.withDefault("127.0.0.1"))
  return NodeHttpServer.layer(
    () => refuseWhileStarting(HttpServer.make({ headersTimeout: 10_000, requestTimeout: 120_000 }), () => notStarted),
    { port, host, gracefulShutdownTimeout: "5 seconds" }
  )
}))

const adminApi = HttpApiBuilder.layer(ConsoleApi, { openapiPath: "/api/openapi.json" }).pipe(
  Layer.provide([SessionHandlers.layer, KeyHandlers.layer, TeamHandlers.layer, WebhookHandlers.layer]),
  Layer.provide([FleetHandlers.layer, UsageHandlers.layer, TaskHandlers.layer, TraceHandlers.layer]),
  Layer.provide([Authorization.layer, ProblemDetails.layer])
)

const routes = Layer.mergeAll(adminApi, SignInRoutes.layer, GatewayProxy.layer, TraceIntake.layer, WebApp.layer).pipe(
  Layer.provide([SecurityHeaders.layer, SameOrigin.layer])
)

export const layer = Layer.mergeAll(readiness, QueueKeeper.layer, TaskAges.layer, BudgetAlerts.layer).pipe(
  Layer.provideMerge(
    HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true, routerConfig: { maxParamLength: 4_096 } })
  ),
  // no tracing: only requests of API clients are traced
  Layer.provide([
    Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true),
    Layer.succeed(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes))
  ]),
  Layer.provide([Sessions.layer, OpenIdProvider.layer, TokenThrottle.layer, Fleet.layer]),
  Layer.provide(TeamStore.layer),
  Layer.provide([KeyStore.layer, KeyAudit.layer, WebhookHandlers.Webhooks.layer, UsageCounters.layer]),
  Layer.provide([TeamsOfKeys.layer, TeamTree.layer, Spending.layer]),
  Layer.provide([RequestLog.layer, TokenOwners.layer, Tasks.layer, Traces.layer, WebApp.WebFiles.layer]),
  Layer.provide([AdminToken.layer, Catalogue.layer.pipe(Layer.provide(CatalogueAgreement.layer))]),
  Layer.provide(layerBothPatient),
  Layer.provide(OidcSettings.layer),
  // listens first: pages get 503 with `retry-after` until the console is connected to NATS
  Layer.provide([server, NodeFileSystem.layer]),
  Layer.provide(HealthServer.layer(8091))
)
