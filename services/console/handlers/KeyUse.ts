/** How much each key has been used, from this month's rows of usage by key and the last day on which each was used. */
import type { UsageRow } from "../../../shared/usage/UsageTable.ts"
import type { KeyView } from "../api/Keys.ts"

export type KeyUse = Pick<KeyView, "lastUsedOn" | "requestsThisMonth" | "spentThisMonthUsd">

/** By the key's id. */
export const useOf = (
  thisMonth: ReadonlyArray<UsageRow>,
  lastDays: ReadonlyMap<string, string>
): (id: string) => KeyUse => {
  // once for all keys: there may be thousands
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
