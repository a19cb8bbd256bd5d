/** npm still makes a complete SBOM from the lockfile, the same each time. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type Lockfile, packagesOf } from "../../../deploy/supply-chain/Lockfile.ts"
import * as Sbom from "../../../deploy/supply-chain/Sbom.ts"
import packageJson from "../../../package.json" with { type: "json" }

const lockfile = JSON.parse(readFileSync(join(import.meta.dirname, "../../../package-lock.json"), "utf8")) as Lockfile

it.live("npm makes a complete SBOM from the lockfile, the same each time", () =>
  Effect.gen(function*() {
    const [first, second] = yield* Effect.all([Sbom.make, Sbom.make], { concurrency: 2 })
    assert.deepStrictEqual(Sbom.faults(first, packageJson.version, packagesOf(lockfile)), [])
    assert.deepStrictEqual(first, second)
    const refs = new Set([first.metadata.component, ...first.components].map((each) => each["bom-ref"]))
    for (const { dependsOn, ref } of first.dependencies) {
      assert.deepStrictEqual([ref, ...dependsOn].filter((each) => !refs.has(each)), [])
    }
  }))
