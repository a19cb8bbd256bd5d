/** Answers queries of counted usage, by key, team, model, operation and day. */
import { Context, Effect, Layer, Option, Semaphore, Stream } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { countUsage } from "./Projector.ts"
import { dailyTally, parseDayKey } from "./Tally.ts"
import { csvOf, type DayRange, Groups, isWithin, monthsOf, type UsageQuery, type UsageRow } from "./UsageTable.ts"

/** Maximum number of queries at a time. Each reads all records of its months, of which there is one for each key and day. */
const maxQueries = 4

export class UsageCounters extends Context.Service<UsageCounters, {
  /**
   * A row for every group with usage, sorted by the dimensions of the query. Leaves out teams that `hasTeam` rejects. For keys without
   * a team, the team is empty.
   */
  readonly query: (
    query: UsageQuery,
    hasTeam?: (team: string) => boolean
  ) => Effect.Effect<ReadonlyArray<UsageRow>, JetStreamFailed>
  /** The rows as CSV with a header line. */
  readonly csv: (query: UsageQuery, hasTeam?: (team: string) => boolean) => Effect.Effect<string, JetStreamFailed>
  /** The last day of a range on which each key was used, by the key's id. */
  readonly lastDays: (range: DayRange) => Effect.Effect<ReadonlyMap<string, string>, JetStreamFailed>
}>()("shared/usage/UsageCounters") {
  /** Only answers queries, while another process counts. */
  static readonly layerQuery = Layer.effect(
    UsageCounters,
    Effect.gen(function*() {
      const bucket = yield* openBucket(dailyTally.bucket)
      const { withPermit } = yield* Semaphore.make(maxQueries)

      const query = Effect.fn("UsageCounters.query")(function*(
        query: UsageQuery,
        hasTeam: (team: string) => boolean = () => true
      ) {
        const groups = new Groups(query)
        for (const month of monthsOf(query)) {
          // streamed, because there is a record for each key and day
          yield* Stream.runForEach(
            bucket.matching(`${month}.*.${query.key ?? "*"}`),
            ({ key, value }) =>
              Effect.sync(() => {
                const about = parseDayKey(key)
                if (!isWithin(query, about.day)) return
                const record = Option.flatMap(value, dailyTally.decode)
                if (Option.isNone(record)) return
                for (const row of record.value.value.rows) {
                  if (hasTeam(row.team ?? "")) groups.add({ team: "", ...row, ...about })
                }
              })
          )
        }
        return groups.rows
      }, withPermit)
      const lastDays = Effect.fn("UsageCounters.lastDays")(function*(range: DayRange) {
        const last = new Map<string, string>()
        for (const month of monthsOf(range)) {
          for (const { day, key } of (yield* bucket.keys(`${month}.*.*`)).map(parseDayKey)) {
            if (isWithin(range, day) && day > (last.get(key) ?? "")) last.set(key, day)
          }
        }
        return last
      }, withPermit)
      return UsageCounters.of({
        query,
        lastDays,
        csv: (usageQuery, hasTeam) => Effect.flatMap(query(usageQuery, hasTeam), (rows) => csvOf(usageQuery, rows))
      })
    })
  )

  /** Counts and answers queries. */
  static readonly layer = Layer.merge(this.layerQuery, Layer.effectDiscard(Effect.forkScoped(countUsage)))
}
