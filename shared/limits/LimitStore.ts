/** Stores the ledgers of limits: in a NATS bucket, or in memory for a single process. */
import { Context, Effect, Layer, Option } from "effect"
import { type Bucket, openBucket, type Revision } from "../nats/KeyValue.ts"
import { JetStreamFailed } from "../nats/JetStream.ts"
import type { NatsOf } from "../nats/Nats.ts"
import { buckets, type BucketSpec } from "../nats/Storage.ts"
import type { Revisions } from "../nats/Modify.ts"

/** The timeout of each operation, in milliseconds. It is short because requests wait for the limit. */
const answerMs = 2_000

export class LimitStore extends Context.Service<LimitStore, Revisions>()(
  "shared/limits/LimitStore"
) {
  /** Limits of keys. Only ingress may access them. */
  static readonly layerKeys = Layer.effect(LimitStore, Effect.suspend(() => make(buckets.keyLimits)))

  /** Limits of providers, for workers. */
  static readonly layerProviders = Layer.effect(LimitStore, Effect.suspend(() => make(buckets.providerLimits)))

  static readonly layerMemory = Layer.sync(LimitStore, () => {
    const entries = new Map<string, Revision>()
    let revisions = 0
    const write = (key: string, value: string): number => {
      entries.set(key, { value, revision: ++revisions })
      return revisions
    }
    return LimitStore.of({
      getRevision: (key) => Effect.sync(() => Option.fromUndefinedOr(entries.get(key))),
      create: (key, value) =>
        Effect.sync(() => {
          if (entries.has(key)) return false
          write(key, value)
          return true
        }),
      update: (key, value, revision) =>
        Effect.sync(() => entries.get(key)?.revision === revision ? Option.some(write(key, value)) : Option.none())
    })
  })
}

/** Opens the bucket on first use, because most catalogues have no limits. */
const make = Effect.fnUntraced(function*<K extends BucketSpec>(kept: K) {
  const context = yield* Effect.context<NatsOf<K>>()
  let opened: Bucket | undefined
  const bucket = Effect.suspend(() =>
    opened === undefined
      ? openBucket(kept).pipe(
        Effect.provideContext(context),
        Effect.catchTag("ConfigError", (error) => new JetStreamFailed({ detail: error.message })),
        Effect.tap((bucket) => Effect.sync(() => void (opened = bucket)))
      )
      : Effect.succeed(opened)
  )
  const use = <A>(operation: (bucket: Bucket) => Effect.Effect<A, JetStreamFailed>) =>
    Effect.flatMap(bucket, operation).pipe(
      Effect.timeoutOrElse({
        duration: answerMs,
        orElse: () => Effect.fail(new JetStreamFailed({ detail: `no answer within ${answerMs} ms` }))
      })
    )
  return LimitStore.of({
    getRevision: (key) => use((bucket) => bucket.getRevision(key)),
    create: (key, value) => use((bucket) => bucket.create(key, value)),
    update: (key, value, revision) => use((bucket) => bucket.update(key, value, revision))
  })
})
