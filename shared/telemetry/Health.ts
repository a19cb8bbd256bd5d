/** The routes `/healthz`, `/readyz` and `/metrics` of every service, on the port of `HealthServer`. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"

const paths = { live: "/healthz", ready: "/readyz", metrics: "/metrics" } as const

/** Whether probes or scrapers request this path. */
export const isHealthPath = (path: string): boolean => Object.values<string>(paths).includes(path)

/** Live: the process answers. Ready: it would serve a request or job. */
export const routes = (isReady: () => boolean): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.mergeAll(
    HttpRouter.add("GET", paths.live, HttpServerResponse.text("ok\n")),
    HttpRouter.add(
      "GET",
      paths.ready,
      Effect.sync(() =>
        isReady() ? HttpServerResponse.text("ready\n") : HttpServerResponse.text("not ready\n", { status: 503 })
      )
    ),
    PrometheusMetrics.layerHttp({ path: paths.metrics })
  )
