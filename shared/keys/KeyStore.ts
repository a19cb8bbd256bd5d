/** The API keys as an administrator sees them: create, list, revoke. Ingress reads them through `KeyRing`. */
import { Context, type DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { JetStreamFailed } from "../bus/JobStreams.ts"
import { openBucket } from "../bus/KeyValue.ts"
import * as ApiKey from "./ApiKey.ts"

export const bucketName = "API_KEYS"

const encode = Schema.encodeSync(Schema.fromJsonString(ApiKey.ApiKey))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ApiKey.ApiKey))

/** Reads a stored record; `None` for one that a newer gateway wrote in a way this one does not understand. */
export const decodeRecord = (value: string): Option.Option<ApiKey.ApiKey> => decode(value)

/** There is no key with this id. */
export class KeyNotFound extends Schema.TaggedError<KeyNotFound>()("KeyNotFound", { id: Schema.String }) {
  override get message() {
    return `There is no key with the id ${this.id}`
  }
}

export class KeyStore extends Context.Service<KeyStore, {
  /** Makes a key. The secret can be read from the result only: it is not stored. */
  readonly create: (options: {
    readonly name: string
    readonly expiresAt: DateTime.Utc | null
  }) => Effect.Effect<{ readonly key: ApiKey.ApiKey; readonly secret: Redacted.Redacted }, JetStreamFailed>
  /** Makes sure that a key with this very secret exists; does nothing where it does. */
  readonly ensure: (options: {
    readonly name: string
    readonly secret: Redacted.Redacted
  }) => Effect.Effect<void, JetStreamFailed>
  readonly list: Effect.Effect<ReadonlyArray<ApiKey.ApiKey>, JetStreamFailed>
  readonly revoke: (id: string) => Effect.Effect<ApiKey.ApiKey, KeyNotFound | JetStreamFailed>
}>()("shared/keys/KeyStore") {
  static readonly layer = Layer.effect(
    KeyStore,
    Effect.gen(function*() {
      const bucket = yield* openBucket(bucketName)
      const records = Effect.map(
        bucket.entries,
        (entries) =>
          entries.flatMap(({ key, value }) =>
            Option.match(Option.flatMap(value, decode), {
              onNone: () => [],
              onSome: (record) => [{ fingerprint: key, record }]
            })
          )
      )
      return KeyStore.of({
        create: Effect.fn("KeyStore.create")(function*(options) {
          const secret = yield* ApiKey.generateSecret
          const key = yield* ApiKey.make(options)
          yield* bucket.put(ApiKey.fingerprint(Redacted.value(secret)), encode(key))
          return { key, secret }
        }),
        ensure: Effect.fn("KeyStore.ensure")(function*(options) {
          const key = yield* ApiKey.make({ name: options.name, expiresAt: null })
          yield* bucket.create(ApiKey.fingerprint(Redacted.value(options.secret)), encode(key))
        }),
        list: Effect.map(records, (all) => all.map(({ record }) => record)),
        revoke: Effect.fn("KeyStore.revoke")(function*(id) {
          const found = (yield* records).find(({ record }) => record.id === id)
          if (found === undefined) return yield* new KeyNotFound({ id })
          yield* bucket.delete(found.fingerprint)
          return found.record
        })
      })
    })
  )
}
