/**
 * Pages of tasks of all owners: each task once, the latest first, and a bounded number of records read. What a deleted task has stored
 * is subtracted once.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { newSuffix, sameTime, suffixOf } from "../../../shared/tasks/answers/AnswerTaskId.ts"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import type { Bucket } from "../../../shared/nats/KeyValue.ts"
import * as Counter from "../../../shared/records/Counter.ts"
import * as StoredTasks from "../../../shared/tasks/answers/StoredTasks.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"

const owners = ["own_er-1", "own_er-2", "own_er-3"]

/** The id of the task that was created at this time. */
const idAt = (at: number): string => `${at % 2 === 0 ? "task" : "resp"}_${at.toString(16).padStart(32, "0")}`

/** A store of `count` tasks in no order; those at multiples of ten are deleted after their keys were listed. */
const make = (count: number) => {
  const times = Array.from({ length: count }, (_, index) => (index * 7) % count)
  const keys = times.map((at) => `${owners[at % owners.length]}.${idAt(at)}`)
  let reads = 0
  const find = (key: string) =>
    Effect.sync(() => {
      reads++
      const id = key.slice(key.indexOf(".") + 1)
      const at = Number.parseInt(id.slice(-32), 16)
      const operation = at % 3 === 0 ? "embeddings" : "responses"
      const task = TaskRecord.make({ id, tenant: "key", operation, model: "m", pool: "default", bodyHash: "" }, at)
      return at % 10 === 0 ? Option.none() : Option.some(task)
    })
  const stored = StoredTasks.make(
    {
      keys: () => Effect.succeed(keys),
      find,
      cancel: () => Effect.die("cancels nothing"),
      free: () => Effect.die("frees nothing"),
      remove: () => Effect.die("removes nothing")
    },
    Schedule.recurs(0)
  )
  const all = Effect.fnUntraced(function*(page: Omit<StoredTasks.PageRequest, "after">) {
    const pages: Array<ReadonlyArray<string>> = []
    let after: string | undefined
    do {
      const before = reads
      const { next, tasks } = yield* stored.page(yield* stored.keys(StoredTasks.allRecords), { ...page, after })
      if (page.mostRead !== undefined) assert.isAtMost(reads - before, page.mostRead)
      pages.push(tasks.map(({ id }) => id))
      after = next
    } while (after !== undefined)
    return pages
  })
  return { all }
}

/** The ids of a store's tasks that match, the latest first. */
const expected = (count: number, matches: (at: number) => boolean = () => true) =>
  Array.from({ length: count }, (_, index) => count - 1 - index)
    .filter((at) => at % 10 !== 0 && matches(at)).map(idAt)

describe("pages of tasks", () => {
  it.effect.each([1, 7, 20, 100])("of %s contain every task once, in order", (limit) =>
    Effect.gen(function*() {
      const pages = yield* make(100).all({ limit })
      assert.deepStrictEqual(pages.flat(), expected(100))
      for (const page of pages) assert.isAtMost(page.length, limit)
      // only the last is not full
      assert.isTrue(pages.slice(0, -1).every(({ length }) => length === limit))
    }))

  it.effect("are shorter where records are read without finding wanted ones", () =>
    Effect.gen(function*() {
      const pages = yield* make(100).all({
        limit: 4,
        mostRead: 10,
        isWanted: ({ operation }) => operation === "embeddings"
      })
      assert.deepStrictEqual(pages.flat(), expected(100, (at) => at % 3 === 0))
      assert.isAbove(pages.length, 9)
    }))

  it("continue after a task that is not shown by its time alone", () => {
    const hidden = `task_${newSuffix(5_000)}`
    const after = sameTime(hidden)
    assert.notInclude(after, hidden.slice(-20))
    assert.isBelow(Buffer.compare(Buffer.from(newSuffix(4_999)), Buffer.from(suffixOf(after))), 0)
    assert.isBelow(Buffer.compare(Buffer.from(suffixOf(hidden)), Buffer.from(suffixOf(after))), 1)
    assert.isAbove(Buffer.compare(Buffer.from(newSuffix(5_001)), Buffer.from(suffixOf(after))), 0)
  })

  it.effect("are one empty page without tasks", () =>
    Effect.map(make(0).all({ limit: 5 }), (pages) => assert.deepStrictEqual(pages, [[]])))
})

const kib = 1024

/** A bucket with a completed task of 100 KiB and its counter of 300 KiB. `isLost`: whether a write fails although it is stored. */
const makeBucket = (isLost: (key: string) => boolean = () => false) => {
  const at = 1_000
  const key = `owner.${idAt(at)}`
  const counter = "owner.bytes.0"
  const task: TaskRecord.TaskRecord = {
    ...TaskRecord.make(
      { id: idAt(at), tenant: "key", operation: "responses", model: "m", pool: "p", bodyHash: "" },
      at
    ),
    request: { contentType: "", headers: {}, workload: "chat", pages: 1, bytes: 60 * kib, tokens: 1, streams: false },
    status: "completed",
    ended: at,
    result: { pages: 1, bytes: 40 * kib }
  }
  const values = new Map([[key, ""], [`${key}.request.0`, ""], [`${key}.answer.0`, ""], [counter, `${300 * kib}`]])
  let revision = 1
  const written = <A>(key: string, answer: A) =>
    isLost(key) ? Effect.fail(new JetStreamFailed({ detail: "no answer" })) : Effect.succeed(answer)
  const bucket: Pick<Bucket, "create" | "getRevision" | "purge" | "update"> = {
    create: () => Effect.die("creates nothing"),
    getRevision: (key) =>
      Effect.sync(() => Option.map(Option.fromUndefinedOr(values.get(key)), (value) => ({ value, revision }))),
    update: (key, value, from) =>
      Effect.suspend(() => {
        if (values.get(key) === value) return Effect.succeedSome(revision)
        if (from !== revision) return Effect.succeedNone
        values.set(key, value)
        return written(key, Option.some(++revision))
      }),
    purge: (filter) =>
      Effect.suspend(() => {
        const isPurged = (key: string) => filter.endsWith(">") ? key.startsWith(filter.slice(0, -1)) : key === filter
        const purged = [...values.keys()].filter(isPurged)
        for (const key of purged) values.delete(key)
        return written(filter, purged.length)
      })
  }
  const patience = Schedule.recurs(3)
  const stored = StoredTasks.make(
    {
      keys: () => Effect.succeed([key]),
      find: () => Effect.succeedSome(task),
      // as for a request that has read the record before another one deletes it
      cancel: () => Effect.as(Effect.yieldNow, task),
      free: () => Effect.die("frees nothing"),
      remove: StoredTasks.removeFrom(bucket, patience)
    },
    patience
  )
  return {
    remove: stored.delete(key),
    keys: () => [...values.keys()],
    counted: () => Counter.valueOf(values.get(counter) ?? "")
  }
}

/** Whether a write to keys that match is the first one. */
const firstTo = (pattern: RegExp) => {
  let isFirst = true
  return (key: string) => pattern.test(key) && isFirst && !(isFirst = false)
}

describe("what a deleted task has stored", () => {
  it.effect("is subtracted once, however many requests delete it at the same time", () =>
    Effect.gen(function*() {
      const { counted, keys, remove } = makeBucket()
      yield* Effect.all([remove, remove, remove], { concurrency: "unbounded" })
      assert.deepStrictEqual(keys(), ["owner.bytes.0"])
      assert.strictEqual(counted(), 200 * kib)
    }))

  it.effect("is subtracted once, although JetStream does not confirm it", () =>
    Effect.gen(function*() {
      const { counted, remove } = makeBucket(firstTo(/bytes/))
      yield* remove
      assert.strictEqual(counted(), 200 * kib)
    }))

  it.effect("is subtracted once, although JetStream does not confirm that the pages are removed", () =>
    Effect.gen(function*() {
      const { counted, keys, remove } = makeBucket(firstTo(/>$/))
      yield* remove
      assert.deepStrictEqual(keys(), ["owner.bytes.0"])
      assert.strictEqual(counted(), 200 * kib)
    }))
})
