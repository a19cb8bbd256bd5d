/** The oldest records of an owner are deleted by one loop at a time, which follows the owner's count. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Option } from "effect"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import type { Bucket } from "../../../shared/nats/KeyValue.ts"
import * as OwnerQuota from "../../../shared/records/OwnerQuota.ts"

const mib = 1024 * 1024

/** The records of an owner with a quota of 2 MiB, whose deletions wait for a latch. */
const start = Effect.fnUntraced(function*() {
  let count: string | undefined
  const bucket: Bucket = {
    getRevision: () =>
      Effect.sync(() => Option.map(Option.fromUndefinedOr(count), (value) => ({ value, revision: 1 }))),
    create: (_: string, value: string) => Effect.sync(() => (count = value) !== ""),
    update: (_: string, value: string) => Effect.sync(() => Option.some((count = value).length))
  } as Partial<Bucket> as Bucket
  const quota = yield* OwnerQuota.make({ bucket, quota: 2 * mib })
  const latch = yield* Latch.make()
  const stored = new Map<number, number>()
  const broken = new Set<number>()
  let deletions = 0
  let most = 0
  const remove = (at: number) =>
    Effect.suspend(() => {
      most = Math.max(most, ++deletions)
      return broken.delete(at) ? Effect.fail(new JetStreamFailed({ detail: "no answer" })) : latch.await
    }).pipe(
      Effect.andThen(Effect.sync(() => stored.delete(at))),
      Effect.ensuring(Effect.sync(() => deletions--))
    )
  const next: OwnerQuota.Next = (from) =>
    Effect.sync(() => {
      const [at, place] = [...stored].find(([at]) => at >= from) ?? []
      return at === undefined ? Option.none() : Option.some({ at, place, delete: remove(at) })
    })
  /** Stores records of 1 MiB, numbered from 1. */
  const write = Effect.fnUntraced(function*(records: number) {
    for (let record = 0; record < records; record++) {
      const place = yield* quota.take("owner.count", mib, next)
      stored.set(place / mib + 1, place)
      yield* Effect.yieldNow
    }
  })
  return { broken, latch, most: () => most, stored: () => [...stored.keys()], write }
})

describe("the oldest records", () => {
  it.effect("are deleted by one loop, which goes on up to the newest block", () =>
    Effect.gen(function*() {
      const { latch, most, stored, write } = yield* start()
      yield* write(10)
      assert.strictEqual(stored().length, 10)
      yield* latch.open
      while (stored().length > 2) yield* Effect.yieldNow
      assert.deepStrictEqual(stored(), [9, 10])
      assert.strictEqual(most(), 1)
      yield* write(2)
      while (stored().length > 2) yield* Effect.yieldNow
      assert.deepStrictEqual(stored(), [11, 12])
    }))

  it.effect("are deleted with the next block after a failure", () =>
    Effect.gen(function*() {
      const { broken, latch, stored, write } = yield* start()
      broken.add(1)
      yield* latch.open
      yield* write(3)
      assert.deepStrictEqual(stored(), [1, 2, 3])
      yield* write(1)
      while (stored().length > 2) yield* Effect.yieldNow
      assert.deepStrictEqual(stored(), [3, 4])
    }))
})
