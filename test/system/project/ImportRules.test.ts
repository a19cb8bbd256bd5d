/**
 * Every lint rule that protects the architecture reports its violation: one tiny file per case, linted with the repository's
 * own configuration in a folder laid out like the repository.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { rooms } from "../../../.oxlint/rooms.ts"

const repository = join(import.meta.dirname, "../../..")

/** A folder, and a file or package that its files may import, or may not. */
type Case = readonly [room: string, target: string]

/** A folder in which a room's rule applies: one entry stands for all services. */
const folderOf = (room: string): string => room === "services" ? "services/chat" : room

const isFile = (path: string): boolean => /\.(ts|json)$/.test(path)

/** Some file of a room or a folder. */
const fileIn = (path: string): string => isFile(path) ? path : `${folderOf(path)}/inside/Any.ts`

/** What each room of the table may import, and what it may not. */
const ofTable = Object.entries(rooms).map(([name, { rooms: listed }]) => {
  const room = folderOf(name)
  const allowed = [room, ...listed]
  // no room may import test
  const files = [...Object.keys(rooms), "test"].map(fileIn)
  const isAllowed = (file: string) => allowed.some((one) => file === one || file.startsWith(`${one}/`))
  return { room, allowed: allowed.map(fileIn), forbidden: files.filter((file) => !isAllowed(file)) }
})

/** Violations of each kind, stated without the table. */
const forbidden: ReadonlyArray<Case> = [
  ["shared/contract", "shared/bus/protocol/Subjects.ts"],
  ["shared/contract/operations", "shared/bus/protocol/Subjects.ts"],
  // of a room, one file is allowed
  ["shared/webhooks", "shared/provider/transport/Upstream.ts"],
  ["shared/catalogue", "shared/keys/ApiKey.ts"],
  // a layer above
  ["shared/provider/json", "shared/provider/call/Protocol.ts"],
  ["shared/provider/protocols/openai", "shared/provider/routing/Route.ts"],
  // the innermost room of a file applies
  ["services/console/api", "services/console/Console.ts"],
  ["services/console/api", "services/console/web/pages/Keys.tsx"],
  ["services/chat/engine", "services/ingress/Ingress.ts"],
  ["services/ingress/routes", "shared/catalogue/Catalogue.ts"],
  ["deploy/local", "test/fixture/nats/NatsServer.ts"],
  ["shared/contract", "package.json"],
  // packages
  ["shared/contract", "node:fs"],
  ["shared/telemetry", "@effect/platform-node/NodeRuntime"],
  ["services/console/web/pages", "node:fs"],
  ["services/console/web", "@nats-io/kv"],
  ["services/chat", "@nats-io/jetstream"],
  ["shared/tasks", "@nats-io/nats-core"]
]

const allowed: ReadonlyArray<Case> = [
  ["shared/contract", "effect"],
  ["shared/contract", "effect/http"],
  ["shared/contract/operations", "shared/contract/Usage.ts"],
  ["shared/webhooks", "shared/provider/transport/GuardedFetch.ts"],
  ["shared/provider/protocols/openai", "shared/provider/exchange/Exchange.ts"],
  ["shared/nats", "@nats-io/nats-core"],
  ["shared/bus", "@nats-io/nats-core"],
  ["shared/provider/transport", "undici"],
  ["services/ingress/routes", "shared/catalogue/Models.ts"],
  ["services/console", "services/console/api/Api.ts"],
  ["services/console/web/pages", "services/console/api/Keys.ts"],
  ["services/console/web", "react"],
  ["test/unit/bus", "@nats-io/nats-core"],
  ["test/unit/bus", "shared/bus/protocol/Subjects.ts"]
]

/** Adds handlers to a group of the console's API, without a check that they read the scope of members. */
const addHandlers = (call: string) => `export const add = (handlers, list) => handlers.${call}`

/** Statements banned in a folder, by the rule that reports them. */
const banned: ReadonlyArray<readonly [folder: string, statement: string, rule: string]> = [
  ["shared/bus", "export const at = Date.now()", "no-restricted-globals"],
  ["services/chat", "export const at = new Date()", "no-restricted-globals"],
  ["services/ingress", "export const at = globalThis.Date.now()", "no-restricted-globals"],
  ["shared/worker", "console.log(1)", "no-console"],
  ["services/ingress", "console.error(1)", "no-console"],
  ["services/chat", "export const load = () => import(\"../../ingress/Ingress.ts\")", "imports"],
  ["shared/bus", "export * from \"../../worker/Worker.ts\"", "imports"],
  ["shared/bus", "export type * from \"../../worker/Worker.ts\"", "imports"],
  ...["handle(\"list\", list)", "handleRaw(\"list\", list)", "handleAll({ list })"].map((call) =>
    ["services/console/handlers", addHandlers(call), "no-restricted-properties"] as const
  ),
  ["test/unit/bus", "import { it } from \"vitest\"\nit.only(\"runs alone\", () => {})", "no-restricted-properties"],
  [
    "test/unit/bus",
    "import { it } from \"@effect/vitest\"\nit.effect.only(\"runs alone\", () => {})",
    "no-restricted-properties"
  ]
]

/** The only file that may add handlers to the groups of the console's API. */
const narrowed = "services/console/access/Narrowed.ts"

const fileOf = (group: string, folder: string, index: number) => `${folder}/${group}${index}/case.ts`

let sandbox = ""
/** The rules reported, by file. */
const reported = new Map<string, Array<string>>()

const write = (path: string, source: string) => {
  mkdirSync(dirname(join(sandbox, path)), { recursive: true })
  writeFileSync(join(sandbox, path), `${source}\n`)
}

/** Writes a file that imports files of the repository or packages. */
const writeImports = (path: string, targets: ReadonlyArray<string>) => {
  const isOfRepository = (target: string) => /^(shared|services|test|deploy)\/|\.json$/.test(target)
  const specifiers = targets.map((target) => isOfRepository(target) ? relative(dirname(path), target) : target)
  write(
    path,
    specifiers.map((specifier, at) => `export { value as value${at} } from ${JSON.stringify(specifier)}`).join("\n")
  )
}

beforeAll(() => {
  sandbox = mkdtempSync(join(tmpdir(), "import-rules-"))
  for (const name of [".oxlintrc.json", ".oxlint"]) {
    cpSync(join(repository, name), join(sandbox, name), { recursive: true })
  }
  forbidden.forEach(([room, target], i) => writeImports(fileOf("forbidden", room, i), [target]))
  allowed.forEach(([room, target], i) => writeImports(fileOf("allowed", room, i), [target]))
  for (const { allowed, forbidden, room } of ofTable) {
    writeImports(`${room}/table/Allowed.ts`, allowed)
    writeImports(`${room}/table/Forbidden.ts`, forbidden)
  }
  banned.forEach(([folder, statement], i) => write(fileOf("banned", folder, i), statement))
  write("shared/worker/cycle/Chicken.ts", "import { egg } from \"./Egg.ts\"\nexport const chicken = () => egg")
  write("shared/worker/cycle/Egg.ts", "import { chicken } from \"./Chicken.ts\"\nexport const egg = () => chicken")
  write("shared/worker/left/One.ts", "export { two } from \"../right/Two.ts\"")
  write("shared/worker/right/Two.ts", "export const two = 2")
  write("shared/worker/right/Three.ts", "export { four } from \"../left/Four.ts\"")
  write("shared/worker/left/Four.ts", "export const four = 4")
  write(narrowed, addHandlers("handleAll({ list })"))
  for (let i = 0; i < 16; i++) write(`shared/worker/full/File${i}.ts`, `export const value = ${i}`)
  for (let i = 0; i < 15; i++) write(`shared/worker/roomy/File${i}.ts`, `export const value = ${i}`)

  const run = spawnSync(join(repository, "node_modules/.bin/oxlint"), ["--format", "json"], {
    cwd: sandbox,
    encoding: "utf8"
  })
  const output = JSON.parse(run.stdout) as { diagnostics: ReadonlyArray<{ code: string; filename: string }> }
  for (const { code, filename } of output.diagnostics) {
    reported.set(filename, [...(reported.get(filename) ?? []), code.replace(/^.*\(|\)$/g, "")])
  }
})

afterAll(() => rmSync(sandbox, { recursive: true, force: true }))

describe("the lint rules", () => {
  it.each(forbidden.map((one, i) => [...one, i] as const))("forbid %s to import %s", (room, _target, i) => {
    assert.deepStrictEqual(reported.get(fileOf("forbidden", room, i)), ["imports"])
  })

  it.each(allowed.map((one, i) => [...one, i] as const))("let %s import %s", (room, _target, i) => {
    assert.strictEqual(reported.get(fileOf("allowed", room, i)), undefined)
  })

  it.each(banned.map((one, i) => [...one, i] as const))("ban in %s: %s", (folder, _statement, rule, i) => {
    assert.deepStrictEqual(reported.get(fileOf("banned", folder, i)), [rule])
  })

  it("let the one file add handlers that checks them", () => {
    assert.isUndefined(reported.get(narrowed))
  })

  it("report a cycle of imports", () => {
    assert.deepStrictEqual(reported.get("shared/worker/cycle/Chicken.ts"), ["no-cycle"])
  })

  it("report two folders that import each other, in both", () => {
    assert.deepStrictEqual(reported.get("shared/worker/left/One.ts"), ["one-way"])
    assert.deepStrictEqual(reported.get("shared/worker/right/Three.ts"), ["one-way"])
  })

  it("report a folder of more than fifteen source files, once", () => {
    const filesOf = (folder: string) => [...reported.keys()].filter((file) => file.startsWith(folder))
    assert.deepStrictEqual(filesOf("shared/worker/full/"), ["shared/worker/full/File0.ts"])
    assert.deepStrictEqual(filesOf("shared/worker/roomy/"), [])
  })

  it.each(ofTable)("enforce the table for $room", ({ allowed, forbidden, room }) => {
    assert.isNotEmpty(allowed)
    assert.deepStrictEqual(reported.get(`${room}/table/Allowed.ts`), undefined)
    assert.isNotEmpty(forbidden)
    assert.deepStrictEqual(reported.get(`${room}/table/Forbidden.ts`), forbidden.map(() => "imports"))
  })

  it("have an entry for each folder of shared", () => {
    const folders = readdirSync(join(repository, "shared")).map((name) => `shared/${name}`)
    const named = Object.keys(rooms)
    assert.deepStrictEqual(
      folders.filter((name) => !named.some((room) => room === name || room.startsWith(`${name}/`))),
      []
    )
  })
})
