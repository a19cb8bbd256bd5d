/** Who maintains each package, and when it was last released: `facts.json`. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { Package } from "./Lockfile.ts"
import { npm, project } from "./Npm.ts"

const Fact = Schema.Struct({
  /** The account of the repository that the package names, or else its author or its scope. */
  owner: Schema.String,
  /** The day of its latest release; the registry's mirrors may state the day on which they first saw it. */
  released: Schema.String
})

export const Facts = Schema.Struct({
  /** The day on which the registry was asked about all packages. */
  asOf: Schema.String,
  packages: Schema.Record(Schema.String, Fact)
})
export type Facts = typeof Facts.Type

class NotInstalled extends Schema.TaggedError<NotInstalled>()("NotInstalled", {
  name: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `${this.name} is not installed: run \`npm ci\` first`
  }
}

const decodeManifest = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({
  repository: Schema.optionalKey(Schema.Union([Schema.String, Schema.Struct({ url: Schema.String })])),
  author: Schema.optionalKey(Schema.Union([Schema.String, Schema.Struct({ name: Schema.String })]))
})))

/** The account in a repository's address: `https://host/account/name`, `git@host:account/name` or `account/name`. */
const accountOf = (address: string): string | undefined =>
  /([^/:]+)\/[^/]+$/.exec(address.replace(/\/tree\/.*$/, "").replace(/\/$/, ""))?.[1]

const ownerOf = Effect.fn("Registry.ownerOf")(function*({ name, path }: Package) {
  const manifest = yield* Effect.try({
    try: () => readFileSync(join(project, path, "package.json"), "utf8"),
    catch: (cause) => new NotInstalled({ name, cause })
  }).pipe(Effect.flatMap(decodeManifest))
  const { author, repository } = manifest
  const address = typeof repository === "object" ? repository.url : repository
  const person = typeof author === "object" ? author.name : author
  const [scope] = /^@[^/]+/.exec(name) ?? []
  return accountOf(address ?? "") ?? person?.replace(/ *[<(].*$/, "") ?? scope ?? "unknown"
})

const decodeReleases = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({
  "time": Schema.Record(Schema.String, Schema.String),
  "dist-tags.latest": Schema.String
})))

const factOf = Effect.fn("Registry.factOf")(function*(item: Package) {
  const answer = yield* npm("view", "--json", item.name, "time", "dist-tags.latest")
  const releases = yield* decodeReleases(answer)
  const released = releases.time[releases["dist-tags.latest"]]?.slice(0, 10) ?? "unknown"
  return { owner: yield* ownerOf(item), released }
})

/** The packages that have releases of their own, once each. */
export const released = (packages: ReadonlyArray<Package>): ReadonlyArray<Package> => [
  ...new Map(packages.filter((each) => !each.forPlatform).map((each) => [each.name, each])).values()
]

/** Asks the registry about these packages, four at a time. */
export const ask = Effect.fn("Registry.ask")(function*(packages: ReadonlyArray<Package>) {
  const found = yield* Effect.forEach(
    packages,
    (item) => Effect.map(factOf(item), (fact) => [item.name, fact] as const),
    { concurrency: 4 }
  )
  return Object.fromEntries(found)
})
