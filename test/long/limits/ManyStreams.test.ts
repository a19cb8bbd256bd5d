/** A thousand slow streams of one key, with the default settings of every process: a load test that a beginner writes first. */
import { assert, it } from "@effect/vitest"
import { chat, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

const streams = 1_000
/** How long each takes at least, in milliseconds. */
const lastMs = 30_000

it.live(
  "a thousand streams of one key that last half a minute are all answered, and a newcomer is served beside them",
  () =>
    Gateway.run({}, async (gateway) => {
      const held = chat("paid-chat", { stream: true, metadata: { behave: { kind: "hold", after: 2 } } })
      // all at once, as `hey -c 1000` does
      const open = Promise.all(Array.from({ length: streams }, () => outcomeOf(gateway.request(held))))
      await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === streams, 60_000)
      await new Promise((resolve) => setTimeout(resolve, lastMs))
      const { key } = await gateway.createKeyWith({})
      const newcomer = gateway.request(chat("paid-chat"), { headers: { authorization: `Bearer ${key}` } })
      assert.deepStrictEqual(await outcomeOf(newcomer), { kind: "whole" })
      gateway.provider.release()
      assert.deepStrictEqual(tally(await open), { whole: streams })
      assert.lengthOf(gateway.provider.requests, streams + 1)
    }),
  180_000
)
