/** The dependencies are what the committed SBOM, list and policy say; each kind of deviation is found. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import packageJson from "../../../package.json" with { type: "json" }
import * as Dependencies from "../../../deploy/supply-chain/Dependencies.ts"
import { type Lockfile, packagesOf } from "../../../deploy/supply-chain/Lockfile.ts"
import * as Pins from "../../../deploy/supply-chain/Pins.ts"
import * as Sbom from "../../../deploy/supply-chain/Sbom.ts"
import { faults } from "../../../deploy/supply-chain/SupplyChain.ts"

it("the project's dependencies, SBOM, list, images and actions are in order (npm run supply-chain)", () => {
  assert.deepStrictEqual(faults(), [])
})

const integrity = `sha512-${Buffer.alloc(64, 1).toString("base64")}`
const entry = { version: "1.0.0", license: "MIT", integrity }

/** The project requires `left`, which requires `inner`; `tool` is for development, and `inner-linux` for one platform. */
const lockfile: Lockfile = {
  packages: {
    "": { dependencies: { left: "1.0.0" }, devDependencies: { tool: "npm:the-tool@1.0.0" } },
    "node_modules/left": { ...entry, dependencies: { inner: "1" } },
    "node_modules/left/node_modules/inner": { ...entry, optionalDependencies: { "inner-linux": "1" } },
    "node_modules/inner-linux": { ...entry, os: ["linux"], dependencies: { runtime: "1" } },
    "node_modules/runtime": entry,
    "node_modules/tool": { ...entry, name: "the-tool", dev: true, dependencies: { inner: "2" } },
    "node_modules/inner": { ...entry, version: "2.0.0", dev: true }
  }
}

const policy = {
  licences: { allowed: ["MIT"], exceptions: { "g*": { licence: "GPL-3.0", why: "apart" } }, compiled: {} },
  reasons: { left: "pads", tool: "checks" },
  dormant: {}
}
const fact = { owner: "somewhere", released: "2026-01-01" }
const facts = { asOf: "2026-06-01", packages: { left: fact, inner: fact, "the-tool": fact } }

/** What is found after a change to the entry of `left`. */
const withLeft = (change: object) =>
  Dependencies.faults({
    packages: packagesOf({
      packages: { ...lockfile.packages, "node_modules/left": { ...lockfile.packages["node_modules/left"], ...change } }
    }),
    policy,
    facts
  })

describe("the packages of a lockfile", () => {
  const packages = packagesOf(lockfile)
  const find = (name: string, version = "1.0.0") =>
    packages.find((each) => each.name === name && each.version === version) ?? assert.fail(name)

  it("know who requires them, by Node's resolution", () => {
    assert.deepStrictEqual(find("inner").requiredBy, ["left"])
    assert.deepStrictEqual(find("inner", "2.0.0").requiredBy, ["the-tool"])
    assert.deepStrictEqual(find("the-tool").directly, ["tool"])
  })

  it("are shipped unless only development needs them", () => {
    assert.deepStrictEqual(
      packages.filter(({ shipped }) => shipped).map(({ name, version }) => `${name} ${version}`),
      ["inner 1.0.0", "inner-linux 1.0.0", "left 1.0.0", "runtime 1.0.0"]
    )
  })

  it("are for one platform if only such packages require them", () => {
    assert.deepStrictEqual(packages.filter(({ forPlatform }) => forPlatform).map(({ name }) => name), [
      "inner-linux",
      "runtime"
    ])
  })
})

describe("dependencies", () => {
  const packages = packagesOf(lockfile)

  it("have no faults if all is in order", () => {
    assert.deepStrictEqual(Dependencies.faults({ packages, policy, facts }), [])
  })

  it.each([
    ["a licence that is not allowed", { license: "GPL-3.0" }, /^left has the licence GPL-3.0/],
    ["one of several licences that is not allowed", { license: "MIT AND GPL-3.0" }, /^left has the licence MIT AND/],
    ["no licence", { license: undefined }, /^left states no licence/],
    ["no hash", { integrity: undefined }, /no SHA-512 hash of left/],
    ["a deprecation", { deprecated: "use right" }, /^left is deprecated \(use right\)/]
  ])("are faulty with %s", (_, change, expected) => {
    const found = withLeft(change)
    assert.strictEqual(found.length, 1, found.join("\n"))
    assert.match(found[0] ?? "", expected)
  })

  it.each(["(GPL-3.0 OR MIT)", "MIT"])("may have the licence %s", (license) => {
    assert.deepStrictEqual(withLeft({ license }), [])
  })

  it("may have a licence that the policy allows for them", () => {
    const packages = packagesOf({ packages: { "node_modules/gnu": { ...entry, license: "GPL-3.0" } } })
    const own = { ...policy, reasons: {} }
    assert.deepStrictEqual(
      Dependencies.faults({ packages, policy: own, facts: { ...facts, packages: { gnu: fact } } }),
      []
    )
  })

  it("need a reason, and no reason may be left over", () => {
    const { left: _, ...reasons } = policy.reasons
    const found = Dependencies.faults({ packages, policy: { ...policy, reasons: { ...reasons, right: "" } }, facts })
    assert.deepStrictEqual(found.map((fault) => fault.split(" ").slice(0, 6).join(" ")), [
      "left has no reason: say in",
      "policy.yaml gives a reason for right,"
    ])
  })

  it("need a reason to stay if they had no release for 18 months, and only then", () => {
    const old = { ...facts, packages: { ...facts.packages, left: { ...fact, released: "2024-11-01" } } }
    const [found] = Dependencies.faults({ packages, policy, facts: old })
    assert.match(found ?? "", /^left had its last release on 2024-11-01/)
    const staying = { ...policy, dormant: { left: "complete" } }
    assert.deepStrictEqual(Dependencies.faults({ packages, policy: staying, facts: old }), [])
    const [superfluous] = Dependencies.faults({ packages, policy: staying, facts })
    assert.match(superfluous ?? "", /calls left dormant, which it is not/)
  })

  it("need facts, and no facts may be left over", () => {
    const { left, ...others } = facts.packages
    const found = Dependencies.faults({ packages, policy, facts: { ...facts, packages: { ...others, right: left } } })
    assert.deepStrictEqual(found.map((fault) => fault.split(/[,:]/)[0]), [
      "facts.json lacks left",
      "facts.json has right"
    ])
  })

  it("are all in the list", () => {
    const list = Dependencies.list({ packages, policy, facts })
    assert.include(list, "| left | 1.0.0 | MIT | somewhere | 2026-01-01 | pads |")
    assert.include(list, "| the-tool | 1.0.0 | MIT | somewhere | 2026-01-01 | checks |")
    assert.include(list, "| inner-linux | 1.0.0 | MIT |  |  | inner |")
  })
})

it("an SBOM is faulty if it is of another version, lacks a shipped package, has another one, or another hash", () => {
  const sbom = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../../deploy/supply-chain/sbom.cdx.json"), "utf8")
  ) as Sbom.Sbom
  const packages = packagesOf(lockfile).filter(({ name }) => name === "left")
  const component = {
    "bom-ref": "left@1.0.0",
    name: "left",
    purl: "pkg:npm/left@1.0.0",
    hashes: [{ alg: "SHA-512", content: "01".repeat(64) }]
  }
  const found = (components: ReadonlyArray<typeof component>, version = packageJson.version) =>
    Sbom.faults({ ...sbom, components }, version, packages).length
  assert.strictEqual(found([component]), 0)
  assert.strictEqual(found([]), 1)
  assert.strictEqual(found([component], "0.0.1"), 1)
  assert.strictEqual(found([component, { ...component, purl: "pkg:npm/right@1.0.0" }]), 1)
  assert.strictEqual(found([{ ...component, hashes: [{ alg: "SHA-512", content: "02".repeat(64) }] }]), 2)
})

describe("pins", () => {
  const digest = `@sha256:${"0".repeat(64)}`
  const commit = "0".repeat(40)
  it.each([
    ["an action", "release.yaml", (pin: string) => `jobs: { image: { steps: [{ uses: a/b@${pin} }] } }`, "v1", commit],
    [
      "a manifest's image",
      "pod.yaml",
      (pin: string) => `kind: A\n---\ncontainers: [{ image: "nats:2${pin}" }]`,
      "",
      digest
    ],
    ["a chart's image", "values.yaml", (pin: string) => `image: { repository: nats, tag: "2${pin}" }`, "", digest],
    [
      "a base image",
      "Dockerfile",
      (pin: string) => `ARG NODE=node:24${pin}\nFROM \${NODE} AS base\nFROM base`,
      "",
      digest
    ]
  ])("are missed for %s", (_, path, text, without, pin) => {
    assert.strictEqual(Pins.faults(path, text(without)).length, 1)
    assert.deepStrictEqual(Pins.faults(path, text(pin)), [])
  })

  it("are not required of the gateway's own images, and of actions in the repository", () => {
    assert.deepStrictEqual(Pins.faults("a.yaml", "image: model-gateway-media\nuses: ./.github/actions/one"), [])
  })
})
