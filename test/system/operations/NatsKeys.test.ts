/** The folder of the services' NATS keys: a rotation keeps the old ones until it ends, and a damaged seed is named. */
import { assert, beforeEach, describe, it } from "@effect/vitest"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach } from "vitest"
import { identities } from "../../../shared/bus/provision/Access.ts"
import { adminHere, adminOutcome } from "../../fixture/admin/AdminHere.ts"

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nats-keys-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** The valid public keys of each identity, as the command prints them. */
const keys = async (...flags: ReadonlyArray<string>): Promise<Readonly<Record<string, ReadonlyArray<string>>>> => {
  const { stdout } = await adminHere(["nats", "keys", folder, ...flags])
  const lines = stdout.trim().split("\n").map((line) => line.split(": "))
  return Object.fromEntries(lines.map(([name = "", all = ""]) => [name, all.split(", ")] as const))
}

describe("the folder of NATS keys", () => {
  it("keeps the old keys during a rotation, which ends once", async () => {
    const first = await keys()
    assert.deepStrictEqual(Object.keys(first), identities.map(({ name }) => name))
    const both = await keys("--rotate")
    for (const [name, [key]] of Object.entries(first)) assert.strictEqual(both[name]?.[1], key)
    assert.deepStrictEqual(await keys("--rotate"), both)
    for (const key of both["chat"] ?? []) assert.include(readFileSync(join(folder, "accounts.conf"), "utf8"), key)
    const last = await keys("--retire")
    for (const [name, all] of Object.entries(both)) assert.deepStrictEqual(last[name], all.slice(0, 1))
  })

  it("names the file of a damaged seed", async () => {
    await keys()
    const file = join(folder, "chat.nk")
    writeFileSync(file, "")
    const { code, output } = await adminOutcome(["nats", "keys", folder])
    assert.strictEqual(code, 1)
    assert.include(output, `${file} is not an nkey seed`)
  })
})
