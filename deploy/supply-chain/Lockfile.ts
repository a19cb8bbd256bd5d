/** The packages that the lockfile installs, and which packages require each. */

interface Entry {
  readonly name?: string
  readonly version?: string
  readonly license?: string
  readonly integrity?: string
  readonly deprecated?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly os?: ReadonlyArray<string>
  readonly cpu?: ReadonlyArray<string>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

export interface Lockfile {
  readonly packages: Readonly<Record<string, Entry>>
}

/** One version of a package. */
export interface Package {
  readonly name: string
  readonly version: string
  /** One of the folders that hold it. */
  readonly path: string
  readonly licence: string | undefined
  readonly integrity: string | undefined
  /** The message of its publisher, if it is deprecated. */
  readonly deprecated: string | undefined
  /** Whether `npm install --omit=dev` installs it. */
  readonly shipped: boolean
  /** Whether it is for one platform only, such as a binary. It is then released together with the package that requires it. */
  readonly forPlatform: boolean
  /** The names by which a `package.json` of this project requires it. */
  readonly directly: ReadonlyArray<string>
  /** The packages that require it, by name. */
  readonly requiredBy: ReadonlyArray<string>
}

const folder = "node_modules/"

const nameOf = (path: string, entry: Entry): string =>
  entry.name ?? path.slice(path.lastIndexOf(folder) + folder.length)

/** The entry that Node finds for this name from this path. */
const resolved = ({ packages }: Lockfile, from: string, name: string): string | undefined => {
  for (let path = from;;) {
    const found = path === "" ? `${folder}${name}` : `${path}/${folder}${name}`
    if (packages[found] !== undefined) return found
    if (path === "") return undefined
    path = path.slice(0, Math.max(0, path.lastIndexOf("/")))
  }
}

const order = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

const sorted = (names: ReadonlySet<string>): ReadonlyArray<string> => [...names].toSorted(order)

/** Marks packages that only packages for one platform require: they are for that platform, too. */
const withPlatforms = (packages: ReadonlyArray<Package>): ReadonlyArray<Package> => {
  const general = new Set(packages.filter(({ forPlatform }) => !forPlatform).map(({ name }) => name))
  const isFor = ({ directly, forPlatform, requiredBy }: Package): boolean =>
    forPlatform
    || (directly.length === 0 && requiredBy.length > 0 && !requiredBy.some((name) => general.has(name)))
  const marked = packages.map((each) => ({ ...each, forPlatform: isFor(each) }))
  return marked.some(({ forPlatform }, at) => forPlatform !== packages[at]?.forPlatform)
    ? withPlatforms(marked)
    : marked
}

/** All packages, sorted by name and version. */
export const packagesOf = (lockfile: Lockfile): ReadonlyArray<Package> => {
  const directly = new Map<string, Set<string>>()
  const requiredBy = new Map<string, Set<string>>()
  const isOwn = (path: string): boolean => !path.includes(folder)
  for (const [path, entry] of Object.entries(lockfile.packages)) {
    const { dependencies, devDependencies, optionalDependencies, peerDependencies } = entry
    const required = { ...peerDependencies, ...optionalDependencies, ...dependencies, ...devDependencies }
    for (const name of Object.keys(required)) {
      const found = resolved(lockfile, path, name)
      if (found === undefined) continue
      const [index, by] = isOwn(path) ? [directly, name] : [requiredBy, nameOf(path, entry)]
      index.set(found, (index.get(found) ?? new Set()).add(by))
    }
  }

  const packages = new Map<string, Package>()
  for (const [path, entry] of Object.entries(lockfile.packages)) {
    if (isOwn(path) || entry.link === true) continue
    const name = nameOf(path, entry)
    const id = `${name}@${entry.version}`
    const known = packages.get(id)
    packages.set(id, {
      name,
      version: entry.version ?? "",
      path,
      licence: entry.license,
      integrity: entry.integrity,
      deprecated: entry.deprecated,
      shipped: known?.shipped === true || entry.dev !== true,
      forPlatform: entry.os !== undefined || entry.cpu !== undefined,
      directly: sorted(new Set([...known?.directly ?? [], ...directly.get(path) ?? []])),
      requiredBy: sorted(new Set([...known?.requiredBy ?? [], ...requiredBy.get(path) ?? []]))
    })
  }
  return withPlatforms(
    [...packages.values()].toSorted((a, b) => order(a.name, b.name) || order(a.version, b.version))
  )
}
