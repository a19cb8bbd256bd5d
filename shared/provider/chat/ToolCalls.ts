/** What dialects differ in about tool calls: whether arguments are JSON text or an object, and who gives ids. */
import { Predicate } from "effect"
import { randomUUID } from "node:crypto"
import * as Json from "../Json.ts"

/** The arguments as an object. What is none cannot be handed on as one, and is wrapped in one. */
export const toObject = (text: string): { readonly [key: string]: unknown } => {
  const value = Json.parse(text === "" ? "{}" : text)
  if (Predicate.isReadonlyObject(value)) return { ...value }
  return value === undefined ? { invalid_json: text } : { value }
}

/** For a call to which its provider gives none. */
export const newId = (): string => `call_${randomUUID().replaceAll("-", "").slice(0, 24)}`
