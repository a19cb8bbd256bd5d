/**
 * One replica's share of one limit: what it has in hand, who waits for more, and what it has still to say to the others.
 *
 * Nothing in here takes time: `Limits.ts` makes the entries in the ledger, when and as this says.
 */
import * as Ledger from "./Ledger.ts"

/** Units that were taken. */
export interface Taken {
  /** It turned out to be so many: those that are too many go back, those that are missing count from now on. */
  readonly settle: (units: number) => void
}

/** How a limit stands. */
export interface LimitState {
  readonly remaining: number
  readonly resetMs: number
}

/** There are none to be had in time. */
export class LimitReached {
  readonly _tag = "LimitReached"
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    this.retryAfterMs = Math.max(1, Math.ceil(retryAfterMs))
  }
}

export interface Waiter {
  readonly units: number
  /** Epoch milliseconds. */
  readonly until: number
  readonly resume: (result: Taken | LimitReached) => void
}

/** An entry that may be made. */
export interface Draft {
  readonly entry: Ledger.Entry
  readonly entered: Ledger.Entered
  /** Whether it says anything that the ledger does not say already. */
  readonly isNeeded: boolean
}

/** Who may wait for one limit in one process. */
const maxWaiting = 1_000

/** When to come back where nothing better is known, in milliseconds. */
const defaultRetryMs = 1_000

/** The shortest time between two looks, in milliseconds. */
const leastMs = 5

/** How long what counts until it is given back may lie idle while it is scarce, in milliseconds. */
const idleMs = 250

/** How often a replica says that it still has in hand what counts until it is given back, in milliseconds. */
const renewMs = 5_000

export class Share {
  readonly #replica: string
  readonly #now: () => number
  /** Runs when there is something to say or to ask for. */
  readonly #onNeed: () => void
  #terms: Ledger.Terms
  #inUse = 0
  #idle = 0
  /** Until when what is idle may be used. */
  #until = Number.NEGATIVE_INFINITY
  readonly #waiters = new Set<Waiter>()

  /** What was used and is not in the ledger yet, by moment. */
  readonly #used = new Map<number, number>()
  #usedSum = 0
  #usedLately = 0
  /** As the ledger has it. */
  #held = 0
  #toldWaiting = 0
  /** Less was used than the ledger says. */
  #hasReturned = false
  #entries = 0
  #enteredAt = Number.NEGATIVE_INFINITY
  #isScarce = false
  #idleSince = Number.NEGATIVE_INFINITY
  /** What is not to be used again when it comes back. */
  #surrender = 0
  /** Before this it is no use to ask for more; from `#freeAt` on there will be some. */
  #dryUntil = Number.NEGATIVE_INFINITY
  #freeAt = Number.NEGATIVE_INFINITY
  /** As it was last seen. */
  #ledger = Ledger.empty
  #left: Ledger.Left | undefined
  #lastUsedAt = Number.NEGATIVE_INFINITY

  constructor(replica: string, terms: Ledger.Terms, now: () => number, onNeed: () => void) {
    this.#replica = replica
    this.#terms = terms
    this.#now = now
    this.#onNeed = onNeed
  }

  /** The limit may change while it is in use. */
  setTerms(terms: Ledger.Terms): void {
    if (terms !== this.#terms) this.#left = undefined
    this.#terms = terms
  }

  /** How often to look whether others have given something back, in milliseconds. */
  get #lookMs(): number {
    return this.#terms.windowMs === 0 ? idleMs : Math.max(100, this.#terms.windowMs / 60)
  }

  /** Takes units that are in hand, unless others wait for them. */
  take(units: number): Taken | undefined {
    return this.#waiters.size > 0 || this.#available < units ? undefined : this.#use(units)
  }

  /** Why there is no sense in waiting until a time. */
  refusal(until: number): LimitReached | undefined {
    if (this.#waiters.size >= maxWaiting) return new LimitReached(defaultRetryMs)
    const now = this.#now()
    return now < this.#dryUntil && until < this.#freeAt ? new LimitReached(this.#freeAt - now) : undefined
  }

  /** When to come back after having waited in vain. */
  get retryAfterMs(): number {
    const inMs = this.#freeAt - this.#now()
    return inMs > 0 && Number.isFinite(inMs) ? inMs : defaultRetryMs
  }

  /** How much is left, as far as it is known here, and in how many milliseconds all of it will be. */
  get state(): LimitState {
    const now = this.#now()
    // asked for with every answer, and counted over all moments of the ledger
    if (this.#left === undefined || now >= this.#left.until) {
      this.#left = Ledger.leftFor(this.#replica, this.#ledger, this.#terms, now)
    }
    const remaining = this.#left.units - this.#inUse - this.#usedSum
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

  /** In how many milliseconds the next entry is to be made; `undefined` where there is nothing to say. */
  get dueMs(): number | undefined {
    const now = this.#now()
    if (this.#waiters.size > 0) return Math.max(0, this.#dryUntil - now)
    this.#forget(now)
    if (this.isSilent) return undefined
    return Math.max(0, this.#dueAt - now)
  }

  get #dueAt(): number {
    if (this.#terms.windowMs > 0) {
      // what becomes known later, as the true number of tokens does, is said in one go
      if (this.#idle > 0 || this.#hasReturned) return Math.max(this.#until, this.#enteredAt + this.#lookMs)
      // others need not know when a unit was used before it could come free; by then the next entry has said it
      return this.#until + this.#terms.windowMs / 2
    }
    const goesBack = this.#toldWaiting > 0 || (this.#isScarce && this.#inUse < this.#held)
    return goesBack ? Math.max(this.#enteredAt, this.#idleSince) + idleMs : this.#enteredAt + renewMs
  }

  /** What was not told in time counts no more. */
  #forget(now: number): void {
    const { windowMs } = this.#terms
    if (windowMs === 0) return
    for (const [at, units] of this.#used) {
      // the others came later
      if (at + windowMs >= now) break
      this.#count(at, -units)
    }
    if (this.#until + windowMs < now) this.#held = 0
  }

  /** Whether the ledger knows all there is to know. */
  get isSilent(): boolean {
    return this.#held === 0 && this.#used.size === 0 && this.#toldWaiting === 0
  }

  /** Lets everything go. */
  close(): void {
    for (const waiter of this.#waiters) waiter.resume(new LimitReached(defaultRetryMs))
    this.#waiters.clear()
    this.#inUse = 0
    this.#usedLately = 0
  }

  /** Prepares the next entry. What it gives back cannot be used any more from here on. */
  draft(ledger: Ledger.Ledger): Draft {
    const now = this.#now()
    const isWanted = this.#waiters.size > 0 ||
      (this.#terms.windowMs === 0 && !this.#isScarce && this.#usedLately > 0)
    if (now >= this.#until || !isWanted) this.#idle = 0
    const entry: Ledger.Entry = {
      replica: this.#replica,
      entry: ++this.#entries,
      now,
      used: new Map(this.#used),
      inUse: this.#inUse,
      idle: this.#idle,
      needs: [...this.#waiters].map(({ units }) => units),
      lately: this.#usedLately
    }
    const entered = Ledger.enter(ledger, this.#terms, entry)
    const before = ledger.held[this.#replica]
    const after = entered.ledger.held[this.#replica]
    const isNeeded = entered.granted > 0 || entry.used.size > 0 ||
      (before?.units ?? 0) !== (after?.units ?? 0) ||
      // nobody has to know who waits for a window, which opens by itself
      (this.#terms.windowMs === 0 &&
        ((before?.waiting ?? 0) > 0 !== (after?.waiting ?? 0) > 0 || now >= this.#enteredAt + renewMs))
    return { entry, entered, isNeeded }
  }

  /** The entry was made. */
  accept(draft: Draft): void {
    const { entered, entry } = draft
    for (const [at, units] of entry.used) this.#count(at, -units)
    this.#usedLately = 0
    this.#hasReturned = false
    this.#idle += entered.granted
    this.#until = entered.until
    this.#enteredAt = entry.now
    this.#serve()
    this.observe(draft)
  }

  /** The ledger says all this, now or already before. */
  observe({ entered }: Draft): void {
    this.#ledger = entered.ledger
    this.#left = undefined
    const own = entered.ledger.held[this.#replica]
    this.#held = own?.units ?? 0
    this.#toldWaiting = this.#terms.windowMs === 0 ? own?.waiting ?? 0 : 0
    this.#isScarce = entered.isScarce
    this.#surrender = entered.surrender
    this.#expect(entered)
  }

  /** Lets those go who would wait in vain, and knows when to ask again for the others. */
  #expect({ free, ledger }: Ledger.Entered): void {
    this.#dryUntil = this.#freeAt = Number.NEGATIVE_INFINITY
    if (this.#waiters.size === 0) return
    const now = this.#now()
    const lookAt = now + this.#lookMs
    this.#dryUntil = lookAt
    // nobody knows when others give back what they may keep
    if (this.#terms.windowMs === 0) return
    const returns = Ledger.returns(ledger, this.#terms, this.#replica, now)
    let next = 0
    let units = free
    let wanted = 0
    let at = now
    let first: number | undefined
    for (const waiter of this.#waiters) {
      wanted += waiter.units
      for (; units < wanted && next < returns.length; next++) {
        const [returnsAt, returned] = returns[next] ?? [at, 0]
        at = Math.max(at, returnsAt)
        units += returned
      }
      first ??= at
      if (at <= waiter.until) continue
      this.#waiters.delete(waiter)
      waiter.resume(new LimitReached(at - now))
      wanted -= waiter.units
    }
    this.#dryUntil = Math.min(Math.max(first ?? lookAt, now + leastMs), lookAt)
    this.#freeAt = at
  }

  get #available(): number {
    return this.#now() < this.#until ? this.#idle : 0
  }

  #serve(): void {
    for (const waiter of this.#waiters) {
      if (this.#available < waiter.units) return
      this.#waiters.delete(waiter)
      waiter.resume(this.#use(waiter.units))
    }
  }

  #use(units: number): Taken {
    this.#idle -= units
    this.#usedLately += units
    const now = this.#now()
    this.#lastUsedAt = now
    const isWindow = this.#terms.windowMs > 0
    const at = isWindow ? this.#count(Ledger.momentOf(this.#terms, now), units) : 0
    if (!isWindow) this.#inUse += units
    let settled = units
    return {
      settle: (actual) => {
        const more = actual - settled
        if (more === 0) return
        settled = actual
        if (!isWindow) this.#release(-more)
        else if (more > 0) this.#count(Ledger.momentOf(this.#terms, this.#now()), more)
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
    this.#inUse -= units
    const surrendered = Math.min(units, this.#surrender)
    this.#surrender -= surrendered
    this.#idle += units - surrendered
    this.#idleSince = this.#now()
    this.#serve()
  }
}
