/**
 * Limits the cost of a collector that is down, slow or full. Each delivery has a deadline, and few run concurrently. While a batch is
 * retried, further batches of the same signal (traces, metrics or logs) are dropped. Logs once when failures begin and once when they
 * end.
 */
import { Config, Effect, Layer, Metric, Schema } from "effect"
import { HttpClient, HttpClientError, type HttpClientRequest } from "effect/http"
import * as Metrics from "./Metrics.ts"

/** Maximum number of concurrent deliveries, of all signals together. */
const maxAtOnce = 6

/** Number of tries that the exporter makes per batch. */
const triesPerBatch = 4

/** Rejects a batch. The exporter then drops everything for a minute. */
class TooMuch extends Error {
  override readonly name = "TooMuch"
}

/** Reads a duration in milliseconds from an environment variable: a whole number, 0 or more. */
export const milliseconds = (name: string) => Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)), name)

const signalOf = (url: string): string => /\/v1\/(traces|metrics|logs)$/.exec(url)?.[1] ?? "telemetry"

/** Applies the limits to an HTTP client. */
export const limitDeliveries = (client: HttpClient.HttpClient, timeoutMs: number): HttpClient.HttpClient => {
  const failing = new Map<string, { readonly batch: HttpClientRequest.HttpClientRequest["body"]; tries: number }>()
  let underWay = 0

  const failed = (request: HttpClientRequest.HttpClientRequest, reason: string) => {
    const signal = signalOf(request.url)
    const isNews = failing.size === 0
    const known = failing.get(signal)
    if (known?.batch === request.body) known.tries++
    else failing.set(signal, { batch: request.body, tries: 1 })
    return Effect.andThen(
      Metric.update(Metrics.exportsFailed(signal), 1),
      isNews ? Effect.logWarning("telemetry cannot be delivered to the collector", { signal, reason }) : Effect.void
    )
  }

  const delivered = (request: HttpClientRequest.HttpClientRequest) => {
    const wasFailing = failing.delete(signalOf(request.url))
    return wasFailing && failing.size === 0 ? Effect.logInfo("telemetry is delivered again") : Effect.void
  }

  return HttpClient.transform(client, (exchange, request) =>
    Effect.suspend(() => {
      const known = failing.get(signalOf(request.url))
      const isTriedBeside = known !== undefined && known.batch !== request.body && known.tries < triesPerBatch
      if (underWay >= maxAtOnce || isTriedBeside) return Effect.die(new TooMuch())
      underWay++
      return exchange.pipe(
        // the deadline includes the response body
        Effect.tap((response) => Effect.ignore(response.arrayBuffer)),
        Effect.timeoutOrElse({
          duration: timeoutMs,
          orElse: () =>
            Effect.fail(
              new HttpClientError.HttpClientError({
                reason: new HttpClientError.TransportError({ request, description: `no answer in ${timeoutMs} ms` })
              })
            )
        }),
        Effect.tap((response) =>
          response.status < 400 ? delivered(request) : failed(request, `answers ${response.status}`)
        ),
        Effect.tapError((error) => failed(request, error.reason._tag)),
        Effect.ensuring(Effect.sync(() => void underWay--))
      )
    }))
}

/** Guards the HTTP client. `OTEL_EXPORTER_OTLP_TIMEOUT` is the deadline of a delivery in milliseconds (default 10,000). */
export const layer = Layer.effect(
  HttpClient.HttpClient,
  Effect.gen(function*() {
    const timeoutMs = yield* milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT").pipe(Config.withDefault(10_000))
    for (const signal of ["traces", "metrics", "logs"]) Metrics.update(Metrics.exportsFailed(signal), 0)
    return limitDeliveries(yield* HttpClient.HttpClient, timeoutMs)
  })
)
