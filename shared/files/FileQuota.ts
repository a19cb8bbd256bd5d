/**
 * Bounds what each owner stores in files.
 *
 * A writer first notes in the file's record how much it is about to store, and then adds up all records of the owner. So two writers
 * at the same time know of each other, wherever they run, and never exceed the quota together; but both may be refused. Writers
 * take twice as much each time, so that they seldom add up.
 */
import { Clock, Effect, Fiber, Option, type Schedule, Stream } from "effect"
import type { Owner } from "../contract/Owner.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"
import * as FileRecord from "./FileRecord.ts"

/** What each file counts at least, so that the quota also bounds the number of files. */
const leastBytes = 128 * 1024

/** What a writer takes first if nothing is known about the size. */
const firstBytes = 1024 * 1024

/** A writer confirms its record this often, and is lost if it has not for this long, in milliseconds. */
const confirmEveryMs = 60_000
const lostAfterMs = 5 * 60_000

export interface FileQuotaOptions {
  readonly bucket: Bucket
  /** In bytes. */
  readonly bytes: number
  readonly patience: Schedule.Schedule<unknown>
  /** Deletes the file of this key. */
  readonly remove: (key: string) => Effect.Effect<unknown, JetStreamFailed>
}

/** The part of the quota that a new file takes. */
export interface Claim {
  /** Grows to this many bytes; `false` if the owner has no room. */
  readonly take: (bytes: number) => Effect.Effect<boolean, JetStreamFailed>
  /** Writes the record of the complete file. */
  readonly complete: (
    encode: (entry: FileRecord.Entry) => string,
    bytes: number
  ) => Effect.Effect<void, JetStreamFailed>
}

export const make = ({ bucket, bytes: quota, patience, remove }: FileQuotaOptions) => {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)

  /** What all files of the owner count. Deletes those whose writers are lost. */
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

  return {
    /** Confirms the record until the scope closes. If not `isLimited`, there is always room. */
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
          // near the quota there may be room for these bytes, if not for twice as many
          for (const wanted of new Set([Math.max(firstBytes, bytes, 2 * counted), Math.max(leastBytes, bytes)])) {
            counted = wanted
            yield* note
            if (!isLimited || (yield* addUp(owner)) <= quota) return true
          }
          return false
        }),
        complete: Effect.fnUntraced(function*(encode, bytes) {
          // no confirmation may come after the last record
          yield* Fiber.interrupt(confirming)
          const counted = Math.max(leastBytes, bytes)
          yield* again(bucket.put(key, encode({ counted, seen: yield* Clock.currentTimeMillis })))
        })
      }
      return claim
    })
  }
}
