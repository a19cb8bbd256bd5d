/**
 * Whose calls to one target a provider's 429 delays: a refusal belongs to the owner that got it, and to all once a second owner is refused
 * with no call accepted in between, or once the provider says that nothing is left of a limit.
 *
 * If a call of another owner is accepted while all wait, the refused owners wait alone, and for a minute their refusals concern no other.
 * While a target refuses nothing, it only counts its calls. Times are in milliseconds of a monotonic clock.
 */
import type { Quota } from "../../contract/JobError.ts"
import type { TargetDelay } from "./Delays.ts"
import { defaultRetryMs, Pacer } from "./Pacer.ts"
import { RecentCalls } from "./RecentCalls.ts"
import { type WaitingCall, WaitingCalls } from "./WaitingCalls.ts"

/** A call's permission. */
export interface Turn {
  readonly owner: string
  readonly at: number
  /** Whether it probes while all owners wait. */
  readonly isProbe: boolean
}

/** A request that wants to call. */
export interface Caller {
  readonly owner: string
  /** Estimates the tokens of the request and its answer. */
  readonly tokens: () => number
}

/** What a provider's 429 has said. */
export interface Refusal {
  readonly at: number
  /** Until when the provider wants no calls. */
  readonly until: number
  /** Whether the provider has accepted a call that was sent in that time: the refusal concerns its request alone. */
  isAlone: boolean
}

/** How many owners a target knows that were refused, and how many refusals. The oldest are forgotten. */
const mostOwners = 1_000
const mostRefusals = 256

/** How long a refusal waits for that of a second owner, and how long the refusals of a contradicted owner are its own. */
const suspectMs = 60_000
const contradictedMs = 60_000

/** How often owners are searched for those that need not be remembered. */
const sweepMs = 10_000

export class TargetPace<W extends WaitingCall & Caller> {
  readonly #calls: RecentCalls
  readonly waiting = new WaitingCalls<W>()
  #shared: Pacer | undefined
  readonly #owners = new Map<string, Pacer>()
  /** The owner of the latest refusal since which no call was accepted. */
  #suspect: { readonly owner: string; readonly at: number } | undefined
  /** The owners that were refused since all calls wait. */
  readonly #voters = new Set<string>()
  /** Owners whose refusals concern themselves only, and until when. */
  readonly #contradicted = new Map<string, number>()
  #refusals: Array<Refusal> = []
  /** Until when a provider wants no calls, by the latest refusal to end. */
  #refusedUntil = Number.NEGATIVE_INFINITY
  #sweepAt = Number.NEGATIVE_INFINITY
  /** What the provider's latest 429 said. */
  quota: Quota | undefined

  constructor(now: number) {
    this.#calls = new RecentCalls(now)
  }

  /** Whether no call is delayed, and the outcome of a call means nothing. */
  get isQuiet(): boolean {
    return this.#shared === undefined && this.#owners.size === 0
  }

  /** Whether the start of an answer decides something; otherwise its end is early enough. */
  isWatched(now: number): boolean {
    return this.#shared !== undefined || this.#suspect !== undefined || now < this.#refusedUntil
  }

  /** Takes a turn now; `undefined` if the call must wait. */
  tryTake(caller: Caller, now: number): Turn | undefined {
    if (!this.isQuiet) this.#sweep(now)
    if (this.isQuiet) {
      this.#calls.add(now)
      return { owner: caller.owner, at: now, isProbe: false }
    }
    const { owner } = caller
    const isLarge = this.isLarge(caller, now)
    // those that wait for the same go first
    const isBehind = this.#shared === undefined ? this.waiting.lengthOf({ owner, isLarge }) > 0 : this.waiting.size > 0
    return isBehind || this.#readyAt(caller, isLarge, now) > now ? undefined : this.#take(owner, now)
  }

  /** Whether the request is larger than what the provider has left. */
  isLarge({ owner, tokens }: Caller, now: number): boolean {
    return this.#owners.get(owner)?.isTooLarge(tokens, now) === true || this.#shared?.isTooLarge(tokens, now) === true
  }

  /** When a call that starts to wait now would get its turn. */
  dueAt(caller: Caller, now: number): number {
    const own = this.#owners.get(caller.owner)
    const isLarge = this.isLarge(caller, now)
    const inLine = this.waiting.lengthOf({ owner: caller.owner, isLarge })
    const largeAt = isLarge ? Math.max(own?.pausedUntil ?? now, this.#shared?.pausedUntil ?? now) : now
    const ownAt = Math.max(largeAt, own?.dueAt(now, inLine) ?? now)
    const ahead = Math.min(this.waiting.size, (inLine + 1) * this.waiting.lines)
    return Math.max(ownAt, this.#shared?.dueAt(now, ahead) ?? now)
  }

  /** Takes a turn for the next waiting call that may go now. Otherwise returns when one may, `Infinity` if none waits. */
  next(now: number): { readonly call: W; readonly turn: Turn } | number {
    let soonest = Number.POSITIVE_INFINITY
    for (const call of this.waiting.firsts()) {
      const at = this.#readyAt(call, call.isLarge, now)
      if (at > now) {
        soonest = Math.min(soonest, at)
        continue
      }
      this.waiting.take(call)
      return { call, turn: this.#take(call.owner, now) }
    }
    return soonest
  }

  giveBack({ at, isProbe, owner }: Turn, now: number): void {
    this.#uncount(owner, at, now)
    this.#owners.get(owner)?.giveBack(at, false, now)
    this.#shared?.giveBack(at, isProbe, now)
  }

  /** The provider has accepted the call of this turn. */
  accepted({ at, owner }: Turn, now: number): void {
    if (this.isQuiet) return
    if (this.#suspect !== undefined && at > this.#suspect.at) this.#suspect = undefined
    for (const refusal of this.#refusals) if (at > refusal.at && at < refusal.until) refusal.isAlone = true
    this.#owners.get(owner)?.accepted(at, now)
    const shared = this.#shared
    if (shared === undefined) return
    if (shared.isProbe(at)) this.#contradict(owner, now)
    shared.accepted(at, now)
  }

  /** The provider has refused the call of this turn. */
  refused({ at, owner }: Turn, { tokens }: Caller, now: number, retryAfterMs: number | null, quota?: Quota): Refusal {
    this.#judgeProbe(now)
    this.quota = quota ?? this.quota
    const pauseMs = retryAfterMs ?? defaultRetryMs
    const rest = quota?.tokensLeft
    const left = rest !== undefined && rest > 0 && tokens() > rest ? rest : undefined
    this.#uncount(owner, at, now)
    const isContradicted = (this.#contradicted.get(owner) ?? now) > now
    if (isContradicted || (left !== undefined && !isUsedUp(quota))) {
      this.#ownerOf(owner, now).refused(at, now, pauseMs, left)
    } else {
      if (this.#concernsAll(owner, now, quota)) {
        this.#shared ??= new Pacer(this.#calls, true)
        this.#shared.refused(at, now, pauseMs, left)
        if (this.#voters.size < mostOwners) this.#voters.add(this.#suspect?.owner ?? owner).add(owner)
      } else this.#ownerOf(owner, now).refused(at, now, pauseMs)
      this.#suspect = { owner, at: now }
    }
    const refusal = { at: now, until: now + pauseMs, isAlone: false }
    this.#refusedUntil = Math.max(this.#refusedUntil, refusal.until)
    this.#refusals = [...this.#refusals.filter(({ until }) => until > now), refusal].slice(-mostRefusals)
    return refusal
  }

  /** Whose calls are delayed at this time. */
  delays(now: number): ReadonlyArray<Omit<TargetDelay, "provider" | "model">> {
    const all = [[null, this.#shared] as const, ...this.#owners]
    return all.flatMap(([owner, pacer]) => {
      if (pacer === undefined || pacer.isOver(now)) return []
      const { pausedUntil, perMinute } = pacer
      if (pausedUntil <= now && perMinute === undefined) return []
      return [{
        owner,
        cause: "refusals",
        forMs: Math.max(0, pausedUntil - now),
        perMinute: perMinute ?? null,
        waiting: this.#waitingOf(owner),
        ...(this.quota === undefined ? {} : { quota: this.quota })
      }]
    })
  }

  #waitingOf(owner: string | null): number {
    if (owner === null) return this.waiting.size
    return this.waiting.lengthOf({ owner, isLarge: false }) + this.waiting.lengthOf({ owner, isLarge: true })
  }

  /** When a call may be sent: now, or later. */
  #readyAt({ owner }: Caller, isLarge: boolean, now: number): number {
    const own = this.#owners.get(owner)
    const shared = this.#shared
    this.#judgeProbe(now)
    const at = (pacer?: Pacer) =>
      pacer === undefined ? now : Math.max(isLarge ? pacer.pausedUntil : now, pacer.readyAt(now))
    const [ownAt, sharedAt] = [at(own), at(shared)]
    if (ownAt > now) own?.held(now)
    if (sharedAt > now) shared?.held(now)
    return Math.max(ownAt, sharedAt)
  }

  #judgeProbe(now: number): void {
    if (this.#shared?.hasPassedProbe(now) !== true) return
    this.#contradict(undefined, now)
    this.#shared.endPause(now)
  }

  #take(owner: string, now: number): Turn {
    this.#calls.add(now)
    const own = this.#owners.get(owner)
    own?.calls.add(now)
    own?.take(now)
    return { owner, at: now, isProbe: this.#shared?.take(now) ?? false }
  }

  /** A call was refused, or not sent. */
  #uncount(owner: string, sentAt: number, now: number): void {
    this.#calls.remove(sentAt, now)
    this.#owners.get(owner)?.calls.remove(sentAt, now)
  }

  /** Whether the refusal of an owner concerns all. */
  #concernsAll(owner: string, now: number, quota: Quota | undefined): boolean {
    if (isUsedUp(quota) || this.#shared !== undefined) return true
    return this.#suspect !== undefined && this.#suspect.owner !== owner && now - this.#suspect.at < suspectMs
  }

  /** A call of this owner was accepted although all wait: those that were refused wait alone. */
  #contradict(owner: string | undefined, now: number): void {
    const leftMs = Math.max(0, (this.#shared?.pausedUntil ?? now) - now)
    for (const voter of this.#voters) {
      if (voter === owner) continue
      this.#contradicted.set(voter, now + contradictedMs)
      this.#ownerOf(voter, now).refused(now, now, leftMs)
    }
    this.#voters.clear()
  }

  #ownerOf(owner: string, now: number): Pacer {
    let pacer = this.#owners.get(owner)
    if (pacer === undefined) {
      const [oldest = owner] = this.#owners.keys()
      if (this.#owners.size >= mostOwners) this.#owners.delete(oldest)
      this.#owners.set(owner, pacer = new Pacer(new RecentCalls(now), false))
    }
    return pacer
  }

  /** Forgets what delays no call any more. */
  #sweep(now: number): void {
    if (now < this.#sweepAt) return
    this.#sweepAt = now + sweepMs
    for (const [owner, pacer] of this.#owners) if (pacer.isOver(now)) this.#owners.delete(owner)
    for (const [owner, until] of this.#contradicted) if (until <= now) this.#contradicted.delete(owner)
    if (this.#shared?.isOver(now) === true) {
      this.#shared = undefined
      this.#voters.clear()
    }
  }
}

/** The part of a limit of tokens below which it is used up: what is left serves small requests only. */
const usedUp = 0.05

/** Whether the provider says that a limit of the account has nothing left, or next to nothing. */
const isUsedUp = ({ requestsLeft, tokensLeft, tokensLimit }: Quota = {}): boolean =>
  requestsLeft === 0 || (tokensLeft !== undefined && tokensLeft <= usedUp * (tokensLimit ?? 0))
