/** Services that start before NATS, as in Kubernetes and Compose: they stay alive, wait, and serve once it is up. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { chat, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway, testAdminToken, testSecret, workerSecrets } from "../../fixture/gateway/Gateway.ts"
import { nextPort } from "../../fixture/nats/NatsServer.ts"
import { freePort, ServiceProcess } from "../../fixture/gateway/ServiceProcess.ts"

const services = ["ingress", "chat", "console"] as const

/** A page for the console to serve as its web app. */
const pageOf = (gateway: Gateway): string => {
  const folder = join(dirname(gateway.catalogueFile), "web")
  mkdirSync(join(folder, "assets"), { recursive: true })
  writeFileSync(join(folder, "index.html"), "")
  return folder
}

const start = async (gateway: Gateway, name: typeof services[number]): Promise<ServiceProcess> => {
  const healthPort = await freePort()
  const port = name === "chat" ? healthPort : await freePort()
  const started = await ServiceProcess.start({
    name,
    nats: gateway.nats,
    port,
    healthPort,
    environment: {
      PORT: String(port),
      HEALTH_PORT: String(healthPort),
      GATEWAY_CONFIG: gateway.catalogueFile,
      GATEWAY_SECRET: testSecret,
      ...(name === "chat" ? workerSecrets : {}),
      CONSOLE_ADMIN_TOKEN: testAdminToken,
      CONSOLE_WEB: pageOf(gateway)
    }
  })
  gateway.processes.push(started)
  return started
}

const isWaiting = ({ log }: ServiceProcess) => log.includes("waiting for NATS")

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

describe("a service that starts before NATS", { timeout: 120_000 }, () => {
  it.live("is alive but not ready until NATS is up, and then serves", () =>
    Gateway.run({}, async (gateway) => {
      await Promise.all([gateway.ingress.terminate(), ...gateway.workers.map((worker) => worker.terminate())])
      await gateway.nats.stop()
      const started = await Promise.all(
        [
          start(gateway, "ingress"),
          start(gateway, "chat"),
          start(gateway, "console")
        ] as const
      )
      for (const service of started) {
        await eventually(() => Promise.resolve(isWaiting(service)), Boolean)
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
    }))

  it.live("exits cleanly on SIGTERM while it waits", () =>
    Gateway.run({}, async (gateway) => {
      await gateway.nats.stop()
      for (const name of services) {
        const service = await start(gateway, name)
        await eventually(() => Promise.resolve(isWaiting(service)), Boolean)
        const told = performance.now()
        assert.strictEqual(await service.terminate(), 0, name)
        assert.isBelow(performance.now() - told, 15_000, name)
      }
    }))
})

describe("a command without NATS", { timeout: 60_000 }, () => {
  it.live("fails at once and says what is missing", () =>
    Effect.promise(async () => {
      const url = `nats://127.0.0.1:${nextPort()}`
      const command = await ServiceProcess.start({
        name: "admin",
        nats: { url },
        words: ["keys", "list"],
        environment: { NATS_WAIT_MS: "600000" },
        port: 0
      })
      assert.strictEqual(await command.exited, 1)
      assert.strictEqual(
        command.log,
        `NATS at ${url} cannot be used (connection refused): start a server there, or set NATS_URL to another\n`
      )
    }))
})
