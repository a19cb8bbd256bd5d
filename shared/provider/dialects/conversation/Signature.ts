/**
 * Signatures of reasoning: opaque words of a provider that a client has to hand back with what the model thought. Only
 * the dialect that they come from understands them.
 *
 * A client of another dialect gets one wrapped, with its origin inside. It is unwrapped on its way back to a provider of
 * that origin; any other provider would refuse the request for it and is not shown it.
 */
import { Option, Schema } from "effect"
import * as Json from "../../json/Json.ts"

export type Origin = "openai" | "anthropic" | "gemini"

export interface Signature {
  readonly origin: Origin
  /** Empty where the origin signs nothing, and only marks reasoning as its own. */
  readonly value: string
  /** It stands in the place of reasoning that is not shown. */
  readonly redacted?: boolean
}

/** What a wrapped signature begins with. A multiple of three bytes, so that its base64 is always the same. */
const prefix = "gw-sig"
/** Base64, since some clients insist on it. */
const wrappedPrefix = Buffer.from(prefix).toString("base64")
const wrappedBytes = Buffer.from(wrappedPrefix)

const Wrapped = Schema.Struct({
  origin: Schema.Literals(["openai", "anthropic", "gemini"]),
  value: Schema.String,
  redacted: Schema.optionalKey(Schema.Boolean)
})
const decodeWrapped = Schema.decodeUnknownOption(Wrapped)
const encodeWrapped = Schema.encodeSync(Schema.fromJsonString(Wrapped))

/** As a client of that dialect gets it. */
export const toClient = (signature: Signature, dialect: Origin): string =>
  signature.origin === dialect
    ? signature.value
    : Buffer.from(prefix + encodeWrapped(signature)).toString("base64")

/** As a client of that dialect hands it back: one that is not wrapped is of the dialect itself. */
export const fromClient = (text: string, dialect: Origin): Signature => {
  if (!text.startsWith(wrappedPrefix)) return { origin: dialect, value: text }
  const json = Json.parseBounded(Buffer.from(text, "base64").subarray(prefix.length).toString())
  return Option.getOrElse(decodeWrapped(json), (): Signature => ({ origin: dialect, value: text }))
}

/** Whether a request may hold a wrapped signature. */
export const mayHoldWrapped = (body: Uint8Array): boolean =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(wrappedBytes)

/** The value without the elements of its lists that hold a wrapped signature: reasoning of another dialect. */
export const withoutWrapped = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((element) => !holdsWrapped(element)).map(withoutWrapped)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutWrapped(inner)]))
}

const holdsWrapped = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) &&
  Object.values(value).some((inner) => typeof inner === "string" && inner.startsWith(wrappedPrefix))
