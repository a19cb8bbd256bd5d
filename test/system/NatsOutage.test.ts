/** NATS goes away for five seconds under load, and comes back without the streams it held in memory. */
import { assert, describe, it } from "@effect/vitest"
import { chat, type Outcome, outcomeOf, tally } from "../fixture/ChatClient.ts"
import { eventually } from "../fixture/Eventually.ts"
import { Gateway } from "../fixture/Gateway.ts"
import { untilNoJobs } from "../fixture/JobStream.ts"

const queueTimeoutMs = 4_000

/**
 * The longest that a request may take, in milliseconds: five seconds of outage, seven until a job is given up whose last
 * frames were lost in it, and another attempt.
 */
const patienceMs = 15_000

const outageMs = 5_000

interface Answered {
  readonly outcome: Outcome
  readonly beganAt: number
  readonly tookMs: number
}

/** Twenty requests at a time, every other one streamed, until it is told to stop. */
class Load {
  readonly answered: Array<Answered> = []
  readonly #gateway: Gateway
  readonly #clients: ReadonlyArray<Promise<void>>
  #stopped = false

  constructor(gateway: Gateway) {
    this.#gateway = gateway
    this.#clients = Array.from({ length: 20 }, (_, index) => this.#client(index % 2 === 0))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }

  /** Waits for so many whole answers to requests that began after a moment. */
  untilWhole(count: number, after: number): Promise<number> {
    const whole = () =>
      this.answered.filter(({ beganAt, outcome }) => beganAt > after && outcome.kind === "whole").length
    return eventually(() => Promise.resolve(whole()), (sight) => sight >= count, 20_000)
  }

  async #client(stream: boolean): Promise<void> {
    while (!this.#stopped) {
      const beganAt = performance.now()
      const signal = AbortSignal.timeout(patienceMs)
      const outcome = await outcomeOf(this.#gateway.request(chat("free-chat", { stream }), { signal }))
      this.answered.push({ outcome, beganAt, tookMs: performance.now() - beganAt })
    }
  }
}

/** What a client may be told: a status that says when to come again, or the end of a stream that had begun. */
const isBearable = (outcome: Outcome): boolean => {
  switch (outcome.kind) {
    case "whole":
    case "failed":
      return true
    case "refused":
      return outcome.status === 503 && Number(outcome.retryAfter) >= 1
    case "ended":
    case "broken":
      return false
  }
}

const ends = [
  ["stopped", (gateway: Gateway) => gateway.nats.stop()],
  ["killed", (gateway: Gateway) => gateway.nats.kill()]
] as const

describe.each(ends)("nats-server is %s for five seconds", { timeout: 90_000 }, (_, end) => {
  it.live("nobody hangs, nothing dies, and afterwards all is as before", () =>
    Gateway.run(
      { workers: 2, environment: { GATEWAY_QUEUE_TIMEOUT_MS: String(queueTimeoutMs) } },
      async (gateway) => {
        gateway.provider.behave({ kind: "paced", chunks: 20, everyMs: 10 })
        const load = new Load(gateway)
        await load.untilWhole(40, 0)
        await end(gateway)
        const during = Array.from({ length: 10 }, () => outcomeOf(gateway.request(chat("free-chat"))))
        // not to wait for anything: this is how long the outage lasts
        await new Promise((resolve) => setTimeout(resolve, outageMs))
        await gateway.nats.restart()
        const back = performance.now()
        await load.untilWhole(40, back)
        console.log(`40 whole answers ${(performance.now() - back).toFixed(0)} ms after NATS was back`)
        await load.stop()
        console.log(tally(load.answered.map(({ outcome }) => outcome)))
        console.log(`longest ${Math.max(...load.answered.map(({ tookMs }) => tookMs)).toFixed(0)} ms`)
        assert.deepStrictEqual(load.answered.filter(({ outcome }) => !isBearable(outcome)), [])
        // nobody waited for them beyond their deadline, which came while it was away
        assert.deepStrictEqual(tally(await Promise.all(during)), { "refused 503 queue_timeout 1": 10 })

        gateway.provider.behave({ kind: "answer" })
        const batch = Array.from({ length: 200 }, (_, index) =>
          outcomeOf(gateway.request(chat(index % 2 === 0 ? "free-chat" : "paid-chat", { stream: index % 3 === 0 }))))
        assert.deepStrictEqual(tally(await Promise.all(batch)), { whole: 200 })
        assert.isFalse([gateway.ingress, ...gateway.workers].some(({ hasExited }) =>
          hasExited
        ))
        await untilNoJobs(gateway.nats)
      }
    ))
})
