/** What each key has spent this month (UTC), for ingress: a copy in memory that follows the counters with their delay. */
import { Clock, Context, DateTime, Effect, Layer, Option } from "effect"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { mirrorBucket, openBucket } from "../nats/KeyValue.ts"
import { monthlyTally, spendKey } from "./Tally.ts"

interface Month {
  /** The start of the month's keys in the bucket: `2026-11.`. */
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
  /** In US dollars, by the key's id. */
  readonly of: (key: string) => number
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
      const spent = yield* mirrorBucket<number>(bucket, ({ key, value }, current) =>
        key < month.prefix
          ? undefined
          : Option.getOrUndefined(Option.flatMap(value, monthlyTally.decode))?.value ?? current)

      const current = (): Month => {
        if (now() < month.endsAt) return month
        month = monthAt(now())
        for (const key of spent().keys()) if (key < month.prefix) spent().delete(key)
        return month
      }
      return Spending.of({
        of: (key) => spent().get(current().prefix + key) ?? 0,
        resetMs: () => current().endsAt - now()
      })
    })
  )
}
