/** After SIGTERM a process accepts nothing new, finishes its work and exits. */
import { assert, describe, it } from "@effect/vitest"
import { connect as connectToNats } from "@nats-io/transport-node"
import { once } from "node:events"
import { connect } from "node:net"
import { presenceSubject } from "../../../shared/bus/protocol/Subjects.ts"
import { hearClaims } from "../../fixture/nats/Claims.ts"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway, type ServiceProcess } from "../../fixture/gateway/Gateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"

/** Starts streams, which the provider holds after two events. */
const beginStreams = (gateway: Gateway, count: number) => {
  gateway.provider.behave({ kind: "hold", after: 2 })
  return Promise.all(
    Array.from({ length: count }, () => startStream(gateway.request(chat("free-chat", { stream: true }))))
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

/** What a process tells the console of itself; `undefined` if it does not answer. */
const stateOf = async ({ nats }: Gateway, { pid }: ServiceProcess) => {
  const connection = await connectToNats({ servers: nats.url.split(","), reconnect: false })
  try {
    const answers = await connection.requestMany(presenceSubject, "", { strategy: "timer", maxWait: 5_000 })
    for await (const answer of answers) {
      const process = answer.json<{ readonly pid: number; readonly state: string }>()
      if (process.pid === pid) return process.state
    }
    return undefined
  } finally {
    await connection.close()
  }
}

/** Checks that it is alive but not ready, serves metrics and tells the console that it drains. */
const assertDraining = async (gateway: Gateway, process: ServiceProcess) => {
  const { healthUrl } = process
  const statuses = await Promise.all(
    ["/healthz", "/readyz", "/metrics"].map(async (path) => {
      const { body, status } = await fetch(`${healthUrl}${path}`)
      await body?.cancel()
      return status
    })
  )
  assert.deepStrictEqual(statuses, [200, 503, 200])
  assert.strictEqual(await stateOf(gateway, process), "draining")
}

describe("a worker on SIGTERM", { timeout: 180_000 }, () => {
  it.live("finishes its hundred streams, leaves new jobs to others and exits", () =>
    Gateway.run({ environment: { WORKER_SLOTS: "128" } }, async (gateway) => {
      const [worker] = gateway.workers
      const streams = await beginStreams(gateway, 100)
      assert.strictEqual(await stateOf(gateway, worker!), "ready")
      const exit = worker!.terminate()
      await untilNotReady(worker!)
      await assertDraining(gateway, worker!)
      const late = outcomeOf(gateway.request(chat("free-chat")))
      await gateway.startWorker()
      gateway.provider.behave({ kind: "answer" })
      const released = performance.now()
      gateway.provider.release()
      assert.deepStrictEqual(await outcomesOf(streams), { whole: 100 })
      assert.strictEqual(await exit, 0)
      console.log(`worker ended ${(performance.now() - released).toFixed(0)} ms after its streams were released`)
      await gateway.provider.until(() => gateway.provider.requests.length === 101)
      gateway.provider.release()
      assert.deepStrictEqual(await late, { kind: "whole" })
      await untilNoJobs(gateway.nats)
    }))

  it.live("ends unfinished streams with an error after its grace period, and closes their calls", () =>
    Gateway.run({ environment: { WORKER_GRACE_MS: "300" } }, async (gateway) => {
      const streams = await beginStreams(gateway, 10)
      assert.strictEqual(await gateway.workers[0]!.terminate(), 0)
      assert.deepStrictEqual(await outcomesOf(streams), { "failed worker_lost": 10 })
      const ends = await Promise.all(gateway.provider.requests.map(({ closed }) => closed))
      assert.deepStrictEqual([...new Set(ends)], ["aborted"])
      await untilNoJobs(gateway.nats)
    }))
})

describe("an ingress on SIGTERM", { timeout: 180_000 }, () => {
  it.live("finishes its requests, refuses connections, waits for no idle one and exits", () =>
    Gateway.run({ environment: { WORKER_SLOTS: "128" } }, async (gateway) => {
      // browsers and load balancers open connections in advance
      const idle = connect(gateway.ingress.port, "127.0.0.1")
      await once(idle, "connect")
      const streams = await beginStreams(gateway, 50)
      gateway.provider.behave({ kind: "silent" })
      const whole = Array.from({ length: 10 }, () => outcomeOf(gateway.request(chat("paid-chat"))))
      await gateway.provider.until(() => gateway.provider.requests.length === 60)
      const exit = gateway.ingress.terminate()
      await untilClosed(gateway.ingress)
      await assertDraining(gateway, gateway.ingress)
      gateway.provider.release()
      assert.deepStrictEqual(await outcomesOf(streams), { whole: 50 })
      assert.deepStrictEqual(tally(await Promise.all(whole)), { whole: 10 })
      const finished = performance.now()
      assert.strictEqual(await exit, 0)
      console.log(`ingress ended ${(performance.now() - finished).toFixed(0)} ms after its last answer`)
      // clients may keep their connections open for 65 s
      assert.isBelow(performance.now() - finished, 5_000)
      idle.destroy()
      await untilNoJobs(gateway.nats)
    }))

  it.live("is not ready at once, but serves until load balancers notice, without keep-alive", () =>
    Gateway.run({ environment: { DRAIN_DELAY_MS: "5000" } }, async (gateway) => {
      const exit = gateway.ingress.terminate()
      await untilNotReady(gateway.ingress)
      const response = await gateway.request(chat("local-chat"))
      assert.strictEqual(response.headers.get("connection"), "close")
      assert.deepStrictEqual(await outcomeOf(response), { kind: "whole" })
      assert.strictEqual(await exit, 0)
    }))

  it.live("gives up its open requests after half a minute without NATS, and exits", () =>
    Gateway.run({}, async (gateway) => {
      const claims = await hearClaims(gateway.nats)
      const [stream] = await beginStreams(gateway, 1)
      gateway.provider.behave({ kind: "silent" })
      const [free, paid] = ["free-chat", "paid-chat"].map((model) => outcomeOf(gateway.request(chat(model))))
      await gateway.provider.until(() => gateway.provider.requests.length === 3)
      // a claim may still be in flight when the provider has the request, and would be lost with the server
      await claims.until(3)
      await claims.close()
      await gateway.nats.kill()
      const exits = [gateway.ingress.terminate(), gateway.workers[0]!.terminate()]
      assert.deepStrictEqual(await stream!.outcome(), { kind: "failed", code: "worker_lost" })
      assert.deepInclude(await free, { kind: "refused", status: 503, code: "queue_timeout" })
      assert.deepInclude(await paid, { kind: "refused", status: 502, code: "worker_lost" })
      gateway.provider.release()
      assert.deepStrictEqual(await Promise.all(exits), [0, 0])
    }))
})
