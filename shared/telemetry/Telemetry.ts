/**
 * What every service tells about itself: JSON logs on standard output, and traces, metrics and logs over OTLP where the
 * standard `OTEL_*` variables name a collector.
 */
import { ConfigProvider, Layer, Logger } from "effect"
import { FetchHttpClient } from "effect/http"
import { Otlp, OtlpSerialization } from "effect/observability"

/** OpenTelemetry's own default of these variables, where that of Effect is to export nothing. */
const defaults = ConfigProvider.fromUnknown({
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_METRICS_EXPORTER: "otlp",
  OTEL_LOGS_EXPORTER: "otlp"
})

/** Reads `OTEL_*`; without `OTEL_EXPORTER_OTLP_ENDPOINT`, or that of a signal, nothing is exported. */
export const layer = (serviceName: string) =>
  Otlp.layerFromConfig({ resource: { serviceName } }).pipe(
    Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer, ConfigProvider.layerAdd(defaults)]),
    // the exporter's logger is added to this one, not put in its place
    Layer.provideMerge(Logger.layer([Logger.consoleJson]))
  )
