/**
 * Telemetry of every service: JSON logs on standard output, and traces, metrics and logs over OTLP if the standard `OTEL_*`
 * variables name a collector.
 */
import { Config, ConfigProvider, Effect, Layer, Logger, References } from "effect"
import { OtlpLogger, OtlpMetrics, OtlpSerialization } from "effect/observability"
import * as ExportGuard from "./ExportGuard.ts"
import * as SpanExports from "./SpanExports.ts"

/** OpenTelemetry's defaults; Effect's are to export nothing. */
const defaults = ConfigProvider.fromUnknown({
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_METRICS_EXPORTER: "otlp",
  OTEL_LOGS_EXPORTER: "otlp"
})

/** Reads `OTEL_EXPORTER_OTLP_PROTOCOL`: `http/json` (the default, which costs less CPU) or `http/protobuf`. */
const exports = (serviceName: string) =>
  Layer.unwrap(Effect.gen(function*() {
    const protocol = yield* Config.Literals(["http/json", "http/protobuf"], "OTEL_EXPORTER_OTLP_PROTOCOL").pipe(
      Config.withDefault("http/json")
    )
    const resource = { serviceName }
    return Layer.mergeAll(
      OtlpLogger.layerFromConfig({ resource }),
      OtlpMetrics.layerFromConfig({ resource }),
      SpanExports.layer(serviceName, protocol)
    ).pipe(
      Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf)
    )
  }))

const levels = { trace: "Trace", debug: "Debug", info: "Info", warn: "Warn", error: "Error", none: "None" } as const

/** Reads `LOG_LEVEL`: `trace`, `debug`, `info` (the default), `warn`, `error` or `none`. */
const level = Layer.effect(
  References.MinimumLogLevel,
  Config.Literals(["trace", "debug", "info", "warn", "error", "none"], "LOG_LEVEL").pipe(
    Config.withDefault("info"),
    Config.map((name) => levels[name])
  )
)

/** Reads `OTEL_*`. Exports nothing without `OTEL_EXPORTER_OTLP_ENDPOINT` or the variable of a signal. */
export const layer = (serviceName: string) =>
  exports(serviceName).pipe(
    Layer.provide([ExportGuard.layer, ConfigProvider.layerAdd(defaults)]),
    // the exporter's logger is added to this one
    Layer.provideMerge([Logger.layer([Logger.consoleJson]), level])
  )
