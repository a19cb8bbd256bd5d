/**
 * Limits how much each owner stores in files.
 *
 * A writer first records in the file's record how much it is about to store, and then adds up all records of the owner. So concurrent
 * writers see each other, wherever they run, and never exceed the quota together; but both may be refused. A writer doubles its
 * claim each time, so that it seldom adds up.
 */
import { Clock, Effect, Fiber, Option, type Schedule, Stream } from "effect"
import type { Owner } from "../contract/Owner.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"
import * as FileRecord from "./FileRecord.ts"

/** The least that each file counts, so that the quota also limits the number of files. */
const leastBytes = 128 * 1024

/** How many bytes a writer claims first if the size is unknown. */
const firstBytes = 1024 * 1024

/** How often a writer confirms its record, and after how long without confirmation it counts as lost, in milliseconds. */
const confirmEveryMs = 60_000
const lostAfterMs = 5 * 60_000

export interface FileQuotaOptions {
  readonly bucket: Bucket
  /** The quota of each owner, in bytes. */
  readonly bytes: number
  readonly patience: Schedule.Schedule<unknown>
  /** Deletes the file with this key. */
  readonly remove: (key: string) => Effect.Effect<unknown, JetStreamFailed>
}

/** A new file's claim to part of the quota. */
export interface Claim {
  /** Extends the claim to this many bytes; `false` if the owner has no room. */
  readonly take: (bytes: number) => Effect.Effect<boolean, JetStreamFailed>
  /** Writes the record of the complete file. */
  readonly complete: (
    encode: (entry: FileRecord.Entry) => string,
    bytes: number
  ) => Effect.Effect<void, JetStreamFailed>
}

export const make = ({ bucket, bytes: quota, patience, remove }: FileQuotaOptions) => {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)

  /** The sum of what the owner's files count. Deletes files whose writers are lost. */
  const addUp = Effect.fnUntraced(function*(owner: Owner) {
    const now = yield* Clock.currentTimeMillis
    const lost: Array<string> = []
    let sum = 0
    yield* again(Stream.runForEach(
      Stream.suspend(() => {
        lost.length = sum = 0
        return bucket.matching(FileRecord.keysOf(owner))
      }),
      ({ key, value }) =>
        Effect.sync(() => {
          const entry = Option.getOrUndefined(Option.flatMap(value, FileRecord.decodeEntry))
          if (entry === undefined) return
          if (entry.sealed === undefined && entry.seen < now - lostAfterMs) lost.push(key)
          else sum += entry.counted
        })
    ))
    yield* Effect.forEach(lost, remove, { discard: true })
    return sum
  })

  const hasRoom = (owner: Owner) => Effect.map(addUp(owner), (sum) => sum <= quota)

  return {
    /** Whether the owner stores no more than the quota. */
    hasRoom,
    /** Starts a claim, and confirms its record until the scope closes. Unless `isLimited`, there is always room. */
    claim: Effect.fnUntraced(function*(owner: Owner, id: string, isLimited: boolean) {
      const key = FileRecord.keyOf(owner, id)
      let counted = 0
      const entry = Effect.map(Clock.currentTimeMillis, (seen) => ({ counted, seen }))
      const note = Effect.flatMap(entry, (entry) => again(bucket.put(key, FileRecord.encodeEntry(entry))))
      const confirm = Effect.forever(Effect.andThen(Effect.sleep(confirmEveryMs), Effect.ignore(note)))
      const confirming = yield* Effect.forkScoped(confirm)
      const claim: Claim = {
        take: Effect.fnUntraced(function*(bytes) {
          if (bytes <= counted && counted > 0) return true
          // near the quota there may be room for these bytes but not for twice as many
          for (const wanted of new Set([Math.max(firstBytes, bytes, 2 * counted), Math.max(leastBytes, bytes)])) {
            counted = wanted
            yield* note
            if (!isLimited || (yield* hasRoom(owner))) return true
          }
          return false
        }),
        complete: Effect.fnUntraced(function*(encode, bytes) {
          // a later confirmation would overwrite the complete record
          yield* Fiber.interrupt(confirming)
          const counted = Math.max(leastBytes, bytes)
          yield* again(bucket.put(key, encode({ counted, seen: yield* Clock.currentTimeMillis })))
        })
      }
      return claim
    })
  }
}
