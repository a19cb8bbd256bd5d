/**
 * The ledger of one limit, shared by all replicas: when units were used, and which units each replica holds.
 *
 * A replica leases a few units at a time, uses them without further requests, and reports their use in its next entry. A held
 * unit counts as if used at the last possible moment. So no window, wherever it starts, contains more used units than the
 * limit, even if a replica dies while it holds some.
 */
import { Schema } from "effect"
import type { Limit } from "../bounds/Limit.ts"

export type Terms = Omit<Limit, "key">

/** Times are epoch milliseconds by the clock of the replica that wrote them. */
export const Ledger = Schema.Struct({
  used: Schema.Array(Schema.Tuple([Schema.Finite, Schema.Finite])),
  /** What each replica holds. */
  held: Schema.Record(
    Schema.String,
    Schema.Struct({
      units: Schema.Finite,
      /** The end of the lease: the replica uses no units after this without another entry. */
      until: Schema.Finite,
      /** Further units that it waits for. */
      waiting: Schema.Finite,
      /** This replica's entry number, by which it recognises its own entry. */
      entry: Schema.Finite
    })
  )
})
export type Ledger = typeof Ledger.Type

export const empty: Ledger = { used: [], held: {} }

/** How long a unit counts beyond its window, in milliseconds, because clocks differ and requests take time to arrive. */
const slackMs = ({ windowMs }: Terms): number => windowMs === 0 ? 250 : Math.min(1_500, windowMs / 40)

/** Maximum number of different times of use in a ledger. Times are rounded up to stay within this number. */
const maxMoments = 240

const grainMs = ({ limit, windowMs }: Terms): number =>
  limit <= maxMoments ? 1 : Math.max(1, Math.floor(windowMs / maxMoments))

/** How long a lease lasts, in milliseconds. While units are plentiful, longer leases do no harm. */
const leaseMs = ({ windowMs }: Terms, isPlentiful: boolean): number =>
  windowMs === 0 ? 15_000 : Math.max(250, windowMs / (isPlentiful ? 6 : 60))

/** The maximum number of units that are leased ahead of need. */
const maxAhead = ({ limit }: Terms): number => Math.max(1, Math.floor(limit / 20))

/** Whether a limit without a window is so small that an idle unit delays other replicas. */
const isTiny = ({ limit, windowMs }: Terms): boolean => windowMs === 0 && limit < 20

/** The time recorded for a unit used now. */
export const recordedTimeOf = (terms: Terms, now: number): number => Math.ceil(now / grainMs(terms)) * grainMs(terms)

/** A replica's report and request. */
export interface Entry {
  readonly replica: string
  readonly entry: number
  readonly now: number
  /** Units used since its last entry, by time; negative if fewer were used than reported. */
  readonly used: ReadonlyMap<number, number>
  /** Units it keeps: in use until they are returned, and idle. */
  readonly inUse: number
  readonly idle: number
  /** The units of each waiting request, which takes all of them or none. */
  readonly needs: ReadonlyArray<number>
  /** Units used since its last entry, as an estimate of its next need. */
  readonly recentlyUsed: number
}

export interface EntryResult {
  readonly ledger: Ledger
  readonly granted: number
  /** Units left for all replicas. */
  readonly free: number
  /** The end of the lease. */
  readonly until: number
  /** Less than half of the units are left. */
  readonly isScarce: boolean
  /** Units to return as soon as possible, because replicas with fewer units wait. */
  readonly surrender: number
}

const sum = (numbers: Iterable<number>): number => {
  let total = 0
  for (const each of numbers) total += each
  return total
}

type Holding = Ledger["held"][string]

/** Whether the units of this lease still count, even if it has expired. */
const stillCounts = (terms: Terms, now: number, { until }: Holding): boolean =>
  until + terms.windowMs + slackMs(terms) > now

export interface Available {
  readonly units: number
  /** When `units` changes if no replica makes an entry. */
  readonly until: number
}

/** The units that are neither used nor held by other replicas. */
export const availableTo = (replica: string, { held, used }: Ledger, terms: Terms, now: number): Available => {
  let units = terms.limit
  let until = Number.POSITIVE_INFINITY
  const count = (taken: number, at: number) => {
    const freeAt = at + terms.windowMs + slackMs(terms)
    if (freeAt <= now) return
    units -= taken
    until = Math.min(until, freeAt)
  }
  for (const [at, taken] of used) count(taken, at)
  for (const name in held) {
    const holding = held[name]
    if (name !== replica && holding !== undefined) count(holding.units, holding.until)
  }
  return { units, until }
}

/** How long the ledger keeps an expired lease, in milliseconds, so that a replica can find out whether its entry was made. */
const rememberedMs = 60_000

/** The ledger with a replica's entry, and what the replica gets. */
export const enter = (before: Ledger, terms: Terms, entry: Entry): EntryResult => {
  const { now, replica } = entry
  const keep = entry.inUse + entry.idle
  const used = new Map(before.used)
  for (const [at, units] of entry.used) used.set(at, (used.get(at) ?? 0) + units)
  for (const [at, units] of used) {
    if (units === 0 || at + terms.windowMs + slackMs(terms) <= now) used.delete(at)
  }
  const known = Object.entries(before.held).filter(([name, holding]) =>
    name !== replica && (stillCounts(terms, now, holding) || holding.until + rememberedMs > now)
  )
  const others = known.map(([, holding]) => holding).filter((holding) => stillCounts(terms, now, holding))
  const free = terms.limit - sum(used.values()) - sum(others.map(({ units }) => units)) - keep

  // without a window, units would otherwise stay with the first replica forever
  const rivals = terms.windowMs === 0 ? others.filter(({ units, waiting }) => units > 0 || waiting > 0) : []
  const fair = rivals.some(({ waiting }) => waiting > 0) ? Math.floor(terms.limit / (rivals.length + 1)) : terms.limit
  // if a replica's share is less than one request needs, a replica that had units lets others go first
  const first = entry.needs[0] ?? 1
  const isTurnOver = fair < first && (before.held[replica]?.units ?? 0) > 0
  const most = isTurnOver ? 0 : Math.min(free, Math.max(first, fair) - keep)
  let wanted = 0
  let waiting = 0
  for (const need of entry.needs) {
    if (waiting === 0 && wanted + need - entry.idle <= most) wanted += need
    else waiting += need
  }
  let granted = Math.max(0, wanted - entry.idle)
  const isScarce = free - granted < terms.limit / 2 || isTiny(terms)
  if (wanted > 0 && waiting === 0) {
    const ahead = isScarce ? Math.min(entry.recentlyUsed, maxAhead(terms)) : maxAhead(terms)
    const left = Math.max(0, entry.idle - wanted)
    granted += Math.max(0, Math.min(ahead - left, most - granted))
  }
  const until = now + leaseMs(terms, !isScarce)
  const own: Holding = { units: keep + granted, until, waiting, entry: entry.entry }
  return {
    ledger: {
      used: [...used].toSorted(([a], [b]) => a - b),
      held: { ...Object.fromEntries(known), [replica]: own }
    },
    granted,
    free: free - granted,
    until,
    isScarce,
    surrender: Math.max(0, keep - fair)
  }
}

/**
 * When used units, and units that other replicas hold, will become free, soonest first. Held units may be returned until their lease
 * ends; after that they count as used.
 */
export const expectedReturns = (
  { held, used }: Ledger,
  terms: Terms,
  replica: string,
  now: number
): ReadonlyArray<readonly [at: number, units: number]> => {
  const slack = slackMs(terms)
  const others = Object.entries(held).filter(([name]) => name !== replica)
  return [
    ...used.map(([at, units]) => [at + terms.windowMs + slack, units] as const),
    ...others.map(([, { units, until }]) =>
      [until + slack > now ? until + slack : until + terms.windowMs + slack, units] as const
    )
  ].toSorted(([a], [b]) => a - b)
}
