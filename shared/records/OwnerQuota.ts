/**
 * Limits how much each owner stores: beyond the quota, the owner's oldest records are deleted, so that no key fills the shared disk.
 *
 * A counter per owner holds how many bytes the owner has ever stored. Each record has its place in that count. The distance from the
 * oldest record's place to the end of the count bounds what the owner stores now, whatever has expired. Writers take places in
 * blocks, so that they seldom write the counter.
 */
import { Effect, Option, Semaphore } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"
import * as Counter from "./Counter.ts"

/** How much of the count a writer takes at a time, in bytes. */
const blockBytes = 1024 * 1024

/** Maximum number of owners whose blocks stay in memory. */
const maxBlocks = 1_000

interface Block {
  /** The next free place. */
  next: number
  end: number
  /** All the owner's records from before this write of the bucket are deleted. */
  oldest: number
}

/** A stored record of the owner. */
export interface Stored {
  /** The sequence of the write in the bucket. */
  readonly at: number
  /** `undefined` if the record is deleted or cannot be read. */
  readonly place: number | undefined
  readonly delete: Effect.Effect<unknown, JetStreamFailed>
}

export interface OwnerQuotaOptions {
  readonly bucket: Bucket
  /** The quota of each owner, in bytes. */
  readonly quota: number
}

/** Finds the owner's first record at or after a write of the bucket. */
export type Next = (from: number) => Effect.Effect<Option.Option<Stored>, JetStreamFailed>

export const make = Effect.fnUntraced(function*({ bucket, quota }: OwnerQuotaOptions) {
  const scope = yield* Effect.scope
  const taking = yield* Semaphore.make(1)
  const blocks = new Map<string, Block>()
  /** The blocks of the owners whose oldest records are being deleted. */
  const evicting = new Map<string, Block>()

  const deleteOldest = Effect.fnUntraced(function*(block: Block, next: Next): Effect.fn.Return<void, JetStreamFailed> {
    for (;;) {
      const stored = Option.getOrUndefined(yield* next(block.oldest))
      if (stored === undefined) return
      if (stored.place !== undefined) {
        // the end may have moved since the last record
        if (block.end - stored.place <= quota) return
        yield* stored.delete
      }
      block.oldest = stored.at + 1
    }
  })

  /** Deletes the owner's oldest records in the background, unless that is already under way. */
  const evict = (counter: string, block: Block, next: Next): Effect.Effect<unknown> => {
    if (evicting.has(counter)) return Effect.void
    evicting.set(counter, block)
    return deleteOldest(block, next).pipe(
      Effect.ensuring(Effect.sync(() => evicting.delete(counter))),
      // what remains after a failure is deleted with the next block
      Effect.ignore,
      Effect.forkIn(scope)
    )
  }

  const placeIn = (block: Block | undefined, bytes: number): Option.Option<number> => {
    if (block === undefined || block.next + bytes > block.end) return Option.none()
    block.next += bytes
    return Option.some(block.next - bytes)
  }

  /** Takes the place of a new record. If the owner has no room, deletes its oldest records in the background. */
  const take = (counter: string, bytes: number, next: Next): Effect.Effect<number, JetStreamFailed> =>
    Option.match(placeIn(blocks.get(counter), bytes), {
      onSome: Effect.succeed,
      onNone: () =>
        taking.withPermit(Effect.gen(function*() {
          const former = blocks.get(counter) ?? evicting.get(counter)
          const place = placeIn(former, bytes)
          if (Option.isSome(place)) return place.value
          const taken = Math.max(blockBytes, bytes)
          const end = yield* Counter.add(bucket, counter, taken)
          const block = Object.assign(former ?? { oldest: 0 }, { next: end - taken + bytes, end })
          blocks.delete(counter)
          const [longest] = blocks.size < maxBlocks ? [] : blocks.keys()
          if (longest !== undefined) blocks.delete(longest)
          blocks.set(counter, block)
          yield* evict(counter, block, next)
          return end - taken
        }))
    })

  return { take }
})
