/** Requests that wait for a provider leave the slots of workers, and the concurrent requests of their key, to other providers. */
import { assert, describe, it } from "@effect/vitest"
import { chat, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway, plain } from "../../fixture/gateway/Gateway.ts"
import type { Service } from "../../fixture/gateway/Service.ts"

/** How many calls the limited provider takes at the same time, and how many slots the worker has. */
const [concurrency, slots] = [5, 64]

const options = {
  environmentOf: (service: string) => service === "chat" ? { WORKER_SLOTS: String(slots) } : {},
  providers: (baseUrl: string) =>
    `  beta: { protocol: openai, baseUrl: "${baseUrl}", ${
      plain.replace(/limits: .*/, `limits: { concurrency: ${concurrency} }`)
    } }`,
  models: "  beta-chat: { workload: chat, targets: [{ provider: beta }] }"
}

const hold = { kind: "hold", after: 0 } as const

/** How many requests workers have. */
const running = async ({ healthUrl }: Service): Promise<number> => {
  const text = await (await fetch(`${healthUrl}/metrics`)).text()
  const jobs = text.matchAll(/^gateway_queue_jobs\{[^}]*workload="chat"[^}]*state="running"[^}]*\} (\d+)$/gm)
  return [...jobs].reduce((sum, [, count]) => sum + Number(count), 0)
}

describe("requests that wait for a provider with a limit of concurrent calls", () => {
  it.live("hold no slots: all requests to another provider are answered meanwhile", () =>
    Gateway.runHere(options, async (gateway) => {
      const ask = (body: object) => outcomeOf(gateway.request(body))
      gateway.provider.behave(hold, { model: "beta-chat" })
      const limited = Array.from({ length: 2 * slots }, () => ask(chat("beta-chat")))
      await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === concurrency)
      const others = await Promise.all(Array.from({ length: 80 }, () => ask(chat("free-chat"))))
      assert.deepStrictEqual(tally(others), { whole: 80 })
      // more than half of the slots, which would be the share of each model
      gateway.provider.behave(hold, { model: "free-chat" })
      const more = Array.from({ length: 50 }, () => ask(chat("free-chat")))
      await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === concurrency + 50)
      gateway.provider.behave({ kind: "answer" }, { model: "beta-chat" })
      gateway.provider.release()
      assert.deepStrictEqual(tally(await Promise.all([...limited, ...more])), { whole: 2 * slots + 50 })
    }))

  it.live("count for their key, whose refusals name the provider, and whose other models go on", () =>
    Gateway.runHere(options, async (gateway) => {
      const { key } = await gateway.createKeyWith({ concurrentRequests: 50 })
      const headers = { authorization: `Bearer ${key}` }
      const ask = (body: object) => gateway.request(body, { headers })
      gateway.provider.behave(hold, { model: "beta-chat" })
      const limited = Array.from({ length: 50 }, () => outcomeOf(ask(chat("beta-chat"))))
      await eventually(() => running(gateway.ingresses[0]!), (count) => count === 50)
      const waiting = /limit of 50 concurrent requests: 45 of them wait for the provider 'beta'; try again in/
      await eventually(async () => (await ask(chat("beta-chat"))).text(), (text) => waiting.test(text))
      const others = await Promise.all(Array.from({ length: 20 }, () => outcomeOf(ask(chat("free-chat")))))
      assert.deepStrictEqual(tally(others), { whole: 20 })
      // beyond half of the limit, 20 more run beside the five
      gateway.provider.behave(hold)
      const more = Array.from({ length: 20 }, () => outcomeOf(ask(chat("free-chat"))))
      await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === 25)
      assert.deepInclude(await outcomeOf(ask(chat("free-chat"))), { kind: "refused", status: 429 })
      gateway.provider.behave({ kind: "answer" })
      gateway.provider.behave({ kind: "answer" }, { model: "beta-chat" })
      gateway.provider.release()
      assert.deepStrictEqual(tally(await Promise.all([...limited, ...more])), { whole: 70 })
    }))
})
