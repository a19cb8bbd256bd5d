/**
 * Looks up and creates the owners of records, and their salts, for ingress, in a copy in memory that follows the bucket. The salt
 * travels with each job that needs it, so workers need no access to the bucket.
 *
 * Deleting an owner deletes the salt, without which nothing that the owner has stored can be decrypted.
 */
import { Context, Effect, Layer, Option } from "effect"
import { randomBytes } from "node:crypto"
import type { Owner } from "../contract/Owner.ts"
import { JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"

const saltBytes = 16

export class Owners extends Context.Service<Owners, {
  /** The owner with this id; `undefined` if it has stored nothing yet. */
  readonly known: (id: string) => Owner | undefined
  /** Creates the salt of an owner, unless another ingress has just done so. */
  readonly add: (id: string) => Effect.Effect<Owner, JetStreamFailed>
}>()("shared/records/Owners") {
  /** Waits until the copy is complete. */
  static readonly layer = Layer.effect(
    Owners,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.owners).pipe(Effect.retry(whileJetStreamFails))
      const salts = yield* mirrorBucket(bucket, ({ value }) => Option.getOrUndefined(value))
      const add = Effect.fnUntraced(function*(id: string) {
        const salt = randomBytes(saltBytes).toString("base64url")
        if (yield* bucket.create(id, salt)) return { id, salt }
        // another ingress was first
        const stored = yield* bucket.get(id)
        if (Option.isNone(stored)) return yield* new JetStreamFailed({ detail: "the owner was deleted" })
        return { id, salt: stored.value }
      })
      return Owners.of({
        known: (id) => {
          const salt = salts().get(id)
          return salt === undefined ? undefined : { id, salt }
        },
        add
      })
    })
  )
}

/** Deletes an owner for good. `false` if the id is unknown. */
export const remove = Effect.fn("Owners.remove")(function*(id: string) {
  const bucket = yield* openBucket(buckets.owners)
  if (Option.isNone(yield* bucket.get(id))) return false
  yield* bucket.delete(id)
  return true
})
