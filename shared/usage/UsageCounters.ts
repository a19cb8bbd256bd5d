/** What has been used, as sums by key, model, operation and day. */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { project } from "./Projector.ts"
import { aboutOf, days } from "./Tally.ts"
import { csvOf, type DayRange, Groups, isWithin, monthsOf, type UsageQuery, type UsageRow } from "./UsageTable.ts"

export class UsageCounters extends Context.Service<UsageCounters, {
  /** A row for every group in which there was anything, in the order of what they are grouped by. */
  readonly query: (query: UsageQuery) => Effect.Effect<ReadonlyArray<UsageRow>, JetStreamFailed>
  /** The same as CSV with a line of headings. */
  readonly csv: (query: UsageQuery) => Effect.Effect<string, JetStreamFailed>
  /** On which day of a range each key was last used, by the key's id. */
  readonly lastDays: (range: DayRange) => Effect.Effect<ReadonlyMap<string, string>, JetStreamFailed>
}>()("shared/usage/UsageCounters") {
  /** Only answers; somebody else counts. */
  static readonly layerQuery = Layer.effect(
    UsageCounters,
    Effect.gen(function*() {
      const bucket = yield* openBucket(days.bucket)

      const query = Effect.fn("UsageCounters.query")(function*(query: UsageQuery) {
        const groups = new Groups(query)
        for (const month of monthsOf(query)) {
          // taken one by one: there is a record for each key and day
          yield* Stream.runForEach(
            bucket.matching(`${month}.*.${query.key ?? "*"}`),
            ({ key, value }) =>
              Effect.sync(() => {
                const about = aboutOf(key)
                if (!isWithin(query, about.day)) return
                const record = Option.flatMap(value, days.decode)
                if (Option.isNone(record)) return
                for (const row of record.value.value) groups.add({ ...row, ...about })
              })
          )
        }
        return groups.rows
      })
      const lastDays = Effect.fn("UsageCounters.lastDays")(function*(range: DayRange) {
        const last = new Map<string, string>()
        for (const month of monthsOf(range)) {
          for (const { day, key } of (yield* bucket.keys(`${month}.*.*`)).map(aboutOf)) {
            if (isWithin(range, day) && day > (last.get(key) ?? "")) last.set(key, day)
          }
        }
        return last
      })
      return UsageCounters.of({
        query,
        lastDays,
        csv: (asked) => Effect.flatMap(query(asked), (rows) => csvOf(asked, rows))
      })
    })
  )

  /** Counts as well. */
  static readonly layer = Layer.merge(this.layerQuery, Layer.effectDiscard(Effect.forkScoped(project)))
}
