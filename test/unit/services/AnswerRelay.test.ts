/** The relay of a job's answer, with a bus and a clock that the test controls. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpServerResponse } from "effect/http"
import { afterEach, beforeEach, vi } from "vitest"
import type { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import type { AnswerListener, JobRequest } from "../../../shared/bus/ingress/JobRequest.ts"
import { ProviderFailed } from "../../../shared/contract/JobError.ts"
import { relay } from "../../../services/ingress/answer/AnswerRelay.ts"
import type { RequestRecord } from "../../../services/ingress/record/RequestRecord.ts"

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Starts a request. `said` lists what the relay tells the bus. */
const start = Effect.fnUntraced(function*(streams: boolean) {
  const said: Array<string> = []
  let listener: AnswerListener | undefined
  const jobs = {
    submit: (_: JobRequest, given: AnswerListener) => {
      listener = given
      return {
        id: "job",
        taken: (bytes: number) => said.push(`taken ${bytes}`),
        flushed: () => said.push("flushed"),
        cancel: () => said.push("cancelled")
      }
    }
  } as unknown as JobClient["Service"]
  const record = {
    id: "req_1",
    markSubmitted: () => undefined,
    markClaimed: () => undefined,
    markAnswering: () => said.push("answering"),
    markBroken: (tag: string) => said.push(`broken ${tag}`)
  } as unknown as RequestRecord
  const request = { workload: "chat", pool: "default" } as JobRequest
  const fiber = yield* Effect.forkChild(Effect.result(relay({
    jobs,
    record,
    request,
    streams,
    dialect: "openai",
    settle: undefined
  })))
  yield* Effect.yieldNow
  return { listener: listener!, said, fiber }
})

const head = (contentType: string) => ({ status: 200, contentType, headers: { "x-gateway-provider": "p" } })
const bytes = (text: string) => Buffer.from(text)

/** The response's content type and its body, which has ended. */
const read = (response: HttpServerResponse.HttpServerResponse) =>
  Effect.gen(function*() {
    const web = HttpServerResponse.toWeb(response)
    return { type: web.headers.get("content-type"), text: yield* Effect.promise(() => web.text()) }
  })

describe("a client that asks for a stream", () => {
  it.live("gets a comment after 15 s without an answer, and then the answer; until then a worker can be replaced", () =>
    Effect.gen(function*() {
      const { fiber, listener, said } = yield* start(true)
      listener.onClaim()
      vi.advanceTimersByTime(14_999)
      assert.isUndefined(fiber.pollUnsafe())
      vi.advanceTimersByTime(1)
      const response = yield* Effect.flatMap(Fiber.join(fiber), Effect.fromResult)
      const reading = yield* Effect.forkChild(read(response))
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.deepStrictEqual(said, [])
      listener.onRestart()
      listener.onStart(head("text/event-stream"))
      listener.onChunk(bytes("data: 1\n\n"), false)
      listener.onEnd(undefined)
      const { text, type } = yield* Fiber.join(reading)
      assert.deepStrictEqual([type, text], ["text/event-stream", ": keep-alive\n\ndata: 1\n\n"])
      assert.deepStrictEqual(said.slice(0, 2), ["flushed", "answering"])
    }))

  it.live("gets an error after that as an event, also for an answer that is no stream", () =>
    Effect.gen(function*() {
      const ends = [
        (listener: AnswerListener) =>
          listener.onError(new ProviderFailed({ provider: "p", reason: "status", status: 503 })),
        (listener: AnswerListener) => listener.onStart(head("application/json"))
      ]
      for (const end of ends) {
        const { fiber, listener, said } = yield* start(true)
        listener.onClaim()
        vi.advanceTimersByTime(15_000)
        const response = yield* Effect.flatMap(Fiber.join(fiber), Effect.fromResult)
        end(listener)
        assert.match((yield* read(response)).text, /^data: \{"error":\{[^\n]*"upstream_error"[^\n]*\}\}\n\n/)
        assert.include(said, "broken ProviderFailed")
      }
    }))

  it.live("gets an error before that with its status, and so does one that asks for JSON at any time", () =>
    Effect.gen(function*() {
      for (const [streams, afterMs] of [[true, 14_999], [false, 60_000]] as const) {
        const { fiber, listener } = yield* start(streams)
        listener.onClaim()
        vi.advanceTimersByTime(afterMs)
        const error = new ProviderFailed({ provider: "p", reason: "status", status: 503 })
        listener.onError(error)
        assert.deepInclude(yield* Fiber.join(fiber), { _tag: "Failure", failure: error })
      }
    }))
})
