/**
 * Finds literal secrets in a catalogue, which must be references: provider keys, and credentials in settings and headers of
 * packages.
 *
 * The check runs on the file before any schema, so that processes that read only a part of the catalogue reject such secrets too.
 * Messages name the field, never the value.
 */
import { Predicate } from "effect"
import type { Finding } from "./Inconsistencies.ts"
import * as SecretReference from "./SecretReference.ts"

/** The words of a name: `apiKey` and `API_KEY` have `api` and `key`. */
const wordsOf = (name: string): ReadonlyArray<string> =>
  name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").toLowerCase().split(/[^a-z0-9]+/).filter((word) => word !== "")

/** The last words of secret names, each with the preceding words that make it harmless: `apiKey`, but not `cacheKey`. */
const secretWords: ReadonlyMap<string, ReadonlyArray<string>> = new Map([
  ["key", ["cache", "idempotency", "public", "partition", "primary", "routing", "sort"]],
  ["token", ["stop", "start", "end", "eos", "bos", "pad", "sep", "mask", "unk", "max"]],
  ...[
    ["apikey", "accesskey", "secretkey", "privatekey", "secret", "password", "passphrase"],
    ["authorization", "auth", "bearer", "credential", "credentials", "cookie"]
  ].flat().map((word): readonly [string, ReadonlyArray<string>] => [word, []])
])

const isSecretName = (name: PropertyKey | undefined): boolean => {
  if (typeof name !== "string") return false
  const words = wordsOf(name)
  const harmless = secretWords.get(words.at(-1) ?? "")
  return harmless !== undefined && !harmless.includes(words.at(-2) ?? "")
}

/** Vendors' keys, `authorization` headers, private keys, and URLs with a password. */
const secretValues = [
  /^(?:sk|rk|xai|gsk|hf|r8|ghp|glpat)[-_][\w-]{12,}$/,
  /^AIza[\w-]{20,}$/,
  /^AKIA[A-Z0-9]{12,}$/,
  /^(?:bearer|basic|token)\s+\S/i,
  /^-----BEGIN /,
  /^[a-z][a-z0-9+.-]*:\/\/[^\s/@]*:[^\s/@]+@/i
]

const isSecret = (path: ReadonlyArray<PropertyKey>, value: unknown): boolean => {
  if (typeof value === "number") return isSecretName(path.at(-1))
  if (typeof value !== "string" || value === "" || SecretReference.parse(value) !== undefined) return false
  return isSecretName(path.at(-1)) || secretValues.some((pattern) => pattern.test(value))
}

const within = (path: ReadonlyArray<PropertyKey>, value: unknown): ReadonlyArray<Finding> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => within([...path, index], item))
  if (Predicate.isReadonlyObject(value)) {
    return Object.entries(value).flatMap(([name, inner]) => within([...path, name], inner))
  }
  return isSecret(path, value) ? [{ path, message: `must be ${SecretReference.expected}` }] : []
}

/** Finds the literal secrets in providers and guardrails. */
export const findLiteralSecrets = (file: unknown): ReadonlyArray<Finding> => {
  const { guardrail, models, providers } = Predicate.isReadonlyObject(file) ? file : {}
  return [
    ...within(["providers"], providers),
    ...within(["guardrail"], guardrail),
    ...Object.entries(Predicate.isReadonlyObject(models) ? models : {}).flatMap(([name, model]) =>
      Predicate.hasProperty(model, "guardrail") ? within(["models", name, "guardrail"], model.guardrail) : []
    )
  ]
}
