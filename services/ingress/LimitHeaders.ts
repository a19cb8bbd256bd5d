/** How a key stands with its limits, in the headers of its answers. */
import { DateTime } from "effect"
import type { Dialect } from "../../shared/contract/Operation.ts"
import type { LimitState } from "../../shared/limits/Share.ts"

const kinds = ["requests", "tokens"] as const

/** How each of the limits stands that a key has. */
type Standing = Readonly<Record<typeof kinds[number], (LimitState & { readonly limit: number }) | undefined>>

/** As OpenAI has it: `6m0s`, `12s`, `350ms`. */
const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`
  const seconds = Math.ceil(ms / 1_000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** Those of OpenAI on every answer, and Anthropic's own on the answers to its clients. */
export const limitHeaders = (standing: Standing, dialect: Dialect, now: number): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const kind of kinds) {
    const state = standing[kind]
    if (state === undefined) continue
    const { limit, remaining, resetMs } = state
    headers[`x-ratelimit-limit-${kind}`] = String(limit)
    headers[`x-ratelimit-remaining-${kind}`] = String(remaining)
    headers[`x-ratelimit-reset-${kind}`] = duration(resetMs)
    if (dialect !== "anthropic") continue
    headers[`anthropic-ratelimit-${kind}-limit`] = String(limit)
    headers[`anthropic-ratelimit-${kind}-remaining`] = String(remaining)
    headers[`anthropic-ratelimit-${kind}-reset`] = DateTime.formatIso(
      DateTime.makeUnsafe(Math.ceil((now + resetMs) / 1_000) * 1_000)
    )
  }
  return headers
}
