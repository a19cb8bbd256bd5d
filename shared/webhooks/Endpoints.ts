/**
 * Stores where each owner receives webhooks: the URL and the signing secrets, encrypted with a key that derives from `GATEWAY_SECRET`.
 * The console writes endpoints, workers read them.
 */
import { Array, Clock, Effect, Option, Redacted, Schema } from "effect"
import { randomBytes } from "node:crypto"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { type Bucket, openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { decrypt, encrypt } from "../records/Cipher.ts"
import { modify } from "../nats/Modify.ts"
import { digest } from "../records/OwnerToken.ts"
import { deriveKeys } from "../secrets/GatewaySecret.ts"

const SigningSecret = Schema.Struct({
  /** `whsec_` and base64 of 32 bytes. */
  text: Schema.String,
  /** When the secret stops signing, in epoch milliseconds; `null` for the current one. */
  until: Schema.NullOr(Schema.Finite)
})

export const Endpoint = Schema.Struct({
  url: Schema.String,
  /** Epoch milliseconds. */
  createdAt: Schema.Finite,
  /** The current secret, then the one that it has replaced, if that still signs. */
  secrets: Schema.NonEmptyArray(SigningSecret)
})
export type Endpoint = typeof Endpoint.Type

const codec = Schema.fromJsonString(Endpoint)
const encode = Schema.encodeSync(codec)
const decode = Schema.decodeUnknownOption(codec)

/** How long a replaced secret still signs, in milliseconds: a day. */
const rotatesForMs = 24 * 60 * 60_000

const newSecret = () => ({ text: `whsec_${randomBytes(32).toString("base64")}`, until: null })

/** The secrets that sign at `now`, in epoch milliseconds. */
export const secretsAt = ({ secrets }: Endpoint, now: number): ReadonlyArray<string> =>
  secrets.filter(({ until }) => until === null || now < until).map(({ text }) => text)

/** An endpoint with a new secret, which is shown only once. */
export interface Secured {
  readonly endpoint: Endpoint
  readonly secret: Redacted.Redacted
}

const secured = (endpoint: Endpoint): Secured => ({ endpoint, secret: Redacted.make(endpoint.secrets[0].text) })

/** The key of an owner's record in the bucket. */
export const placeOf = (owner: string): string => digest(owner)

const removeFrom = Effect.fn("Endpoints.remove")(function*(bucket: Bucket, owner: string) {
  if (Option.isNone(yield* bucket.getRevision(placeOf(owner)))) return false
  yield* bucket.delete(placeOf(owner))
  return true
})

/** Removes the endpoint of an owner; `false` if there is none. Does not need `GATEWAY_SECRET`. */
export const remove = (owner: string) =>
  Effect.flatMap(openBucket(buckets.webhookEndpoints), (bucket) => removeFrom(bucket, owner))

export type Endpoints = Effect.Success<typeof openEndpoints>

/** Opens the store. Reads `GATEWAY_SECRET`. `owner` is always the owner's id. */
export const openEndpoints = Effect.gen(function*() {
  const bucket = yield* openBucket(buckets.webhookEndpoints)
  const keys = Array.map(yield* deriveKeys("webhooks"), Redacted.value)
  const about = (place: string) => JSON.stringify(["webhook endpoint", place])

  /** Decrypts a record. `place`: the digest of the owner's id. */
  const open = (place: string, stored: string) => {
    const sealed = Buffer.from(stored, "base64url")
    const opened = keys.map((key) => decrypt(key, about(place), sealed))
    return {
      endpoint: Option.flatMap(Option.firstSomeOf(opened), (bytes) => decode(bytes.toString())),
      isSealedByFirst: opened[0] !== undefined && Option.isSome(opened[0])
    }
  }

  /** Stores and returns what `change` makes of an endpoint, if anything. `change` runs again if another change comes first. */
  const edit = <E extends Endpoint | undefined>(
    place: string,
    change: (former: Endpoint | undefined, isSealedByFirst: boolean) => E
  ) =>
    modify(bucket, place, (stored) =>
      Effect.sync(() => {
        const { endpoint, isSealedByFirst } = Option.match(stored, {
          onNone: () => ({ endpoint: Option.none(), isSealedByFirst: true }),
          onSome: (text) => open(place, text)
        })
        const edited = change(Option.getOrUndefined(endpoint), isSealedByFirst)
        return edited === undefined
          ? [edited]
          : [edited, encrypt(keys[0], about(place), Buffer.from(encode(edited))).toString("base64url")]
      }))

  return {
    /** Finds an endpoint. `None` also if it was stored under a `GATEWAY_SECRET` that is no longer listed. */
    find: (owner: string): Effect.Effect<Option.Option<Endpoint>, JetStreamFailed> =>
      Effect.map(bucket.get(placeOf(owner)), Option.flatMap((stored) => open(placeOf(owner), stored).endpoint)),
    /** Sets the URL. Makes a secret if the owner had none. */
    set: Effect.fn("Endpoints.set")(function*(owner: string, url: string) {
      const first: Endpoint = { url, createdAt: yield* Clock.currentTimeMillis, secrets: [newSecret()] }
      const endpoint = yield* edit(placeOf(owner), (former) => former === undefined ? first : { ...former, url })
      return endpoint === first ? secured(first) : { endpoint, secret: undefined }
    }),
    /** Makes a new secret; the previous one signs for another day. `None` if there is no endpoint. */
    rotate: Effect.fn("Endpoints.rotate")(function*(owner: string) {
      const until = (yield* Clock.currentTimeMillis) + rotatesForMs
      const endpoint = yield* edit(
        placeOf(owner),
        (former): Endpoint | undefined =>
          former && { ...former, secrets: [newSecret(), { ...former.secrets[0], until }] }
      )
      return Option.map(Option.fromUndefinedOr(endpoint), secured)
    }),
    /** Removes an endpoint; `false` if there is none. */
    remove: (owner: string) => removeFrom(bucket, owner),
    /** Encrypts all endpoints with the first secret of `GATEWAY_SECRET`, so that the other secrets can be removed from it. */
    sealAnew: Effect.gen(function*() {
      for (const { key: place } of yield* bucket.entries) {
        yield* edit(place, (former, isSealedByFirst) => isSealedByFirst ? undefined : former)
      }
    })
  }
})
