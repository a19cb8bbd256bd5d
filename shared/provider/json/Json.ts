/**
 * Reads parsed JSON of which nothing is certain: what is not of the kind that is looked for is as good as absent.
 *
 * For the frames of a stream, of which there are many: a schema would cost more than all the rest of their way.
 */
import { Predicate } from "effect"
import { excessOf } from "../../bounds/JsonBounds.ts"

export type Fields = { readonly [key: PropertyKey]: unknown }

const noFields: Fields = {}
const nothing: ReadonlyArray<unknown> = []

export const fields = (value: unknown): Fields => Predicate.isReadonlyObject(value) ? value : noFields
export const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : nothing
export const string = (value: unknown): string | undefined => typeof value === "string" ? value : undefined
/** A whole number that is not negative. */
export const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** Texts up to this length hold neither too much nor nest too deeply for anything. */
const smallCharacters = 128

/** JSON in a string of a client's, which nobody has looked into before; `undefined` where it is too much of it. */
export const parseBounded = (text: string): unknown =>
  text.length > smallCharacters && excessOf(Buffer.from(text)) !== undefined ? undefined : parse(text)

/** `undefined` where it is no JSON. */
export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
