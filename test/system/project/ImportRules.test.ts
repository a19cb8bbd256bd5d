/**
 * Shows that the lint rules which hold the architecture together bite: one tiny file per rule, linted with the
 * repository's own configuration in a folder laid out like the repository.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"

const repository = join(import.meta.dirname, "../../..")

/** A folder, and what a file in it may not, or may, import. */
type Case = readonly [folder: string, specifier: string]

const forbidden: ReadonlyArray<Case> = [
  ["shared/contract", "../bus/Subjects.ts"],
  ["shared/contract", "../../package.json"],
  ["shared/contract", "node:fs"],
  ["shared/contract", "undici"],
  ["shared/contract", "@effect/platform-node/NodeRuntime"],
  ["shared/telemetry", "../contract/Operation.ts"],
  ["shared/telemetry", "@effect/platform-node/NodeRuntime"],
  ["shared/bus", "../worker/Worker.ts"],
  ["shared/bus", "../provider/Protocol.ts"],
  ["shared/bus", "../catalogue/Catalogue.ts"],
  ["shared/bus", "../keys/Keys.ts"],
  ["shared/worker", "../provider/Protocol.ts"],
  ["shared/worker", "../catalogue/Catalogue.ts"],
  ["shared/worker", "../keys/Keys.ts"],
  ["shared/worker", "@nats-io/nats-core"],
  ["shared/provider", "../bus/Subjects.ts"],
  ["shared/provider", "../worker/Worker.ts"],
  ["shared/provider", "../keys/Keys.ts"],
  ["shared/provider", "@nats-io/nats-core"],
  ["shared/provider/openai", "../../bus/Subjects.ts"],
  ["shared/provider", "../../shared/bus/protocol/Subjects.ts"],
  ["shared/catalogue", "../bus/Subjects.ts"],
  ["shared/catalogue", "../worker/Worker.ts"],
  ["shared/catalogue", "../provider/Protocol.ts"],
  ["shared/keys", "../worker/Worker.ts"],
  ["shared/keys", "../provider/Protocol.ts"],
  ["shared/keys", "@nats-io/kv"],
  ["shared/bus", "../process/Service.ts"],
  ["shared/worker", "../process/Service.ts"],
  ["shared/provider", "../process/Service.ts"],
  ["shared/catalogue", "../process/Service.ts"],
  ["shared/keys", "../process/Service.ts"],
  ["shared/limits", "../worker/Worker.ts"],
  ["shared/usage", "../provider/Protocol.ts"],
  ["shared/files", "../provider/Protocol.ts"],
  ["shared/files", "../worker/Worker.ts"],
  ["shared/files", "../painter/Painting.ts"],
  ["shared/files", "@nats-io/obj"],
  ["shared/tasks", "../provider/Protocol.ts"],
  ["shared/tasks", "../worker/Worker.ts"],
  ["shared/tasks", "../files/SignedUrl.ts"],
  ["shared/tasks", "@nats-io/kv"],
  ["shared/bus", "../tasks/VideoTask.ts"],
  ["shared/provider", "../tasks/VideoTask.ts"],
  ["shared/worker", "../tasks/VideoTask.ts"],
  ["shared/painter", "../contract/Operation.ts"],
  ["shared/painter", "../bus/Subjects.ts"],
  ["shared/painter", "../../shared/contract/Operation.ts"],
  ["shared/painter", "@nats-io/nats-core"],
  ["shared/bus", "../files/ResultFiles.ts"],
  ["shared/worker", "../painter/Painting.ts"],
  ["shared/provider", "../files/ResultFiles.ts"],
  ["shared/catalogue", "../files/ResultFiles.ts"],
  ["shared/keys", "../files/ResultFiles.ts"],
  ["services/ingress", "../../shared/worker/Worker.ts"],
  ["services/ingress", "../../shared/provider/call/Protocol.ts"],
  ["services/ingress", "../../shared/catalogue/Catalogue.ts"],
  ["services/ingress", "../chat/ChatWorker.ts"],
  ["services/ingress", "@nats-io/nats-core"],
  ["services/ingress/reference", "../../chat/ChatWorker.ts"],
  ["services/ingress/reference", "../../../shared/provider/call/Protocol.ts"],
  ["services/ingress/reference", "../../../shared/catalogue/Catalogue.ts"],
  ["services/chat", "../ingress/Ingress.ts"],
  ["services/chat", "../../services/ingress/Ingress.ts"],
  ["services/chat/local", "../../ingress/Ingress.ts"],
  ["services/chat/local", "@nats-io/nats-core"],
  ["services/chat", "@nats-io/jetstream"],
  ["services/console", "../ingress/Ingress.ts"],
  ["services/console", "@nats-io/nats-core"],
  ["services/console/api", "../Console.ts"],
  ["services/console/api", "node:crypto"],
  ["services/console/api", "@effect/platform-node/NodeRuntime"],
  ["services/console/api", "../../../shared/keys/KeyStore.ts"],
  ["services/console/web", "../Sessions.ts"],
  ["services/console/web", "../../ingress/Ingress.ts"],
  ["services/console/web", "node:fs"],
  ["services/console/web", "../../../shared/nats/KeyValue.ts"],
  ["services/console/web/pages", "../../Sessions.ts"],
  ["services/console/web/pages", "../../../ingress/Ingress.ts"],
  ["services/console/web/pages", "@nats-io/kv"],
  ["services/console/web/pages", "../../../../shared/nats/KeyValue.ts"],
  ["deploy/local", "@nats-io/transport-node"],
  ...[
    "shared/bus",
    "shared/worker",
    "shared/provider",
    "shared/catalogue",
    "shared/keys",
    "services/chat",
    "services/ingress",
    "deploy/local"
  ].map((folder): Case => [folder, "../../test/fixture/Nats.ts"]),
  ...["contract", "telemetry", "bus", "worker", "provider", "catalogue", "keys", "limits", "usage", "process", "tasks"]
    .map((
      folder
    ): Case => [`shared/${folder}`, "../../services/chat/ChatWorker.ts"])
]

const allowed: ReadonlyArray<Case> = [
  ["shared/contract", "effect"],
  ["shared/contract", "effect/http"],
  ["shared/contract", "./Usage.ts"],
  ["shared/telemetry", "effect/observability"],
  ["shared/bus", "@nats-io/nats-core"],
  ["shared/bus", "../contract/JobError.ts"],
  ["shared/worker", "../bus/Subjects.ts"],
  ["shared/worker", "../telemetry/Metrics.ts"],
  ["shared/provider", "../catalogue/Catalogue.ts"],
  ["shared/provider", "../contract/Usage.ts"],
  ["shared/provider", "undici"],
  ["shared/provider/openai", "../Protocol.ts"],
  ["shared/catalogue", "../contract/Operation.ts"],
  ["shared/keys", "../bus/KeyValue.ts"],
  ["shared/keys", "../contract/JobError.ts"],
  ["shared/files", "../bus/ObjectStore.ts"],
  ["shared/files", "../keys/GatewaySecret.ts"],
  ["shared/tasks", "../bus/KeyValue.ts"],
  ["shared/tasks", "../contract/JobError.ts"],
  ["services/ingress", "../../shared/tasks/VideoTasks.ts"],
  ["shared/painter", "effect"],
  ["shared/painter", "./Canvas.ts"],
  ["shared/process", "../telemetry/Telemetry.ts"],
  ["services/ingress", "../../shared/process/Service.ts"],
  ["services/ingress", "../../shared/bus/protocol/Subjects.ts"],
  ["services/ingress", "../../shared/catalogue/Models.ts"],
  ["services/ingress", "../../shared/keys/Keys.ts"],
  ["services/ingress", "./Relay.ts"],
  ["services/ingress/reference", "../ErrorEnvelope.ts"],
  ["services/chat", "../../shared/worker/Worker.ts"],
  ["services/chat", "../../shared/provider/call/Protocol.ts"],
  ["services/chat", "./local/Engine.ts"],
  ["services/images", "../../shared/painter/Painting.ts"],
  ["services/images", "../../shared/files/ResultFiles.ts"],
  ["services/chat/local", "../ChatWorker.ts"],
  ["services/chat/local", "../../../shared/provider/call/Protocol.ts"],
  ["services/console", "./api/Api.ts"],
  ["services/console", "../../shared/usage/UsageCounters.ts"],
  ["services/console/api", "effect/http-api"],
  ["services/console/api", "./Keys.ts"],
  ["services/console/api", "../../../shared/keys/KeySettings.ts"],
  ["services/console/web", "react"],
  ["services/console/web", "../api/Api.ts"],
  ["services/console/web", "./pages/Keys.tsx"],
  ["services/console/web", "../../../shared/usage/UsageTable.ts"],
  ["services/console/web/pages", "../../api/Keys.ts"],
  ["services/console/web/pages", "../parts/Page.tsx"],
  ["services/console/web/pages", "../../../../shared/usage/UsageTable.ts"],
  ["test/bus", "@nats-io/nats-core"],
  ["test/bus", "../../shared/bus/protocol/Subjects.ts"],
  ["test/bus", "../fixture/Nats.ts"]
]

/** Statements banned in a folder, by the rule that has to name them. */
const banned: ReadonlyArray<readonly [folder: string, statement: string, rule: string]> = [
  ["shared/bus", "export const at = Date.now()", "no-restricted-globals"],
  ["services/chat", "export const at = new Date()", "no-restricted-globals"],
  ["services/ingress", "export const at = globalThis.Date.now()", "no-restricted-globals"],
  ["shared/worker", "console.log(1)", "no-console"],
  ["services/ingress", "console.error(1)", "no-console"],
  ["services/chat", "export const load = () => import(\"../ingress/Ingress.ts\")", "no-restricted-imports"],
  ["shared/bus", "export * from \"../worker/Worker.ts\"", "no-restricted-imports"],
  ["shared/bus", "export type * from \"../worker/Worker.ts\"", "no-restricted-imports"],
  ["test/bus", "import { it } from \"vitest\"\nit.only(\"runs alone\", () => {})", "no-restricted-properties"],
  [
    "test/bus",
    "import { it } from \"@effect/vitest\"\nit.effect.only(\"runs alone\", () => {})",
    "no-restricted-properties"
  ]
]

const fileOf = (group: string, folder: string, index: number) => `${folder}/${group}${index}.ts`

let sandbox = ""
/** The rules reported, by file. */
const reported = new Map<string, Array<string>>()

const write = (path: string, source: string) => {
  mkdirSync(dirname(join(sandbox, path)), { recursive: true })
  writeFileSync(join(sandbox, path), `${source}\n`)
}

beforeAll(() => {
  sandbox = mkdtempSync(join(tmpdir(), "import-rules-"))
  copyFileSync(join(repository, ".oxlintrc.json"), join(sandbox, ".oxlintrc.json"))
  forbidden.forEach(([folder, specifier], i) =>
    write(fileOf("forbidden", folder, i), `export { value } from ${JSON.stringify(specifier)}`)
  )
  allowed.forEach(([folder, specifier], i) =>
    write(fileOf("allowed", folder, i), `export { value } from ${JSON.stringify(specifier)}`)
  )
  banned.forEach(([folder, statement], i) => write(fileOf("banned", folder, i), statement))
  write("shared/worker/Chicken.ts", "import { egg } from \"./Egg.ts\"\nexport const chicken = () => egg")
  write("shared/worker/Egg.ts", "import { chicken } from \"./Chicken.ts\"\nexport const egg = () => chicken")

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
  it.each(forbidden.map((one, i) => [...one, i] as const))("forbid %s to import %s", (folder, _specifier, i) => {
    assert.deepStrictEqual(reported.get(fileOf("forbidden", folder, i)), ["no-restricted-imports"])
  })

  it.each(allowed.map((one, i) => [...one, i] as const))("let %s import %s", (folder, _specifier, i) => {
    assert.strictEqual(reported.get(fileOf("allowed", folder, i)), undefined)
  })

  it.each(banned.map((one, i) => [...one, i] as const))("ban in %s: %s", (folder, _statement, rule, i) => {
    assert.deepStrictEqual(reported.get(fileOf("banned", folder, i)), [rule])
  })

  it("report a cycle of imports", () => {
    assert.deepStrictEqual(reported.get("shared/worker/Chicken.ts"), ["no-cycle"])
  })

  it("cover each folder of shared", () => {
    const folders = readdirSync(join(repository, "shared")).map((name) => `shared/${name}`)
    const covered = new Set(forbidden.map(([folder]) => folder))
    assert.deepStrictEqual(folders.filter((folder) => !covered.has(folder)), [])
  })
})
