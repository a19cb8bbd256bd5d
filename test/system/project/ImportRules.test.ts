/**
 * Every lint rule that protects the architecture reports its violation: one tiny file per case, linted with the repository's
 * own configuration in a folder laid out like the repository.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"

const repository = join(import.meta.dirname, "../../..")

/** A folder, and a file or package that its files may import, or may not. */
type Case = readonly [room: string, target: string]

const rooms = (names: ReadonlyArray<string>, target: string): ReadonlyArray<Case> =>
  names.map((name) => [`shared/${name}`, target])

const forbidden: ReadonlyArray<Case> = [
  ["shared/contract", "shared/bus/protocol/Subjects.ts"],
  ["shared/contract", "package.json"],
  ["shared/contract", "node:fs"],
  ["shared/contract/operations", "undici"],
  ["shared/contract", "@effect/platform-node/NodeRuntime"],
  ["shared/telemetry", "shared/contract/Operation.ts"],
  ["shared/telemetry", "@effect/platform-node/NodeRuntime"],
  ["shared/catalogue", "shared/bus/protocol/Subjects.ts"],
  ["shared/nats", "shared/bus/protocol/Subjects.ts"],
  ...rooms(
    ["bus", "nats", "worker", "catalogue", "keys", "limits", "usage", "tasks"],
    "shared/provider/call/Protocol.ts"
  ),
  ...rooms(["bus", "nats", "catalogue", "keys", "limits", "files"], "shared/worker/Worker.ts"),
  ...rooms(["bus", "worker", "provider/call", "catalogue", "keys"], "shared/process/Service.ts"),
  ...rooms(["bus", "worker", "provider/routing"], "shared/keys/ApiKey.ts"),
  ...rooms(["bus", "worker", "provider/routing"], "shared/tasks/TaskRecord.ts"),
  ...rooms(["worker", "keys", "limits", "usage", "files", "tasks", "provider/routing"], "@nats-io/nats-core"),
  ["shared/provider/protocols/openai", "shared/bus/protocol/Subjects.ts"],
  ["shared/provider/json", "shared/provider/call/Protocol.ts"],
  ["shared/provider/transport", "shared/provider/call/Protocol.ts"],
  ["shared/provider/dialects/openai", "shared/provider/exchange/Exchange.ts"],
  ["shared/provider/exchange", "shared/provider/protocols/openai/OpenAi.ts"],
  ["shared/provider/protocols/openai", "shared/provider/routing/Route.ts"],
  ["shared/painter", "shared/contract/Operation.ts"],
  ["shared/bounds", "shared/contract/Operation.ts"],
  ["shared/text", "shared/contract/Operation.ts"],
  ["shared/secrets", "shared/contract/Operation.ts"],
  ["shared/records", "shared/keys/KeyRing.ts"],
  ["shared/teams", "shared/usage/Spending.ts"],
  ["shared/webhooks", "shared/provider/transport/Upstream.ts"],
  ["shared/webhooks", "shared/tasks/TaskRecord.ts"],
  ["shared/guardrail", "shared/tasks/TaskRecord.ts"],
  ["shared/tasks", "shared/batches/BatchRecord.ts"],
  ["shared/batches", "shared/provider/transport/Upstream.ts"],
  ["shared/pictures", "shared/nats/ObjectStore.ts"],
  ["services/ingress/routes", "shared/catalogue/Catalogue.ts"],
  ["shared/process", "@nats-io/nats-core"],
  ["services/ingress", "shared/worker/Worker.ts"],
  ["services/ingress/routes", "shared/provider/call/Protocol.ts"],
  ["services/ingress", "services/chat/main.ts"],
  ["services/ingress", "@nats-io/nats-core"],
  ["services/chat", "services/ingress/Ingress.ts"],
  ["services/chat/engine", "services/ingress/Ingress.ts"],
  ["services/chat", "@nats-io/jetstream"],
  ["services/console/api", "services/console/Console.ts"],
  ["services/console/api", "services/console/web/pages/Keys.tsx"],
  ["services/console/api", "node:crypto"],
  ["services/console/api", "shared/keys/KeyStore.ts"],
  ["services/console/web/pages", "services/console/access/Sessions.ts"],
  ["services/console/web", "services/ingress/Ingress.ts"],
  ["services/console/web", "node:fs"],
  ["services/console/web/pages", "@nats-io/kv"],
  ["services/console/web/pages", "shared/nats/KeyValue.ts"],
  ["deploy/local", "@nats-io/transport-node"],
  ...["shared/bus", "shared/provider/call", "services/chat", "services/ingress", "deploy/local"]
    .map((room): Case => [room, "test/fixture/nats/NatsServer.ts"]),
  ...["contract", "telemetry", "bus", "worker", "catalogue", "keys", "limits", "usage", "process", "tasks"]
    .map((name): Case => [`shared/${name}`, "services/chat/main.ts"])
]

const allowed: ReadonlyArray<Case> = [
  ["shared/contract", "effect"],
  ["shared/contract", "effect/http"],
  ["shared/contract/operations", "shared/contract/Usage.ts"],
  ["shared/telemetry", "effect/observability"],
  ["shared/nats", "@nats-io/nats-core"],
  ["shared/bus", "@nats-io/nats-core"],
  ["shared/bus", "shared/nats/Outbox.ts"],
  ["shared/bus", "shared/contract/JobError.ts"],
  ["shared/worker", "shared/bus/worker/JobServer.ts"],
  ["shared/worker", "shared/telemetry/Metrics.ts"],
  ["shared/provider/transport", "undici"],
  ["shared/provider/routing", "shared/catalogue/Catalogue.ts"],
  ["shared/provider/routing", "shared/provider/protocols/protocols.ts"],
  ["shared/provider/protocols/openai", "shared/provider/exchange/Exchange.ts"],
  ["shared/provider/dialects/openai", "shared/provider/call/Protocol.ts"],
  ["shared/catalogue", "shared/contract/Operation.ts"],
  ["shared/keys", "shared/nats/KeyValue.ts"],
  ["shared/files", "shared/nats/ObjectStore.ts"],
  ["shared/teams", "shared/keys/ApiKey.ts"],
  ["shared/tasks", "shared/nats/KeyValue.ts"],
  ["shared/process", "shared/telemetry/Telemetry.ts"],
  ["services/ingress", "shared/tasks/TaskStore.ts"],
  ["services/ingress", "shared/process/Service.ts"],
  ["services/ingress/routes", "shared/catalogue/Models.ts"],
  ["services/ingress/reference", "services/ingress/errors/ErrorEnvelope.ts"],
  ["services/chat", "shared/worker/Worker.ts"],
  ["services/chat/engine", "shared/provider/call/Protocol.ts"],
  ["services/console", "services/console/api/Api.ts"],
  ["services/console/api", "effect/http-api"],
  ["services/console/api", "shared/keys/KeySettings.ts"],
  ["services/console/web", "react"],
  ["services/console/web/pages", "services/console/api/Keys.ts"],
  ["services/console/web/pages", "services/console/web/parts/Page.tsx"],
  ["services/console/web/pages", "shared/usage/UsageTable.ts"],
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

/** Writes a file that imports a file of the repository or a package. */
const writeImport = (path: string, target: string) => {
  const isFile = /^(shared|services|test|deploy)\/|\.json$/.test(target)
  write(path, `export { value } from ${JSON.stringify(isFile ? relative(dirname(path), target) : target)}`)
}

beforeAll(() => {
  sandbox = mkdtempSync(join(tmpdir(), "import-rules-"))
  for (const name of [".oxlintrc.json", ".oxlint"]) {
    cpSync(join(repository, name), join(sandbox, name), { recursive: true })
  }
  forbidden.forEach(([room, target], i) => writeImport(fileOf("forbidden", room, i), target))
  allowed.forEach(([room, target], i) => writeImport(fileOf("allowed", room, i), target))
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

  it("cover each room of shared", () => {
    const folders = readdirSync(join(repository, "shared")).filter((name) => name !== "provider")
    const covered = new Set(forbidden.map(([room]) => room.split("/").slice(0, 2).join("/")))
    assert.deepStrictEqual(folders.filter((name) => !covered.has(`shared/${name}`)), [])
  })
})
