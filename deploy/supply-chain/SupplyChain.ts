/** The committed files about the dependencies: reads, checks and writes them. */
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DateTime, Effect, Schema } from "effect"
import * as Dependencies from "./Dependencies.ts"
import { type Lockfile, packagesOf } from "./Lockfile.ts"
import { project } from "./Npm.ts"
import * as Pins from "./Pins.ts"
import * as Policy from "./Policy.ts"
import * as Registry from "./Registry.ts"
import * as Sbom from "./Sbom.ts"

const text = (path: string): string => readFileSync(join(project, path), "utf8")

const committed = {
  facts: "deploy/supply-chain/facts.json",
  list: "deploy/supply-chain/dependencies.md",
  sbom: "deploy/supply-chain/sbom.cdx.json"
} as const

const decodeFacts = Schema.decodeUnknownSync(Schema.fromJsonString(Registry.Facts))
const decodeSbom = Schema.decodeUnknownSync(Schema.fromJsonString(Sbom.Sbom))

const sources = () => {
  const lockfile = JSON.parse(text("package-lock.json")) as Lockfile
  return {
    version: lockfile.packages[""]?.version ?? "",
    packages: packagesOf(lockfile),
    policy: Policy.read(),
    facts: decodeFacts(text(committed.facts))
  }
}

/** The files that may name images or actions. */
const pinned = (): ReadonlyArray<string> =>
  globSync(["deploy/Dockerfile", "deploy/**/*.yaml", ".github/workflows/*.yaml"], { cwd: project }).toSorted()

/** What is wrong with the dependencies and the committed files. */
export const faults = (): ReadonlyArray<string> => {
  const { facts, packages, policy, version } = sources()
  return [
    ...Dependencies.faults({ facts, packages, policy }),
    ...Sbom.faults(decodeSbom(text(committed.sbom)), version, packages),
    ...(text(committed.list) === Dependencies.list({ facts, packages, policy })
      ? []
      : [`${committed.list} is older than the lockfile or policy.yaml: run \`npm run supply-chain -- write\``]),
    ...pinned().flatMap((path) => Pins.faults(path, text(path)))
  ]
}

const write = (path: string, content: string): void => writeFileSync(join(project, path), content)

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** Writes the SBOM and the list. Asks the registry about packages without facts, or about all. */
export const update = Effect.fn("SupplyChain.update")(function*(which: "new" | "all") {
  const { facts, packages, policy } = sources()
  const wanted = Registry.released(packages)
  const known = which === "all" ? {} : facts.packages
  const found = yield* Registry.ask(wanted.filter(({ name }) => known[name] === undefined))
  const names = new Set(wanted.map(({ name }) => name))
  const kept = Object.entries({ ...known, ...found }).filter(([name]) => names.has(name))
  const updated: Registry.Facts = {
    asOf: which === "all" ? DateTime.formatIsoDateUtc(yield* DateTime.now) : facts.asOf,
    packages: Object.fromEntries(kept.toSorted(([a], [b]) => a < b ? -1 : 1))
  }
  write(committed.facts, json(updated))
  write(committed.list, Dependencies.list({ facts: updated, packages, policy }))
  write(committed.sbom, json(yield* Sbom.make))
})
