/** Services that start before NATS, as in Kubernetes and Compose: they stay alive, wait, and serve once it is up. */
import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { type AnyGateway, testAdminToken } from "../../fixture/gateway/Gateway.ts"
import { ServiceProcess } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { spawnService } from "../../fixture/gateway/StartProcess.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { nextPort } from "../../fixture/nats/NatsServer.ts"

/** For its NATS server, which has the test's key, and its catalogue. */
const shared = sharedGateway()

/** A page for the console to serve as its web app. */
const pageOf = (gateway: AnyGateway): string => {
  const folder = join(dirname(gateway.catalogueFile), "web")
  mkdirSync(join(folder, "assets"), { recursive: true })
  writeFileSync(join(folder, "index.html"), "")
  return folder
}

/** Starts a service, which finds no NATS server. */
const start = (name: "ingress" | "chat" | "console"): Promise<ServiceProcess> =>
  spawnService(shared(), name, {
    environment: name === "console" ? { CONSOLE_ADMIN_TOKEN: testAdminToken, CONSOLE_WEB: pageOf(shared()) } : {}
  })

const untilWaits = (service: ServiceProcess) => eventually(() => service.log, (log) => log.includes("waiting for NATS"))

/** Checks that a waiting service reports so at its health port, beside its metrics. */
const assertAlive = async ({ healthUrl }: ServiceProcess) => {
  const ask = async (path: string) => {
    const answer = await fetch(`${healthUrl}${path}`)
    return [answer.status, await answer.text()] as const
  }
  assert.deepStrictEqual(await ask("/healthz"), [200, "ok\n"])
  assert.deepStrictEqual(await ask("/readyz"), [503, "not ready\n"])
  const [status, metrics] = await ask("/metrics")
  assert.strictEqual(status, 200)
  assert.include(metrics, "gateway_resident_memory_bytes")
  assert.match(metrics, /^gateway_nats_connected\{account="data"\} 0$/m)
}

/** Checks that a waiting service rejects clients with 503 and its own kind of error. */
const assertRejects = async ({ url }: ServiceProcess, path: string, expected: object) => {
  const answer = await fetch(`${url}${path}`)
  assert.strictEqual(answer.status, 503, path)
  assert.strictEqual(answer.headers.get("retry-after"), "1")
  assert.strictEqual(answer.headers.get("connection"), "close")
  assert.containSubset(await answer.json(), expected)
}

describe("a service that starts before NATS", () => {
  it("is alive but not ready until NATS is up, and then serves", async () => {
    const gateway = shared()
    await Promise.all([...gateway.ingresses, ...gateway.workers].map((service) => service.terminate()))
    await gateway.nats.stop()
    const started = await Promise.all([start("ingress"), start("chat"), start("console")] as const)
    for (const service of started) {
      await untilWaits(service)
      await assertAlive(service)
    }
    const [ingress, , console] = started
    const error = { type: "overloaded_error", code: "unavailable" }
    for (const path of ["/v1/chat/completions", "/v1/models", "/healthz", "/metrics", "/"]) {
      await assertRejects(ingress, path, { error })
    }
    await assertRejects(ingress, "/v1/messages", { type: "error", error })
    await assertRejects(ingress, "/v1beta/models/local-chat:generateContent", { error: { status: "UNAVAILABLE" } })
    for (const path of ["/", "/api/keys", "/healthz"]) await assertRejects(console, path, { _tag: "Unavailable" })
    await gateway.nats.restart()
    await Promise.all(started.map((service) => service.ready()))
    assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"), { ingress })), { kind: "whole" })
    for (const { log } of started) assert.lengthOf(log.match(/waiting for NATS/g) ?? [], 1)
  })

  it("exits cleanly on SIGTERM while it waits", async () => {
    await shared().nats.stop()
    const started = await Promise.all([start("ingress"), start("chat"), start("console")])
    for (const service of started) await untilWaits(service)
    for (const service of started) assert.strictEqual(await service.terminate(), 0, service.name)
  })
})

describe("a command without NATS", () => {
  it("fails at once and says what is missing", async () => {
    const url = `nats://127.0.0.1:${nextPort()}`
    const command = await ServiceProcess.start({
      name: "admin",
      nats: { url },
      words: ["keys", "list"],
      // longer than the test
      environment: { NATS_WAIT_MS: "600000" },
      port: 0
    })
    assert.strictEqual(await command.exited, 1)
    assert.strictEqual(
      command.log,
      `NATS at ${url} cannot be used (connection refused): start a server there, or set NATS_URL to another\n`
    )
  })
})
