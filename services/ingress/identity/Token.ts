/** Verifies a JSON Web Token: its signature, issuer, audience, times and owner. */
import { DateTime } from "effect"
import { decodeJwt, errors, type JWTPayload, jwtVerify } from "jose"
import { type Identity, shortLifetime } from "../../../shared/keys/Identity.ts"
import type { TokenCheck } from "../../../shared/keys/KeyRing.ts"
import { type IssuerKeys, KeysUnavailable } from "./IssuerKeys.ts"

/** The check that failed; `unverifiable` if the issuer's keys cannot be read. */
export class TokenRefused extends Error {
  override readonly name = "TokenRefused"
  readonly check: TokenCheck | "unverifiable"

  constructor(check: TokenRefused["check"]) {
    super(check)
    this.check = check
  }
}

/** Signatures that only the issuer can make. */
const algorithms = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]

/** How far clocks may differ, in seconds. */
const leeway = 30

/** The shape of a token. No API key that the gateway makes has it. */
const shape = /^e[yw][\w-]+\.[\w-]+\.[\w-]*$/

const maxLength = 8_192

export const isToken = (secret: string): boolean => secret.length <= maxLength && shape.test(secret)

/** The issuer that the token claims, not verified. */
export const issuerOf = (token: string): string | undefined => {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

export interface Verified {
  /** The value of the claim that identifies the owner. */
  readonly subject: string
  readonly id: string | undefined
  /** Epoch milliseconds. */
  readonly expiresAt: number
}

/** Fails with `TokenRefused`. `now` is in epoch milliseconds. */
export const verify = async (
  token: string,
  identity: Identity,
  keys: IssuerKeys,
  now: number
): Promise<Verified> => {
  const { audience, claim = "sub", issuer, maxLifetimeSeconds = shortLifetime } = identity
  const currentDate = DateTime.toDateUtc(DateTime.makeUnsafe(now))
  const requiredClaims = ["exp", "iat"]
  const options = { algorithms, issuer, audience, clockTolerance: leeway, requiredClaims, currentDate }
  const payload = await jwtVerify(token, keys, options).then(
    ({ payload }) => payload,
    (error: unknown) => {
      throw new TokenRefused(checkOf(error))
    }
  )
  const { exp = 0, iat = 0, jti } = payload
  if (iat > now / 1_000 + leeway) throw new TokenRefused("iat")
  if (exp - iat > maxLifetimeSeconds) throw new TokenRefused("lifetime")
  if (exp - iat > shortLifetime && jti === undefined) throw new TokenRefused("jti")
  const subject = claimOf(payload, claim)
  if (subject === undefined) throw new TokenRefused("claim")
  return { subject, id: jti, expiresAt: exp * 1_000 }
}

/** A text of visible characters. */
const subjectPattern = /^[\x21-\x7e\u00a1-\uffff]{1,256}$/u

const claimOf = (payload: JWTPayload, claim: string | ReadonlyArray<string>): string | undefined => {
  let value: unknown = payload
  for (const name of typeof claim === "string" ? [claim] : claim) {
    value = typeof value === "object" && value !== null && Object.hasOwn(value, name)
      ? Reflect.get(value, name)
      : undefined
  }
  return typeof value === "string" && subjectPattern.test(value) ? value : undefined
}

const claimChecks: Readonly<Record<string, TokenCheck>> = { aud: "aud", exp: "exp", iat: "iat", nbf: "nbf" }

const checkOf = (error: unknown): TokenRefused["check"] => {
  if (error instanceof KeysUnavailable || !(error instanceof errors.JOSEError)) return "unverifiable"
  if (error instanceof errors.JWTExpired) return "exp"
  if (error instanceof errors.JWTClaimValidationFailed) return claimChecks[error.claim] ?? "malformed"
  switch (error.code) {
    case errors.JOSEAlgNotAllowed.code:
      return "alg"
    case errors.JWKSNoMatchingKey.code:
    case errors.JWKSMultipleMatchingKeys.code:
      return "kid"
    case errors.JWSSignatureVerificationFailed.code:
      return "signature"
    case errors.JWKSTimeout.code:
    case errors.JWKSInvalid.code:
    case errors.JOSEError.code:
      return "unverifiable"
    default:
      return "malformed"
  }
}
