/** Where the ledgers of limits are kept: a bucket in NATS or, where there is only one process, in memory. */
import { Context, Effect, Layer, Option } from "effect"
import { type Bucket, openBucket, type Revision } from "../nats/KeyValue.ts"
import { JetStreamFailed } from "../nats/JetStream.ts"
import type { NatsOf } from "../nats/Nats.ts"
import { buckets, type KeptBucket } from "../nats/Storage.ts"

/** How long an answer is waited for, in milliseconds: somebody waits for the limit. */
const answerMs = 2_000

export class LimitStore extends Context.Service<LimitStore, {
  readonly getRevision: Bucket["getRevision"]
  readonly create: Bucket["create"]
  readonly update: Bucket["update"]
}>()("shared/limits/LimitStore") {
  /** Limits of keys, which ingress writes: workers do not reach them. */
  static readonly layerKeys = Layer.effect(LimitStore, Effect.suspend(() => make(buckets.keyLimits)))

  /** Limits of providers, which workers write. */
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

/** Opens the bucket when it is first needed: most catalogues have no limits. */
const make = Effect.fnUntraced(function*<K extends KeptBucket>(kept: K) {
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
  const ask = <A>(question: (bucket: Bucket) => Effect.Effect<A, JetStreamFailed>) =>
    Effect.flatMap(bucket, question).pipe(
      Effect.timeoutOrElse({
        duration: answerMs,
        orElse: () => Effect.fail(new JetStreamFailed({ detail: `no answer within ${answerMs} ms` }))
      })
    )
  return LimitStore.of({
    getRevision: (key) => ask((bucket) => bucket.getRevision(key)),
    create: (key, value) => ask((bucket) => bucket.create(key, value)),
    update: (key, value, revision) => ask((bucket) => bucket.update(key, value, revision))
  })
})
