/** A queue without workers has a deadline and a bound. */
import { assert, describe, it } from "@effect/vitest"
import { chat, type Outcome, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { untilJobs, untilNoJobs } from "../../fixture/nats/JobStream.ts"

const timed = async (outcome: Promise<Outcome>) => {
  const start = performance.now()
  return { outcome: await outcome, tookMs: performance.now() - start }
}

const full = { GATEWAY_WINDOW: "2", GATEWAY_QUEUE_LIMIT: "3", GATEWAY_TENANT_QUEUE_LIMIT: "3" }

describe("without a worker", { timeout: 90_000 }, () => {
  it.live("a request is rejected with a time to retry at its deadline in the queue, and never runs", () =>
    Gateway.run({ workers: 0, environment: { GATEWAY_QUEUE_TIMEOUT_MS: "1000" } }, async (gateway) => {
      for (const stream of [false, true]) {
        const { outcome, tookMs } = await timed(outcomeOf(gateway.request(chat("free-chat", { stream }))))
        assert.deepStrictEqual(outcome, { kind: "refused", status: 503, code: "queue_timeout", retryAfter: "1" })
        assert.isAtLeast(tookMs, 1_000)
        assert.isBelow(tookMs, 10_000)
      }
      await untilJobs(gateway.nats, ({ stored }) => stored === 2)
      await gateway.startWorker()
      await untilNoJobs(gateway.nats)
      assert.lengthOf(gateway.provider.requests, 0)
      assert.deepStrictEqual(await outcomeOf(gateway.request(chat("free-chat"))), { kind: "whole" })
    }))

  it.live("a full queue rejects further requests at once, and serves its own once a worker starts", () =>
    Gateway.run({ workers: 0, environment: full }, async (gateway) => {
      // there is room for two in the window and three in the queue
      const outcomes: Array<Outcome> = []
      const answers = Array.from(
        { length: 8 },
        async () => outcomes.push(await outcomeOf(gateway.request(chat("paid-chat"))))
      )
      await eventually(() => Promise.resolve(outcomes.length), (count) => count === 3)
      assert.deepStrictEqual(tally(outcomes), { "refused 429 queue_full 1": 3 })
      await gateway.startWorker()
      await Promise.all(answers)
      assert.deepStrictEqual(tally(outcomes), { "refused 429 queue_full 1": 3, whole: 5 })
      assert.lengthOf(gateway.provider.requests, 5)
      await untilNoJobs(gateway.nats)
    }))
})
