/** Formats numbers and times for display. */
import { DateTime } from "effect"

const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat("en")
const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" })
const cents = new Intl.NumberFormat("en", {
  style: "currency",
  currency: "USD",
  maximumFractionDigits: 4,
  maximumSignificantDigits: 2,
  roundingPriority: "morePrecision"
})
const wholePercent = new Intl.NumberFormat("en", { style: "percent" })
const tenthsOfPercent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 })
const dateAndTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" })
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" })
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" })
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" })

/** `12.3K`; whole numbers below a thousand. */
export const short = (value: number): string => compact.format(value)

export const count = (value: number): string => whole.format(value)

/** `1 request`, `2 requests`. */
export const counted = (value: number, noun: string): string => `${count(value)} ${noun}${value === 1 ? "" : "s"}`

/** Amounts below one dollar keep at least two significant digits, so that they never show as zero. */
export const money = (usd: number): string => usd !== 0 && Math.abs(usd) < 1 ? cents.format(usd) : dollars.format(usd)

const units = ["B", "KB", "MB", "GB"]

/** `1.2 KB`. */
export const size = (bytes: number): string => {
  const power = bytes === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3))
  return `${tenths.format(bytes / 1_000 ** power)} ${units[power]}`
}

export const percent = (share: number): string => (share < 0.1 ? tenthsOfPercent : wholePercent).format(share)

export const milliseconds = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`
  return span(ms)
}

/** About three significant digits, for comparisons. */
export const exact = (ms: number): string => {
  if (ms < 1) return `${ms.toFixed(ms === 0 ? 0 : 2)} ms`
  if (ms < 100) return `${Number(ms.toFixed(ms < 10 ? 2 : 1))} ms`
  return ms < 1_000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${Number((ms / 1_000).toFixed(2))} s` : span(ms)
}

/** `3 min`, `5 h`, `12 days`. */
export const span = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 48 * 3_600) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} days`
}

export const moment = (at: DateTime.Utc): string => dateAndTime.format(at.epochMilliseconds)

export const dayOf = (at: DateTime.Utc): string => date.format(at.epochMilliseconds)

export const timeOf = (epochMs: number): string => clock.format(epochMs)

/** `21 Nov`, from `2026-11-21`. */
export const shortDay = (day: string): string => dayAndMonth.format(DateTime.makeUnsafe(day).epochMilliseconds)

/** `today`, `yesterday`, or the day. */
export const lastDay = (day: string): string => {
  const now = DateTime.nowUnsafe()
  if (day === DateTime.formatIsoDateUtc(now)) return "today"
  return day === DateTime.formatIsoDateUtc(DateTime.subtract(now, { days: 1 })) ? "yesterday" : shortDay(day)
}

/** `5 min ago`. */
export const ago = (at: DateTime.Utc): string => {
  const ms = DateTime.nowUnsafe().epochMilliseconds - at.epochMilliseconds
  return ms < 5_000 ? "just now" : `${span(ms)} ago`
}
