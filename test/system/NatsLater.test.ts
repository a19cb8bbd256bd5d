/** Services that are started before NATS, as a cluster and a composition do it: they live, wait, and serve when it comes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { chat, outcomeOf } from "../fixture/ChatClient.ts"
import { eventually } from "../fixture/Eventually.ts"
import { Gateway, testAdminToken, testSecret } from "../fixture/Gateway.ts"
import { randomPort } from "../fixture/NatsServer.ts"
import { freePort, ServiceProcess } from "../fixture/ServiceProcess.ts"

/** Each by the variable that says where it listens. */
const services = { ingress: "PORT", chat: "HEALTH_PORT", console: "PORT" } as const

/** What the console takes for its web app: any page will do. */
const pageOf = (gateway: Gateway): string => {
  const folder = join(dirname(gateway.catalogueFile), "web")
  mkdirSync(join(folder, "assets"), { recursive: true })
  writeFileSync(join(folder, "index.html"), "")
  return folder
}

const start = async (gateway: Gateway, name: keyof typeof services): Promise<ServiceProcess> => {
  const port = await freePort()
  const started = await ServiceProcess.start({
    name,
    nats: gateway.nats,
    port,
    environment: {
      [services[name]]: String(port),
      GATEWAY_CONFIG: gateway.catalogueFile,
      GATEWAY_SECRET: testSecret,
      CONSOLE_ADMIN_TOKEN: testAdminToken,
      CONSOLE_WEB: pageOf(gateway)
    }
  })
  gateway.processes.push(started)
  return started
}

const waits = ({ log }: ServiceProcess) => log.includes("waiting for NATS")

/** Whether a service that waits lives, and says so to nobody but who asks for that. */
const answers = async ({ url }: ServiceProcess) => {
  const ask = async (path: string) => {
    const answer = await fetch(`${url}${path}`)
    return `${answer.status} ${(await answer.text()).trim()} ${answer.headers.get("retry-after")}`
  }
  assert.strictEqual(await ask("/healthz"), "200 ok null")
  for (const path of ["/readyz", "/v1/models", "/"]) assert.strictEqual(await ask(path), "503 starting 1", path)
}

describe("a service that is started before NATS", { timeout: 60_000 }, () => {
  it.live("lives and is not ready until NATS comes, and then serves", () =>
    Gateway.run({}, async (gateway) => {
      await Promise.all([gateway.ingress.terminate(), ...gateway.workers.map((worker) => worker.terminate())])
      await gateway.nats.stop()
      const started = await Promise.all([
        start(gateway, "ingress"),
        start(gateway, "chat"),
        start(gateway, "console")
      ])
      for (const service of started) {
        await eventually(() => Promise.resolve(waits(service)), Boolean, 20_000)
        await answers(service)
      }
      await gateway.nats.restart()
      await Promise.all(started.map((service) => service.ready()))
      const [ingress] = started
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"), { ingress })), { kind: "whole" })
      for (const { log } of started) assert.lengthOf(log.match(/waiting for NATS/g) ?? [], 1)
    }))

  it.live("ends well on SIGTERM while it waits", () =>
    Gateway.run({}, async (gateway) => {
      await gateway.nats.stop()
      for (const name of ["ingress", "chat", "console"] as const) {
        const service = await start(gateway, name)
        await eventually(() => Promise.resolve(waits(service)), Boolean, 20_000)
        const told = performance.now()
        assert.strictEqual(await service.terminate(), 0, name)
        assert.isBelow(performance.now() - told, 2_000, name)
      }
    }))
})

describe("a command without NATS", { timeout: 60_000 }, () => {
  it.live("waits for nothing, and says what is missing", () =>
    Effect.promise(async () => {
      const url = `nats://127.0.0.1:${randomPort()}`
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
        `NATS at ${url} cannot be used (connection refused): start a server there, or name another in NATS_URL\n`
      )
    }))
})
