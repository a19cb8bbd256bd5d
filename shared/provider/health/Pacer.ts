/**
 * The pause and the rate of calls that were refused with 429: those of one owner at one target, or those of all owners.
 *
 * A refusal pauses for the time that the provider names. In a long pause of all owners, real calls probe whether the provider accepts
 * again: the first after a second, then at intervals that double, as long as the budget for probes allows. If one is accepted, the pause
 * ends.
 *
 * After the pause, calls return within seconds, at a rate that doubles. A refusal within a minute after a pause says that the rate
 * matters: from then on it is 0.85 times what was accepted in the last minute, and grows by a hundredth with each accepted call; after a
 * minute without a refusal faster and faster, so that a worker that got a small share of a limit is not left with it.
 *
 * With this decrease and growth about one call in twenty is refused, however fast the calls are. `shared/decisions/own-pace.md` says why
 * Effect's adaptive limiter does not serve here. Others recover in similar ways: TCP's CUBIC (RFC 9438), and the adaptive retry mode of the
 * AWS SDKs.
 *
 * All times are in milliseconds of a monotonic clock.
 */
import type { RecentCalls } from "./RecentCalls.ts"

/** The pause if a provider names none. */
export const defaultRetryMs = 1_000

/** When the first call of a pause probes. A pause that ends sooner has none. */
const firstProbeMs = 1_000

/** After how long a probe that was not refused counts as accepted: providers refuse fast, but an answer may take minutes. */
const acceptedAfterMs = 2_000

/** Probes: how many may be saved up, and how many each accepted call adds. */
const mostProbes = 2
const probesPerCall = 0.02

/** After a pause, the calls per millisecond at first, how long they take to double, and from which rate on none waits. */
const firstRate = 0.01
const doublesMs = 1_000
const fullRate = 0.2

/** The learned rate: the part of the accepted calls, and its growth with each of them. */
const decrease = 0.85
const growth = 0.01
/** After this time without a refusal, the growth doubles, and again after each minute more. */
const growsFasterAfterMs = 60_000
const growthDoublesMs = 60_000

/** With fewer accepted calls in a minute nothing can be learned from them; then the rate is that of probes. */
const leastCalls = 5
const leastRate = 1 / firstProbeMs

/** How long a refusal is remembered after its pause, and how long a rate for which no call waits. */
const rememberedMs = 60_000

export class Pacer {
  readonly calls: RecentCalls
  readonly #mayProbe: boolean
  #pausedAt = Number.NEGATIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY
  #probeAt = Number.POSITIVE_INFINITY
  #probeGapMs = firstProbeMs
  #probes = mostProbes
  /** When the latest probe of the pause was sent, unless it was refused. */
  #probeSentAt: number | undefined
  /** Calls per millisecond; `undefined` if none is learned. */
  #rate: number | undefined
  #nextAt = Number.NEGATIVE_INFINITY
  #heldAt = Number.NEGATIVE_INFINITY
  /** Requests of more tokens than this wait until that time. */
  #large = { tokens: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY }

  /** `calls`: the calls that it delays; the caller counts them. `mayProbe`: whether calls probe a pause. */
  constructor(calls: RecentCalls, mayProbe: boolean) {
    this.calls = calls
    this.#mayProbe = mayProbe
  }

  /** Until when the provider wants no calls. */
  get pausedUntil(): number {
    return Math.max(this.#pausedUntil, this.#large.until)
  }

  isPaused(now: number): boolean {
    return now < this.#pausedUntil
  }

  /** Calls per minute; `undefined` without a limit. */
  get perMinute(): number | undefined {
    return this.#rate === undefined ? undefined : this.#rate * 60_000
  }

  /** Whether a request is too large for what the provider has left. */
  isTooLarge(tokens: () => number, now: number): boolean {
    return now < this.#large.until && tokens() > this.#large.tokens
  }

  /** When the next call may be sent: at `now`, or later. */
  readyAt(now: number): number {
    if (now >= this.#pausedUntil) return Math.max(now, this.#nextAt)
    const probeAt = this.#mayProbe && this.#probes >= 1 ? Math.max(now, this.#probeAt) : Number.POSITIVE_INFINITY
    const acceptedAt = (this.#probeSentAt ?? Number.POSITIVE_INFINITY) + acceptedAfterMs
    return Math.min(this.#pausedUntil, probeAt, Math.max(now, acceptedAt))
  }

  /** When a call may be sent that has `ahead` others before it, without what probes may find out. */
  dueAt(now: number, ahead: number): number {
    const from = Math.max(now, this.#pausedUntil, this.#nextAt)
    return from + ahead * this.#intervalMs(from)
  }

  /** Whether the probe of a pause is not refused for so long that it counts as accepted: its answer takes time. */
  hasPassedProbe(now: number): boolean {
    return this.#probeSentAt !== undefined && now - this.#probeSentAt >= acceptedAfterMs
  }

  /** Whether a call was sent in a pause. */
  isProbe(sentAt: number): boolean {
    return sentAt > this.#pausedAt && sentAt < this.#pausedUntil
  }

  /** A call has to wait. */
  held(now: number): void {
    this.#heldAt = now
  }

  /** A call takes its turn. Returns whether it is a probe. */
  take(now: number): boolean {
    if (!this.isPaused(now)) {
      this.#nextAt = Math.max(this.#nextAt, now) + this.#intervalMs(now)
      return false
    }
    this.#probes--
    this.#probeSentAt = now
    this.#probeGapMs *= 2
    this.#probeAt = now + this.#probeGapMs
    return true
  }

  /** A turn is given back: its call was not sent. */
  giveBack(takenAt: number, wasProbe: boolean, now: number): void {
    if (!wasProbe) this.#nextAt -= this.#intervalMs(takenAt)
    else if (this.#probeSentAt === takenAt) {
      this.#probeSentAt = undefined
      this.#probes++
      this.#probeGapMs /= 2
      this.#probeAt = now
    }
  }

  /** The provider has accepted a call. */
  accepted(sentAt: number, now: number): void {
    this.#probes = Math.min(mostProbes, this.#probes + probesPerCall)
    if (sentAt < this.#pausedAt) return
    if (this.isPaused(now)) this.endPause(now)
    else if (this.#rate !== undefined) {
      const extraMs = Math.max(0, now - this.pausedUntil - growsFasterAfterMs)
      this.#rate *= 1 + Math.min(1, growth * 2 ** (extraMs / growthDoublesMs))
    }
  }

  endPause(now: number): void {
    this.#pausedUntil = Math.min(this.#pausedUntil, now)
    this.#probeSentAt = undefined
  }

  /** The provider has refused a call. `left`: the tokens that it still has, if the request was refused because it needs more. */
  refused(sentAt: number, now: number, retryAfterMs: number, left?: number): void {
    if (sentAt === this.#probeSentAt) this.#probeSentAt = undefined
    const until = now + retryAfterMs
    // calls that were on their way when the pause began, and its probes, say nothing new
    const isKnown = sentAt <= this.#pausedAt || this.isPaused(now)
    if (!isKnown) {
      if (now - this.pausedUntil < rememberedMs) this.#learn(now, retryAfterMs)
      this.#pausedAt = now
      this.#probeGapMs = firstProbeMs
      this.#probeAt = now + firstProbeMs
    }
    if (left === undefined) this.#pausedUntil = Math.max(this.#pausedUntil, until)
    else this.#large = { tokens: left, until }
  }

  /** Whether it neither delays calls nor has to be remembered. */
  isOver(now: number): boolean {
    return now - this.pausedUntil > rememberedMs && (this.#rate === undefined || now - this.#heldAt > rememberedMs)
  }

  #learn(now: number, retryAfterMs: number): void {
    this.#rate = this.calls.count(now) < leastCalls ? leastRate : decrease * this.calls.perMs(now, retryAfterMs)
  }

  #intervalMs(now: number): number {
    if (this.#rate !== undefined) return 1 / this.#rate
    const rate = firstRate * 2 ** ((now - this.#pausedUntil) / doublesMs)
    return rate >= fullRate ? 0 : 1 / rate
  }
}
