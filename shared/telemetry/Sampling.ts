/**
 * Decides which requests' spans are exported, according to `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. All services agree,
 * because they decide by the trace's id or by the flag in `traceparent`. Spans of other requests are held until the request ends, and
 * exported if it fails or is slow.
 */
import { Config, Schema, type Tracer } from "effect"

/** What happens to a request's spans. `hold`: they are exported only if the request fails or is slow. `drop`: never. */
export type Decision = "export" | "hold" | "drop"

/** A trace that starts in this process, or continues one whose last span, `parent`, is in another process. */
interface Start {
  readonly traceId: string
  readonly parent: Tracer.AnySpan | undefined
  /** Epoch nanoseconds. */
  readonly startTime: bigint
}

type Sampler = (start: Start) => Decision

export interface Sampling {
  readonly decide: Sampler
  /** A request is slow if its first span takes at least this long, in nanoseconds. */
  readonly slowNanos: bigint
}

const of = (isSampled: boolean): Decision => isSampled ? "export" : "hold"

/** OpenTelemetry compares the last 14 hexadecimal digits of a trace id, but a JavaScript number holds only 13 exactly. */
const randomDigits = [18, 31] as const
const randomValues = 16 ** 13

/** Selects a ratio of all traces. A trace that one ratio selects is also selected by every larger ratio. */
const ofRatio = (ratio: number): Sampler => {
  const rejected = (1 - ratio) * randomValues
  return ({ traceId }) => of(Number.parseInt(traceId.slice(...randomDigits), 16) >= rejected)
}

/** After a pause, as many traces may start in a burst as are allowed in this many seconds. */
const burstSeconds = 10

/** Selects at most `perSecond` traces. Processes decide differently, so only the first should decide and the others follow its flag. */
const ofRate = (perSecond: number): Sampler => {
  const most = perSecond * burstSeconds
  let left = most
  let since = 0n
  return ({ startTime }) => {
    left = Math.min(most, left + perSecond * Math.max(0, Number(startTime - since)) / 1e9)
    since = startTime
    if (left < 1) return "hold"
    left--
    return "export"
  }
}

const argument = (schema: typeof Schema.Finite, byDefault: number) =>
  Config.schema(schema, "OTEL_TRACES_SAMPLER_ARG").pipe(Config.withDefault(byDefault))

/** The samplers that ignore clients' flags. */
const rootSamplers = {
  always_on: Config.succeed<Sampler>(() => "export"),
  always_off: Config.succeed<Sampler>(() => "drop"),
  traceidratio: argument(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })), 1).pipe(
    Config.map(ofRatio)
  ),
  ratelimiting: argument(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(1)), 100).pipe(Config.map(ofRate))
}

const ofParent = (root: Sampler): Sampler => (start) =>
  of(start.parent === undefined ? root(start) === "export" : start.parent.sampled)

const samplers: Readonly<Record<string, Config.Config<Sampler>>> = {
  ...rootSamplers,
  ...Object.fromEntries(
    Object.entries(rootSamplers).map(([name, root]) => [`parentbased_${name}`, Config.map(root, ofParent)])
  )
}

export const config: Config.Config<Sampling> = Config.all({
  decide: Config.Literals(Object.keys(samplers), "OTEL_TRACES_SAMPLER").pipe(
    Config.withDefault("parentbased_always_on"),
    Config.flatMap((name) => samplers[name]!)
  ),
  slowMs: Config.schema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)), "GATEWAY_SLOW_REQUEST_MS").pipe(
    Config.withDefault(30_000)
  )
}).pipe(Config.map(({ decide, slowMs }) => ({ decide, slowNanos: BigInt(slowMs) * 1_000_000n })))
