/** Adds to a number in a bucket, beside other processes. */
import { Effect, Option } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"

/** Returns the new count, which is never below 0. An absent counter is 0. */
export const add = Effect.fnUntraced(function*(
  bucket: Pick<Bucket, "create" | "getRevision" | "update">,
  counter: string,
  change: number
): Effect.fn.Return<number, JetStreamFailed> {
  for (;;) {
    const found = yield* bucket.getRevision(counter)
    if (Option.isNone(found)) {
      const count = Math.max(0, change)
      if (count === 0 || (yield* bucket.create(counter, String(count)))) return count
      continue
    }
    const { revision, value } = found.value
    const count = Math.max(0, Number(value) + change)
    if (Option.isSome(yield* bucket.update(counter, String(count), revision))) return count
  }
})
