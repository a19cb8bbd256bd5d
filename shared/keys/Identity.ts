/**
 * Issuers of tokens that ingress accepts in place of API keys, such as those of a Kubernetes cluster's service accounts. They are in the
 * catalogue.
 */
import { Schema, Struct } from "effect"
import { integer } from "../contract/Fields.ts"
import { KeyChanges, TeamId } from "./KeySettings.ts"

const loopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

/** Whether keys from there can be trusted. */
export const isTrusted = (text: string): boolean => {
  const url = URL.parse(text)
  return url?.protocol === "https:" || (url?.protocol === "http:" && loopback.test(url.hostname))
}

const TrustedUrl = Schema.String.check(
  Schema.makeFilter(isTrusted, { expected: "an https URL, or an http one of this machine" })
)

/** What the owners of matching tokens may do: the settings of an API key. */
const Principal = Schema.Struct({
  /** The value of the claim, or the beginning of one and a `*`. */
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
  /** Where the issuer's keys are. Default: its discovery document says it. */
  jwksUri: Schema.optionalKey(TrustedUrl),
  /** A file with the issuer's keys, which ingress follows. */
  jwksFile: Schema.optionalKey(Schema.NonEmptyString),
  /** The claim that tells whose token it is, or its path. Default `sub`. */
  claim: Schema.optionalKey(
    Schema.Union([Schema.NonEmptyString, Schema.NonEmptyArray(Schema.NonEmptyString)])
  ),
  /** The longest time from `iat` to `exp`. Beyond an hour, the default, each token needs a `jti`, so that it can be revoked. */
  maxLifetimeSeconds: Schema.optionalKey(integer(60, 31_536_000)),
  /** The `jti` of revoked tokens. */
  revoked: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /** The team of those principals that do not name their own, or `null`. */
  team: Schema.optionalKey(TeamId),
  /** The first that matches counts. Tokens that none matches are refused. */
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

/** Issuers that are listed twice, and keys with two sources or none. */
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

/** The settings for the value of the claim. */
export const principalOf = ({ principals }: Identity, subject: string): Principal | undefined =>
  principals.find(({ match }) => match.endsWith("*") ? subject.startsWith(match.slice(0, -1)) : subject === match)
