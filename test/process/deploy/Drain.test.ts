/** After SIGTERM a process accepts nothing new, finishes its work and exits. */
import { assert, describe, it } from "@effect/vitest"
import { connect as connectToNats } from "@nats-io/transport-node"
import { once } from "node:events"
import { connect } from "node:net"
import { presenceSubject } from "../../../shared/bus/protocol/Subjects.ts"
import { changing, passQuickly } from "../../fixture/clock/Clock.ts"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import type { ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { startProcess } from "../../fixture/gateway/StartProcess.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { hearClaims } from "../../fixture/nats/Claims.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"

/** Each test of a worker has a pool of its own. */
const pools = ["drained", "cut", "alone"]

const shared = sharedGateway({
  models: pools.flatMap((pool) =>
    ["free", "paid"].map((provider) =>
      `  ${provider}-${pool}: { workload: chat, pool: ${pool}, targets: [{ provider: ${provider} }] }`
    )
  ).join("\n")
})

/** The gateway, whose provider forgets the requests of earlier tests. */
const next = () => {
  const gateway = shared()
  gateway.provider.requests.length = 0
  return gateway
}

/** Starts streams, which the provider holds after two events. */
const beginStreams = (model: string, count: number, ingress = shared().ingress) => {
  const { provider } = shared()
  provider.behave({ kind: "hold", after: 2 })
  return Promise.all(
    Array.from({ length: count }, () => startStream(shared().request(chat(model, { stream: true }), { ingress })))
  )
}

const outcomesOf = async (streams: Awaited<ReturnType<typeof beginStreams>>) =>
  tally(await Promise.all(streams.map((stream) => stream.outcome())))

const untilNotReady = (process: ServiceProcess) => eventually(() => process.readiness(), (answer) => answer === 503)

/** Resolves once the public port refuses connections. */
const untilClosed = ({ url }: ServiceProcess) =>
  eventually(
    () => fetch(url).then(async ({ body }) => body?.cancel(), () => "refused"),
    (answer) => answer === "refused"
  )

/** Waits until a process tells the console this of itself. */
const untilTells = async ({ pid }: ServiceProcess, expected: string) => {
  const connection = await connectToNats({ servers: shared().nats.url, reconnect: false })
  const told = new Map<number, string>()
  try {
    const inbox = "told"
    connection.subscribe(inbox, {
      callback: (_, answer) => {
        const process = answer.json<{ readonly pid: number; readonly state: string }>()
        told.set(process.pid, process.state)
      }
    })
    connection.publish(presenceSubject, "", { reply: inbox })
    await eventually(() => told.get(pid), (state) => state === expected)
  } finally {
    await connection.close()
  }
}

/** Checks that it is alive but not ready, serves metrics and tells the console that it drains. */
const assertDraining = async (process: ServiceProcess) => {
  const { healthUrl } = process
  const statuses = await Promise.all(
    ["/healthz", "/readyz", "/metrics"].map(async (path) => {
      const { body, status } = await fetch(`${healthUrl}${path}`)
      await body?.cancel()
      return status
    })
  )
  assert.deepStrictEqual(statuses, [200, 503, 200])
  await untilTells(process, "draining")
}

describe("a worker on SIGTERM", () => {
  it("finishes its hundred streams, leaves new jobs to others and exits", async () => {
    const gateway = next()
    const pool = { WORKER_POOL: "drained" }
    const worker = await startProcess(gateway, "chat", { environment: pool })
    const streams = await beginStreams("free-drained", 100)
    await untilTells(worker, "ready")
    const exit = worker.terminate()
    await untilNotReady(worker)
    await assertDraining(worker)
    const late = outcomeOf(gateway.request(chat("free-drained")))
    await gateway.startWorker(pool)
    gateway.provider.behave({ kind: "answer" })
    gateway.provider.release()
    assert.deepStrictEqual(await outcomesOf(streams), { whole: 100 })
    assert.strictEqual(await exit, 0)
    await gateway.provider.until(() => gateway.provider.requests.length === 101)
    gateway.provider.release()
    assert.deepStrictEqual(await late, { kind: "whole" })
    await untilNoJobs(gateway.nats)
  })

  it("ends unfinished streams with an error after its grace period, and closes their calls", async () => {
    const gateway = next()
    const environment = { WORKER_POOL: "cut", WORKER_GRACE_MS: "100" }
    const worker = await startProcess(gateway, "chat", { environment })
    const streams = await beginStreams("free-cut", 10)
    assert.strictEqual(await worker.terminate(), 0)
    assert.deepStrictEqual(await outcomesOf(streams), { "failed worker_lost": 10 })
    const ends = await Promise.all(gateway.provider.requests.map(({ closed }) => closed))
    assert.deepStrictEqual([...new Set(ends)], ["aborted"])
    await untilNoJobs(gateway.nats)
  })
})

describe("an ingress on SIGTERM", () => {
  it("finishes its requests, refuses connections, waits for no idle one and exits", async () => {
    const gateway = next()
    const { provider } = gateway
    const ingress = await startProcess(gateway, "ingress")
    // browsers and load balancers open connections in advance
    const idle = connect(ingress.port, "127.0.0.1")
    await once(idle, "connect")
    const streams = await beginStreams("free-chat", 50, ingress)
    provider.behave({ kind: "silent" })
    const whole = Array.from({ length: 10 }, () => outcomeOf(gateway.request(chat("paid-chat"), { ingress })))
    await provider.until(() => provider.requests.length === 60)
    const exit = ingress.terminate()
    // it closes this one while others have unfinished requests
    await once(idle, "close")
    await untilClosed(ingress)
    await assertDraining(ingress)
    provider.release()
    assert.deepStrictEqual(await outcomesOf(streams), { whole: 50 })
    assert.deepStrictEqual(tally(await Promise.all(whole)), { whole: 10 })
    assert.strictEqual(await exit, 0)
    await untilNoJobs(gateway.nats)
  })

  it("is not ready at once, but serves until load balancers notice, without keep-alive", async () => {
    const gateway = next()
    // longer than the test
    const ingress = await startProcess(gateway, "ingress", { environment: { DRAIN_DELAY_MS: "600000" } })
    void ingress.terminate()
    await untilNotReady(ingress)
    const response = await gateway.request(chat("local-chat"), { ingress })
    assert.strictEqual(response.headers.get("connection"), "close")
    assert.deepStrictEqual(await outcomeOf(response), { kind: "whole" })
  })

  it("gives up its open requests after half a minute without NATS, and exits", async () => {
    const gateway = next()
    const { provider } = gateway
    const [ingress, worker] = await Promise.all([
      startProcess(gateway, "ingress", { environment: changing(), wired: true }),
      startProcess(gateway, "chat", { environment: changing({ WORKER_POOL: "alone" }), wired: true })
    ])
    const claims = await hearClaims(gateway.nats)
    const [stream] = await beginStreams("free-alone", 1, ingress)
    provider.behave({ kind: "silent" })
    const [free, paid] = ["free-alone", "paid-alone"].map((model) =>
      outcomeOf(gateway.request(chat(model), { ingress }))
    )
    await provider.until(() => provider.requests.length === 3)
    // a claim may still be in flight when the provider has the request, and would be lost with the connection
    await claims.until(3)
    await claims.close()
    for (const process of [ingress, worker]) process.cut()
    await eventually(() => ingress.log, (log) => log.includes("NATS connection lost"))
    const exits = [ingress.terminate(), worker.terminate()]
    passQuickly(ingress)
    assert.deepStrictEqual(await stream!.outcome(), { kind: "failed", code: "worker_lost" })
    assert.deepInclude(await free, { kind: "refused", status: 503, code: "queue_timeout" })
    assert.deepInclude(await paid, { kind: "refused", status: 502, code: "worker_lost" })
    provider.release()
    await provider.until(() => provider.open === 0)
    // the worker waits for NATS to store its usage
    passQuickly(worker)
    assert.deepStrictEqual(await Promise.all(exits), [0, 0])
  })
})
