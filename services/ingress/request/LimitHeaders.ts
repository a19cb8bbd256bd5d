/** Response headers with the state of a key's limits. */
import { DateTime } from "effect"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { LimitState } from "../../../shared/limits/ReplicaLease.ts"

const kinds = ["requests", "tokens"] as const

/** The header names, built once because every answer has them. */
const names = kinds.map((kind) => ({
  kind,
  limit: `x-ratelimit-limit-${kind}`,
  remaining: `x-ratelimit-remaining-${kind}`,
  reset: `x-ratelimit-reset-${kind}`,
  anthropic: {
    limit: `anthropic-ratelimit-${kind}-limit`,
    remaining: `anthropic-ratelimit-${kind}-remaining`,
    reset: `anthropic-ratelimit-${kind}-reset`
  }
}))

/** `undefined` for a limit that the key does not have. */
type LimitStates = Readonly<Record<typeof kinds[number], (LimitState & { readonly limit: number }) | undefined>>

/** A duration in OpenAI's format: `6m0s`, `12s`, `350ms`. */
const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`
  const seconds = Math.ceil(ms / 1_000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** OpenAI's headers for every dialect, and also Anthropic's for its clients. */
export const limitHeaders = (states: LimitStates, dialect: Dialect, now: number): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const name of names) {
    const state = states[name.kind]
    if (state === undefined) continue
    const { limit, remaining, resetMs } = state
    headers[name.limit] = String(limit)
    headers[name.remaining] = String(remaining)
    headers[name.reset] = duration(resetMs)
    if (dialect !== "anthropic") continue
    headers[name.anthropic.limit] = String(limit)
    headers[name.anthropic.remaining] = String(remaining)
    const resetAt = DateTime.makeUnsafe(Math.ceil((now + resetMs) / 1_000) * 1_000)
    headers[name.anthropic.reset] = DateTime.formatIso(resetAt)
  }
  return headers
}
