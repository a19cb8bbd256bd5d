/** Calls keep to what a provider accepts, however it limits them, and a refusal of one owner delays no other. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { ProviderFailed, ProviderRateLimited, type Quota } from "../../../../shared/contract/JobError.ts"
import type { Perform } from "../../../../shared/provider/call/Protocol.ts"
import { randomFrom } from "../../../fixture/general/Random.ts"
import { answers, Scripted } from "../routing/Scripted.ts"
import { callBucket, type FakeLimiter, fixedWindow, namingMs, tokenBucket } from "./FakeLimiter.ts"

const catalogue = `
providers: { a: { protocol: local }, b: { protocol: local } }
models:
  m: { workload: chat, targets: [{ provider: a }] }
  pair: { workload: chat, targets: [{ provider: a, model: m }, { provider: b, priority: 1 }] }
`

const minuteMs = 60_000
const queueMs = 30_000

const refuses = (retryAfterMs: number | null, quota?: Quota): Perform => (call) =>
  Effect.fail(
    new ProviderRateLimited({ provider: call.endpoint.name, retryAfterMs, ...(quota === undefined ? {} : { quota }) })
  )

const tokensOf = (body: Uint8Array): number => JSON.parse(Buffer.from(body).toString()).max_tokens ?? 1

interface Ended {
  readonly from: number
  readonly tookMs: number
  /** `ok`, or the error's kind. */
  readonly result: string
}

/** Sends a request and notes its end. */
const send = (scripted: Scripted, ended: Array<Ended>, tenant: string, body = {}, model = "m") =>
  Effect.gen(function*() {
    const from = yield* Clock.currentTimeMillis
    const outcome = yield* scripted.request(model, { tenant, body, timeoutMs: queueMs })
    const tookMs = (yield* Clock.currentTimeMillis) - from
    ended.push({ from, tookMs, result: outcome.kind === "failed" ? outcome.error._tag : "ok" })
  })

/** Sends this many requests at even intervals. */
const every = (ms: number, count: number, request: Effect.Effect<void>) =>
  Effect.forEach(Array.from({ length: count }), (_, at) => Effect.delay(request, at * ms), {
    concurrency: "unbounded",
    discard: true
  })

interface Row {
  readonly name: string
  readonly limiter: () => FakeLimiter
  /** Requests per minute: more than twice as many as the limiter accepts. */
  readonly perMinute: number
  readonly sized?: boolean
}

const rows: ReadonlyArray<Row> = [
  { name: "a fixed window", limiter: () => fixedWindow(300), perMinute: 800 },
  { name: "a bucket of ten calls", limiter: () => callBucket(300), perMinute: 800 },
  { name: "tokens a minute", limiter: () => tokenBucket(300_000, false), perMinute: 500, sized: true },
  {
    name: "tokens a minute, with what is left in headers",
    limiter: () => tokenBucket(300_000, true),
    perMinute: 500,
    sized: true
  }
]

/** Requests of several owners to several workers for 15 minutes, and for 6 more after the limit has doubled. */
const run = Effect.fnUntraced(
  function*({ limiter: makeLimiter, perMinute, sized }: Row, workers: number, owners: number) {
    const random = randomFrom(7)
    const limiter = makeLimiter()
    const all = yield* Effect.forEach(Array.from({ length: workers }), () => Scripted.make(catalogue))
    const calls: Array<{ readonly at: number; readonly units: number; readonly isAccepted: boolean }> = []
    const ended: Array<Ended> = []
    for (const worker of all) {
      worker.behave("a/m", (call, sink) =>
        Effect.suspend(() => {
          const units = sized === true ? tokensOf(call.body) : 1
          return Effect.flatMap(Clock.currentTimeMillis, (at) => {
            const refusal = limiter.refuse(at, units)
            calls.push({ at, units, isAccepted: refusal === undefined })
            if (refusal !== undefined) return refuses(refusal.retryAfterMs, refusal.quota)(call, sink)
            return answers(0, { inputTokens: 0, outputTokens: units })(call, sink)
          })
        }))
    }
    const start = yield* Clock.currentTimeMillis
    const asking = yield* Effect.forkChild(Effect.forever(Effect.gen(function*() {
      yield* Effect.sleep(-Math.log(1 - random()) * minuteMs / perMinute)
      const worker = all[Math.floor(random() * workers)]!
      const body = sized === true ? { max_tokens: Math.ceil(100 + random() * 2_900) } : {}
      yield* Effect.forkChild(send(worker, ended, `key ${Math.floor(random() * owners)}`, body))
    })))
    const most = limiter.most(minuteMs)
    yield* TestClock.adjust("15 minutes")
    limiter.multiply(2)
    yield* TestClock.adjust("6 minutes")
    yield* Fiber.interrupt(asking)
    /** What was accepted in some minutes, as a part of the most that was possible, and the part of the calls that was refused. */
    const shares = (from: number, until: number, perMinute: number) => {
      const within = calls.filter(({ at }) => at >= start + from * minuteMs && at < start + until * minuteMs)
      const accepted = within.filter(({ isAccepted }) => isAccepted)
      const units = accepted.reduce((sum, { units }) => sum + units, 0)
      return { accepted: units / (perMinute * (until - from)), refused: 1 - accepted.length / within.length }
    }
    return { ended, steady: shares(2, 15, most), doubled: shares(18, 21, 2 * most) }
  }
)

describe("the pace of calls to a provider that limits", () => {
  for (const row of rows) {
    it.effect.each([[1, 1], [8, 5]] as const)(
      `${row.name} uses what it accepts, with %i workers and %i owners`,
      ([workers, owners]) =>
        Effect.gen(function*() {
          const { doubled, ended, steady } = yield* run(row, workers, owners)
          assert.isAtLeast(steady.accepted, 0.9)
          assert.isAtMost(steady.refused, 0.1)
          assert.isAtLeast(doubled.accepted, 0.9)
          assert.isAtMost(doubled.refused, 0.1)
          // each client is answered or gets a 429 in time; a timer may count a millisecond more
          assert.isAtMost(Math.max(...ended.map(({ tookMs }) => tookMs)), queueMs + 1.1)
          assert.deepStrictEqual([...new Set(ended.map(({ result }) => result))].toSorted(), [
            "ProviderRateLimited",
            "ok"
          ])
        })
    )
  }

  it.effect("but always names 30 s, still uses a part of what it accepts", () =>
    Effect.gen(function*() {
      const limiter = () => namingMs(callBucket(300), 30_000)
      const alone = yield* run({ name: "", limiter, perMinute: 800 }, 1, 1)
      const shared = yield* run({ name: "", limiter, perMinute: 800 }, 1, 100)
      assert.isAtLeast(alone.steady.accepted, 0.2)
      assert.isAtLeast(shared.steady.accepted, 0.9)
    }))
})

/** A key sends 120 requests, two a second, while the calls of other keys are refused. */
const beside = Effect.fnUntraced(function*(
  { answer = answers(), attackers = ["attacker"], requests, retryAfterMs = null }: {
    readonly attackers?: ReadonlyArray<string>
    /** How many requests each of the others sends, one a second. */
    readonly requests: number
    readonly retryAfterMs?: number | null
    readonly answer?: Perform
  }
) {
  const scripted = yield* Scripted.make(catalogue)
  const refused: Array<Ended> = []
  const ended: Array<Ended> = []
  scripted.behave("a/m", (call, sink) => (call.tenant === "victim" ? answer : refuses(retryAfterMs))(call, sink))
  for (const attacker of attackers) {
    yield* Effect.forkChild(every(1_000, requests, send(scripted, refused, attacker)), { startImmediately: true })
  }
  const from = yield* Clock.currentTimeMillis
  const victim = yield* Effect.forkChild(every(500, 120, send(scripted, ended, "victim")))
  yield* TestClock.adjust("2 minutes")
  yield* Fiber.join(victim)
  assert.lengthOf(ended, 120)
  assert.isTrue(ended.every(({ result }) => result === "ok"))
  const longestMs = (fromSecond = 0) =>
    Math.max(...ended.filter((each) => each.from >= from + 1_000 * fromSecond).map(({ tookMs }) => tookMs))
  return { longestMs, refused, calls: scripted.received }
})

describe("a 429 to one key's request", () => {
  it.effect.each([3_000, 30_000])(
    "with a retry-after of %i ms delays no other key",
    (retryAfterMs) =>
      Effect.gen(function*() {
        const { longestMs } = yield* beside({ requests: 1, retryAfterMs })
        assert.strictEqual(longestMs(), 0)
      })
  )

  it.effect("every second delays no other key", () =>
    Effect.gen(function*() {
      const { longestMs } = yield* beside({ requests: 60 })
      assert.strictEqual(longestMs(), 0)
    }))

  it.effect.each([3_000, 30_000])(
    "and to another key's delay others for seconds, and not again: %i ms",
    (retryAfterMs) =>
      Effect.gen(function*() {
        // it takes long to see that a call is accepted
        const answer = answers(8_000)
        const attackers = ["attacker 1", "attacker 2"]
        const { longestMs } = yield* beside({ attackers, requests: 60, retryAfterMs, answer })
        assert.isAtMost(longestMs(), 8_000 + 3_500)
        assert.isAtMost(longestMs(5), 8_000 + 100)
      })
  )

  it.effect("is not followed by another call for the same request while others are accepted", () =>
    Effect.gen(function*() {
      const { calls, refused } = yield* beside({ requests: 1 })
      assert.deepStrictEqual(refused.map(({ result }) => result), ["ProviderRateLimited"])
      assert.lengthOf(calls.filter(({ tenant }) => tenant === "attacker"), 1)
    }))
})

describe("operators", () => {
  const about = { provider: "a", model: "m", perMinute: null, waiting: 0 }

  it.effect("see whose calls are delayed, why, until when, and what the provider said", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", refuses(10_000, { requestsLeft: 7 }))
      yield* Effect.forkChild(send(scripted, [], "key 1", {}, "pair"))
      yield* TestClock.adjust("1 second")
      yield* Effect.forkChild(send(scripted, [], "key 1"))
      yield* TestClock.adjust("1 second")
      const own = { ...about, owner: "key 1", cause: "refusals", quota: { requestsLeft: 7 } } as const
      assert.deepStrictEqual(scripted.delays, [{ ...own, forMs: 8_000, waiting: 1 }])
      const text = yield* PrometheusMetrics.format()
      for (const line of ["delayed_keys{X} 1", "delayed{X} 0", "delayed_requests{X} 1"]) {
        assert.include(text, `\ngateway_provider_${line.replace("X", "provider=\"a\",model=\"m\"")}\n`)
      }
      assert.match(text, /^gateway_provider_quota_left\{.*limit="requests".*\} 7$/m)

      scripted.behave("a/m", refuses(20_000))
      yield* Effect.forkChild(send(scripted, [], "key 2", {}, "pair"))
      yield* TestClock.adjust("1 second")
      const [all, first] = scripted.delays
      assert.deepInclude(all, { owner: null, forMs: 19_000 })
      assert.deepInclude(first, { owner: "key 1", forMs: 7_000 })
    }))

  it.effect("see circuits that are open", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", (call) =>
        Effect.fail(new ProviderFailed({ provider: call.endpoint.name, reason: "status", status: 500 })))
      for (let times = 0; times < 5; times++) {
        const request = yield* Effect.forkChild(send(scripted, [], "key 1", {}, "pair"))
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(request)
      }
      assert.deepInclude(scripted.delays[0], { ...about, owner: "key 1", cause: "failures" })
      assert.isAtMost(scripted.delays[0]!.forMs, 1_000)
      const request = yield* Effect.forkChild(send(scripted, [], "key 2", {}, "pair"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(request)
      assert.deepInclude(scripted.delays[0], { ...about, owner: null, cause: "failures" })
      assert.lengthOf(scripted.delays, 1)
    }))

  it.effect("see the longest of many delays", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", (call, sink) =>
        call.tenant === "good" ? answers()(call, sink) : refuses(10_000 + Number(call.tenant))(call, sink))
      for (let key = 1; key <= 60; key++) {
        for (const tenant of [`${key}`, "good"]) {
          yield* Effect.forkChild(send(scripted, [], tenant, {}, "pair"))
          yield* TestClock.adjust("1 millis")
        }
      }
      assert.lengthOf(scripted.delays, 50)
      assert.strictEqual(scripted.delays[0]?.owner, "60")
    }))
})

describe("a 429 that says what is left", () => {
  it.effect("delays only larger requests of the key", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", refuses(10_000, { tokensLeft: 5_000, tokensLimit: 60_000 }))
      const ended: Array<Ended> = []
      yield* Effect.forkChild(send(scripted, [], "key", { max_tokens: 20_000 }, "pair"))
      yield* TestClock.adjust("1 second")
      for (const size of [10_000, 100]) yield* Effect.forkChild(send(scripted, ended, "key", { max_tokens: size }))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(ended.map(({ result }) => result), ["ok", "ok"])
      assert.deepStrictEqual(ended.map(({ tookMs }) => Math.round(tookMs / 1_000)), [0, 9])
    }))

  it.effect.each([{ requestsLeft: 0 }, { tokensLeft: 0 }, { tokensLeft: 900, tokensLimit: 60_000 }])(
    "delays all if it is nothing, or next to nothing: %j",
    (quota) =>
      Effect.gen(function*() {
        const scripted = yield* Scripted.make(catalogue)
        const ended: Array<Ended> = []
        scripted.behave("a/m", refuses(10_000, quota))
        yield* Effect.forkChild(send(scripted, [], "key", { max_tokens: 1_000 }))
        yield* TestClock.adjust("1 millis")
        yield* Effect.forkChild(send(scripted, ended, "another", { max_tokens: 2_000 }))
        yield* TestClock.adjust("8 seconds")
        scripted.behave("a/m", answers())
        yield* TestClock.adjust("20 seconds")
        assert.deepStrictEqual(ended.map(({ result }) => result), ["ok"])
        assert.isAtLeast(ended[0]!.tookMs, 9_000)
      })
  )
})
