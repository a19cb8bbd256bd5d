/**
 * A rolling update of the production manifests without a cluster: their pods as processes, on a NATS with the production
 * configuration, under traffic. No request fails.
 */
import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type AddressInfo, connect, createServer } from "node:net"
import { once } from "node:events"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import type { NatsService } from "../../../shared/bus/provision/Access.ts"
import { missing, render } from "../../fixture/deploy/Manifests.ts"
import * as Pods from "../../fixture/deploy/Pods.ts"
import { chat, type Outcome, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { FakeProvider } from "../../fixture/provider/FakeProvider.ts"
import { testKey } from "../../fixture/gateway/Gateway.ts"
import { Deployment, RunningPod, type Surroundings } from "../../fixture/deploy/Kubelet.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"

const rehearsed = ["ingress", "chat", "embeddings"] as const
const replicas = 2

/** The Service in front of ingress: sends each new connection to the next ready pod. */
const balance = (deployment: Deployment) => {
  let turn = 0
  return createServer((client) => {
    const ready = deployment.all.filter((pod) => pod.ready)
    const pod = ready[turn++ % ready.length]
    if (pod === undefined) return client.destroy()
    const server = connect(pod.port, "127.0.0.1")
    for (const [one, other] of [[client, server], [server, client]] as const) {
      one.pipe(other)
      one.on("error", () => other.destroy())
    }
  }).listen(0, "127.0.0.1")
}

const stage = missing === undefined ? describe : describe.skip
if (missing !== undefined) console.warn(`skipped the rehearsal: ${missing}`)

stage("a rolling update of every service under traffic", { timeout: 120_000 }, () => {
  const documents = missing === undefined ? render("overlays/production") : []
  const pods = Pods.podsOf(documents)
  const podOf = (name: string): Pods.Pod => {
    const pod = pods.find((pod) => pod.name === name)
    return pod ?? assert.fail(`there is no pod ${name}`)
  }
  const folder = mkdtempSync(join(tmpdir(), "rehearsal-"))
  const catalogue = join(folder, "gateway.yaml")
  let nats: SecureNats
  let provider: FakeProvider
  let surroundings: Surroundings
  let deployments: ReadonlyMap<string, Deployment>

  beforeAll(async () => {
    nats = await SecureNats.start()
    provider = await FakeProvider.start()
    const map = documents.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === "catalogue")
    const text = (map as Pods.ConfigMap).data["gateway.yaml"] ?? ""
    writeFileSync(catalogue, text.replace("https://api.openai.com/v1", provider.baseUrl))
    surroundings = {
      environment: () => ({
        NATS_URL: nats.server.url,
        NATS_CA: join(nats.folder, "ca.pem"),
        // this test has a single server
        NATS_REPLICAS: "1",
        GATEWAY_CONFIG: catalogue,
        OTEL_SDK_DISABLED: "true",
        GATEWAY_BOOTSTRAP_KEY: testKey
      }),
      secret: (name, key) =>
        name === "gateway-secret"
          ? "a secret of more than thirty-two characters"
          : nats.seedOf(name.replace(/^nats-/, "") as NatsService, key === "control-seed" ? "control" : "data"),
      secrets: (name) => name === "providers-chat" ? { OPENAI_API_KEY: "provider-secret" } : {}
    }
    const provision = podOf("provision")
    const job = await RunningPod.start(provision, surroundings)
    assert.strictEqual(await job.exited, 0, job.log)
    const args = ["admin", "keys", "ensure", "--name", "rehearsal"]
    const ensure = { ...provision, container: { ...provision.container, args } }
    const key = await RunningPod.start(ensure, surroundings)
    assert.strictEqual(await key.exited, 0, key.log)
    deployments = new Map(rehearsed.map((name) => [name, new Deployment(podOf(name), surroundings)]))
    await Promise.all([...deployments.values()].map((deployment) => deployment.scale(replicas)))
  }, 180_000)

  afterAll(async () => {
    const all = [...deployments?.values() ?? []].flatMap(({ all }) => all)
    await Promise.all(all.map((pod) => pod.kill()))
    await provider?.stop()
    await nats?.remove()
    rmSync(folder, { recursive: true })
  })

  it("fails no request", async () => {
    const ingress = deployments.get("ingress") ?? assert.fail()
    const service = balance(ingress)
    await once(service, "listening")
    const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
    const send = (path: string, body: unknown) =>
      outcomeOf(fetch(`${url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${testKey}`, "content-type": "application/json" },
        body: JSON.stringify(body)
      }))
    // streams of four seconds, so that each replacement meets open ones
    provider.behave({ kind: "paced", chunks: 20, everyMs: 200 })
    const requests: ReadonlyArray<() => Promise<Outcome>> = [
      ...Array.from({ length: 4 }, () => () => send("/v1/chat/completions", chat("gpt-5", { stream: true }))),
      ...Array.from({ length: 2 }, () => () => send("/v1/chat/completions", chat("gpt-5"))),
      ...Array.from({ length: 2 }, () => () => send("/v1/embeddings", { model: "local-embedding", input: "one" }))
    ]
    const rolled = new AbortController()
    const outcomes: Array<Outcome> = []
    const traffic = requests.map(async (request) => {
      while (!rolled.signal.aborted) {
        outcomes.push(await request())
        // a pause for reading the answer: several such clients are traffic enough
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    })
    const exits = await Promise.all([...deployments.values()].map((deployment) => deployment.roll()))
    rolled.abort()
    await Promise.all(traffic)
    service.close()

    const before = [...deployments.values()].flatMap(({ all }) => all.slice(0, replicas))
    assert.deepStrictEqual(tally(outcomes), { whole: outcomes.length })
    assert.isAbove(outcomes.length, 50)
    assert.deepStrictEqual(exits.flat(), before.map(() => 0), before.map(({ log }) => log).join("\n"))
    assert.deepStrictEqual(before.filter(({ overdue }) => overdue), [])
    console.info(`${outcomes.length} requests while ${before.length} processes were replaced`)
  })
})
