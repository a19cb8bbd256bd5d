/**
 * Binds idempotency keys to what the first request with a key has made, for a day or until the key is free again. Each binding is a
 * record of its own, changed by compare-and-set.
 */
import { Clock, Effect, Option, type Schedule, Schema } from "effect"
import type { Owner } from "../contract/Owner.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Bucket } from "../nats/KeyValue.ts"
import { digest, ownerToken } from "./OwnerToken.ts"

/** A request with an idempotency key. */
export interface KeyedRequest {
  readonly operation: string
  readonly key: string
  /** The hash of everything on which the answer depends. */
  readonly bodyHash: string
}

/** The key is bound to a request with another body. */
export class OtherBody extends Schema.TaggedError<OtherBody>()("OtherBody", {}) {}

/** How long a key stays bound, in milliseconds. */
const boundForMs = 24 * 60 * 60_000

const Binding = Schema.Struct({
  /** The id of what was made. */
  id: Schema.String,
  bodyHash: Schema.String,
  /** Epoch milliseconds. */
  at: Schema.Finite
})
const codec = Schema.fromJsonString(Binding)
const encode = Schema.encodeSync(codec)
const decode = Schema.decodeUnknownOption(codec)

/** The key of a binding in the bucket. */
export const bindingOf = (owner: Owner, { key, operation }: KeyedRequest): string =>
  `${ownerToken(owner)}.key.${digest(owner.salt, operation, key)}`

export interface KeyBindings<A> {
  /** What the key is bound to; `None` if the key is free, or what it is bound to does not exist. */
  readonly find: (owner: Owner, request: KeyedRequest) => Effect.Effect<Option.Option<A>, OtherBody | JetStreamFailed>
  /** Binds the key to this id if the key is free. Returns the id to which the key is bound now. */
  readonly bind: (owner: Owner, request: KeyedRequest, id: string) => Effect.Effect<string, OtherBody | JetStreamFailed>
  /** Frees the key of this binding, unless it is bound to another id by now. */
  readonly free: (binding: string, id: string) => Effect.Effect<void, JetStreamFailed>
}

export interface KeyBindingsOptions<A> {
  readonly bucket: Pick<Bucket, "create" | "getRevision" | "update">
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<A>, JetStreamFailed>
  /** Whether a key that is bound to this counts as free. */
  readonly isFree: (found: Option.Option<A>) => boolean
  readonly patience: Schedule.Schedule<unknown>
}

export const make = <A>({ bucket, find, isFree, patience }: KeyBindingsOptions<A>): KeyBindings<A> => {
  const again = <B>(effect: Effect.Effect<B, JetStreamFailed>) => Effect.retry(effect, patience)

  const look = Effect.fnUntraced(function*(owner: Owner, request: KeyedRequest) {
    const stored = Option.getOrUndefined(yield* again(bucket.getRevision(bindingOf(owner, request))))
    const binding = Option.getOrUndefined(Option.flatMap(Option.fromUndefinedOr(stored?.value), decode))
    const isBound = binding !== undefined && (yield* Clock.currentTimeMillis) < binding.at + boundForMs
    const found = isBound ? yield* find(owner, binding.id) : Option.none<A>()
    if (!isBound || isFree(found)) return { id: undefined, revision: stored?.revision, found: Option.none<A>() }
    if (binding.bodyHash !== request.bodyHash) return yield* new OtherBody()
    return { id: binding.id, revision: stored?.revision, found }
  })

  return {
    find: (owner, request) => Effect.map(look(owner, request), ({ found }) => found),
    bind: Effect.fnUntraced(function*(owner, request, id) {
      const place = bindingOf(owner, request)
      const text = encode({ id, bodyHash: request.bodyHash, at: yield* Clock.currentTimeMillis })
      for (;;) {
        const bound = yield* look(owner, request)
        if (bound.id !== undefined) return bound.id
        const isWritten = bound.revision === undefined
          ? yield* again(bucket.create(place, text))
          : Option.isSome(yield* again(bucket.update(place, text, bound.revision)))
        if (isWritten) return id
      }
    }),
    free: Effect.fnUntraced(function*(place, id) {
      const found = Option.getOrUndefined(yield* again(bucket.getRevision(place)))
      const binding = Option.getOrUndefined(decode(found?.value))
      if (found === undefined || binding?.id !== id) return
      // marked as expired instead of deleted, because a deletion could hit a later binding
      yield* again(bucket.update(place, encode({ ...binding, at: -boundForMs }), found.revision))
    })
  }
}
