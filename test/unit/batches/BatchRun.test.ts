/** A new holder continues a batch from its log. */
import { assert, it } from "@effect/vitest"
import { Effect, Queue, Stream } from "effect"
import { run, type RunDependencies } from "../../../shared/batches/BatchRun.ts"
import type { Closed, Followed, LineLog } from "../../../shared/batches/lines/LineLog.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import type { ClaimedTask } from "../../../shared/tasks/RecordStore.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"

const batch = {
  endpoint: "/v1/chat/completions",
  input: "file-1",
  total: 2,
  atOnce: 1,
  window: "24h",
  expires: Number.MAX_SAFE_INTEGER,
  headers: {},
  metadata: null
}

const entry = { kind: "completed", worker: "w", job: 1, at: 1 } as const
const ended = (line: number): Followed => ({ line, at: line + 1, entry, sealed: new Uint8Array(0) })

it.effect("a new holder of a batch whose lines have all ended does not read its file", () =>
  Effect.gen(function*() {
    const log = yield* Queue.unbounded<Followed | Closed>()
    yield* Queue.offerAll(log, [ended(0), ended(1)])
    let reads = 0
    const dependencies = {
      worker: "w",
      log: {
        newest: () => Effect.succeed(2),
        follow: () => Stream.fromQueue(log),
        close: () => Effect.asVoid(Queue.offer(log, { line: "closed", at: 3 }))
      } as Partial<LineLog>,
      files: {
        read: () =>
          Stream.suspend(() => {
            reads++
            return Stream.empty
          })
      }
    } as unknown as RunDependencies
    const task = { id: "batch", tenant: "key", operation: "o", model: "", pool: "default", bodyHash: "" }
    const ran = yield* run(dependencies, {
      task: { current: () => TaskRecord.make(task, 0) } as ClaimedTask,
      owner: { id: "key_1", salt: "salt" },
      batch,
      operation: chatCompletions,
      file: {
        ...{ id: "file-1", purpose: "batch", filename: "requests.jsonl", bytes: 1, lines: 2, created: 0 },
        expires: 1
      },
      onProgress: () => undefined
    })
    assert.deepStrictEqual([ran.lines.count("completed"), ran.early, reads], [2, undefined, 0])
  }))
