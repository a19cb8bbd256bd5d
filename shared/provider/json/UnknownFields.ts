/**
 * Fields of a request that the gateway does not know, which it passes on to the provider. A `null` field is left out, because
 * clients mean it to be absent: in a form it would become the text "null", and other dialects reject it.
 */
import { Predicate } from "effect"

export const unknownFields = (body: unknown, known: ReadonlySet<string>): Readonly<Record<string, unknown>> =>
  Predicate.isObject(body)
    ? Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null && !known.has(name)))
    : {}
