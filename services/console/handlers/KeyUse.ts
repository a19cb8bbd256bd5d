/** Usage per key, from this month's usage rows by key and each key's last day of use. */
import type { UsageRow } from "../../../shared/usage/UsageTable.ts"
import type { KeyView } from "../api/Keys.ts"

export type KeyUse = Pick<KeyView, "lastUsedOn" | "requestsThisMonth" | "spentThisMonthUsd">

/** Returns a lookup by key id. */
export const usageByKey = (
  thisMonth: ReadonlyArray<UsageRow>,
  lastDays: ReadonlyMap<string, string>
): (id: string) => KeyUse => {
  // indexed once, because there may be thousands of keys
  const rows = new Map(thisMonth.map((row) => [row.key, row]))
  return (id) => {
    const row = rows.get(id)
    return {
      lastUsedOn: lastDays.get(id) ?? null,
      requestsThisMonth: row?.requests ?? 0,
      spentThisMonthUsd: row?.costUsd ?? 0
    }
  }
}
