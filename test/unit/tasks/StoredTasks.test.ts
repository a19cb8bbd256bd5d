/** Pages of tasks of all owners: each task once, the latest first, and a bounded number of records read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { newSuffix, sameTime, suffixOf } from "../../../shared/tasks/answers/AnswerTaskId.ts"
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
