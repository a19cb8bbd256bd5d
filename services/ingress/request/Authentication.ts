/** Finds the API key, or the token in its place, in a request's headers, and its record. */
import { Effect } from "effect"
import { KeyInactive, KeyInvalid, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import type { KeyRefused, KeyRing } from "../../../shared/keys/KeyRing.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import { KeyMissing, TokenInvalid } from "../errors/IngressError.ts"

/** The header that clients of a dialect may use instead of `Authorization: Bearer`. */
export const keyHeaders: Partial<Record<Dialect, string>> = { anthropic: "x-api-key", gemini: "x-goog-api-key" }

const bearer = /^Bearer +(\S+) *$/i

const secretIn = (headers: RequestHeaders, dialect: Dialect): string | undefined => {
  const token = bearer.exec(headers["authorization"] ?? "")?.[1]
  if (token !== undefined) return token
  const own = keyHeaders[dialect]
  return own === undefined ? undefined : headers[own]
}

export const authenticate = (
  keys: KeyRing["Service"],
  headers: RequestHeaders,
  dialect: Dialect
): Effect.Effect<ApiKey, KeyMissing | KeyInvalid | KeyInactive | TokenInvalid | Unavailable> => {
  const secret = secretIn(headers, dialect)
  if (secret === undefined) return Effect.fail(new KeyMissing())
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
