/** Fields of a request that the gateway does not know. They are the provider's business, and passed on to it. */
import { Predicate } from "effect"

export const unknownFields = (body: unknown, known: ReadonlySet<string>): Readonly<Record<string, unknown>> =>
  Predicate.isObject(body) ? Object.fromEntries(Object.entries(body).filter(([name]) => !known.has(name))) : {}
