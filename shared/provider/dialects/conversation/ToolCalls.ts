/** Conversions for tool calls: arguments, ids and empty parameters. */
import { Predicate } from "effect"
import { randomUUID } from "node:crypto"
import * as Json from "../../json/Json.ts"

/** Parses arguments. Wraps anything that is not an object. */
export const toObject = (text: string): { readonly [key: string]: unknown } => {
  const value = Json.parseBounded(text === "" ? "{}" : text)
  if (Predicate.isReadonlyObject(value)) return { ...value }
  return value === undefined ? { invalid_json: text } : { value }
}

/** For providers without call ids. */
export const newId = (): string => `call_${randomUUID().replaceAll("-", "").slice(0, 24)}`

/** For dialects in which a function without parameters has no schema instead of an empty one. */
export const parametersOrNone = (parameters: unknown): unknown =>
  Object.keys(Json.fields(parameters)).length === 0 ? undefined : parameters
