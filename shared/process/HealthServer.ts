/**
 * Serves health and metrics on a separate port, which only probes and scrapers need. A service opens the port first and closes it last,
 * so that it answers while the service waits for NATS and while the service drains.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Config, Context, Effect, Layer, type Scope } from "effect"
import { HttpMiddleware, HttpRouter } from "effect/http"
import * as Health from "../telemetry/Health.ts"
import * as HttpServer from "./http/HttpServer.ts"

export class HealthServer extends Context.Service<HealthServer, {
  /** Sets the readiness check until the scope closes. Without a check, the service is not ready. */
  readonly report: (isReady: () => boolean) => Effect.Effect<void, never, Scope.Scope>
}>()("shared/process/HealthServer") {
  /** Reads `HEALTH_PORT` (default: the one given) and `HEALTH_HOST` (default 127.0.0.1). */
  static readonly layer = (defaultPort: number) =>
    Layer.effect(
      HealthServer,
      Effect.gen(function*() {
        const port = yield* Config.Port("HEALTH_PORT").pipe(Config.withDefault(defaultPort))
        const host = yield* Config.String("HEALTH_HOST").pipe(Config.withDefault("127.0.0.1"))
        const node = HttpServer.make({ headersTimeout: 10_000, requestTimeout: 10_000 })
        const server = yield* NodeHttpServer.make(() => node, { port, host, disablePreemptiveShutdown: true })
        // unanswered probes must not delay the exit; their senders retry
        yield* Effect.addFinalizer(() => Effect.sync(() => node.closeAllConnections()))
        const none = () => false
        let isReady = none
        yield* server.serve(yield* HttpRouter.toHttpEffect(Health.routes(() => isReady())))
        yield* Effect.logInfo("health and metrics are served", { host, port })
        return HealthServer.of({
          report: (reported) =>
            Effect.acquireRelease(
              Effect.sync(() => void (isReady = reported)),
              () => Effect.sync(() => void (isReady = none))
            )
        })
      }).pipe(
        // no traces of probes and scrapes
        Effect.provideService(HttpMiddleware.TracerDisabledWhen, () => true)
      )
    )
}
