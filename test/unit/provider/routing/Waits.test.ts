/** A request reports each wait for a provider, and its end, however it ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { rateLimited, Scripted, status, streams } from "./Scripted.ts"

const catalogue = `
providers:
  a: { protocol: local, retry: { times: 0 } }
  patient: { protocol: local, retry: { times: 1 } }
  one: { protocol: local, limits: { concurrency: 1 } }
models:
  single: { workload: chat, targets: [{ provider: a, model: m }] }
  retried: { workload: chat, targets: [{ provider: patient, model: m }] }
  one: { workload: chat, targets: [{ provider: one, model: m }] }
`

/** Scripted providers, and those for which requests wait at present. */
const start = Effect.gen(function*() {
  const scripted = yield* Scripted.make(catalogue)
  const waiting: Array<string> = []
  let waits = 0
  const onWait = (provider: string) => {
    waits++
    waiting.push(provider)
    return () => void waiting.splice(waiting.indexOf(provider), 1)
  }
  const request = (model: string, timeoutMs = 30_000) =>
    Effect.forkChild(scripted.request(model, { onWait, timeoutMs }))
  return { scripted, waiting, request, waits: () => waits }
})

describe("a request", () => {
  it.effect("that need not wait reports nothing", () =>
    Effect.gen(function*() {
      const { request, waits } = yield* start
      yield* Fiber.join(yield* request("single"))
      assert.strictEqual(waits(), 0)
    }))

  it.effect("reports that it waits for a provider's limit, until the limit lets it go", () =>
    Effect.gen(function*() {
      const { request, scripted, waiting } = yield* start
      scripted.behave("one/m", streams(1_000))
      const fibers = [yield* request("one"), yield* request("one")]
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(waiting, ["one"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(waiting, [])
      yield* TestClock.adjust("1 second")
      yield* Fiber.joinAll(fibers)
    }))

  it.effect("reports that it waits for the pace of a provider that has answered 429", () =>
    Effect.gen(function*() {
      const { request, scripted, waiting } = yield* start
      scripted.behaveOnce("a/m", rateLimited(10_000))
      yield* Fiber.join(yield* request("single"))
      const late = yield* request("single")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(waiting, ["a"])
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(late)
      assert.deepStrictEqual(waiting, [])
    }))

  it.effect("reports the pause before it tries a provider again", () =>
    Effect.gen(function*() {
      const { request, scripted, waiting, waits } = yield* start
      scripted.behaveOnce("patient/m", status(500))
      const retried = yield* request("retried")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(retried)
      assert.strictEqual(waits(), 1)
      assert.deepStrictEqual(waiting, [])
    }))

  it.effect("reports the end of a wait that was interrupted or in vain", () =>
    Effect.gen(function*() {
      const { request, scripted, waiting } = yield* start
      scripted.behave("one/m", streams(60_000))
      const first = yield* request("one")
      yield* TestClock.adjust("100 millis")
      const left = yield* request("one")
      const late = yield* request("one", 1_000)
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual(waiting, ["one", "one"])
      yield* Fiber.interrupt(left)
      assert.deepStrictEqual(waiting, ["one"])
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* Fiber.join(late), { kind: "failed" })
      assert.deepStrictEqual(waiting, [])
      yield* Fiber.interrupt(first)
    }))
})
