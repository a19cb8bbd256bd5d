/**
 * A provider's limits over several worker processes, as the provider sees them.
 *
 * The limits' minute is shortened here; `npm run limits-check` uses a real one.
 */
import { assert, describe, it } from "@effect/vitest"
import { chat, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { Gateway, plain } from "../../fixture/gateway/Gateway.ts"

const windowMs = Number(process.env["LIMITS_WINDOW_MS"] ?? 10_000)
const windows = 3

/** The time from a worker to the provider on a busy machine, at most. */
const journeyMs = 3_000

const withLimits = (limits: string) => ({
  workers: 4,
  environment: { GATEWAY_LIMIT_WINDOW_MS: String(windowMs) },
  providers: (baseUrl: string) =>
    `  limited: { protocol: openai, baseUrl: "${baseUrl}", ${plain.replace(/limits: .*/, "")} limits: ${limits} }`,
  models: `  limited-chat: { workload: chat, targets: [{ provider: limited }] }`
})

/** The most and the fewest moments in any window that starts at one of them. */
const inWindows = (moments: ReadonlyArray<number>, windowMs: number) => {
  const sorted = moments.toSorted((a, b) => a - b)
  const last = sorted.at(-1) ?? 0
  const counts = sorted.map((from, index) => sorted.slice(index).filter((at) => at < from + windowMs).length)
  return {
    most: Math.max(...counts),
    least: Math.min(...counts.filter((_, index) => sorted[index]! <= last - windowMs))
  }
}

describe("a provider's limits over four worker processes", { timeout: 60_000 + (windows + 1) * windowMs }, () => {
  it.live("60 requests per minute: exactly that many reach it in any minute while clients ask for more", () =>
    Gateway.run(withLimits("{ requestsPerMinute: 60 }"), async (gateway) => {
      const until = performance.now() + windows * windowMs
      // never waits beyond the end: nothing more is measured then
      const patience = () => String((until - performance.now()) / 1_000)
      const asking = Array.from({ length: 100 }, async () => {
        while (performance.now() < until) {
          const answer = await gateway.request(chat("limited-chat"), {
            headers: {
              authorization: `Bearer ${gateway.key}`,
              "content-type": "application/json",
              "x-stainless-timeout": patience()
            }
          })
          await answer.arrayBuffer()
          const waitMs = Number(answer.headers.get("retry-after-ms") ?? 0)
          await new Promise((resolve) => setTimeout(resolve, Math.max(0, Math.min(waitMs, until - performance.now()))))
        }
      })
      await Promise.all(asking)
      const moments = gateway.provider.requests.map(({ receivedAt }) => receivedAt)
      const { most } = inWindows(moments, windowMs - journeyMs)
      const { least } = inWindows(moments, windowMs * 1.05 + journeyMs)
      console.log(`${moments.length} requests in ${windows} windows of ${windowMs} ms`)
      assert.isAtMost(most, 60)
      assert.isAtLeast(least, 55)
      assert.isAtLeast(moments.length, windows * 55)
    }))

  it.live("5 calls at once: never more, never fewer while others wait, and each gets its turn", () =>
    Gateway.run(withLimits("{ concurrency: 5 }"), async (gateway) => {
      gateway.provider.behave({ kind: "paced", chunks: 2, everyMs: 100 })
      let most = 0
      gateway.provider.watch(() => {
        most = Math.max(most, gateway.provider.open)
      })
      const outcomes = await Promise.all(
        Array.from({ length: 60 }, () => outcomeOf(gateway.request(chat("limited-chat", { stream: true }))))
      )
      assert.deepStrictEqual(tally(outcomes), { whole: 60 })
      assert.strictEqual(most, 5)
    }))
})
