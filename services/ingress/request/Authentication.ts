/** Finds the API key, or the token in its place, in a request's headers or URL, and its record. */
import { Effect } from "effect"
import { KeyInactive, KeyInvalid, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import type { KeyRefused, KeyRing } from "../../../shared/keys/KeyRing.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { KeyMissing, TokenInvalid } from "../errors/IngressError.ts"

/** The header that clients of a dialect may use instead of `Authorization: Bearer`. */
export const keyHeaders: Partial<Record<Dialect, string>> = { anthropic: "x-api-key", gemini: "x-goog-api-key" }

/** The parameter of the URL that Google's API also takes. Telemetry and errors have the path of a URL only, so it is never logged. */
export const keyParameters: Partial<Record<Dialect, string>> = { gemini: "key" }

/** How clients of a dialect may send their key, in the words of an error. */
const waysOf = (dialect: Dialect): ReadonlyArray<string> => {
  const [header, parameter] = [keyHeaders[dialect], keyParameters[dialect]]
  return [
    "'Authorization: Bearer <key>'",
    ...(header === undefined ? [] : [`'${header}: <key>'`]),
    ...(parameter === undefined ? [] : [`'?${parameter}=<key>' in the URL`])
  ]
}

const bearer = /^Bearer +(\S+) *$/i

const secretIn = ({ headers, url = "" }: Head, dialect: Dialect): string | undefined => {
  const token = bearer.exec(headers["authorization"] ?? "")?.[1]
  if (token !== undefined) return token
  const own = keyHeaders[dialect]
  const sent = own === undefined ? undefined : headers[own]
  const parameter = keyParameters[dialect]
  if (sent !== undefined || parameter === undefined) return sent
  const query = url.indexOf("?")
  return query === -1 ? undefined : new URLSearchParams(url.slice(query + 1)).get(parameter) || undefined
}

/** The part of a request that may hold a key. */
export interface Head {
  readonly headers: RequestHeaders
  readonly url?: string | undefined
}

export const authenticate = (
  keys: KeyRing["Service"],
  head: Head,
  dialect: Dialect
): Effect.Effect<ApiKey, KeyMissing | KeyInvalid | KeyInactive | TokenInvalid | Unavailable> => {
  const secret = secretIn(head, dialect)
  if (secret === undefined) return Effect.fail(new KeyMissing({ ways: waysOf(dialect) }))
  return Effect.catchEager(keys.authenticate(secret), (refused) => Effect.fail(errorOf(refused)))
}

const errorOf = ({ check, reason }: KeyRefused) =>
  check === undefined ? jobErrorOf({ reason }) : new TokenInvalid({ check })

/** The error of work that a key, or the owner of a token, has requested earlier. */
export const jobErrorOf = ({ reason }: Pick<KeyRefused, "reason">) => {
  switch (reason) {
    case "unknown":
    case "token":
      return new KeyInvalid()
    case "unverifiable":
      return Unavailable.briefly()
    default:
      return new KeyInactive({ reason })
  }
}
