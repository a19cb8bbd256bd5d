/**
 * Reads parsed JSON of unknown shape: a value of an unexpected type counts as absent.
 *
 * Used for the many frames of a stream: decoding them by a schema would cost more than everything else that is done with them.
 */
import { Predicate } from "effect"
import * as ExactJson from "../../bounds/ExactJson.ts"
import { excessOf } from "../../bounds/JsonBounds.ts"

export type Fields = { readonly [key: PropertyKey]: unknown }

const noFields: Fields = {}
const nothing: ReadonlyArray<unknown> = []

export const fields = (value: unknown): Fields => Predicate.isReadonlyObject(value) ? value : noFields
export const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : nothing
export const string = (value: unknown): string | undefined => typeof value === "string" ? value : undefined
/** A non-negative integer, also as `12.0`. */
export const count = (value: unknown): number | undefined => {
  const number = ExactJson.isExact(value) ? ExactJson.toNumber(value) : value
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}

/** The values that are non-negative integers; leaves out the others. */
export const counts = <K extends string>(values: { readonly [_ in K]: unknown }): { readonly [_ in K]?: number } => {
  const found: { [_ in K]?: number } = {}
  for (const name in values) {
    const number = count(values[name])
    if (number !== undefined) found[name] = number
  }
  return found
}

/** Texts up to this length cannot exceed a limit. */
const smallCharacters = 128

/** Like `parseExact`, for JSON in a client's string, which ingress has not checked; `undefined` if it exceeds a limit or is not JSON. */
export const parseBounded = (text: string): unknown =>
  text.length > smallCharacters && excessOf(Buffer.from(text)) !== undefined ? undefined : parseExact(text)

/** Parses a text in which all numbers keep their digits (see `ExactJson`); `undefined` if it is not JSON. */
export const parseExact = (text: string): unknown => {
  try {
    return ExactJson.parse(text)
  } catch {
    return undefined
  }
}

/** Parses a text; `undefined` if it is not JSON. */
export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// a byte order mark within the text is a character like any other
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

export const decodeText = (bytes: Uint8Array): string => utf8.decode(bytes)
