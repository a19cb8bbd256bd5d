/** Usage per key, from this month's usage rows by key and each key's last day of use. */
import type { UsageRow } from "../../../shared/usage/UsageTable.ts"

/** Returns a lookup by key id. */
export const usageByKey = (thisMonth: ReadonlyArray<UsageRow>, lastDays: ReadonlyMap<string, string>) => {
  // indexed once, because there may be thousands of keys
  const rows = new Map(thisMonth.map((row) => [row.key, row]))
  return (id: string) => {
    const row = rows.get(id)
    return {
      lastUsedOn: lastDays.get(id) ?? null,
      requestsThisMonth: row?.requests ?? 0,
      spentThisMonthUsd: row?.costUsd ?? 0
    }
  }
}
