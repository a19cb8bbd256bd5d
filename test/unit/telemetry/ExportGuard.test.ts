/** The cost of an unreachable collector: few concurrent deliveries, and one log line at its loss and its return. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Logger } from "effect"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as ExportGuard from "../../../shared/telemetry/ExportGuard.ts"

const batch = (signal: string) =>
  HttpClientRequest.post(`http://collector:4318/v1/${signal}`).pipe(HttpClientRequest.bodyText(`${Math.random()}`))

/** A collector with the given answers, and the lines logged during deliveries. */
const collector = (answer: () => Effect.Effect<number>) => {
  const logged: Array<string> = []
  let open = 0
  let most = 0
  const logger = Logger.make(({ message }) => void logged.push(String(Array.isArray(message) ? message[0] : message)))
  const client = ExportGuard.limitDeliveries(
    HttpClient.make((request) =>
      Effect.suspend(() => {
        most = Math.max(most, ++open)
        return Effect.map(answer(), (status) => HttpClientResponse.fromWeb(request, new Response(null, { status })))
      }).pipe(Effect.ensuring(Effect.sync(() => open--)))
    ),
    1_000
  )
  const deliver = (request: HttpClientRequest.HttpClientRequest) =>
    Effect.exit(client.execute(request)).pipe(Effect.provide(Logger.layer([logger])))
  return { deliver, logged, most: () => most }
}

describe("telemetry deliveries", () => {
  it.effect("are logged once when they fail and once when they succeed again", () =>
    Effect.gen(function*() {
      let status = 500
      const { deliver, logged } = collector(() => Effect.succeed(status))
      for (let outage = 0; outage < 2; outage++) {
        status = 500
        for (const signal of ["traces", "metrics", "logs"]) {
          const request = batch(signal)
          for (let time = 0; time < 4; time++) yield* deliver(request)
        }
        status = 200
        for (const signal of ["traces", "metrics", "logs"]) yield* deliver(batch(signal))
      }
      const lines = ["telemetry cannot be delivered to the collector", "telemetry is delivered again"]
      assert.deepStrictEqual(logged, [...lines, ...lines])
    }))

  it.effect("time out, and only a few run at once", () =>
    Effect.gen(function*() {
      const { deliver, most } = collector(() => Effect.never)
      const fibers = yield* Effect.forEach(
        Array.from({ length: 100 }),
        () => Effect.forkChild(deliver(batch("traces")))
      )
      yield* TestClock.adjust("1 second")
      const exits = yield* Fiber.joinAll(fibers)
      assert.isTrue(exits.every(Exit.isFailure))
      assert.strictEqual(most(), 6)
    }))

  it.effect("do not run beside a retried delivery, but after its last retry", () =>
    Effect.gen(function*() {
      let calls = 0
      const { deliver } = collector(() => {
        calls++
        return Effect.succeed(503)
      })
      const first = batch("traces")
      yield* deliver(first)
      yield* deliver(batch("traces"))
      assert.strictEqual(calls, 1)
      for (let time = 1; time < 4; time++) yield* deliver(first)
      yield* deliver(batch("traces"))
      assert.strictEqual(calls, 5)
    }))

  it.effect("of one signal continue while those of another fail", () =>
    Effect.gen(function*() {
      const { deliver } = collector(() => Effect.succeed(503))
      yield* deliver(batch("metrics"))
      const exit = yield* deliver(batch("traces"))
      assert.isTrue(Exit.isSuccess(exit))
    }))
})
