/** Writes the list of dependencies, `dependencies.md`, and finds what is wrong with them. */
import { licenceFault, licenceOf } from "./Licences.ts"
import type { Package } from "./Lockfile.ts"
import type { Policy } from "./Policy.ts"
import { type Facts, released } from "./Registry.ts"

/** A direct dependency without a release for this many months needs a reason to stay. */
const dormantAfterMonths = 18

interface Sources {
  readonly packages: ReadonlyArray<Package>
  readonly policy: Policy
  readonly facts: Facts
}

const isDirect = ({ directly }: Package): boolean => directly.length > 0

const factOf = ({ name }: Package, { packages }: Facts) => packages[name]

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const table = (items: ReadonlyArray<Package>, last: string, lastOf: (item: Package) => string, sources: Sources) => {
  const columns = ["package", "version", "licence", "owner", "last release", last]
  const rows = items.map((item) => {
    const { owner = "", released = "" } = factOf(item, sources.facts) ?? {}
    const licence = [licenceOf(item, sources.policy), sources.policy.licences.compiled[item.name]]
    const name = item.deprecated === undefined ? item.name : `${item.name} (deprecated)`
    return row([name, item.version, licence.filter(Boolean).join("; contains "), owner, released, lastOf(item)])
  })
  return [row(columns), row(columns.map(() => "---")), ...rows].join("\n")
}

export const list = (sources: Sources): string => {
  const { facts, packages, policy } = sources
  const reasonOf = ({ directly }: Package) => directly.map((name) => policy.reasons[name] ?? "").join("; ")
  const direct = packages.filter(isDirect)
  const indirect = packages.filter((item) => !isDirect(item))
  const requirers = ({ requiredBy }: Package) =>
    requiredBy.length > 4
      ? `${requiredBy.slice(0, 3).join(", ")} and ${requiredBy.length - 3} others`
      : requiredBy.join(", ")
  return `# Dependencies

\`npm run supply-chain -- write\` generates this file from the lockfile, \`policy.yaml\` and \`facts.json\`. The owner is the account of a
package's repository, or else its author. Releases are as of ${facts.asOf}; a mirror of the registry may state a later day than the
true one. Packages for one platform are released with the package that requires them.

## Required by the gateway and its web app

${table(direct.filter(({ shipped }) => shipped), "why", reasonOf, sources)}

## Required for development

${table(direct.filter(({ shipped }) => !shipped), "why", reasonOf, sources)}

## Required by those of the gateway

${table(indirect.filter(({ shipped }) => shipped), "required by", requirers, sources)}

## Required by those for development

${table(indirect.filter(({ shipped }) => !shipped), "required by", requirers, sources)}
`
}

const monthsBetween = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / (30.44 * 86_400_000)

/** Why a dependency may need a replacement. */
const dormancy = (item: Package, { facts }: Sources): string | undefined => {
  if (item.deprecated !== undefined) return `is deprecated (${item.deprecated})`
  const { released = facts.asOf } = factOf(item, facts) ?? {}
  const months = monthsBetween(released, facts.asOf)
  return months > dormantAfterMonths ? `had its last release on ${released}` : undefined
}

/** What is wrong with the dependencies. */
export const faults = (sources: Sources): ReadonlyArray<string> => {
  const { facts, packages, policy } = sources
  const direct = packages.filter(isDirect)
  const names = new Set(direct.flatMap(({ directly }) => directly))
  const dormant = new Map(
    direct.flatMap((item) => {
      const why = dormancy(item, sources)
      return why === undefined ? [] : item.directly.map((name) => [name, why] as const)
    })
  )
  const known = new Set(Object.keys(facts.packages))
  const wanted = new Set(released(packages).map(({ name }) => name))
  return [
    ...packages.flatMap((item) => licenceFault(item, policy) ?? []),
    ...packages.filter(({ integrity }) => integrity?.startsWith("sha512-") !== true).map(({ name }) =>
      `package-lock.json has no SHA-512 hash of ${name}`
    ),
    ...[...names].filter((name) => policy.reasons[name] === undefined).map((name) =>
      `${name} has no reason: say in policy.yaml, under reasons, why it is here`
    ),
    ...Object.keys(policy.reasons).filter((name) => !names.has(name)).map((name) =>
      `policy.yaml gives a reason for ${name}, which no package.json requires: remove it`
    ),
    ...[...dormant].filter(([name]) => policy.dormant[name] === undefined).map(([name, why]) =>
      `${name} ${why}: replace it, or say in policy.yaml, under dormant, why it stays`
    ),
    ...Object.keys(policy.dormant).filter((name) => !dormant.has(name)).map((name) =>
      `policy.yaml calls ${name} dormant, which it is not: remove it`
    ),
    ...[...wanted.difference(known)].map((name) => `facts.json lacks ${name}: run \`npm run supply-chain -- write\``),
    ...[...known.difference(wanted)].map((name) =>
      `facts.json has ${name}, which the lockfile does not: run \`npm run supply-chain -- write\``
    )
  ]
}
