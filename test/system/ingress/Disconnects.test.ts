/** Hundreds of clients that disconnect at once, in every state of a request: all work for them stops. */
import { assert, describe, it } from "@effect/vitest"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import type { AnyGateway } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"

const clients = 200

/**
 * Workers whose slots one tenant may use for as many clients: an eighth of 228 is reserved for newcomers. Each has few enough to keep
 * them while this process is busy.
 */
const workers = 4
const slots = 57

/** Resolves once every client's request waits at ingress for a slot. */
const untilAllWait = ({ ingress }: AnyGateway) =>
  eventually(
    async () => (await fetch(`${ingress.healthUrl}/metrics`)).text(),
    (metrics) =>
      [...metrics.matchAll(
        /^gateway_queue_jobs\{[^}]*workload="chat"[^}]*state="(?:waiting|unclaimed)"[^}]*\} (\d+)$/gm
      )]
        .reduce((sum, [, count]) => sum + Number(count), 0) >= clients
  )

/** Sends the requests, half of them for a model with paid calls; returns how to disconnect. */
const ask = (gateway: AnyGateway, more: object = {}) => {
  const controller = new AbortController()
  const answers = Array.from(
    { length: clients },
    (_, index) =>
      gateway.request(chat(index % 2 === 0 ? "free-chat" : "paid-chat", more), { signal: controller.signal })
  )
  return {
    answers,
    outcomes: Promise.all(answers.map((answer) => outcomeOf(answer))),
    disconnect: () => controller.abort()
  }
}

/** Every call is closed although the provider would have gone on, the queue is empty, and the gateway serves. */
const assertAllWorkStopped = async (gateway: AnyGateway) => {
  const { nats, provider } = gateway
  await provider.until(() => provider.open === 0)
  assert.deepStrictEqual([...new Set(provider.requests.map(({ outcome }) => outcome))], ["aborted"])
  await untilNoJobs(nats)
  provider.behave({ kind: "answer" })
  for (const stream of [false, true]) {
    assert.deepStrictEqual(tally(await ask(gateway, { stream }).outcomes), { whole: clients })
  }
}

describe("two hundred clients that disconnect", () => {
  const shared = sharedGateway({ workers, environment: { WORKER_SLOTS: String(slots) } })
  /** The gateway, whose provider forgets the requests of earlier tests. */
  const next = () => {
    const gateway = shared()
    gateway.provider.requests.length = 0
    return gateway
  }

  it("in the middle of their streams close every call and leave no job", async () => {
    const gateway = next()
    gateway.provider.behave({ kind: "hold", after: 2 })
    const controller = new AbortController()
    await Promise.all(
      Array.from(
        { length: clients },
        (_, index) =>
          startStream(gateway.request(chat(index % 2 === 0 ? "free-chat" : "paid-chat", { stream: true }), {
            signal: controller.signal
          }))
      )
    )
    controller.abort()
    await assertAllWorkStopped(gateway)
  })

  it("before the first byte close every call and leave no job", async () => {
    const gateway = next()
    gateway.provider.behave({ kind: "silent" })
    const { disconnect, outcomes } = ask(gateway)
    await gateway.provider.until(() => gateway.provider.requests.length === clients)
    disconnect()
    assert.isTrue((await outcomes).every(({ kind }) => kind === "broken"))
    await assertAllWorkStopped(gateway)
  })

  it("while as many wait for a slot and disconnect too leave no call and no job", async () => {
    const gateway = next()
    gateway.provider.behave({ kind: "silent" })
    const running = ask(gateway)
    await gateway.provider.until(() => gateway.provider.requests.length === clients)
    const waiting = ask(gateway, { stream: true })
    await untilAllWait(gateway)
    waiting.disconnect()
    running.disconnect()
    for (const outcome of [...await running.outcomes, ...await waiting.outcomes]) {
      assert.strictEqual(outcome.kind, "broken")
    }
    await assertAllWorkStopped(gateway)
  })

  it("while they wait for a slot cost the others nothing", async () => {
    const gateway = next()
    gateway.provider.behave({ kind: "silent" })
    const running = ask(gateway)
    await gateway.provider.until(() => gateway.provider.requests.length === clients)
    const waiting = ask(gateway)
    await untilAllWait(gateway)
    waiting.disconnect()
    await waiting.outcomes
    gateway.provider.behave({ kind: "answer" })
    const late = ask(gateway)
    gateway.provider.release()
    assert.deepStrictEqual(tally(await running.outcomes), { whole: clients })
    assert.deepStrictEqual(tally(await late.outcomes), { whole: clients })
    await untilNoJobs(gateway.nats)
  })
})
