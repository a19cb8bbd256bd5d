/** Long streams that hold one tenant's slots, beside the requests of other tenants. */
import { assert, describe, it } from "@effect/vitest"
import { chat, outcomeOf, startStream, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

/** Headers of another tenant's request. */
const by = (key: string) => ({ authorization: `Bearer ${key}` })

describe(
  "ninety endless streams of one key, at two ingresses, in a pool of 64 slots",
  { timeout: 120_000 },
  () => {
    it.live("leave a slot to every newcomer, and use all others", () =>
      Gateway.run({ ingresses: 2, environment: { WORKER_SLOTS: "64" } }, async (gateway) => {
        const { ingresses, provider } = gateway
        const [ingress, other] = [ingresses[0]!, ingresses[1]!]
        const keys = await Promise.all([1, 2, 3].map((weight) => gateway.createKeyWith({ weight })))
        const held = chat("paid-chat", { stream: true, metadata: { behave: { kind: "hold", after: 2 } } })
        const noisy = Array.from(
          { length: 90 },
          (_, index) => outcomeOf(gateway.request(held, { ingress: index % 2 === 0 ? ingress : other }))
        )
        // all slots but the reserve
        await eventually(() => Promise.resolve(provider.open), (open) => open >= 56)
        for (const [index, { key }] of keys.entries()) {
          const answer = gateway.request(chat("paid-chat"), {
            headers: by(key),
            ingress: index % 2 === 0 ? ingress : other,
            signal: AbortSignal.timeout(10_000)
          })
          assert.deepStrictEqual(await outcomeOf(answer), { kind: "whole" })
        }
        // ingresses that take slots at the same moment learn of each other a moment later: seven eighths and a few, but not so many
        // that the three tenants below would find no slots
        assert.isAtMost(provider.open, 64 - keys.length)

        // two newcomers with long streams of their own leave a slot for the third
        for (const { key } of keys.slice(0, 2)) {
          await startStream(
            gateway.request(held, { headers: by(key), ingress: other, signal: AbortSignal.timeout(10_000) })
          )
        }
        const last = gateway.request(chat("paid-chat"), {
          headers: by(keys[2]!.key),
          signal: AbortSignal.timeout(10_000)
        })
        assert.deepStrictEqual(await outcomeOf(last), { kind: "whole" })

        provider.release()
        await eventually(
          () => Promise.resolve(provider.requests.length),
          (requests) => requests === 90 + 3 + 2 + 1
        )
        provider.release()
        assert.deepStrictEqual(tally(await Promise.all(noisy)), { whole: 90 })
      }))
  }
)
