/** How a key stands with its limits, in the headers of its answers. */
import { DateTime } from "effect"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { LimitState } from "../../../shared/limits/Share.ts"

type Kind = "requests" | "tokens"

/** The names of each kind's headers, made once: they are on every answer. */
const names = (["requests", "tokens"] as const).map((kind: Kind) => ({
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

/** How each of the limits stands that a key has. */
type Standing = Readonly<Record<Kind, (LimitState & { readonly limit: number }) | undefined>>

/** As OpenAI has it: `6m0s`, `12s`, `350ms`. */
const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`
  const seconds = Math.ceil(ms / 1_000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

/** Those of OpenAI on every answer, and Anthropic's own on the answers to its clients. */
export const limitHeaders = (standing: Standing, dialect: Dialect, now: number): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const name of names) {
    const state = standing[name.kind]
    if (state === undefined) continue
    const { limit, remaining, resetMs } = state
    headers[name.limit] = String(limit)
    headers[name.remaining] = String(remaining)
    headers[name.reset] = duration(resetMs)
    if (dialect !== "anthropic") continue
    headers[name.anthropic.limit] = String(limit)
    headers[name.anthropic.remaining] = String(remaining)
    headers[name.anthropic.reset] = DateTime.formatIso(
      DateTime.makeUnsafe(Math.ceil((now + resetMs) / 1_000) * 1_000)
    )
  }
  return headers
}
