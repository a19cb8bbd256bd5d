/** Which requests' spans are exported. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Exit, Option, Tracer } from "effect"
import { Hex } from "effect/encoding"
import { type EndedSpan, RedactingSpan } from "../../../shared/telemetry/RedactingSpan.ts"
import * as Sampling from "../../../shared/telemetry/Sampling.ts"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"

const read = (environment: Record<string, string>) =>
  Effect.provideService(
    Effect.suspend(() => Sampling.config),
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown(environment)
  )

const sampler = (name: string, ratio?: string) =>
  Effect.runSync(
    read({ OTEL_TRACES_SAMPLER: name, ...(ratio === undefined ? {} : { OTEL_TRACES_SAMPLER_ARG: ratio }) })
  )
    .decide

const nanos = (ms: number) => BigInt(ms) * 1_000_000n

const parent = (sampled: boolean) =>
  Tracer.externalSpan({ traceId: Hex.random(32), spanId: "b7ad6b7169203331", sampled })

const start = { traceId: Hex.random(32), parent: undefined, startTime: nanos(0) }

const decisions = (name: string, ratio?: string) =>
  [undefined, parent(true), parent(false)].map((parent) => sampler(name, ratio)({ ...start, parent }))

const wrongArguments = [
  ["traceidratio", "10", "from 0 to 1"],
  ["parentbased_traceidratio", "-0.1", "from 0 to 1"],
  ["traceidratio", "a tenth", "from 0 to 1"],
  ["ratelimiting", "0", "of at least 1"]
] as const

describe("a sampler", () => {
  it("decides about a new trace, one with the sampled flag and one without", () => {
    assert.deepStrictEqual(decisions("always_on"), ["export", "export", "export"])
    assert.deepStrictEqual(decisions("always_off"), ["drop", "drop", "drop"])
    assert.deepStrictEqual(decisions("traceidratio", "0"), ["hold", "hold", "hold"])
    assert.deepStrictEqual(decisions("traceidratio", "1"), ["export", "export", "export"])
    assert.deepStrictEqual(decisions("traceidratio"), ["export", "export", "export"])
    assert.deepStrictEqual(decisions("ratelimiting"), ["export", "export", "export"])
    assert.deepStrictEqual(decisions("parentbased_always_on"), ["export", "export", "hold"])
    assert.deepStrictEqual(decisions("parentbased_always_off"), ["hold", "export", "hold"])
    assert.deepStrictEqual(decisions("parentbased_traceidratio", "0"), ["hold", "export", "hold"])
    assert.deepStrictEqual(decisions("parentbased_traceidratio", "1"), ["export", "export", "hold"])
  })

  it("selects its share of the traces, all of which a larger ratio selects too", () => {
    const tenth = sampler("traceidratio", "0.1")
    const half = sampler("traceidratio", "0.5")
    const ids = Array.from({ length: 10_000 }, () => Hex.random(32))
    const selected = ids.filter((traceId) => tenth({ ...start, traceId }) === "export")
    assert.isAtLeast(selected.length, 800)
    assert.isAtMost(selected.length, 1_200)
    assert.isTrue(selected.every((traceId) => half({ ...start, traceId }) === "export"))
  })

  it("limits the traces per second, and a burst to those of ten seconds", () => {
    const decide = sampler("ratelimiting", "5")
    /** Of 1,000 traces in a second. */
    const selected = (second: number) =>
      Array.from({ length: 1_000 }, (_, at) => decide({ ...start, startTime: nanos(1_000 * second + at) }))
        .filter((decision) => decision === "export").length
    assert.strictEqual(selected(1), 54)
    assert.strictEqual(selected(2), 5)
    assert.strictEqual(selected(5), 15)
    assert.strictEqual(selected(100), 54)
  })

  it("must be one of OpenTelemetry's, with a ratio of 0 to 1", () => {
    const messageFor = (environment: Record<string, string>) =>
      startupMessage(Effect.runSync(Effect.flip(read(environment))))
    assert.match(messageFor({ OTEL_TRACES_SAMPLER: "some" }), /^OTEL_TRACES_SAMPLER must be "always_on",.* or "\w+"$/)
    for (const [name, argument, expected] of wrongArguments) {
      assert.strictEqual(
        messageFor({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument }),
        `OTEL_TRACES_SAMPLER_ARG must be a number ${expected}`
      )
    }
  })
})

const slowMs = 1_000

/** Starts spans of this decision, and collects the names of those that are exported. */
const trace = (decision: Sampling.Decision) => {
  const exported: Array<string> = []
  const start = (name: string, parent?: Tracer.AnySpan) =>
    new RedactingSpan(
      {
        name,
        kind: "server",
        parent: Option.fromUndefinedOr(parent),
        annotations: Context.empty(),
        links: [],
        startTime: 0n,
        root: false,
        sampled: true
      },
      { decide: () => decision, slowNanos: nanos(slowMs) },
      (ended: EndedSpan) => exported.push((ended as RedactingSpan).name)
    )
  return { exported, start }
}

const failed = Exit.fail({ _tag: "ProviderFailed" })

describe("spans of a request that is not sampled", () => {
  it("are not exported if it succeeds, is cancelled, or its client is at fault", () => {
    for (const exit of [Exit.void, Exit.interrupt(), Exit.fail({ _tag: "Cancelled" })]) {
      const { exported, start } = trace("hold")
      const first = start("first")
      assert.isFalse(first.sampled)
      const child = start("child", first)
      assert.isFalse(child.sampled)
      first.attribute("error.type", "InvalidRequest")
      child.end(nanos(slowMs), Exit.void)
      first.end(nanos(slowMs - 1), exit)
      assert.isEmpty(exported)
    }
  })

  it("are all exported if one of them fails, whenever they end", () => {
    const { exported, start } = trace("hold")
    const first = start("first")
    start("before", first).end(1n, Exit.void)
    const after = start("after", first)
    const late = start("late", after)
    assert.isEmpty(exported)
    start("failed", first).end(2n, failed)
    assert.deepStrictEqual(exported, ["before", "failed"])
    after.end(3n, Exit.void)
    first.end(4n, Exit.void)
    late.end(5n, Exit.void)
    assert.deepStrictEqual(exported, ["before", "failed", "after", "first", "late"])
  })

  it("are all exported if it is slow", () => {
    const { exported, start } = trace("hold")
    const first = start("first")
    start("child", first).end(1n, Exit.void)
    first.end(nanos(slowMs), Exit.void)
    assert.deepStrictEqual(exported, ["child", "first"])
  })

  it("are held up to a maximum", () => {
    const { exported, start } = trace("hold")
    const first = start("first")
    for (let index = 0; index < 1_000; index++) start("child", first).end(1n, Exit.void)
    first.end(2n, failed)
    assert.lengthOf(exported, 129)
    assert.strictEqual(exported.at(-1), "first")
  })

  it("are never exported if the sampler drops them", () => {
    const { exported, start } = trace("drop")
    const first = start("first")
    start("child", first).end(1n, failed)
    first.end(nanos(slowMs), failed)
    assert.isEmpty(exported)
  })
})

describe("spans of a sampled request", () => {
  it("are exported as they end", () => {
    const { exported, start } = trace("export")
    const first = start("first")
    start("child", first).end(1n, Exit.void)
    assert.deepStrictEqual(exported, ["child"])
    first.end(2n, Exit.void)
    assert.deepStrictEqual(exported, ["child", "first"])
  })
})
