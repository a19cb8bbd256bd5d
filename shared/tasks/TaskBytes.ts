/**
 * Limits how much each owner's tasks store, so that no key fills the shared disk.
 *
 * A counter per owner and hour holds how many bytes were stored in that hour, and counts until they have expired. So the sum of an
 * owner's counters is what the owner stores. A process counts whole blocks in advance, so that it seldom writes a counter. If the
 * process ends, the rest of its block counts until the counter expires.
 */
import { Clock, Config, Effect, Option, type Schedule, Schema, Semaphore, Stream } from "effect"
import { atLeast } from "../contract/Fields.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import * as Counter from "../records/Counter.ts"
import { retrying, type Revisions } from "../nats/Modify.ts"
import type { TaskRecord } from "./TaskRecord.ts"

/** Reads `GATEWAY_TASKS_MIB`: how much the tasks of each owner may store, in MiB. */
export const quotaMiB = Config.schema(atLeast(1), "GATEWAY_TASKS_MIB").pipe(Config.withDefault(1024))

/** The least that each request counts, so that the quota also limits the number of tasks. */
const leastBytes = 8 * 1024

/** How many bytes a process counts in advance. */
const blockBytes = 64 * 1024

/** Maximum number of owners for which a process keeps the rest of a block. */
const maxRests = 1_000

const hourMs = 60 * 60_000

/** The owner's tasks already store as much as they may. */
export class TaskStorageFull
  extends Schema.TaggedError<TaskStorageFull>()("TaskStorageFull", { mebibytes: Schema.Int })
{
  override readonly message =
    `With this request the tasks of the key's owner would store more than ${this.mebibytes} MiB. Delete some, or wait until they ` +
    "expire. The operator of the gateway sets the limit with GATEWAY_TASKS_MIB."
}

export interface TaskBytes {
  /** Counts a request. Fails if the tasks of its owner would then store more than `mebibytes`. */
  readonly request: (
    ownerToken: string,
    bytes: number,
    mebibytes: number
  ) => Effect.Effect<void, JetStreamFailed | TaskStorageFull>
  /** Counts a part of an answer. There is always room for it, because it may have been paid for. */
  readonly answer: (ownerToken: string, bytes: number) => Effect.Effect<void, JetStreamFailed>
}

/** Whether all that was stored in this counter's hour has expired. The counter itself may expire later: a deletion rewrites it. */
const isOver = (counter: string, now: number): boolean =>
  (Number(counter.slice(counter.lastIndexOf(".") + 1)) + 1) * hourMs + buckets.tasks.ttlMs < now

const counterOf = (ownerToken: string, at: number): string => `${ownerToken}.bytes.${Math.floor(at / hourMs)}`

export const make = Effect.fnUntraced(function*(bucket: Bucket, patience: Schedule.Schedule<unknown>) {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)
  const counters = retrying(bucket, patience)
  const counting = yield* Semaphore.make(1)
  const rests = new Map<string, number>()

  const addUp = (ownerToken: string, now: number) =>
    again(Stream.runFold(
      bucket.matching(`${ownerToken}.bytes.*`),
      () => 0,
      (sum, { key, value }) =>
        sum + (isOver(key, now) ? 0 : Option.match(value, { onNone: () => 0, onSome: Counter.valueOf }))
    ))

  const isTaken = (ownerToken: string, bytes: number): boolean => {
    const rest = rests.get(ownerToken) ?? 0
    if (rest < bytes) return false
    rests.set(ownerToken, rest - bytes)
    return true
  }

  const keep = (ownerToken: string, rest: number): void => {
    rests.delete(ownerToken)
    const [longest] = rests.size < maxRests ? [] : rests.keys()
    if (longest !== undefined) rests.delete(longest)
    rests.set(ownerToken, rest)
  }

  /** Counts bytes; `false` if there is no room. Counts before it adds up, so two processes never exceed the quota together. */
  const take = (ownerToken: string, bytes: number, mebibytes = Number.POSITIVE_INFINITY) =>
    isTaken(ownerToken, bytes) ? Effect.succeed(true) : counting.withPermit(Effect.gen(function*() {
      if (isTaken(ownerToken, bytes)) return true
      const now = yield* Clock.currentTimeMillis
      const counter = counterOf(ownerToken, now)
      // near the quota there may be room for these bytes, if not for a block
      for (const taken of new Set([Math.max(blockBytes, bytes), bytes])) {
        yield* Counter.add(counters, counter, taken)
        if (mebibytes === Number.POSITIVE_INFINITY || (yield* addUp(ownerToken, now)) <= mebibytes * 1024 ** 2) {
          // the rest may have changed in the meantime
          keep(ownerToken, (rests.get(ownerToken) ?? 0) + taken - bytes)
          return true
        }
        yield* Counter.add(counters, counter, -taken)
      }
      return false
    }))

  return {
    request: Effect.fnUntraced(function*(ownerToken, bytes, mebibytes) {
      const isTaken = yield* take(ownerToken, Math.max(leastBytes, bytes), mebibytes)
      if (!isTaken) return yield* new TaskStorageFull({ mebibytes })
    }),
    answer: (ownerToken, bytes) => Effect.asVoid(take(ownerToken, bytes))
  } satisfies TaskBytes
})

/**
 * Subtracts what a deleted task has stored. To be called once for each task. `key`: of the task's record. `answerBytes`: the size of
 * its answer.
 */
export const free = Effect.fnUntraced(function*(
  bucket: Revisions,
  patience: Schedule.Schedule<unknown>,
  key: string,
  { created, ended, request }: TaskRecord,
  answerBytes: number
) {
  const ownerToken = key.slice(0, key.indexOf("."))
  if (request?.bytes === undefined) return
  const counters = retrying(bucket, patience)
  yield* Counter.add(counters, counterOf(ownerToken, created), -Math.max(leastBytes, request.bytes))
  if (answerBytes > 0 && ended !== null) yield* Counter.add(counters, counterOf(ownerToken, ended), -answerBytes)
})
