/** Changes records that other processes may change at the same time, by compare-and-set. */
import { Effect, Option, type Schedule } from "effect"
import { JetStreamFailed } from "./JetStream.ts"
import type { Bucket, Revision } from "./KeyValue.ts"

/** What compare-and-set needs of a bucket. */
export type Revisions = Pick<Bucket, "create" | "getRevision" | "update">

/** Maximum number of tries. Each one fails only because another write of the record has succeeded. */
const maxTries = 1_000

/**
 * Writes the value that `change` makes of the stored one, and returns its result. Writes nothing if there is no value. If another write
 * came first, `change` runs again with what that has stored. The value should be unique to its writer, as for `Bucket.update`.
 */
export const modify = Effect.fnUntraced(function*<A, E, R>(
  bucket: Revisions,
  key: string,
  change: (stored: Option.Option<string>) => Effect.Effect<readonly [result: A, value?: string], E, R>
): Effect.fn.Return<A, E | JetStreamFailed, R> {
  for (let tries = 0; tries < maxTries; tries++) {
    const stored = yield* bucket.getRevision(key)
    const [result, value] = yield* change(Option.map(stored, ({ value }) => value))
    if (value === undefined || (yield* write(bucket, key, stored, value))) return result
  }
  return yield* new JetStreamFailed({ detail: `other writes of ${key} came first ${maxTries} times` })
})

/** `false` if another write came first. A write whose answer was lost counts as another, unless its value is found in the bucket. */
const write = (
  bucket: Revisions,
  key: string,
  stored: Option.Option<Revision>,
  value: string
): Effect.Effect<boolean, JetStreamFailed> =>
  Option.match(stored, {
    onNone: () =>
      Effect.flatMap(bucket.create(key, value), (isCreated) =>
        isCreated
          ? Effect.succeed(true)
          : Effect.map(bucket.getRevision(key), Option.exists((found) => found.value === value))),
    onSome: ({ revision }) => Effect.map(bucket.update(key, value, revision), Option.isSome)
  })

/**
 * Retries each request by itself. To repeat a whole `modify` could apply a change twice: its write may have succeeded although it failed
 * with `JetStreamFailed`, and only the write itself recognises that.
 */
export const retrying = (
  { create, getRevision, update }: Revisions,
  patience: Schedule.Schedule<unknown>
): Revisions => ({
  create: (key, value) => Effect.retry(create(key, value), patience),
  getRevision: (key) => Effect.retry(getRevision(key), patience),
  update: (key, value, revision) => Effect.retry(update(key, value, revision), patience)
})
