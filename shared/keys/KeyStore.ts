/** Creates, edits, replaces, lists and revokes API keys for administrators. Ingress reads keys through `KeyRing`. */
import { Context, DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { modify } from "../nats/Modify.ts"
import * as ApiKey from "./ApiKey.ts"
import type { KeyChanges } from "./KeySettings.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(ApiKey.ApiKey))

/** Records of older gateways have no owner. */
const Stored = ApiKey.ApiKey.mapFields(({ owner, ...fields }) => ({ ...fields, owner: Schema.optionalKey(owner) }))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Stored))

/** `None` for a record in the format of a newer gateway. */
export const decodeRecord = (value: string): Option.Option<ApiKey.ApiKey> =>
  Option.map(decode(value), (record) => ({ owner: record.id, ...record }))

export class KeyNotFound extends Schema.TaggedError<KeyNotFound>()("KeyNotFound", { id: Schema.String }) {
  override get message() {
    return `No API key has the id ${this.id}`
  }
}

/** A key that was just created. Its secret is not stored. */
export interface CreatedKey {
  readonly key: ApiKey.ApiKey
  readonly secret: Redacted.Redacted
}

export class KeyStore extends Context.Service<KeyStore, {
  readonly create: (settings: ApiKey.NewKey) => Effect.Effect<CreatedKey, JetStreamFailed>
  /** Creates a key with the settings and the owner of another one, which stays valid until it is revoked. */
  readonly replace: (id: string) => Effect.Effect<CreatedKey, KeyNotFound | JetStreamFailed>
  /** Creates a key with this secret, unless it exists or was revoked. */
  readonly ensure: (options: {
    readonly name: string
    readonly secret: Redacted.Redacted
  }) => Effect.Effect<"created" | "exists" | "revoked", JetStreamFailed>
  /** Creates a key from the fingerprint of its secret, which only its clients know; `None` if that key exists or was revoked. */
  readonly importHashed: (
    fingerprint: string,
    settings: ApiKey.NewKey
  ) => Effect.Effect<Option.Option<ApiKey.ApiKey>, JetStreamFailed>
  readonly list: Effect.Effect<ReadonlyArray<ApiKey.ApiKey>, JetStreamFailed>
  /**
   * Changes some settings, immediately for every process, and returns the new record. `check` gets the record that the change
   * replaces and may refuse the change; it runs again if another edit comes first.
   */
  readonly edit: <E = never>(
    id: string,
    changes: KeyChanges,
    check?: (key: ApiKey.ApiKey) => Effect.Effect<void, E>
  ) => Effect.Effect<ApiKey.ApiKey, KeyNotFound | JetStreamFailed | NoInfer<E>>
  /** Revokes a key. For the caller, a key that `isWithin` rejects does not exist. */
  readonly revoke: (
    id: string,
    isWithin?: (key: ApiKey.ApiKey) => boolean
  ) => Effect.Effect<ApiKey.ApiKey, KeyNotFound | JetStreamFailed>
}>()("shared/keys/KeyStore") {
  /** Reads `GATEWAY_KEY_PREFIX`. */
  static readonly layer = Layer.effect(
    KeyStore,
    Effect.gen(function*() {
      const prefix = yield* ApiKey.keyPrefix
      const bucket = yield* openBucket(buckets.apiKeys)
      const records = Effect.map(
        bucket.entries,
        (entries) =>
          entries.flatMap(({ key: fingerprint, value }) =>
            Option.toArray(Option.flatMap(value, decodeRecord)).map((record) => ({ fingerprint, record }))
          )
      )
      const find = Effect.fnUntraced(function*(id: string) {
        const found = (yield* records).find(({ record }) => record.id === id)
        return found ?? (yield* new KeyNotFound({ id }))
      })
      const create = Effect.fn("KeyStore.create")(function*(settings: ApiKey.NewKey, owner?: string) {
        const secret = yield* ApiKey.generateSecret(prefix)
        const key = yield* ApiKey.make(settings, owner)
        yield* bucket.put(ApiKey.fingerprint(Redacted.value(secret)), encode(key))
        return { key, secret }
      })
      return KeyStore.of({
        create: (settings) => create(settings),
        replace: Effect.fn("KeyStore.replace")(function*(id) {
          const { record: { owner, ...settings } } = yield* find(id)
          // the replacement is enabled, because a key is often disabled when its secret has leaked
          return yield* create({ ...settings, disabled: false }, owner)
        }),
        ensure: Effect.fn("KeyStore.ensure")(function*(options) {
          const key = yield* ApiKey.make({ name: options.name })
          const outcome = yield* bucket.createFirst(ApiKey.fingerprint(Redacted.value(options.secret)), encode(key))
          return outcome === "deleted" ? "revoked" : outcome
        }),
        importHashed: Effect.fn("KeyStore.importHashed")(function*(fingerprint, settings) {
          const key = yield* ApiKey.make(settings)
          return (yield* bucket.createFirst(fingerprint, encode(key))) === "created" ? Option.some(key) : Option.none()
        }),
        list: Effect.map(records, (all) => all.map(({ record }) => record)),
        edit: Effect.fn("KeyStore.edit")(function*(id, changes, check = () => Effect.void) {
          const { fingerprint } = yield* find(id)
          return yield* modify(
            bucket,
            fingerprint,
            Effect.fnUntraced(function*(stored) {
              const record = yield* Effect.fromOption(
                Option.flatMap(stored, decodeRecord),
                () => new KeyNotFound({ id })
              )
              yield* check(record)
              const edited = { ...record, ...changes, editedAt: yield* DateTime.now }
              return [edited, encode(edited)]
            })
          )
        }),
        revoke: Effect.fn("KeyStore.revoke")(function*(id, isWithin = () => true) {
          const { fingerprint, record } = yield* find(id)
          if (!isWithin(record)) return yield* new KeyNotFound({ id })
          yield* bucket.delete(fingerprint)
          return record
        })
      })
    })
  )
}
