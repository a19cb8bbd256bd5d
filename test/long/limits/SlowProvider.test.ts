/** A model at a healthy provider beside one whose provider takes twelve seconds, with few slots: of one key, and of two. */
import { assert, describe, it } from "@effect/vitest"
import { setTimeout as sleep } from "node:timers/promises"
import { chat, type Outcome, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { randomFrom } from "../../fixture/general/Random.ts"
import { percentile } from "../../figures/Percentile.ts"

const slots = 64
/** How long each provider takes, in milliseconds, and how many requests it gets in a second. */
const slow = { model: "paid-chat", ms: 12_000, perSecond: 5 }
const quick = { model: "free-chat", ms: 300, perSecond: 15 }
/** How long requests are sent, in milliseconds: alone, and beside the slow model, until whose first answers all slots are taken. */
const aloneMs = 20_000
const besideMs = 45_000

interface Measured {
  readonly outcome: Outcome
  readonly tookMs: number
}

/** Sends requests at random moments for a while, whatever becomes of earlier ones. */
const send = async (
  gateway: Gateway,
  key: string,
  { model, perSecond }: { readonly model: string; readonly perSecond: number },
  forMs: number
): Promise<ReadonlyArray<Measured>> => {
  const random = randomFrom(perSecond)
  const answers: Array<Promise<Measured>> = []
  const until = performance.now() + forMs
  for (let at = performance.now(); at < until; at -= 1_000 * Math.log(1 - random()) / perSecond) {
    await sleep(Math.max(0, at - performance.now()))
    const began = performance.now()
    const outcome = outcomeOf(gateway.request(chat(model), { headers: { authorization: `Bearer ${key}` } }))
    answers.push(outcome.then((outcome) => ({ outcome, tookMs: performance.now() - began })))
  }
  return Promise.all(answers)
}

const tallyOf = (answers: ReadonlyArray<Measured>) => tally(answers.map(({ outcome }) => outcome))
const p95 = (answers: ReadonlyArray<Measured>) => percentile(answers.map(({ tookMs }) => tookMs), 0.95)

describe("a model at a healthy provider, beside one at a slow provider", { timeout: 300_000 }, () => {
  it.live.each([["one key", 1], ["two keys", 2]] as const)(
    "of %s: loses nothing and is hardly later than alone",
    ([, keys]) =>
      Gateway.run(
        { environmentOf: (service) => service === "chat" ? { WORKER_SLOTS: `${slots}` } : {} },
        async (gateway) => {
          for (const { model, ms } of [slow, quick]) gateway.provider.behave({ kind: "silent", forMs: ms }, { model })
          const { key } = await gateway.createKeyWith({})
          const other = keys === 1 ? key : (await gateway.createKeyWith({})).key
          const alone = await send(gateway, key, quick, aloneMs)
          const [ofSlow, beside] = await Promise.all([
            send(gateway, other, slow, besideMs),
            send(gateway, key, quick, besideMs)
          ])
          console.log(`${p95(alone).toFixed(0)} ms alone, ${p95(beside).toFixed(0)} ms beside:`, tallyOf(beside))
          console.log("the slow model:", tallyOf(ofSlow))
          assert.deepStrictEqual(tallyOf(beside), { whole: beside.length })
          assert.isAtMost(p95(beside), 1.5 * p95(alone))
        }
      )
  )
})
