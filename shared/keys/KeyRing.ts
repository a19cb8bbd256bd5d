/**
 * The API keys as ingress sees them: a copy in memory that follows the bucket within milliseconds, so that no request
 * waits for a look-up, and that goes on serving for a while when NATS is away.
 */
import { Clock, Context, DateTime, Deferred, Effect, Layer, Option, Schema, Stream } from "effect"
import { openBucket } from "../nats/KeyValue.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { ControlNats } from "../nats/Nats.ts"
import { buckets } from "../nats/Storage.ts"
import * as ApiKey from "./ApiKey.ts"
import { decodeRecord } from "./KeyStore.ts"

/** The key is not one of ours, or not any more. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", {
  reason: Schema.Literals(["unknown", "disabled", "expired", "unverifiable"])
}) {}

/** How long keys are honoured on the strength of the copy alone, in milliseconds. */
const staleAfterMs = 10 * 60_000

export class KeyRing extends Context.Service<KeyRing, {
  /** Whose key this is, looked up at the call. `unverifiable` where the copy is too old to be trusted. */
  readonly authenticate: (secret: string) => Effect.Effect<ApiKey.ApiKey, KeyRefused>
  /** Whether there is a complete copy that can be trusted. */
  readonly isLoaded: () => boolean
}>()("shared/keys/KeyRing") {
  static readonly layer = Layer.effect(
    KeyRing,
    Effect.gen(function*() {
      const nats = yield* ControlNats
      const clock = yield* Clock.Clock
      const bucket = yield* openBucket(buckets.apiKeys).pipe(
        Effect.retry(whileJetStreamFails)
      )
      const loaded = yield* Deferred.make<void>()
      let keys = new Map<string, ApiKey.ApiKey>()
      let loading: Map<string, ApiKey.ApiKey> | undefined
      let isLoaded = false
      const isStale = () => nats.awayForMs() > staleAfterMs

      yield* bucket.watch.pipe(
        Stream.runForEach((event) => {
          if (event === "loading") {
            loading = new Map()
            return Effect.void
          }
          if (event === "loaded") {
            if (loading !== undefined) keys = loading
            loading = undefined
            isLoaded = true
            return Deferred.succeed(loaded, undefined)
          }
          const target = loading ?? keys
          Option.match(Option.flatMap(event.value, decodeRecord), {
            onNone: () => target.delete(event.key),
            onSome: (record) => target.set(event.key, record)
          })
          return Effect.void
        }),
        Effect.forkScoped
      )
      yield* Deferred.await(loaded)

      // done at the call, not when the effect is run: every request passes here
      const authenticate = (secret: string): Effect.Effect<ApiKey.ApiKey, KeyRefused> => {
        if (isStale()) return Effect.fail(new KeyRefused({ reason: "unverifiable" }))
        const key = keys.get(ApiKey.fingerprint(secret))
        if (key === undefined) return Effect.fail(new KeyRefused({ reason: "unknown" }))
        if (key.disabled) return Effect.fail(new KeyRefused({ reason: "disabled" }))
        if (key.expiresAt !== null && DateTime.toEpochMillis(key.expiresAt) <= clock.currentTimeMillisUnsafe()) {
          return Effect.fail(new KeyRefused({ reason: "expired" }))
        }
        return Effect.succeed(key)
      }
      return KeyRing.of({ authenticate, isLoaded: () => isLoaded && !isStale() })
    })
  )
}
