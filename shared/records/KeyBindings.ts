/**
 * Binds idempotency keys to what the first request with a key has made, for a day or until the key is free again. Each binding is a
 * record of its own, changed by compare-and-set.
 */
import { Clock, Effect, Option, type Schedule, Schema } from "effect"
import type { Owner } from "../contract/Owner.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { modify, retrying, type Revisions } from "../nats/Modify.ts"
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
  readonly bucket: Revisions
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<A>, JetStreamFailed>
  /** Whether a key that is bound to this counts as free. */
  readonly isFree: (found: Option.Option<A>) => boolean
  readonly patience: Schedule.Schedule<unknown>
}

export const make = <A>({ bucket, find, isFree, patience }: KeyBindingsOptions<A>): KeyBindings<A> => {
  const records = retrying(bucket, patience)

  /** What a stored binding binds the key to; `None` if the key is free. */
  const read = Effect.fnUntraced(function*(owner: Owner, request: KeyedRequest, stored: Option.Option<string>) {
    const binding = Option.getOrUndefined(Option.flatMap(stored, decode))
    if (binding === undefined || (yield* Clock.currentTimeMillis) >= binding.at + boundForMs) return Option.none()
    const found = yield* find(owner, binding.id)
    if (isFree(found)) return Option.none()
    return binding.bodyHash === request.bodyHash ? Option.some({ id: binding.id, found }) : yield* new OtherBody()
  })

  return {
    find: Effect.fnUntraced(function*(owner, request) {
      const stored = yield* records.getRevision(bindingOf(owner, request))
      const bound = yield* read(owner, request, Option.map(stored, ({ value }) => value))
      return Option.flatMap(bound, ({ found }) => found)
    }),
    bind: Effect.fnUntraced(function*(owner, request, id) {
      const text = encode({ id, bodyHash: request.bodyHash, at: yield* Clock.currentTimeMillis })
      return yield* modify(records, bindingOf(owner, request), (stored) =>
        Effect.map(
          read(owner, request, stored),
          Option.match({ onNone: () => [id, text] as const, onSome: (bound) => [bound.id] as const })
        ))
    }),
    free: (place, id) =>
      modify(records, place, (stored) => {
        const binding = Option.getOrUndefined(Option.flatMap(stored, decode))
        // marked as expired instead of deleted, because a deletion could hit a later binding
        return Effect.succeed(
          binding?.id === id ? [undefined, encode({ ...binding, at: -boundForMs })] : [undefined]
        )
      })
  }
}
