/**
 * Which requests' spans are exported, as `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` say. All services agree, because they
 * decide by the trace's id or by the flag in `traceparent`. Spans of other requests are held until their end, and exported if the
 * request fails or is slow.
 */
import { Config, Schema, type Tracer } from "effect"

/** `hold`: exported only if the request fails or is slow. `drop`: never. */
export type Decision = "export" | "hold" | "drop"

/** Decides about a trace that starts in this process, or continues one whose last span, `parent`, is in another process. */
type Sampler = (traceId: string, parent: Tracer.AnySpan | undefined) => Decision

export interface Sampling {
  readonly decide: Sampler
  /** A request is slow if its first span takes as long, in nanoseconds. */
  readonly slowNanos: bigint
}

/** OpenTelemetry compares the last 14 hexadecimal digits of a trace id; a number holds only 13 of them exactly. */
const randomDigits = [18, 31] as const
const randomValues = 16 ** 13

/** A trace that one ratio selects is also selected by every larger one. */
const ofRatio = (ratio: number): Sampler => {
  const rejected = (1 - ratio) * randomValues
  return (traceId) => Number.parseInt(traceId.slice(...randomDigits), 16) >= rejected ? "export" : "hold"
}

const ofParent = (root: Sampler): Sampler => (traceId, parent) =>
  parent === undefined ? root(traceId, parent) : parent.sampled ? "export" : "hold"

const samplers = {
  always_on: () => () => "export",
  always_off: () => () => "drop",
  traceidratio: ofRatio,
  parentbased_always_on: () => ofParent(() => "export"),
  parentbased_always_off: () => ofParent(() => "hold"),
  parentbased_traceidratio: (ratio) => ofParent(ofRatio(ratio))
} as const satisfies Record<string, (ratio: number) => Sampler>

const names = Object.keys(samplers) as Array<keyof typeof samplers>

const Ratio = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const Milliseconds = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const config: Config.Config<Sampling> = Config.all({
  name: Config.Literals(names, "OTEL_TRACES_SAMPLER").pipe(Config.withDefault("parentbased_always_on")),
  ratio: Config.schema(Ratio, "OTEL_TRACES_SAMPLER_ARG").pipe(Config.withDefault(1)),
  slowMs: Config.schema(Milliseconds, "GATEWAY_SLOW_REQUEST_MS").pipe(Config.withDefault(30_000))
}).pipe(Config.map(({ name, ratio, slowMs }) => ({
  decide: samplers[name](ratio),
  slowNanos: BigInt(slowMs) * 1_000_000n
})))
