/** What has been used, as sums by key, model, operation and day. */
import { Context, Effect, Layer, Option } from "effect"
import type { JetStreamFailed } from "../bus/JobStreams.ts"
import { openBucket } from "../bus/KeyValue.ts"
import { project } from "./Projector.ts"
import { aboutOf, days } from "./Tally.ts"
import { type Cell, csvOf, monthsOf, rowsOf, type UsageQuery, type UsageRow } from "./UsageTable.ts"

export class UsageCounters extends Context.Service<UsageCounters, {
  /** A row for every group in which there was anything, in the order of what they are grouped by. */
  readonly query: (query: UsageQuery) => Effect.Effect<ReadonlyArray<UsageRow>, JetStreamFailed>
  /** The same as CSV with a line of headings. */
  readonly csv: (query: UsageQuery) => Effect.Effect<string, JetStreamFailed>
}>()("shared/usage/UsageCounters") {
  /** Only answers; somebody else counts. */
  static readonly layerQuery = Layer.effect(
    UsageCounters,
    Effect.gen(function*() {
      const bucket = yield* openBucket(days.bucket)

      const cells = Effect.fnUntraced(function*(query: UsageQuery) {
        const found: Array<Cell> = []
        for (const month of monthsOf(query)) {
          for (const { key, value } of yield* bucket.matching(`${month}.*.${query.key ?? "*"}`)) {
            const record = Option.flatMap(value, days.decode)
            if (Option.isNone(record)) continue
            for (const row of record.value.value) found.push({ ...row, ...aboutOf(key) })
          }
        }
        return found
      })
      const query = Effect.fn("UsageCounters.query")(function*(query: UsageQuery) {
        return rowsOf(query, yield* cells(query))
      })
      return UsageCounters.of({
        query,
        csv: (asked) => Effect.flatMap(query(asked), (rows) => csvOf(asked, rows))
      })
    })
  )

  /** Counts as well. */
  static readonly layer = Layer.merge(this.layerQuery, Layer.effectDiscard(Effect.forkScoped(project)))
}
