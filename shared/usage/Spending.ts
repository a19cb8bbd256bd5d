/** What each key and team has spent this month (UTC), from a copy in memory. It lags behind by the delay of the counting. */
import { Clock, Context, DateTime, Effect, Layer, Option } from "effect"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { countedUntilKey, decodeCountedUntil, monthlyTally, spendKey } from "./Tally.ts"

interface Month {
  /** The prefix of the month's keys in the bucket, such as `2026-11.`. */
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
  /** The spending of a key or team, in US dollars. */
  readonly of: (id: string) => number
  /** The time, in epoch milliseconds, up to which all stored events are counted. Requests that ended just before it may be missing. */
  readonly countedUntil: () => number
  /** The time until the next month, in milliseconds. */
  readonly resetMs: () => number
}>()("shared/usage/Spending") {
  /** Waits until the copy is complete. */
  static readonly layer = Layer.effect(
    Spending,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const bucket = yield* openBucket(monthlyTally.bucket).pipe(Effect.retry(whileJetStreamFails))
      let month = monthAt(now())
      // a record that cannot be decoded keeps its last value
      const spent = yield* mirrorBucket<number>(bucket, ({ key, value }, current) => {
        if (key === countedUntilKey) return Option.getOrUndefined(Option.flatMap(value, decodeCountedUntil)) ?? current
        return key < month.prefix
          ? undefined
          : Option.getOrUndefined(Option.flatMap(value, monthlyTally.decode))?.value ?? current
      })

      const current = (): Month => {
        if (now() < month.endsAt) return month
        month = monthAt(now())
        for (const key of spent().keys()) if (key < month.prefix) spent().delete(key)
        return month
      }
      return Spending.of({
        of: (id) => spent().get(current().prefix + id) ?? 0,
        countedUntil: () => spent().get(countedUntilKey) ?? 0,
        resetMs: () => current().endsAt - now()
      })
    })
  )
}
