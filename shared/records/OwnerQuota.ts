/**
 * Bounds what each owner stores: beyond its quota an owner's oldest records are deleted, so that no key fills the disk that all share.
 *
 * A counter per owner says how many bytes it has ever stored, and each record its place in that count. From the oldest record's place
 * to the end of the count is what the owner has stored now, whatever has expired. Writers take places in blocks, so that they seldom
 * wait for each other.
 */
import { Effect, Option, Semaphore } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"
import * as Counter from "./Counter.ts"

/** The places that a writer takes at a time, in bytes. */
const blockBytes = 1024 * 1024

/** The number of owners whose blocks stay in memory. */
const maxBlocks = 1_000

interface Block {
  /** The next free place. */
  next: number
  readonly end: number
  /** All records before this write of the bucket are deleted. */
  oldest: number
}

/** A record in the order of writes. */
export interface Stored {
  /** The number of the write. */
  readonly at: number
  /** `undefined` if the record is deleted or cannot be read. */
  readonly place: number | undefined
  readonly delete: Effect.Effect<unknown, JetStreamFailed>
}

export interface OwnerQuotaOptions {
  readonly bucket: Bucket
  /** In bytes. */
  readonly quota: number
}

/** The owner's first record from a write on. */
export type Next = (from: number) => Effect.Effect<Option.Option<Stored>, JetStreamFailed>

export const make = Effect.fnUntraced(function*({ bucket, quota }: OwnerQuotaOptions) {
  const scope = yield* Effect.scope
  const taking = yield* Semaphore.make(1)
  const blocks = new Map<string, Block>()

  const evict = Effect.fnUntraced(function*(block: Block, next: Next): Effect.fn.Return<void, JetStreamFailed> {
    for (;;) {
      const stored = Option.getOrUndefined(yield* next(block.oldest))
      if (stored === undefined) return
      if (stored.place !== undefined) {
        if (block.end - stored.place <= quota) return
        yield* stored.delete
      }
      block.oldest = stored.at + 1
    }
  })

  const placeIn = (block: Block | undefined, bytes: number): Option.Option<number> => {
    if (block === undefined || block.next + bytes > block.end) return Option.none()
    block.next += bytes
    return Option.some(block.next - bytes)
  }

  /** The place of a new record. Deletes the owner's oldest records meanwhile, if it has no room. */
  const take = (counter: string, bytes: number, next: Next): Effect.Effect<number, JetStreamFailed> =>
    Option.match(placeIn(blocks.get(counter), bytes), {
      onSome: Effect.succeed,
      onNone: () =>
        taking.withPermit(Effect.gen(function*() {
          const former = blocks.get(counter)
          const place = placeIn(former, bytes)
          if (Option.isSome(place)) return place.value
          const taken = Math.max(blockBytes, bytes)
          const end = yield* Counter.add(bucket, counter, taken)
          const block: Block = { next: end - taken + bytes, end, oldest: former?.oldest ?? 0 }
          blocks.delete(counter)
          const [longest] = blocks.size < maxBlocks ? [] : blocks.keys()
          if (longest !== undefined) blocks.delete(longest)
          blocks.set(counter, block)
          // what a failure leaves over is deleted with the next block
          yield* Effect.forkIn(Effect.ignore(evict(block, next)), scope)
          return end - taken
        }))
    })

  return { take }
})
