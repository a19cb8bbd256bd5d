/** Exports spans over OTLP/HTTP, one request per page of `SpanPages.ts`, as configured by the standard `OTEL_*` variables. */
import { Config, Duration, Effect, Layer, Schema, Tracer } from "effect"
import { HttpBody } from "effect/http"
import { OtlpExporter, OtlpResource, OtlpSerialization, type OtlpTracer } from "effect/observability"
import { type EndedSpan, RedactingSpan } from "./RedactingSpan.ts"
import { milliseconds } from "./ExportGuard.ts"
import * as OtlpJson from "./OtlpJson.ts"
import * as Sampling from "./Sampling.ts"
import { SpanPages } from "./SpanPages.ts"

const scope = { name: "model-gateway" }

export type Protocol = "http/json" | "http/protobuf"

/** Reads the variable for traces, otherwise the one for all signals. */
const ofTraces = <A>(setting: string, read: (name: string) => Config.Config<A>): Config.Config<A> =>
  read(`OTEL_EXPORTER_OTLP_TRACES_${setting}`).pipe(Config.orElse(() => read(`OTEL_EXPORTER_OTLP_${setting}`)))

const endpoint = Config.URL("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").pipe(
  Config.orElse(() =>
    Config.URL("OTEL_EXPORTER_OTLP_ENDPOINT").pipe(
      Config.map((base) => {
        const url = new URL(base)
        url.pathname += url.pathname.endsWith("/") ? "v1/traces" : "/v1/traces"
        return url
      })
    )
  ),
  Config.withDefault(undefined)
)

const settings = Config.all({
  isDisabled: Config.Boolean("OTEL_SDK_DISABLED").pipe(Config.withDefault(false)),
  exporters: Config.Array(Schema.String, "OTEL_TRACES_EXPORTER"),
  sampling: Sampling.config,
  endpoint,
  headers: ofTraces("HEADERS", (name) => Config.Record(Schema.String, Schema.StringFromUriComponent, name)).pipe(
    Config.withDefault(undefined)
  ),
  compression: ofTraces("COMPRESSION", (name) => Config.Literals(["gzip", "none"], name)).pipe(
    Config.withDefault("none")
  ),
  everyMs: milliseconds("OTEL_BSP_SCHEDULE_DELAY").pipe(Config.withDefault(5_000)),
  shutdownMs: ofTraces("TIMEOUT", milliseconds).pipe(
    Config.orElse(() => milliseconds("OTEL_BSP_EXPORT_TIMEOUT")),
    Config.withDefault(3_000)
  )
})

/** The tracer. Without a configured collector, Effect's own tracer remains, which exports nothing. */
export const layer = (serviceName: string, protocol: Protocol) =>
  Layer.effect(
    Tracer.Tracer,
    Effect.gen(function*() {
      const { compression, endpoint, everyMs, exporters, headers, isDisabled, sampling, shutdownMs } = yield* settings
      if (isDisabled || endpoint === undefined || !exporters.includes("otlp")) return yield* Tracer.Tracer
      const resource = yield* OtlpResource.fromConfig({ serviceName })
      const serialization = yield* OtlpSerialization.OtlpSerialization
      const encode = (json: Uint8Array): HttpBody.HttpBody =>
        protocol === "http/json"
          ? HttpBody.uint8Array(json, "application/json")
          : serialization.traces(JSON.parse(Buffer.from(json).toString()) as OtlpTracer.TraceData)
      const exporter = yield* OtlpExporter.make({
        label: "Spans",
        url: endpoint.href,
        headers,
        compression,
        // each page becomes a request as soon as it is pushed
        maxBatchSize: 1,
        // ends the minute without exports after a failure; not shorter, because it also wakes up an idle process
        exportInterval: Duration.minutes(1),
        shutdownTimeout: Duration.millis(shutdownMs),
        body: (taken: Array<Buffer>): readonly [HttpBody.HttpBody, Effect.Effect<void>] => {
          const [page = Buffer.alloc(0), ...others] = taken
          for (const other of others) exporter.push(other)
          return [encode(page), Effect.sync(() => pages.recycle(page))]
        }
      })
      const pages: SpanPages<EndedSpan> = new SpanPages(everyMs, OtlpJson.encoding(resource, scope), exporter.push)
      yield* Effect.addFinalizer(() => Effect.sync(() => pages.flush()))
      return Tracer.make({ span: (options) => new RedactingSpan(options, sampling, (span) => pages.add(span)) })
    })
  ).pipe(Layer.provide(OtlpExporter.layerFlusher))
