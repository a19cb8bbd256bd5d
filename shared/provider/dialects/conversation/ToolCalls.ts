/** What dialects differ in about tools: arguments as JSON text or as an object, who gives ids, what no parameters are. */
import { Predicate } from "effect"
import { randomUUID } from "node:crypto"
import * as Json from "../../json/Json.ts"

/** The arguments as an object. What is none cannot be handed on as one, and is wrapped in one. */
export const toObject = (text: string): { readonly [key: string]: unknown } => {
  const value = Json.parseBounded(text === "" ? "{}" : text)
  if (Predicate.isReadonlyObject(value)) return { ...value }
  return value === undefined ? { invalid_json: text } : { value }
}

/** For a call to which its provider gives none. */
export const newId = (): string => `call_${randomUUID().replaceAll("-", "").slice(0, 24)}`

/** The schema of a function's parameters, for dialects where a function without any has none, not an empty one. */
export const parametersOrNone = (parameters: unknown): unknown =>
  Object.keys(Json.fields(parameters)).length === 0 ? undefined : parameters
