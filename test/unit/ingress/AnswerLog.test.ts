/** Streams from the log of a task. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import type { RequestError } from "../../../services/ingress/errors/IngressError.ts"
import type { Exchange } from "../../../services/ingress/exchange/Exchange.ts"
import * as AnswerLog from "../../../services/ingress/owned/AnswerLog.ts"
import * as AnswerTaskRoutes from "../../../services/ingress/owned/AnswerTasks.ts"
import { WorkerLost } from "../../../shared/contract/JobError.ts"
import { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"

const owner = { id: "o", salt: "salt" }
const request = { workload: "chat", contentType: "application/json", pages: 1, tokens: 1, streams: true } as const
const made = TaskRecord.make({
  ...{ id: "task_1", tenant: "key", operation: "chat.completions", model: "m", pool: "default", bodyHash: "", request }
}, 0)

const log = ["data: a\n\ndata: b\n\n", ": keep-alive\n\n", "data: c\n\n"]

const tasksWith = (task: TaskRecord.TaskRecord) =>
  ({
    find: () => Effect.succeedSome(task),
    pages: () => Stream.fromIterable([...log.map((text) => ({ bytes: Buffer.from(text) })), "silence" as const])
  }) as unknown as AnswerTasks["Service"]

const read = (task: TaskRecord.TaskRecord, reading: { readonly after?: number; readonly hasIds?: boolean }) =>
  AnswerLog.events(tasksWith(task), owner, task, { requestId: "req_1", ...reading }).pipe(
    Stream.runCollect,
    Effect.map((pieces) => Buffer.concat([...pieces]).toString())
  )

describe("a stream from a log", () => {
  const completed = { ...made, status: "completed", ended: 0 } as const
  const failed = { ...made, status: "failed", ended: 0, error: new WorkerLost() } as const

  it.effect("has the events after the one that the client has", () =>
    Effect.gen(function*() {
      const whole = `${log.join("")}: keep-alive\n\n`
      assert.strictEqual(yield* read(completed, {}), whole)
      assert.strictEqual(yield* read(completed, { after: 1 }), whole.slice(whole.indexOf(":", 8 * 2 + 2)))
      assert.strictEqual((yield* read(completed, { after: 2 })).includes("data"), false)
      assert.include(yield* read(completed, { after: 1, hasIds: true }), "id: 2\ndata: c\n\n")
    }))

  it.effect("ends with the error of the task, which has the next number", () =>
    Effect.gen(function*() {
      assert.match(yield* read(failed, { hasIds: true }), /id: 3\ndata: \{"error".*worker_lost.*\n\n$/)
      assert.match(yield* read(failed, { after: 2 }), /^: keep-alive\n\n: keep-alive\n\ndata: \{"error"/)
      assert.notInclude(yield* read(failed, { after: 3 }), "error")
    }))

  const ask = (task: TaskRecord.TaskRecord) =>
    AnswerLog.answer(
      tasksWith(task),
      { owner, id: task.id, query: new URLSearchParams(), headers: {}, requestId: "req_1" },
      task,
      "starting_after"
    )

  it.effect("is refused later than an hour after the end", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* ask(completed)).status, 200)
      yield* TestClock.adjust("1 millis")
      assert.deepInclude(yield* Effect.flip(ask(completed)), { _tag: "InvalidRequest", param: "stream" })
      assert.strictEqual((yield* ask(made)).status, 200)
    }))

  it.effect("is not available to another request with its idempotency key if it is larger than 64 MB", () =>
    Effect.gen(function*() {
      const errors: Array<string> = []
      const exchange = { fail: ({ _tag }: RequestError) => errors.push(_tag) } as unknown as Exchange
      const outlives = { by: "idempotency-key", keyed: undefined } as const
      const { answer } = yield* AnswerTaskRoutes.serve
      const large = { ...completed, result: { pages: 200, bytes: 64 * 1024 * 1024 + 1 } }
      answer(large, { owner, outlives, streams: true, body: new Uint8Array(0) }, exchange)
      assert.deepStrictEqual(errors, ["AnswerNotKept"])
    }).pipe(Effect.provideService(AnswerTasks, tasksWith(completed))))

  it.effect("is refused for a request without a stream", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ask({ ...made, request: { ...request, streams: false } }))
      assert.deepInclude(error, { _tag: "InvalidRequest", param: "stream" })
    }))
})
