/**
 * The account of one limit, which all replicas keep together: which units were used when, and which are in whose hands.
 *
 * A replica takes a few units at once, uses them without asking anyone, and says in its next entry what became of them. A
 * unit in a replica's hands counts as if it was used at the last moment at which it can be. So for every window, wherever
 * it begins, no more units are used in it than the limit has, even where a replica dies with some in its hands.
 */
import { Schema } from "effect"

/** What an account is about. */
export interface Terms {
  readonly limit: number
  /** For how long a used unit counts, in milliseconds; 0 where it counts until it is given back. */
  readonly windowMs: number
}

/** Moments are epoch milliseconds by the clock of whoever wrote them. */
export const Ledger = Schema.Struct({
  used: Schema.Array(Schema.Tuple([Schema.Finite, Schema.Finite])),
  /** By replica. */
  held: Schema.Record(
    Schema.String,
    Schema.Struct({
      units: Schema.Finite,
      /** It uses none after this, unless it has said so anew. */
      until: Schema.Finite,
      /** How many more it would take. */
      waiting: Schema.Finite,
      /** Of its own entries, the how manieth this is: by it a replica knows that its entry was made. */
      entry: Schema.Finite
    })
  )
})
export type Ledger = typeof Ledger.Type

export const empty: Ledger = { used: [], held: {} }

/**
 * How long a unit counts beyond its window, in milliseconds: for the clocks of two replicas are not quite the same, and what
 * is let through at one moment arrives at another.
 */
const slackMs = ({ windowMs }: Terms): number => windowMs === 0 ? 250 : Math.min(1_500, windowMs / 40)

/** As many moments of use as an account holds, if need be by rounding them up. */
const maxMoments = 240

const grainMs = ({ limit, windowMs }: Terms): number =>
  limit <= maxMoments ? 1 : Math.max(1, Math.floor(windowMs / maxMoments))

/** For how long units are taken, in milliseconds. While there are plenty it does no harm to keep some for longer. */
const leaseMs = ({ windowMs }: Terms, plenty: boolean): number => {
  if (windowMs === 0) return 15_000
  return Math.max(250, windowMs / (plenty ? 6 : 60))
}

/** The most that is taken ahead of need. */
const slice = ({ limit }: Terms): number => Math.max(1, Math.floor(limit / 20))

/** Of what counts until it is given back there is so little that what lies idle is missed elsewhere. */
const isTiny = ({ limit, windowMs }: Terms): boolean => windowMs === 0 && limit < 20

/** The moment at which a unit is said to be used that is used now. */
export const momentOf = (terms: Terms, now: number): number => Math.ceil(now / grainMs(terms)) * grainMs(terms)

/** What a replica has to say and would like to have. */
export interface Entry {
  readonly replica: string
  readonly entry: number
  readonly now: number
  /** What it has used since its last entry, by moment; negative where less was used than it had said. */
  readonly used: ReadonlyMap<number, number>
  /** What it has in hand and goes on with: in use until it is given back, and not in use. */
  readonly inUse: number
  readonly idle: number
  /** What is waited for, one by one, each to be had whole or not at all. */
  readonly needs: ReadonlyArray<number>
  /** What it has used lately: so much it may soon use again. */
  readonly lately: number
}

export interface Entered {
  readonly ledger: Ledger
  /** What it was given. */
  readonly granted: number
  /** What is left for anybody. */
  readonly free: number
  /** Until when it may use what it has. */
  readonly until: number
  /** Less than half is left. */
  readonly isScarce: boolean
  /** What it should give back as soon as it can, because others wait who have less. */
  readonly surrender: number
}

const sum = (numbers: Iterable<number>): number => {
  let total = 0
  for (const each of numbers) total += each
  return total
}

type Holding = Ledger["held"][string]

/** Whether what a replica has in hand still counts. */
const counts = (terms: Terms, now: number, { until }: Holding): boolean => until + terms.windowMs + slackMs(terms) > now

/** What is left, and until when that is so where nobody makes an entry. */
export interface Left {
  readonly units: number
  readonly until: number
}

/** What is left for a replica: all that is neither used nor in the hands of others. */
export const leftFor = (replica: string, { held, used }: Ledger, terms: Terms, now: number): Left => {
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

/** A replica that does not know whether its last entry was made finds it for so long at least, in milliseconds. */
const rememberedMs = 60_000

/** Makes an entry. */
export const enter = (before: Ledger, terms: Terms, entry: Entry): Entered => {
  const { now, replica } = entry
  const keep = entry.inUse + entry.idle
  const used = new Map(before.used)
  for (const [at, units] of entry.used) used.set(at, (used.get(at) ?? 0) + units)
  for (const [at, units] of used) {
    if (units === 0 || at + terms.windowMs + slackMs(terms) <= now) used.delete(at)
  }
  const known = Object.entries(before.held).filter(([name, holding]) =>
    name !== replica && (counts(terms, now, holding) || holding.until + rememberedMs > now)
  )
  const others = known.map(([, holding]) => holding).filter((holding) => counts(terms, now, holding))
  const free = terms.limit - sum(used.values()) - sum(others.map(({ units }) => units)) - keep

  // what counts until it is given back would otherwise stay for ever with whoever had it first
  const rivals = terms.windowMs === 0 ? others.filter(({ units, waiting }) => units > 0 || waiting > 0) : []
  const fair = rivals.some(({ waiting }) => waiting > 0) ? Math.floor(terms.limit / (rivals.length + 1)) : terms.limit
  // where there is less than one for each, whoever had one lets others go first
  const isTurnOver = fair === 0 && (before.held[replica]?.units ?? 0) > 0
  const most = isTurnOver ? 0 : Math.min(free, Math.max(1, fair) - keep)
  let wanted = 0
  let waiting = 0
  for (const need of entry.needs) {
    if (waiting === 0 && wanted + need - entry.idle <= most) wanted += need
    else waiting += need
  }
  let granted = Math.max(0, wanted - entry.idle)
  const isScarce = free - granted < terms.limit / 2 || isTiny(terms)
  if (wanted > 0 && waiting === 0) {
    const ahead = isScarce ? Math.min(entry.lately, slice(terms)) : slice(terms)
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
 * When units come free that are used or in other hands, soonest first. What others have in hand may come back as soon as they
 * cannot use it any more; if it has not by then, it was used.
 */
export const returns = (
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
