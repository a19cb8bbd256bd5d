/**
 * One replica's lease of one limit: the units it holds, the requests that wait for more, and the use it has not reported.
 *
 * All methods are synchronous. `Limits.ts` writes the entries that `draft` prepares into the ledger, when they are due.
 */
import type { LimitReached, LimitUnknown, Taken, UnitsMissing } from "../bounds/Limit.ts"
import * as Ledger from "./Ledger.ts"

export interface LimitState {
  readonly remaining: number
  /** The time until all units are available again. */
  readonly resetMs: number
}

export const limitReached = (retryAfterMs: number): LimitReached => ({
  _tag: "LimitReached",
  retryAfterMs: Math.max(1, Math.ceil(retryAfterMs))
})

/** The retry time while the ledger cannot be read or written, in milliseconds: the longest pause between two tries. */
export const unknownRetryMs = 2_000

export const limitUnknown: LimitUnknown = { _tag: "LimitUnknown", retryAfterMs: unknownRetryMs }

export interface Waiter {
  readonly units: number
  /** Epoch milliseconds. */
  readonly until: number
  readonly resume: (result: Taken | UnitsMissing) => void
}

/** A prepared entry. */
export interface Draft {
  readonly entry: Ledger.Entry
  readonly entered: Ledger.EntryResult
  /** Whether the entry changes the ledger. */
  readonly isNeeded: boolean
}

/** When units become free for further requests, as far as the ledger tells. */
interface Outlook {
  /** Until when it is good enough to reject requests by it. */
  readonly until: number
  /** From `at` on, so many units are free beyond those for waiting requests. */
  readonly at: number
  readonly spare: number
  /** The units that return after that, soonest first: `returns` from `next` on. */
  readonly returns: ReadonlyArray<readonly [at: number, units: number]>
  readonly next: number
}

/** The outlook after the turn of a request, which is at its `at`. */
const afterTurn = (outlook: Outlook, units: number): Outlook => {
  let { at, next } = outlook
  let spare = outlook.spare - units
  for (; spare < 0 && next < outlook.returns.length; next++) {
    const [returnsAt, returned] = outlook.returns[next] ?? [at, 0]
    at = Math.max(at, returnsAt)
    spare += returned
  }
  return { ...outlook, at, spare, next }
}

/** Maximum number of requests that wait for one limit in one process. */
const maxWaiting = 1_000

/** The retry time if no better one is known, in milliseconds. */
const defaultRetryMs = 1_000

/** The shortest time between two entries while requests wait, in milliseconds. */
const minWaitMs = 5

/** How long a scarce unit of a limit without a window may be idle, in milliseconds. */
const idleMs = 250

/** How often a replica renews its lease of a limit without a window, in milliseconds. */
const renewMs = 5_000

export class ReplicaLease {
  readonly #replica: string
  readonly #now: () => number
  /** Runs when there is something to report or to request. */
  readonly #onNeed: () => void
  #terms: Ledger.Terms
  #inUse = 0
  #idle = 0
  /** The end of the lease. */
  #until = Number.NEGATIVE_INFINITY
  readonly #waiters = new Set<Waiter>()

  /** Used units that are not in the ledger yet, by time. */
  readonly #used = new Map<number, number>()
  #usedSum = 0
  #recentlyUsed = 0
  /** Held and waited-for units according to the ledger. */
  #held = 0
  #reportedWaiting = 0
  /** Fewer units were used than the ledger says. */
  #hasReturned = false
  #enteredAt = Number.NEGATIVE_INFINITY
  #isScarce = false
  #idleSince = Number.NEGATIVE_INFINITY
  /** Units that must not be used again once they are returned here, because other replicas wait for them. */
  #surrender = 0
  /** Before this it is pointless to request more units for the waiting requests. */
  #retryAt = Number.NEGATIVE_INFINITY
  #outlook: Outlook | undefined
  /** The ledger as last seen. */
  #ledger = Ledger.empty
  #available: Ledger.Available | undefined
  #lastUsedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(replica: string, terms: Ledger.Terms, now: () => number, onNeed: () => void) {
    this.#replica = replica
    this.#terms = terms
    this.#now = now
    this.#onNeed = onNeed
  }

  /** Applies the limit's current terms, which may change while the limit is in use. */
  setTerms(terms: Ledger.Terms): void {
    if (terms !== this.#terms) this.#available = undefined
    this.#terms = terms
  }

  /** How often to check whether other replicas have returned units, in milliseconds. */
  get #lookMs(): number {
    return this.#terms.windowMs === 0 ? idleMs : Math.max(100, this.#terms.windowMs / 60)
  }

  /** Takes leased units; `undefined` if there are too few, or other requests wait for them. */
  take(units: number): Taken | undefined {
    return this.#waiters.size > 0 || this.#usable < units ? undefined : this.#use(units)
  }

  /** The error for a request that cannot get its units by this time; `undefined` if it may wait. */
  refusal(units: number, until: number): LimitReached | undefined {
    const now = this.#now()
    if (this.#outlook === undefined || now >= this.#outlook.until) return undefined
    const { at } = afterTurn(this.#outlook, units)
    return until < at ? limitReached(at - now) : undefined
  }

  /** Whether as many requests wait as may wait. */
  get isCrowded(): boolean {
    return this.#waiters.size >= maxWaiting
  }

  /** The retry time of a request whose wait was unsuccessful. */
  get retryAfterMs(): number {
    const inMs = (this.#outlook?.at ?? 0) - this.#now()
    return inMs > 0 ? inMs : defaultRetryMs
  }

  /** The state of the limit, as far as this replica knows. */
  get state(): LimitState {
    const now = this.#now()
    // cached, because every answer needs the number, and computing it goes through all times in the ledger
    if (this.#available === undefined || now >= this.#available.until) {
      this.#available = Ledger.availableTo(this.#replica, this.#ledger, this.#terms, now)
    }
    const remaining = this.#available.units - this.#inUse - this.#usedSum
    const lastUsedAt = Math.max(this.#lastUsedAt, this.#ledger.used.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY)
    return { remaining: Math.max(0, remaining), resetMs: Math.max(0, lastUsedAt + this.#terms.windowMs - now) }
  }

  enqueue(waiter: Waiter): void {
    this.#waiters.add(waiter)
    this.#onNeed()
  }

  leave(waiter: Waiter): void {
    this.#waiters.delete(waiter)
    this.#serve()
  }

  /** The time until the next entry is due; `undefined` if there is nothing to report. */
  get dueMs(): number | undefined {
    const now = this.#now()
    if (this.#waiters.size > 0) return Math.max(0, this.#retryAt - now)
    this.#forget(now)
    if (this.isRecorded) return undefined
    return Math.max(0, this.#dueAt - now)
  }

  get #dueAt(): number {
    // other replicas would take what was used beyond the held units
    if (this.#usedSum + this.#inUse + this.#idle > this.#held) return this.#enteredAt + this.#lookMs
    if (this.#terms.windowMs > 0) {
      // corrections, such as the actual number of tokens, are reported together
      if (this.#idle > 0 || this.#hasReturned) return Math.max(this.#until, this.#enteredAt + this.#lookMs)
      // other replicas need the time of use only when the unit could become free, which is later than this
      return this.#until + this.#terms.windowMs / 2
    }
    const isReturning = this.#reportedWaiting > 0 ||
      (this.#terms.isConsumed === true
        ? this.#inUse + this.#idle < this.#held
        : this.#isScarce && this.#inUse < this.#held)
    return isReturning ? Math.max(this.#enteredAt, this.#idleSince) + idleMs : this.#enteredAt + renewMs
  }

  /** Drops unreported units that no longer count. */
  #forget(now: number): void {
    const { windowMs } = this.#terms
    if (windowMs === 0) return
    for (const [at, units] of this.#used) {
      // all further times are later
      if (at + windowMs >= now) break
      this.#count(at, -units)
    }
    if (this.#until + windowMs < now) this.#held = 0
  }

  /** Whether there is nothing to report: the ledger is up to date and this replica holds no units. */
  get isRecorded(): boolean {
    return this.#held === 0 && this.#used.size === 0 && this.#reportedWaiting === 0
  }

  /** Rejects waiting requests and prepares to return all units, including those of requests that have not ended. */
  close(): void {
    this.#isClosed = true
    for (const waiter of this.#waiters) waiter.resume(limitUnknown)
    this.#waiters.clear()
    this.#inUse = 0
    this.#recentlyUsed = 0
  }

  /** Prepares the next entry, with a number that is new to the ledger. Units that the entry returns can no longer be used. */
  draft(ledger: Ledger.Ledger, entryNumber: number): Draft {
    const now = this.#now()
    const isWanted = this.#waiters.size > 0 ||
      (this.#terms.windowMs === 0 && !this.#isScarce && this.#recentlyUsed > 0)
    if (now >= this.#until || !isWanted) this.#idle = 0
    const entry: Ledger.Entry = {
      replica: this.#replica,
      entry: entryNumber,
      now,
      used: new Map(this.#used),
      inUse: this.#inUse,
      idle: this.#idle,
      needs: [...this.#waiters].map(({ units }) => units),
      recentlyUsed: this.#recentlyUsed
    }
    const entered = Ledger.enter(ledger, this.#terms, entry)
    const before = ledger.held[this.#replica]
    const after = entered.ledger.held[this.#replica]
    const isNeeded = entered.granted > 0 || entry.used.size > 0 ||
      (before?.units ?? 0) !== (after?.units ?? 0) ||
      // with a window, units become free by themselves, so other replicas need not know about waiting requests
      (this.#terms.windowMs === 0 &&
        ((before?.waiting ?? 0) > 0 !== (after?.waiting ?? 0) > 0 || now >= this.#enteredAt + renewMs))
    return { entry, entered, isNeeded }
  }

  /** Applies an entry that was made. */
  accept(draft: Draft): void {
    const { entered, entry } = draft
    for (const [at, units] of entry.used) this.#count(at, -units)
    this.#recentlyUsed = 0
    this.#hasReturned = false
    this.#idle += entered.granted
    this.#until = entered.until
    this.#enteredAt = entry.now
    this.#serve()
    this.observe(draft)
  }

  /** Applies the state of the ledger, whether or not the entry was needed. */
  observe({ entered, entry }: Draft): void {
    this.#ledger = entered.ledger
    this.#available = undefined
    const own = entered.ledger.held[this.#replica]
    this.#held = own?.units ?? 0
    this.#reportedWaiting = this.#terms.windowMs === 0 ? own?.waiting ?? 0 : 0
    this.#isScarce = entered.isScarce
    this.#surrender = entered.surrender
    this.#expect(entered, entry.needs.length > 0)
  }

  /** Rejects requests that would wait in vain, and sets when to retry for the others: immediately if all came after the entry. */
  #expect({ free, ledger }: Ledger.EntryResult, hasAsked: boolean): void {
    this.#retryAt = Number.NEGATIVE_INFINITY
    this.#outlook = undefined
    if (this.#waiters.size === 0 || !hasAsked) return
    const now = this.#now()
    const lookAt = now + this.#lookMs
    this.#retryAt = lookAt
    // without a window, the time at which other replicas return units is unknown
    if (this.#terms.windowMs === 0) return
    const returns = Ledger.expectedReturns(ledger, this.#terms, this.#replica, now)
    let outlook: Outlook = { until: lookAt, at: now, spare: free + this.#idle, returns, next: 0 }
    let first: number | undefined
    for (const waiter of this.#waiters) {
      const turn = afterTurn(outlook, waiter.units)
      if (turn.at > waiter.until) {
        this.#waiters.delete(waiter)
        waiter.resume(limitReached(turn.at - now))
      } else {
        first ??= turn.at
        outlook = turn
      }
    }
    this.#outlook = outlook
    this.#retryAt = first === undefined ? Number.NEGATIVE_INFINITY : Math.min(Math.max(first, now + minWaitMs), lookAt)
  }

  /** The idle units; none once the lease has ended. */
  get #usable(): number {
    return this.#now() < this.#until ? this.#idle : 0
  }

  #serve(): void {
    for (const waiter of this.#waiters) {
      if (this.#usable < waiter.units) return
      this.#waiters.delete(waiter)
      waiter.resume(this.#use(waiter.units))
    }
  }

  #use(units: number): Taken {
    this.#idle -= units
    this.#recentlyUsed += units
    const now = this.#now()
    this.#lastUsedAt = now
    const isWindow = this.#terms.windowMs > 0
    const at = isWindow ? this.#count(Ledger.recordedTimeOf(this.#terms, now), units) : 0
    if (!isWindow) this.#inUse += units
    let settled = units
    return {
      settle: (actual) => {
        const more = actual - settled
        if (more === 0) return
        settled = actual
        if (!isWindow) this.#release(-more)
        else if (more > 0) this.#count(Ledger.recordedTimeOf(this.#terms, this.#now()), more)
        else {
          this.#count(at, more)
          this.#hasReturned = true
        }
        this.#onNeed()
      }
    }
  }

  #count(at: number, units: number): number {
    const counted = (this.#used.get(at) ?? 0) + units
    if (counted === 0) this.#used.delete(at)
    else this.#used.set(at, counted)
    this.#usedSum += units
    return at
  }

  #release(units: number): void {
    if (this.#isClosed) return
    this.#inUse -= units
    if (this.#terms.isConsumed === true) {
      this.#idleSince = this.#now()
      return
    }
    const surrendered = Math.min(units, this.#surrender)
    this.#surrender -= surrendered
    this.#idle += units - surrendered
    this.#idleSince = this.#now()
    this.#serve()
  }
}
