/**
 * Finds the fields of a request that the gateway does not know, which it passes on to the provider. Leaves out `null` fields, which
 * clients mean to be absent: in a form they would become the text "null", and other dialects reject them.
 */
import { Predicate } from "effect"

export const unknownFields = (body: unknown, known: ReadonlySet<string>): Readonly<Record<string, unknown>> =>
  Predicate.isObject(body)
    ? Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null && !known.has(name)))
    : {}
