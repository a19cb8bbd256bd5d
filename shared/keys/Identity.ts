/**
 * The catalogue's entries for issuers whose tokens ingress accepts in place of API keys, such as the service account tokens of a
 * Kubernetes cluster.
 */
import { Schema, Struct } from "effect"
import { integer } from "../contract/Fields.ts"
import { KeyChanges, TeamId } from "./KeySettings.ts"

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Whether keys from this URL can be trusted: HTTPS, or HTTP on this machine. */
export const isTrusted = (text: string): boolean => {
  const url = URL.parse(text)
  return url?.protocol === "https:" || (url?.protocol === "http:" && loopback.test(url.hostname))
}

const TrustedUrl = Schema.String.check(
  Schema.makeFilter(isTrusted, { expected: "an https URL, or an http one of this machine" })
)

/** The settings, as of an API key, for the owners of matching tokens. */
const Principal = Schema.Struct({
  /** The value of the claim, or a prefix and `*`. */
  match: Schema.String.check(
    Schema.isPattern(/^[^*]+\*?$|^\*$/u, { expected: "the value of a claim, or the beginning of one and a *" })
  ),
  ...Struct.omit(KeyChanges.fields, ["name", "expiresAt"])
})
export type Principal = typeof Principal.Type

/** The longest lifetime of a token that needs no `jti`, in seconds. */
export const shortLifetime = 3_600

export const Identity = Schema.Struct({
  /** The token's `iss`. */
  issuer: Schema.NonEmptyString,
  /** Must be in the token's `aud`. */
  audience: Schema.NonEmptyString,
  /** The URL of the issuer's keys. Default: the one in the issuer's discovery document. */
  jwksUri: Schema.optionalKey(TrustedUrl),
  /** A file with the issuer's keys. Ingress follows its changes. */
  jwksFile: Schema.optionalKey(Schema.NonEmptyString),
  /** The claim that names the owner of the token, or the path to that claim. Default `sub`. */
  claim: Schema.optionalKey(
    Schema.Union([Schema.NonEmptyString, Schema.NonEmptyArray(Schema.NonEmptyString)])
  ),
  /** The longest time from `iat` to `exp`; default one hour. If longer, each token needs a `jti`, so that it can be revoked. */
  maxLifetimeSeconds: Schema.optionalKey(integer(60, 31_536_000)),
  /** The `jti` of revoked tokens. */
  revoked: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /** The team of principals that do not name one; `null` for none. */
  team: Schema.optionalKey(TeamId),
  /** The first matching entry applies. Tokens without a matching entry are refused. */
  principals: Schema.NonEmptyArray(Principal)
})
export type Identity = typeof Identity.Type

export const Identities = Schema.Record(Schema.String, Identity)
export type Identities = typeof Identities.Type

/** A message about a place in the catalogue. */
interface Finding {
  readonly path: ReadonlyArray<string>
  readonly message: string
}

/** Finds issuers that are listed twice, and issuers whose keys have two sources or none. */
export const findIdentityMistakes = (identities: Identities): ReadonlyArray<Finding> => {
  const issuers = new Set<string>()
  return Object.entries(identities).flatMap(([name, { issuer, jwksFile, jwksUri }]): ReadonlyArray<Finding> => {
    const path = ["identities", name]
    const isTwice = issuers.has(issuer)
    issuers.add(issuer)
    return [
      ...isTwice
        ? [{ path: [...path, "issuer"], message: "is that of another identity: put their principals together" }]
        : [],
      ...jwksUri !== undefined && jwksFile !== undefined
        ? [{ path: [...path, "jwksFile"], message: "remove it, or jwksUri" }]
        : [],
      ...jwksUri === undefined && jwksFile === undefined && !isTrusted(issuer)
        ? [{ path: [...path, "issuer"], message: "must be an https URL, unless there is a jwksUri or a jwksFile" }]
        : []
    ]
  })
}

/** The settings for a token whose claim has this value. */
export const principalOf = ({ principals }: Identity, subject: string): Principal | undefined =>
  principals.find(({ match }) => match.endsWith("*") ? subject.startsWith(match.slice(0, -1)) : subject === match)
