/** Wrong clocks, and clocks that change while requests run: no request is lost and none hangs. */
import { assert, describe, it } from "@effect/vitest"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import { changing, passQuickly, stepClock } from "../../fixture/clock/Clock.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { startProcess } from "../../fixture/gateway/StartProcess.ts"

/** A wrong worker has a pool of its own. */
const pools = ["ahead", "behind", "stepping"]

const shared = sharedGateway({
  models: pools.flatMap((pool) =>
    ["free", "paid"].map((provider) =>
      `  ${provider}-${pool}: { workload: chat, pool: ${pool}, targets: [{ provider: ${provider} }] }`
    )
  ).join("\n")
})

const ask = (models: ReadonlyArray<string>, ingress = shared().ingress) =>
  Promise.all(
    models.flatMap((model) => Array.from({ length: 10 }, () => outcomeOf(shared().request(chat(model), { ingress }))))
  )

describe("a clock that is a minute", () => {
  const wrong = [["ahead", "60000"], ["behind", "-60000"]] as const

  it.each(wrong)("%s at a worker costs no request", async (pool, ms) => {
    await startProcess(shared(), "chat", { environment: changing({ CLOCK_AHEAD_MS: ms, WORKER_POOL: pool }) })
    assert.deepStrictEqual(tally(await ask([`free-${pool}`, `paid-${pool}`])), { whole: 20 })
  })

  it.each(wrong)("%s at ingress costs no request", async (_, ms) => {
    const ingress = await startProcess(shared(), "ingress", { environment: changing({ CLOCK_AHEAD_MS: ms }) })
    assert.deepStrictEqual(tally(await ask(["free-chat", "paid-chat"], ingress)), { whole: 20 })
  })
})

describe("a clock that steps back an hour", () => {
  it("ends and stalls no stream, and delays neither the detection of a dead worker nor a job's deadline", async () => {
    const { provider } = shared()
    const settings = { CLOCK_STEP_MS: "-3600000" }
    const [ingress, worker] = await Promise.all([
      startProcess(shared(), "ingress", { environment: changing(settings) }),
      startProcess(shared(), "chat", { environment: changing({ ...settings, WORKER_POOL: "stepping" }) })
    ])
    const begin = (model: string) => {
      provider.behave({ kind: "hold", after: 2 })
      return startStream(shared().request(chat(model, { stream: true }), { ingress }))
    }
    for (const process of [ingress, worker]) {
      const stream = await begin("paid-stepping")
      stepClock(process)
      provider.release()
      assert.deepStrictEqual(await stream.outcome(), { kind: "whole" })
      provider.behave({ kind: "answer" })
      assert.deepStrictEqual(tally(await ask(["free-stepping", "paid-stepping"], ingress)), { whole: 20 })
    }

    const stream = await begin("free-stepping")
    stepClock(ingress)
    await worker.kill()
    assert.deepStrictEqual(await stream.outcome(), { kind: "failed", code: "worker_lost" })
    const waiting = outcomeOf(shared().request(chat("free-stepping"), { ingress }))
    stepClock(ingress)
    // half a minute, but not an hour
    passQuickly(ingress)
    assert.deepInclude(await waiting, { kind: "refused", code: "queue_timeout" })
  })
})
