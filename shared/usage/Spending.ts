/**
 * What each key has spent this month (UTC), as ingress sees it: a copy in memory that follows the counters, so it is as far
 * behind as they are.
 */
import { Clock, Context, DateTime, Deferred, Effect, Layer, Option, Stream } from "effect"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { months, spendKey } from "./Tally.ts"

interface Month {
  /** As in the keys of what was spent: `2026-11.`. */
  readonly prefix: string
  readonly endsAt: number
}

const monthAt = (now: number): Month => {
  const start = DateTime.startOf(DateTime.makeUnsafe(now), "month")
  return {
    prefix: spendKey(DateTime.formatIsoDateUtc(start), ""),
    endsAt: DateTime.toEpochMillis(DateTime.add(start, { months: 1 }))
  }
}

export class Spending extends Context.Service<Spending, {
  /** In US dollars. */
  readonly of: (key: string) => number
  /** In how many milliseconds everybody begins anew. */
  readonly resetMs: () => number
}>()("shared/usage/Spending") {
  /** Is there when the copy is complete. */
  static readonly layer = Layer.effect(
    Spending,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const bucket = yield* openBucket(months.bucket).pipe(
        Effect.retry(whileJetStreamFails)
      )
      const loaded = yield* Deferred.make<void>()
      const spent = new Map<string, number>()
      let month = monthAt(now())

      const current = (): Month => {
        if (now() < month.endsAt) return month
        month = monthAt(now())
        for (const key of spent.keys()) if (key < month.prefix) spent.delete(key)
        return month
      }

      yield* bucket.watch.pipe(
        Stream.runForEach((event) => {
          if (event === "loaded") return Deferred.succeed(loaded, undefined)
          // what is gone when it is loaded anew is of months that are over
          if (event === "loading" || event.key < current().prefix) return Effect.void
          const record = Option.flatMap(event.value, months.decode)
          if (Option.isSome(record)) spent.set(event.key, record.value.value)
          return Effect.void
        }),
        Effect.forkScoped
      )
      yield* Deferred.await(loaded)
      return Spending.of({
        of: (key) => spent.get(current().prefix + key) ?? 0,
        resetMs: () => current().endsAt - now()
      })
    })
  )
}
