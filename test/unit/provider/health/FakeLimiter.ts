/** Fake limiters of a provider, on any clock: they accept or refuse calls, with the time to the next free unit. */
import type { Quota } from "../../../../shared/contract/JobError.ts"

export interface FakeLimiter {
  /** `undefined` if the call is accepted, otherwise the refusal. `units`: the tokens of a call. */
  readonly refuse: (now: number, units: number) => { readonly retryAfterMs: number; readonly quota?: Quota } | undefined
  /** The limit is now this many times as high. */
  readonly multiply: (by: number) => void
  /** The most units that it can accept in this time, in milliseconds, at its present limit. */
  readonly most: (ms: number) => number
}

const windowMs = 60_000

/** Accepts a number of calls in each minute of the clock. */
export const fixedWindow = (perMinute: number): FakeLimiter => {
  let limit = perMinute
  let window = -1
  let taken = 0
  return {
    refuse: (now) => {
      const current = Math.floor(now / windowMs)
      if (current !== window) [window, taken] = [current, 0]
      if (taken >= limit) return { retryAfterMs: (current + 1) * windowMs - now }
      taken++
      return undefined
    },
    multiply: (by) => void (limit *= by),
    most: (ms) => limit * ms / windowMs
  }
}

/** A bucket with room for some units, which fills evenly. `says`: whether a refusal says how much is left. */
const bucket = (
  perMinute: number,
  capacity: number,
  unitsOf: (tokens: number) => number,
  says: boolean
): FakeLimiter => {
  let limit = perMinute
  let left = capacity
  let at = 0
  return {
    refuse: (now, tokens) => {
      const units = unitsOf(tokens)
      left = Math.min(capacity, left + limit * (now - at) / windowMs)
      at = now
      // sums of fractions may miss a whole unit
      if (left + 1e-6 >= units) {
        left -= units
        return undefined
      }
      const retryAfterMs = Math.max(1, Math.ceil((units - left) * windowMs / limit))
      return says ? { retryAfterMs, quota: { tokensLeft: Math.floor(left), tokensLimit: limit } } : { retryAfterMs }
    },
    multiply: (by) => void (limit *= by),
    most: (ms) => limit * ms / windowMs
  }
}

/** A bucket of ten calls. */
export const callBucket = (perMinute: number): FakeLimiter => bucket(perMinute, 10, () => 1, false)

/** Tokens a minute. */
export const tokenBucket = (perMinute: number, says: boolean): FakeLimiter =>
  bucket(perMinute, perMinute, (tokens) => tokens, says)

/** The same limiter, whose refusals always name the same time. */
export const namingMs = (limiter: FakeLimiter, retryAfterMs: number): FakeLimiter => ({
  ...limiter,
  refuse: (now, units) => limiter.refuse(now, units) && { retryAfterMs }
})
