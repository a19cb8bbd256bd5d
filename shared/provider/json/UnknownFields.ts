/**
 * Fields of a request that the gateway does not know. They are the provider's business, and passed on to it. One that is
 * `null` is left out, as clients mean it: in another form than theirs it would be a word, or a mistake.
 */
import { Predicate } from "effect"

export const unknownFields = (body: unknown, known: ReadonlySet<string>): Readonly<Record<string, unknown>> =>
  Predicate.isObject(body)
    ? Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null && !known.has(name)))
    : {}
