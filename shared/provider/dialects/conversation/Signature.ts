/**
 * Signatures of reasoning: opaque values of a provider that a client must send back with the reasoning. Only providers of the
 * same dialect understand them, and others reject them.
 *
 * Clients of another dialect get a signature wrapped together with its origin. The gateway unwraps it for a provider of that
 * origin and removes it for any other.
 */
import { Option, Schema } from "effect"
import * as Json from "../../json/Json.ts"

export const origins = ["openai", "responses", "anthropic", "gemini"] as const
export type Origin = typeof origins[number]

export interface Signature {
  readonly origin: Origin
  /** Empty if the origin has no signatures, to mark the reasoning as its own. */
  readonly value: string
  /** It replaces hidden reasoning. */
  readonly redacted?: boolean
}

/** Start of a wrapped signature. A multiple of three bytes, so that its base64 is always the same. */
const prefix = "gw-sig"
/** Base64, which some clients require. */
const wrappedPrefix = Buffer.from(prefix).toString("base64")
const wrappedBytes = Buffer.from(wrappedPrefix)

const Wrapped = Schema.Struct({
  origin: Schema.Literals(origins),
  value: Schema.String,
  redacted: Schema.optionalKey(Schema.Boolean)
})
const decodeWrapped = Schema.decodeUnknownOption(Wrapped)
const encodeWrapped = Schema.encodeSync(Schema.fromJsonString(Wrapped))

export const toClient = (signature: Signature, dialect: Origin): string =>
  signature.origin === dialect
    ? signature.value
    : Buffer.from(prefix + encodeWrapped(signature)).toString("base64")

/** A signature that is not wrapped comes from the client's own dialect. */
export const fromClient = (text: string, dialect: Origin): Signature => {
  if (!text.startsWith(wrappedPrefix)) return { origin: dialect, value: text }
  const json = Json.parseBounded(Buffer.from(text, "base64").subarray(prefix.length).toString())
  return Option.getOrElse(decodeWrapped(json), (): Signature => ({ origin: dialect, value: text }))
}

/** Whether a request may contain a wrapped signature. */
export const mayHoldWrapped = (body: Uint8Array): boolean =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(wrappedBytes)

/** Removes list elements with a wrapped signature: reasoning of another dialect. */
export const withoutWrapped = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((element) => !holdsWrapped(element)).map(withoutWrapped)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutWrapped(inner)]))
}

const holdsWrapped = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) &&
  Object.values(value).some((inner) => typeof inner === "string" && inner.startsWith(wrappedPrefix))
