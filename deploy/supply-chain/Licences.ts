/** Whether a package's licence is one that this project accepts. */
import type { Package } from "./Lockfile.ts"
import type { Policy } from "./Policy.ts"

/** Whether a licence expression allows use under these licences alone. Nested expressions are not accepted. */
const isAllowed = (expression: string, allowed: ReadonlySet<string>): boolean =>
  expression.replace(/^\(([^()]*)\)$/, "$1").split(" OR ").some((choice) =>
    choice.split(" AND ").every((licence) => allowed.has(licence))
  )

/** The policy's entry for a package, under its name or the longest start of it that ends with `*`. */
const exceptionFor = (name: string, { exceptions }: Policy["licences"]) =>
  exceptions[name] ??
    Object.entries(exceptions)
      .filter(([pattern]) => pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1)))
      .toSorted(([a], [b]) => b.length - a.length)[0]?.[1]

/** The licence that a package states, or else the one that the policy names for it. */
export const licenceOf = ({ licence, name }: Package, { licences }: Policy): string | undefined =>
  licence ?? exceptionFor(name, licences)?.licence

/** What is wrong with a package's licence. */
export const licenceFault = (item: Package, policy: Policy): string | undefined => {
  const licence = licenceOf(item, policy)
  if (licence === undefined) return `${item.name} states no licence: find it, and add it to licences.exceptions`
  const accepted = exceptionFor(item.name, policy.licences)?.licence === licence
  return accepted || isAllowed(licence, new Set(policy.licences.allowed))
    ? undefined
    : `${item.name} has the licence ${licence}, which is not allowed: replace the package, or add the licence with its reason`
}
