/**
 * Signatures of reasoning: opaque values of a provider that a client must send back with the reasoning. Only providers of the same
 * dialect, for some dialects only the same account, understand them; others reject them.
 *
 * Clients get a signature marked with the account that made it; clients of another dialect get it wrapped together with its origin. The
 * gateway unwraps a signature for a provider that understands it, and removes it for any other. A signature without a mark is passed on,
 * because the client may have it from the provider itself.
 */
import { Option, Schema } from "effect"
import * as ExactJson from "../../../bounds/ExactJson.ts"
import * as Json from "../../json/Json.ts"
import type { Conversation } from "./Conversation.ts"
import { foreignReasoning, type Losses } from "./Losses.ts"

export const origins = ["openai", "responses", "anthropic", "gemini", "cohere"] as const
export type Origin = typeof origins[number]

export interface Signature {
  readonly origin: Origin
  /** The only account that understands the signature; see `Endpoint.accountOf`. */
  readonly account?: string | undefined
  /** Empty if the origin has no signatures, to mark the reasoning as its own. */
  readonly value: string
  /** Whether the signature replaces hidden reasoning. */
  readonly redacted?: boolean
  /** The reasoning that it signs, if it comes alone: some clients send back only the signatures of calls. */
  readonly text?: string
}

/** The dialects whose signatures only one account understands. Anthropic's are valid for all accounts, even on other platforms. */
const ofAccounts: ReadonlySet<Origin> = new Set(["responses", "gemini"])

/** A signature that a provider has just made. */
export const madeBy = (account: () => string, signature: Signature): Signature =>
  ofAccounts.has(signature.origin) ? { ...signature, account: account() } : signature

/** Start of a signature with a mark. A multiple of three bytes, so that its base64 is always the same. */
const prefix = "gw-sig"
/** Base64, which some clients require. */
const base64 = (text: string): string => Buffer.from(text).toString("base64")
export const wrappedPrefix = base64(prefix)

/** Follows the prefix: 12 hexadecimal digits, whose base64 has 16 characters. */
const accountPattern = /^[0-9a-f]{12}$/
export const accountCharacters = 16

const Wrapped = Schema.Struct({
  origin: Schema.Literals(origins),
  value: Schema.String,
  redacted: Schema.optionalKey(Schema.Boolean),
  text: Schema.optionalKey(Schema.String)
})
const decodeWrapped = Schema.decodeUnknownOption(Wrapped)
/** The base64 of every wrapped signature begins like this. */
export const wrappedStart = base64("{\"origin\"")

/** Precedes the provider's own value. */
export const markOf = (account: string): string => base64(prefix + account)

export const toClient = ({ account, origin, redacted, text, value }: Signature, dialect: Origin): string => {
  if (origin === dialect) return account === undefined ? value : markOf(account) + value
  const wrapped: typeof Wrapped.Type = {
    origin,
    value,
    ...(redacted === undefined ? {} : { redacted }),
    ...(text === undefined ? {} : { text })
  }
  return base64(prefix + (account ?? "") + JSON.stringify(wrapped))
}

/** A signature that is not wrapped comes from the client's own dialect. */
export const fromClient = (text: string, dialect: Origin): Signature => {
  const marked = text.startsWith(wrappedPrefix) ? text.slice(wrappedPrefix.length) : undefined
  if (marked === undefined) return { origin: dialect, value: text }
  const account = accountAt(marked)
  const rest = account === undefined ? marked : marked.slice(accountCharacters)
  const json = rest.startsWith(wrappedStart)
    ? Json.parseBounded(Buffer.from(rest, "base64").toString())
    : undefined
  return Option.match(decodeWrapped(json), {
    onSome: (wrapped) => ({ ...wrapped, account }),
    onNone: () => account === undefined ? { origin: dialect, value: text } : { origin: dialect, account, value: rest }
  })
}

export const accountAt = (marked: string): string | undefined => {
  const account = Buffer.from(marked.slice(0, accountCharacters), "base64").toString()
  return accountPattern.test(account) ? account : undefined
}

/** The reasoning of a signature that comes alone. */
export const reasoningOf = ({ text = "", ...signature }: Signature, path: string) =>
  ({ type: "reasoning", text, signature, path }) as const

/** The reasoning without copies of a signature: clients get it with the reasoning and with the call after it, and may send both back. */
export const withoutCopies = <Part extends { readonly type: string }>(
  parts: ReadonlyArray<Part>
): ReadonlyArray<Part> => {
  const seen = new Set<string>()
  return parts.filter((part) => {
    if (part.type !== "reasoning" || !("signature" in part) || part.signature === undefined) return true
    const { origin, value } = part.signature as Signature
    const key = `${origin} ${value === "" && "text" in part ? String(part.text) : value}`
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew
  })
}

/** The provider that gets a request whose signatures have marks. */
export interface Recipient {
  readonly account: string
  readonly losses: Losses
}

const isFor = (account: string, signature: Signature): boolean =>
  signature.account === undefined || signature.account === account

/** Removes the signatures from reasoning of other accounts: reasoning of other dialects has none, either. */
export const withoutForeign = (conversation: Conversation, account: string): Conversation => ({
  ...conversation,
  turns: conversation.turns.map((turn) => ({
    ...turn,
    content: turn.content.map((part) =>
      part.type === "reasoning" && part.signature !== undefined && !isFor(account, part.signature)
        ? { ...part, signature: undefined }
        : part
    )
  }))
})

/**
 * The messages or items of a request that is relayed, as the provider understands them: with its own signatures unwrapped, and
 * without list elements that have any other. In the responses format, items refer to the reasoning before them by their ids, so those
 * after a missing one lose theirs.
 */
export const toRelayed = (value: unknown, path: string, origin: Origin, recipient: Recipient): unknown => {
  if (!Array.isArray(value)) return mapFields(value, path, origin, recipient)
  let isComplete = true
  return value.flatMap((element: unknown, index): ReadonlyArray<unknown> => {
    const at = `${path}[${index}]`
    const unwrapped = unwrapIn(element, origin, recipient.account)
    if (unwrapped === undefined) {
      recipient.losses.warn(at, foreignReasoning)
      isComplete = false
      return []
    }
    const relayed = toRelayed(unwrapped, at, origin, recipient)
    return [isComplete || origin !== "responses" ? relayed : withoutId(relayed)]
  })
}

/** The member of a call in chat completions in which Google's endpoint has the signature. Others reject it. */
const extraContent = "extra_content"

/** The signature of a call in chat completions, as on Google's endpoint. */
export const signatureIn = (extra: unknown): string | undefined =>
  Json.string(Json.fields(Json.fields(extra)["google"])["thought_signature"])

/** The extra content of a call with this signature; nothing if it is empty. */
export const toExtraContent = (signature: Signature | undefined) => {
  const text = signature === undefined ? "" : toClient(signature, "openai")
  return text === "" ? {} : { [extraContent]: { google: { thought_signature: text } } }
}

const mapFields = (value: unknown, path: string, origin: Origin, recipient: Recipient): unknown =>
  typeof value === "object" && value !== null && !ExactJson.isExact(value)
    ? Object.fromEntries(
      Object.entries(value).flatMap(([name, inner]) =>
        name === extraContent && signatureIn(inner)?.startsWith(wrappedPrefix) === true
          ? []
          : [[name, toRelayed(inner, `${path}.${name}`, origin, recipient)]]
      )
    )
    : value

/** An element with its own signatures unwrapped; `undefined` if it has one that the provider does not understand. */
const unwrapIn = (element: unknown, origin: Origin, account: string): unknown => {
  if (typeof element !== "object" || element === null || Array.isArray(element) || ExactJson.isExact(element)) {
    return element
  }
  let isForeign = false
  // a call is needed without its signature, too
  const isCall = "functionCall" in element || "function_call" in element
  const unwrapped = Object.fromEntries(
    Object.entries(element).flatMap(([name, inner]: [string, unknown]) => {
      if (typeof inner !== "string" || !inner.startsWith(wrappedPrefix)) return [[name, inner]]
      const signature = fromClient(inner, origin)
      const isOther = signature.origin !== origin || !isFor(account, signature)
      if (isOther && isCall) return []
      isForeign ||= isOther
      return [[name, signature.value]]
    })
  )
  // without a compaction the conversation would lack its beginning: the provider refuses it
  return isForeign && unwrapped["type"] !== "compaction" ? undefined : unwrapped
}

const withoutId = (item: unknown): unknown => {
  if (typeof item !== "object" || item === null || !("id" in item)) return item
  const { id: _, ...others } = item
  return others
}
