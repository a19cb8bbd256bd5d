/**
 * The software bill of materials in CycloneDX's format: every npm package that the images or the web app may contain.
 *
 * `npm sbom --omit=dev` would leave out packages that development packages need as well, such as `effect`. So this takes npm's
 * list of all packages, and removes those that only development needs.
 */
import { Effect, Schema } from "effect"
import type { Package } from "./Lockfile.ts"
import { npm } from "./Npm.ts"

const Component = Schema.StructWithRest(
  Schema.Struct({
    "bom-ref": Schema.String,
    name: Schema.String,
    purl: Schema.String,
    properties: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String, value: Schema.String }))),
    hashes: Schema.optionalKey(Schema.Array(Schema.Struct({ alg: Schema.String, content: Schema.String })))
  }),
  [Schema.Record(Schema.String, Schema.Json)]
)

export const Sbom = Schema.StructWithRest(
  Schema.Struct({
    bomFormat: Schema.Literal("CycloneDX"),
    metadata: Schema.StructWithRest(Schema.Struct({ component: Component }), [
      Schema.Record(Schema.String, Schema.Json)
    ]),
    components: Schema.Array(Component),
    dependencies: Schema.Array(Schema.Struct({ ref: Schema.String, dependsOn: Schema.Array(Schema.String) }))
  }),
  [Schema.Record(Schema.String, Schema.Json)]
)
export type Sbom = typeof Sbom.Type
const decode = Schema.decodeEffect(Schema.fromJsonString(Sbom))

const own = "pkg:npm/model-gateway"

/** Makes the SBOM from the lockfile and npm's version alone: without time, serial number and the folder's name. */
export const make = Effect.gen(function*() {
  const words = ["--sbom-format", "cyclonedx", "--sbom-type", "application", "--package-lock-only"]
  const { $schema, serialNumber: _, ...sbom } = yield* npm("sbom", ...words).pipe(Effect.flatMap(decode))
  const { timestamp: __, ...metadata } = sbom.metadata
  const components = sbom.components.filter(({ properties = [] }) =>
    !properties.some(({ name }) => name === "cdx:npm:package:development")
  )
  const kept = new Set([metadata.component, ...components].map((each) => each["bom-ref"]))
  return {
    ...($schema === undefined ? {} : { $schema }),
    ...sbom,
    metadata: { ...metadata, component: { ...metadata.component, name: "model-gateway" } },
    components,
    dependencies: sbom.dependencies
      .filter(({ ref }) => kept.has(ref))
      .map(({ dependsOn, ref }) => ({ ref, dependsOn: dependsOn.filter((each) => kept.has(each)) }))
  } satisfies Sbom
})

const purlOf = ({ name, version }: Package): string => `pkg:npm/${name.replace("@", "%40")}@${version}`

/** A component as the lockfile describes it: its address, and the hash of its archive. */
const described = (item: Package): string => {
  const hash = Buffer.from(item.integrity?.replace(/^sha512-/, "") ?? "", "base64").toString("hex")
  return `${purlOf(item)} ${hash}`
}

/** What an SBOM of this version lacks, and what it has beyond the lockfile. */
export const faults = (sbom: Sbom, version: string, packages: ReadonlyArray<Package>): ReadonlyArray<string> => {
  const expected = new Set(packages.filter(({ shipped }) => shipped).map(described))
  const found = new Set(
    sbom.components
      .filter(({ purl }) => !purl.startsWith(own))
      .map(({ hashes = [], purl }) => `${purl} ${hashes.find(({ alg }) => alg === "SHA-512")?.content ?? ""}`)
  )
  const { purl } = sbom.metadata.component
  return [
    ...(purl === `${own}@${version}` ? [] : [`sbom.cdx.json is about ${purl}, not about version ${version}`]),
    ...[...expected.difference(found)].map((each) => `sbom.cdx.json lacks ${each}`),
    ...[...found.difference(expected)].map((each) => `sbom.cdx.json has ${each}, which the lockfile does not ship`)
  ]
}
