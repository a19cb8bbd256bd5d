/**
 * Reads what a provider's headers say about the limits of the account, in the forms of OpenAI, Azure and Groq (`x-ratelimit-*`), Cerebras
 * and Mistral (the same with a period), Anthropic (`anthropic-ratelimit-*`), OpenRouter, Together and the IETF's draft (`ratelimit-*`).
 * Gemini, Bedrock and vLLM send none.
 */
import { DateTime, Option, type Types } from "effect"
import type { Quota } from "../../contract/JobError.ts"
import { headerOf, type ResponseHeaders } from "./ResponseHeaders.ts"

interface QuotaOfAccount {
  readonly quota: Quota | undefined
  /** How long until the exhausted limits are whole again, in milliseconds; `undefined` if none is, or if that is unknown. */
  readonly resetMs: number | undefined
}

/** Anthropic names the unit before `remaining`, all others after it. */
const prefixes = /^(?:x-|anthropic-(?:\w+-)?)?(?:ratelimit|tokenlimit)(?=-)/
const remaining = "-remaining"

/** `undefined` for a header that does not state what is left. */
const unitOf = (name: string): "requests" | "tokens" | undefined => {
  if (!name.includes(remaining) || !prefixes.test(name)) return undefined
  return name.includes("token") ? "tokens" : "requests"
}

/** A count that a header states. Azure sends -1 for what it does not limit. */
const countIn = (headers: ResponseHeaders, name: string): number | undefined => {
  const value = headerOf(headers, name) ?? ""
  return /^\d+$/.test(value) ? Number(value) : undefined
}

/** The longest time that is believed, in milliseconds: later resets are those of limits per day, which do not say when a unit is free. */
const longestMs = 60_000

const unitsMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** A time in milliseconds from `6m0s`, `120ms`, seconds, an epoch, or a date. */
const durationOf = (text: string, now: number): number | undefined => {
  if (/^\d+(?:\.\d+)?$/.test(text)) {
    const number = Number(text)
    if (number >= 1e11) return number - now
    return number >= 1e8 ? 1_000 * number - now : 1_000 * number
  }
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)]
  if (parts.length > 0 && parts.map(([part]) => part).join("") === text) {
    return parts.reduce((sum, [, number, unit = ""]) => sum + Number(number) * (unitsMs[unit] ?? 0), 0)
  }
  const date = /^\d{4}-\d\d-\d\dT/.test(text) ? DateTime.make(text) : Option.none()
  return Option.isNone(date) ? undefined : DateTime.toEpochMillis(date.value) - now
}

/** `now`: epoch milliseconds. */
export const quotaIn = (headers: ResponseHeaders, now: number): QuotaOfAccount => {
  const least: Types.Mutable<Quota> = {}
  let resetMs: number | undefined
  for (const name of Object.keys(headers)) {
    const unit = unitOf(name)
    const left = unit === undefined ? undefined : countIn(headers, name)
    if (left === undefined) continue
    if (unit === "requests") least.requestsLeft = Math.min(least.requestsLeft ?? left, left)
    else if (left <= (least.tokensLeft ?? left)) {
      least.tokensLeft = left
      const limit = countIn(headers, name.replace(remaining, "-limit"))
      if (limit === undefined) delete least.tokensLimit
      else least.tokensLimit = limit
    }
    if (left > 0) continue
    const untilMs = durationOf(headerOf(headers, name.replace(remaining, "-reset")) ?? "", now)
    if (untilMs !== undefined) resetMs = Math.min(longestMs, Math.max(resetMs ?? 0, untilMs))
  }
  return { quota: Object.keys(least).length === 0 ? undefined : least, resetMs }
}
