/** Reads a person's name and groups from the claims of an OpenID provider. */
import { Predicate } from "effect"

type Claims = Readonly<Record<string, unknown>>

const maxNameLength = 200

/** A claim by its name, or by a path such as `realm_access.roles`. Names of claims may contain dots themselves. */
const claimIn = (claims: Claims, name: string): unknown => {
  if (Object.hasOwn(claims, name)) return claims[name]
  return name.split(".").reduce<unknown>(
    (value, part) => Predicate.isObject(value) && Object.hasOwn(value, part) ? Reflect.get(value, part) : undefined,
    claims
  )
}

/** The groups of a claim with one or several; `undefined` without the claim. */
export const groupsIn = (claims: Claims, name: string): ReadonlyArray<string> | undefined => {
  const claim = claimIn(claims, name)
  if (typeof claim === "string") return [claim]
  return Array.isArray(claim) ? claim.filter((group) => typeof group === "string") : undefined
}

const readable = (claim: unknown): string | undefined => {
  if (typeof claim !== "string") return undefined
  const text = claim.replace(/\p{C}/gu, "").trim().slice(0, maxNameLength)
  return text === "" ? undefined : text
}

/** A name that people cannot choose freely, for the audit log: a verified email address, or the user name. */
export const nameIn = (claims: Claims): string | undefined =>
  (claims["email_verified"] === true ? readable(claims["email"]) : undefined) ?? readable(claims["preferred_username"])
