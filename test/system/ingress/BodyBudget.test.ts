/** An ingress's memory budget for bodies: those beyond it wait, and are rejected in time; the others release what they held. */
import { assert, describe, it } from "@effect/vitest"
import { chat, type Outcome, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { type AnyGateway, Gateway } from "../../fixture/gateway/Gateway.ts"

const mebibyte = 1024 * 1024

/** Room for one body of a tenant, for two in all, and for one beyond them. */
const environment = { GATEWAY_QUEUE_BYTES: String(8 * mebibyte), GATEWAY_QUEUE_TIMEOUT_MS: "1000" }

const body = Buffer.from(JSON.stringify(chat("free-chat", { user: "x".repeat(3 * mebibyte) })))

const whole: Outcome = { kind: "whole" }
const full: Outcome = { kind: "refused", status: 429, code: "queue_full", retryAfter: "1" }

describe("an ingress whose budget for bodies is used up", () => {
  it.live("rejects with a time to retry, and serves what it holds", () =>
    Gateway.runHere({ environment }, async (gateway) => {
      const other = await gateway.createKey("2100-01-01")
      const byOther = { headers: { authorization: `Bearer ${other}` } }
      gateway.provider.say("done")
      gateway.provider.behave({ kind: "hold", after: 0 })
      const first = outcomeOf(gateway.request(body.toString()))
      await gateway.provider.nextRequest()
      // the oldest that waits may exceed the budget
      const beyond = outcomeOf(gateway.request(body.toString()))
      await gateway.provider.nextRequest()
      assert.deepStrictEqual(await outcomeOf(gateway.request(body.toString())), full)
      const second = outcomeOf(gateway.request(body.toString(), byOther))
      await gateway.provider.nextRequest()
      gateway.provider.release()
      assert.deepStrictEqual(await Promise.all([first, beyond, second]), [whole, whole, whole])
      gateway.provider.behave({ kind: "answer" })
      assert.deepStrictEqual(await outcomeOf(gateway.request(body.toString())), { kind: "whole" })
    }))

  /** Sends more bodies than fit, each of which pauses in the middle; returns once one was rejected. */
  const sendSlowly = async (gateway: AnyGateway) => {
    const goOn = Promise.withResolvers<void>()
    const leaving = new AbortController()
    const upload = () =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
        body: new ReadableStream({
          start: async (stream) => {
            stream.enqueue(body.subarray(0, 2 * mebibyte))
            await goOn.promise
            stream.enqueue(body.subarray(2 * mebibyte))
            stream.close()
          }
        }),
        duplex: "half",
        signal: leaving.signal
      })
    const outcomes = Array.from({ length: 6 }, () => outcomeOf(upload()))
    assert.deepStrictEqual(await Promise.race(outcomes), full)
    return { outcomes, goOn: () => goOn.resolve(), leave: () => leaving.abort() }
  }

  it.live("reads no more from slow senders than it has room for", () =>
    Gateway.runHere({ environment }, async (gateway) => {
      gateway.provider.say("done")
      const { goOn, outcomes } = await sendSlowly(gateway)
      goOn()
      const ends = await Promise.all(outcomes)
      assert.isTrue(ends.some(({ kind }) => kind === "whole"))
      for (const end of ends) if (end.kind !== "whole") assert.deepStrictEqual(end, full)
      assert.deepStrictEqual(await outcomeOf(gateway.request(body.toString())), { kind: "whole" })
    }))

  it.live("reads no stored response that it has no room for, and regains the room of others", () =>
    Gateway.runHere({ environment }, async (gateway) => {
      const store = async (bytes: number) => {
        const body = { model: "local-chat", input: "x".repeat(bytes) }
        const answer = await gateway.request(JSON.stringify(body), { path: "/v1/responses" })
        return (await answer.json() as { readonly id: string }).id
      }
      const statusOf = async (path: string) => {
        const headers = { authorization: `Bearer ${gateway.key}` }
        const response = await fetch(`${gateway.url}/v1/responses/${path}`, { headers })
        await response.arrayBuffer()
        return response.status
      }
      const [fits, isTooLarge] = [await store(0.75 * mebibyte), await store(2 * mebibyte)]
      for (let each = 0; each < 5; each++) {
        // the client may have the answer before the ingress knows
        await eventually(() => statusOf(`${fits}/input_items`), (status) => status === 200)
        assert.strictEqual(await statusOf(isTooLarge), 429)
      }
    }))

  it.live("regains the room of clients that disconnect in the middle of a body", () =>
    Gateway.runHere({ environment }, async (gateway) => {
      gateway.provider.say("done")
      const { leave } = await sendSlowly(gateway)
      leave()
      const again = () => outcomeOf(gateway.request(body.toString()))
      await eventually(again, ({ kind }) => kind === "whole")
    }))
})
