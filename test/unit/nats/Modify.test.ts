/** A change of a record that others may change at the same time. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { modify, retrying, type Revisions } from "../../../shared/nats/Modify.ts"

/** A bucket with one record, into which `others` writes that many times, each time after it was read. */
const bucketOf = (first: string | undefined, others: number) => {
  let value = first
  let revision = 1
  let left = others
  const writes: Array<string> = []
  const write = (text: string, expected: number): boolean => {
    if (revision !== expected) return false
    value = text
    revision++
    writes.push(text)
    return true
  }
  const bucket: Revisions = {
    getRevision: () =>
      Effect.sync(() => {
        const read = value === undefined ? Option.none() : Option.some({ value, revision })
        if (left-- > 0) {
          value = `${value ?? ""}o`
          revision++
        }
        return read
      }),
    create: (_, text) => Effect.sync(() => value === undefined && write(text, revision)),
    update: (_, text, expected) => Effect.sync(() => write(text, expected) ? Option.some(revision) : Option.none())
  }
  return { bucket, writes }
}

const append = (stored: Option.Option<string>) =>
  Effect.succeed([stored, `${Option.getOrElse(stored, () => "")}x`] as const)

describe("a change of a record", () => {
  it.effect("is made of the record as it is when the change is written", () =>
    Effect.gen(function*() {
      const { bucket, writes } = bucketOf("a", 3)
      assert.deepStrictEqual(yield* modify(bucket, "key", append), Option.some("aooo"))
      assert.deepStrictEqual(writes, ["aooox"])
    }))

  it.effect("creates a record that is missing, unless another does so first", () =>
    Effect.gen(function*() {
      for (const [others, written] of [[0, "x"], [1, "ox"]] as const) {
        const { bucket, writes } = bucketOf(undefined, others)
        yield* modify(bucket, "key", append)
        assert.deepStrictEqual(writes, [written])
      }
    }))

  it.effect("is made once if it creates a record and its answer is lost", () =>
    Effect.gen(function*() {
      const { bucket, writes } = bucketOf(undefined, 0)
      const { create } = bucket
      let isLost = true
      const losing: Revisions = {
        ...bucket,
        create: (key, text) =>
          Effect.flatMap(create(key, text), (isCreated) => {
            if (!isLost) return Effect.succeed(isCreated)
            isLost = false
            return Effect.fail(new JetStreamFailed({ detail: "timeout" }))
          })
      }
      yield* modify(retrying(losing, Schedule.recurs(1)), "key", append)
      assert.deepStrictEqual(writes, ["x"])
    }))

  it.effect("writes nothing if there is nothing to change", () =>
    Effect.gen(function*() {
      const { bucket, writes } = bucketOf("a", 0)
      assert.strictEqual(yield* modify(bucket, "key", () => Effect.succeed(["result"])), "result")
      assert.deepStrictEqual(writes, [])
    }))

  it.effect("fails if other writes come first without end", () =>
    Effect.gen(function*() {
      const { bucket } = bucketOf("a", Infinity)
      const { detail } = yield* Effect.flip(modify(bucket, "key", append))
      assert.strictEqual(detail, "other writes of key came first 1000 times")
    }))
})
