/** A number in a bucket to which several processes add. */
import { Effect, Option } from "effect"
import { randomUUID } from "node:crypto"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"

/** The count in a stored text. A random id follows it, so that two writers of the same count write different texts. */
export const valueOf = (text: string): number => Number.parseInt(text)

const textOf = (count: number): string => `${count} ${randomUUID()}`

/** Adds to a counter, and returns the new count, which is never below 0. A missing counter is 0. */
export const add = Effect.fnUntraced(function*(
  bucket: Pick<Bucket, "create" | "getRevision" | "update">,
  counter: string,
  change: number
): Effect.fn.Return<number, JetStreamFailed> {
  for (;;) {
    const found = yield* bucket.getRevision(counter)
    if (Option.isNone(found)) {
      const count = Math.max(0, change)
      if (count === 0 || (yield* bucket.create(counter, textOf(count)))) return count
      continue
    }
    const { revision, value } = found.value
    const count = Math.max(0, valueOf(value) + change)
    if (Option.isSome(yield* bucket.update(counter, textOf(count), revision))) return count
  }
})
