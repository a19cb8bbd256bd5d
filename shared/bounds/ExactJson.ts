/**
 * Parses JSON without the loss of digits: JavaScript's numbers have 53 bits, but ids and seeds have 64, and `1.0` would become `1`.
 *
 * A number that JavaScript would print differently becomes an `ExactNumber`, which `JSON.stringify` prints as it was written. It is an object:
 * code that walks through parsed JSON must leave it as it is (`isExact`).
 */
import { Predicate } from "effect"

/** A number as it was written, made by `JSON.rawJSON`. */
export interface ExactNumber {
  readonly rawJSON: string
}

/** Of the language since 2025, which TypeScript's library lacks. */
interface SourceText {
  readonly rawJSON: (text: string) => ExactNumber
  readonly isRawJSON: (value: unknown) => value is ExactNumber
  readonly parse: (
    text: string,
    reviver: (key: string, value: unknown, about: { readonly source?: string }) => unknown
  ) => unknown
}
const json = JSON as unknown as SourceText

export const isExact = (value: unknown): value is ExactNumber => json.isRawJSON(value)

/**
 * Matches every text with a number that JavaScript may print differently: one with 16 digits, an exponent, a zero at its end or many at its
 * beginning, and -0. May match other texts.
 */
const candidate = /(?:^|[:,[])\s*(?:-0(?![\d.])|-?(?:\d[\d.]{15}|0\.000000|\d+\.\d*0(?!\d)|\d[\d.]*[eE]))/

/** Whether a JSON text may have a number that becomes an `ExactNumber`. */
export const mayHoldExact = (text: string): boolean => candidate.test(text)

const keep = (_key: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  typeof value === "number" && source !== undefined && String(value) !== source ? json.rawJSON(source) : value

/** Throws like `JSON.parse`. Takes as long as that for nearly all texts, and about ten times as long for one with such numbers. */
export const parse = (text: string): unknown => mayHoldExact(text) ? json.parse(text, keep) : JSON.parse(text)

/** The value of a number with all its digits; infinite beyond what JavaScript can hold. */
export const toNumber = (value: number | ExactNumber): number =>
  typeof value === "number" ? value : Number(value.rawJSON)

/** An integer with all its digits. */
export const fromBigInt = (value: bigint): number | ExactNumber =>
  value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : json.rawJSON(String(value))

/** The integer; `undefined` for other numbers. */
export const toBigInt = (value: number | ExactNumber): bigint | undefined => {
  const text = typeof value === "number" ? String(value) : value.rawJSON
  return /^-?\d+$/.test(text) ? BigInt(text) : undefined
}

/** Digits and exponent of a number, the same for all ways to write it. */
const normal = (text: string): string => {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, "")
  const significant = digits.replace(/0+$/, "")
  if (significant === "") return "0"
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/** Whether JavaScript's number has another value than the text says, beyond the way it is written. */
const hasLost = ({ rawJSON: text }: ExactNumber): boolean => normal(text) !== normal(String(Number(text)))

/**
 * What stays exact below members with these names: every number as it was written, or only those whose value would change. Of the latter
 * kind are schemas, for which `1.0` is the same as `1`.
 */
export type ExactMembers = ReadonlyMap<string, "written" | "value">

/** Replaces exact numbers by JavaScript's, except within objects that are members with these names. Changes the parsed value itself. */
export const settle = (value: unknown, members: ExactMembers): unknown => settled(value, members, undefined)

const settled = (value: unknown, members: ExactMembers, within: "written" | "value" | undefined): unknown => {
  if (isExact(value)) {
    const stays = within === "written" || (within === "value" && hasLost(value))
    return stays ? value : toNumber(value)
  }
  if (within === "written") return value
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) value[at] = settled(value[at], members, within)
    return value
  }
  if (!Predicate.isObject(value)) return value
  const fields = value as Record<string, unknown>
  for (const name of Object.keys(fields)) {
    const inner = fields[name]
    const given = within ?? (Array.isArray(inner) || !Predicate.isObject(inner) ? undefined : members.get(name))
    const outer = settled(inner, members, given)
    if (outer !== inner) fields[name] = outer
  }
  return value
}
