/**
 * Authenticates API keys for ingress, from a copy in memory that follows the bucket within milliseconds. No request waits for a
 * look-up, and ingress keeps serving for a while if NATS is down.
 */
import { Clock, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { ControlNats } from "../nats/Nats.ts"
import { buckets } from "../nats/Storage.ts"
import * as ApiKey from "./ApiKey.ts"
import { decodeRecord } from "./KeyStore.ts"

/** The checks of a token in place of a key: its form, its signature, its claims, its revocation, and whether its owner is admitted. */
export const TokenCheck = Schema.Literals([
  ...["malformed", "alg", "kid", "signature", "iss", "aud", "exp", "iat", "nbf", "lifetime", "jti"] as const,
  ...["claim", "revoked", "principal"] as const
])
export type TokenCheck = typeof TokenCheck.Type

export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", {
  /** `token`: a token in place of a key failed the check in `check`. */
  reason: Schema.Literals(["unknown", "disabled", "expired", "unverifiable", "token"]),
  check: Schema.optionalKey(TokenCheck)
}) {}

/** How long the copy is trusted without a connection to NATS, in milliseconds. */
const staleAfterMs = 10 * 60_000

export class KeyRing extends Context.Service<KeyRing, {
  /** The record of a valid key, from the copy. Fails with `unverifiable` if the copy can no longer be trusted. */
  readonly authenticate: (secret: string) => Effect.Effect<ApiKey.ApiKey, KeyRefused>
  /** The record of a key by its id, for work that was requested with it earlier. */
  readonly find: (id: string) => Effect.Effect<ApiKey.ApiKey, KeyRefused>
  /** Whether the copy is complete and can be trusted. */
  readonly isLoaded: () => boolean
}>()("shared/keys/KeyRing") {
  /** Waits until the copy is complete. */
  static readonly layer = Layer.effect(
    KeyRing,
    Effect.gen(function*() {
      const nats = yield* ControlNats
      const clock = yield* Clock.Clock
      const bucket = yield* openBucket(buckets.apiKeys).pipe(Effect.retry(whileJetStreamFails))
      /** The fingerprint by the key's id. Revoked keys stay here, but not in the copy. */
      const fingerprints = new Map<string, string>()
      const keys = yield* mirrorBucket(bucket, ({ key: fingerprint, value }) => {
        const key = Option.getOrUndefined(Option.flatMap(value, decodeRecord))
        if (key !== undefined) fingerprints.set(key.id, fingerprint)
        return key
      })
      const isStale = () => nats.awayForMs() > staleAfterMs
      const refuse = (reason: KeyRefused["reason"]) => Effect.fail(new KeyRefused({ reason }))

      const check = (look: () => ApiKey.ApiKey | undefined): Effect.Effect<ApiKey.ApiKey, KeyRefused> => {
        if (isStale()) return refuse("unverifiable")
        const key = look()
        if (key === undefined) return refuse("unknown")
        if (key.disabled) return refuse("disabled")
        const { expiresAt } = key
        return expiresAt !== null && DateTime.toEpochMillis(expiresAt) <= clock.currentTimeMillisUnsafe()
          ? refuse("expired")
          : Effect.succeed(key)
      }

      return KeyRing.of({
        authenticate: (secret) => check(() => keys().get(ApiKey.fingerprint(secret))),
        find: (id) => Effect.suspend(() => check(() => keys().get(fingerprints.get(id) ?? ""))),
        isLoaded: () => !isStale()
      })
    })
  )
}
