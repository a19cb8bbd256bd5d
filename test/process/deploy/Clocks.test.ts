/** Wrong clocks, and clocks that change while requests run: no request is lost and none hangs. */
import { assert, describe, it } from "@effect/vitest"
import { join } from "node:path"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

const patienceMs = 4_000

/** Environment of a process whose clock is wrong or changes. */
const clock = (settings: Readonly<Record<string, string>>) => ({
  NODE_OPTIONS: `--import ${join(import.meta.dirname, "../../fixture/clock/main.ts")}`,
  ...settings
})

const environment = { GATEWAY_QUEUE_TIMEOUT_MS: String(patienceMs) }

const ask = (gateway: Gateway) =>
  Promise.all(
    ["free-chat", "paid-chat"].flatMap((model) =>
      Array.from({ length: 10 }, () => outcomeOf(gateway.request(chat(model))))
    )
  )

describe("a clock that is a minute", { timeout: 60_000 }, () => {
  const wrong = [
    ["ahead at a worker", "chat", "60000"],
    ["behind at a worker", "chat", "-60000"],
    ["ahead at ingress", "ingress", "60000"],
    ["behind at ingress", "ingress", "-60000"]
  ] as const
  it.live.each(wrong)("%s costs no request", ([, of, ms]) =>
    Gateway.run(
      { environment, environmentOf: (service) => service === of ? clock({ CLOCK_AHEAD_MS: ms }) : {} },
      async (gateway) => {
        assert.deepStrictEqual(tally(await ask(gateway)), { whole: 20 })
      }
    ))
})

describe("a clock that steps back an hour", { timeout: 60_000 }, () => {
  const steps = { environment: { ...environment, ...clock({ CLOCK_STEP_MS: "-3600000" }) } }

  it.live("ends and stalls no stream", () =>
    Gateway.run(steps, async (gateway) => {
      const [worker] = gateway.workers
      for (const { pid } of [gateway.ingress, worker!]) {
        gateway.provider.behave({ kind: "hold", after: 2 })
        const stream = await startStream(gateway.request(chat("paid-chat", { stream: true })))
        process.kill(pid, "SIGUSR2")
        gateway.provider.release()
        assert.deepStrictEqual(await stream.outcome(), { kind: "whole" })
        gateway.provider.behave({ kind: "answer" })
        assert.deepStrictEqual(tally(await ask(gateway)), { whole: 20 })
      }
    }))

  it.live("at ingress does not delay the detection of a dead worker or a job's deadline", () =>
    Gateway.run(steps, async (gateway) => {
      gateway.provider.behave({ kind: "hold", after: 2 })
      const stream = await startStream(gateway.request(chat("free-chat", { stream: true })))
      process.kill(gateway.ingress.pid, "SIGUSR2")
      await gateway.workers[0]?.kill()
      assert.deepStrictEqual(await stream.outcome(), { kind: "failed", code: "worker_lost" })
      const asked = performance.now()
      const waiting = outcomeOf(gateway.request(chat("free-chat")))
      process.kill(gateway.ingress.pid, "SIGUSR2")
      assert.deepInclude(await waiting, { kind: "refused", code: "queue_timeout" })
      assert.isBelow(performance.now() - asked, 2 * patienceMs)
    }))
})
