/** One owner's failures close a target to that owner only, and a target that recovers is used again within seconds. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { ProviderFailed } from "../../../../shared/contract/JobError.ts"
import type { Perform } from "../../../../shared/provider/call/Protocol.ts"
import { answers, fails, type Outcome, rateLimited, Scripted, status, streams } from "../routing/Scripted.ts"

const catalogue = `
providers: { a: { protocol: local, retry: { times: 0 } } }
models: { m: { workload: chat, targets: [{ provider: a }] } }
`

const unusable = fails((provider) => new ProviderFailed({ provider, reason: "result" }))

interface Ended {
  readonly from: number
  readonly outcome: Outcome
}

/** Sends requests of a key at even intervals, from now on. Returns their outcomes so far. */
const sends = Effect.fnUntraced(function*(scripted: Scripted, tenant: string, everyMs: number, count: number) {
  const ended: Array<Ended> = []
  yield* Effect.forkChild(Effect.forEach(Array.from({ length: count }), (_, at) =>
    Effect.gen(function*() {
      yield* Effect.sleep(at * everyMs)
      const from = yield* Clock.currentTimeMillis
      const outcome = yield* scripted.request("m", { tenant })
      ended.push({ from, outcome })
    }), { concurrency: "unbounded" }))
  return ended
})

const failed = (ended: ReadonlyArray<Ended>) => ended.filter(({ outcome }) => outcome.kind === "failed").length

describe("one key", () => {
  it.effect.each(
    [["a 500", status(500)], ["a 429", rateLimited(null)], ["an unusable result", unusable]] as const
  )("whose every request leads to %s makes none of another key fail", ([, failure]) =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", (call, sink) => (call.tenant === "attacker" ? failure : answers())(call, sink))
      // the attacker is the only caller at first
      yield* sends(scripted, "attacker", 1_000, 120)
      yield* TestClock.adjust("1 minute")
      const ended = yield* sends(scripted, "victim", 1_000, 60)
      yield* TestClock.adjust("2 minutes")
      assert.lengthOf(ended, 60)
      assert.strictEqual(failed(ended), 0)
    }))

  it.effect("whose requests fail is refused itself", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* sends(scripted, "attacker", 100, 100)
      yield* TestClock.adjust("10 seconds")
      assert.isAtMost(scripted.calls().length, 9)
    }))

  it.effect("is never refused for results that cannot be fetched", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", unusable)
      yield* sends(scripted, "key", 100, 50)
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(scripted.calls(), 50)
    }))
})

describe("a provider that is down", () => {
  it.effect("gets no more calls of many keys than of one", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      for (let times = 0; times < 50; times++) yield* scripted.request("m", { tenant: `key ${times}` })
      scripted.calls()
      scripted.behave("a/m", status(503))
      for (let key = 0; key < 50; key++) yield* sends(scripted, `key ${key}`, 1_000, 60)
      yield* TestClock.adjust("1 minute")
      // five until the circuit opens, then a probe after 1, 2, 4, 8 and each 10 s
      assert.isAtMost(scripted.calls().length, 15)
    }))

  it.effect("is called by a key that was not there before, until that fails too", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(503))
      for (let times = 0; times < 6; times++) yield* scripted.request("m", { tenant: "a" })
      scripted.calls()
      for (const tenant of ["b", "c", "d"]) yield* scripted.request("m", { tenant })
      assert.lengthOf(scripted.calls(), 1)
    }))

  it.effect("hangs for few calls: probes that get no byte are not followed by all others", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      for (let times = 0; times < 20; times++) {
        const call = yield* Effect.forkChild(scripted.request("m"))
        yield* TestClock.adjust("10 millis")
        yield* Fiber.join(call)
      }
      scripted.behave("a/m", status(500))
      for (let times = 0; times < 10; times++) yield* scripted.request("m")
      scripted.behave("a/m", answers(600_000))
      scripted.calls()
      yield* sends(scripted, "key", 100, 300)
      yield* TestClock.adjust("30 seconds")
      assert.isAtMost(scripted.calls().length, 4)
    }))
})

describe("a provider that comes back", () => {
  const rows: ReadonlyArray<readonly [name: string, answer: Perform, firstByteMs: number]> = [
    ["streams of 8 s", streams(8_000), 0],
    ["streams of 60 s", streams(60_000), 0],
    ["whole answers after 8 s", answers(8_000), 8_000]
  ]
  it.effect.each(rows)(
    "with %s refuses nothing from 3 s after the first good byte on",
    ([, answer, firstByteMs]) =>
      Effect.gen(function*() {
        const scripted = yield* Scripted.make(catalogue)
        scripted.behave("a/m", status(503))
        const before = ["a", "b"].map((tenant) => sends(scripted, tenant, 200, 150))
        yield* Effect.all(before)
        yield* TestClock.adjust("30 seconds")
        scripted.behave("a/m", answer)
        scripted.received.splice(0)
        const ended = yield* Effect.all(["a", "b"].map((tenant) => sends(scripted, tenant, 200, 300)))
        yield* TestClock.adjust("3 minutes")
        const goodAt = scripted.received[0]!.at + firstByteMs
        const later = ended.flat().filter(({ from }) => from >= goodAt + 3_000)
        assert.isAtLeast(later.length, 100)
        assert.strictEqual(failed(later), 0)
      })
  )

  it.effect("is logged when its circuit opens, is probed, and closes", () =>
    Effect.gen(function*() {
      const told: Array<unknown> = []
      const logger = Logger.make(({ message }) => void told.push(...[message].flat().slice(0, 1)))
      yield* Effect.gen(function*() {
        const scripted = yield* Scripted.make(catalogue)
        scripted.behave("a/m", status(503))
        yield* sends(scripted, "a", 10, 10)
        yield* TestClock.adjust("1 second")
        scripted.behave("a/m", answers())
        for (let second = 0; second < 5; second++) {
          yield* sends(scripted, "a", 10, 1)
          yield* TestClock.adjust("1 second")
        }
      }).pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(told, ["circuit opened", "circuit half-open: probing the provider", "circuit closed"])
    }))

  it.effect("with a 429 is probed no longer", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(503))
      yield* sends(scripted, "key", 10, 10)
      yield* TestClock.adjust("1500 millis")
      scripted.behaveOnce("a/m", rateLimited(100))
      scripted.behave("a/m", answers())
      yield* scripted.request("m", { tenant: "key" })
      yield* TestClock.adjust("3 seconds")
      const ended = yield* sends(scripted, "key", 10, 100)
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(ended, 100)
      assert.strictEqual(failed(ended), 0)
    }))
})
