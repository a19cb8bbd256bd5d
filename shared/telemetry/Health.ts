/** `/healthz`, `/readyz` and `/metrics`, the same for every service. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

/** Alive means that the process answers; ready, that requests or jobs sent to it would be served. */
export const routes = (isReady: () => boolean): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.mergeAll(
    HttpRouter.add("GET", "/healthz", HttpServerResponse.text("ok\n")),
    HttpRouter.add(
      "GET",
      "/readyz",
      Effect.sync(() =>
        isReady()
          ? HttpServerResponse.text("ready\n")
          : HttpServerResponse.text("not ready\n", { status: 503 })
      )
    ),
    PrometheusMetrics.layerHttp()
  )
