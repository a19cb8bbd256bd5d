/** How much each key has been used, from rows of usage by key and day. */
import type { UsageRow } from "../../shared/usage/UsageTable.ts"
import type { KeyView } from "./api/Keys.ts"

export type KeyUse = Pick<KeyView, "lastUsedOn" | "requestsThisMonth" | "spentThisMonthUsd">

/** By the key's id; `today` is a day in UTC, and the rows are in the order of their days. */
export const useOf = (rows: ReadonlyArray<UsageRow>, today: string): (id: string) => KeyUse => {
  const month = today.slice(0, 7)
  // once for all keys: there may be thousands, with a row for each of ninety days
  const byKey = Map.groupBy(rows, ({ key }) => key)
  return (id) => {
    const days = byKey.get(id) ?? []
    const thisMonth = days.filter(({ day = "" }) => day.startsWith(month))
    return {
      lastUsedOn: days.at(-1)?.day ?? null,
      requestsThisMonth: thisMonth.reduce((sum, { requests }) => sum + requests, 0),
      spentThisMonthUsd: thisMonth.reduce((sum, { costUsd }) => sum + costUsd, 0)
    }
  }
}
