/** NATS is away for five seconds or more under load, and comes back without its streams in memory. */
import { assert, describe, it } from "@effect/vitest"
import { chat, isAllowedDuringFailure, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { untilNoJobs } from "../../fixture/nats/JobStream.ts"
import { Load } from "../../fixture/client/Load.ts"

const queueTimeoutMs = 4_000

/**
 * The longest a request may take, in milliseconds: five seconds of outage, seven until a job is given up whose last frames
 * were lost in it, and another attempt; as much again and more is for a busy machine.
 */
const patienceMs = 40_000

/** The outage lasts this long, and until ingress has refused the requests that it received meanwhile. */
const outageMs = 5_000

const ends = [
  ["stopped", (gateway: Gateway) => gateway.nats.stop()],
  ["killed", (gateway: Gateway) => gateway.nats.kill()]
] as const

describe.each(ends)("a nats-server that is %s for five seconds", { timeout: 120_000 }, (_, end) => {
  it.live("leaves no request hanging and no process dead, and everything recovers", () =>
    Gateway.run(
      { workers: 2, environment: { GATEWAY_QUEUE_TIMEOUT_MS: String(queueTimeoutMs) } },
      async (gateway) => {
        gateway.provider.behave({ kind: "paced", chunks: 20, everyMs: 10 })
        const load = new Load(gateway, { clients: 20, patienceMs })
        await load.untilWhole(40)
        await end(gateway)
        const during = Array.from({ length: 10 }, () => outcomeOf(gateway.request(chat("free-chat"))))
        const refused = Promise.all(during)
        await Promise.all([refused, new Promise((resolve) => setTimeout(resolve, outageMs))])
        await gateway.nats.restart()
        const back = performance.now()
        await load.untilWhole(40, back)
        console.log(`40 whole answers ${(performance.now() - back).toFixed(0)} ms after NATS was back`)
        await load.stop()
        console.log(load.tally)
        console.log(`slowest request ${Math.max(...load.entries.map(({ tookMs }) => tookMs)).toFixed(0)} ms`)
        assert.deepStrictEqual(load.entries.filter(({ outcome }) => !isAllowedDuringFailure(outcome)), [])
        // their deadline passed during the outage; the time to retry depends on how fast the queue was served before
        for (const outcome of await refused) {
          assert.deepInclude(outcome, { kind: "refused", status: 503, code: "queue_timeout" })
          assert.isAtLeast(Number(outcome.kind === "refused" ? outcome.retryAfter : 0), 1)
        }

        gateway.provider.behave({ kind: "answer" })
        // as many at once as before: more might not be served in time on a slow machine
        const after = new Load(gateway, { clients: 20, patienceMs })
        await after.untilWhole(200)
        await after.stop()
        assert.deepStrictEqual(after.entries.filter(({ outcome }) => outcome.kind !== "whole"), [])
        assert.isFalse([gateway.ingress, ...gateway.workers].some(({ hasExited }) => hasExited))
        await untilNoJobs(gateway.nats)
      }
    ))
})
