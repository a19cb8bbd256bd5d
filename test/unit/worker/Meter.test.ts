/** A job has at most one usage event, with its calls, its usage and its end. */
import { assert, describe, it } from "@effect/vitest"
import { Meter } from "../../../shared/worker/Meter.ts"
import { served } from "./Served.ts"

const usage = { inputTokens: 3, outputTokens: 8 }
const endpoint = { name: "openai", model: "theirs" }

describe("the usage event", () => {
  it("of an answer has its last call, usage, price and times", () => {
    const { events, isHeld, job, metering } = served({ startedAt: 160.2 })
    const meter = new Meter(metering, job)
    meter.called({ name: "first", model: "other" })
    meter.called(endpoint)
    meter.ended(usage)
    assert.deepStrictEqual(events, [{
      id: "job",
      time: 5_000,
      key: "key_1",
      operation: "chat.completions",
      model: "ours",
      provider: "openai",
      providerModel: "theirs",
      usage,
      costUsd: 2,
      outcome: "success",
      error: null,
      durationMs: 251,
      firstByteMs: 60,
      attempts: 2,
      traceId: "0af7651916cd43dd8448eb211c80319c"
    }])
    assert.isTrue(isHeld(), "the job is held until its event is stored")
  })

  it("counts calls that were repeated although they may be billed", () => {
    const { events, job, metering } = served()
    const meter = new Meter(metering, job)
    meter.called(endpoint, false)
    meter.called(endpoint, true)
    meter.called(endpoint, false)
    meter.ended(usage)
    assert.deepInclude(events[0], { attempts: 3, repeatedCalls: 1 })
  })

  it("of an answer without usage has no usage, and the price of zero tokens", () => {
    const { events, job, metering, priced } = served({ pulled: { traceparent: undefined } })
    new Meter(metering, job).ended(undefined)
    assert.deepStrictEqual(priced, [{ inputTokens: 0, outputTokens: 0 }])
    assert.isNull(events[0]!.usage)
    assert.isNull(events[0]!.firstByteMs)
    assert.notProperty(events[0], "traceId")
  })

  for (const outcome of ["failed", "cancelled"] as const) {
    const finish = (meter: Meter) => outcome === "failed" ? meter.failed("ProviderFailed") : meter.cancelled()
    const error = outcome === "failed" ? "ProviderFailed" : null

    it(`of a job that ${outcome} is left out if no provider was called`, () => {
      const { events, job, metering } = served()
      finish(new Meter(metering, job))
      assert.deepStrictEqual(events, [])
    })

    it(`of a job that ${outcome} has the usage of the interrupted answer`, () => {
      const { events, job, metering, priced } = served()
      const meter = new Meter(metering, job)
      meter.called(endpoint)
      meter.cut(usage)
      finish(meter)
      assert.deepStrictEqual(priced, [usage])
      assert.deepInclude(events[0], { usage, error, costUsd: 2 })
    })

    it(`of a job that ${outcome} has the usage and the cost of an earlier call`, () => {
      const { events, job, metering, priced } = served()
      const meter = new Meter(metering, job)
      meter.called(endpoint)
      meter.cut(usage)
      meter.called(endpoint)
      finish(meter)
      assert.deepStrictEqual(priced, [usage, undefined])
      assert.deepInclude(events[0], { usage, costUsd: 2, attempts: 2 })
    })
  }

  it("of a job that an earlier worker lost has no call", () => {
    const { events, job, metering } = served()
    new Meter(metering, job).lost()
    assert.deepInclude(events[0], { outcome: "failure", error: "WorkerLost", attempts: 0, provider: null })
  })

  it("is written once, for the first end", () => {
    const { job, metering, said } = served()
    const meter = new Meter(metering, job)
    meter.called(endpoint)
    meter.ended(usage)
    meter.failed("InternalError")
    meter.cancelled()
    meter.lost()
    assert.deepStrictEqual(said, ["event success"])
  })
})
