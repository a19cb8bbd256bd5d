/** How many calls a request makes to its provider, because one call serves only part of it. A provider's limits count calls. */
import type { Effect } from "effect"
import type { Call } from "./Protocol.ts"

export interface Calls {
  /** At least 1. */
  readonly all: number
  /** The most that run at the same time, at least 1. */
  readonly atOnce: number
}

export const oneCall: Calls = { all: 1, atOnce: 1 }

/** The calls for a number of items. */
export const callsFor = (items: number, itemsPerCall: number, mostAtOnce: number): Calls => {
  const all = Math.max(1, Math.ceil(items / itemsPerCall))
  return { all, atOnce: Math.min(all, mostAtOnce) }
}

/** Finds the number of calls before the first one is made. A request that is refused without a call counts as one. */
export type CountCalls = (call: Call) => Effect.Effect<Calls>
