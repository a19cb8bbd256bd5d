/** A short `npm run billing`: after chaos over every operation, usage is what providers billed. */
import { assert, it } from "@effect/vitest"
import { billing, gatewayOptions } from "../../proof/billing/Billing.ts"
import { lines } from "../../proof/billing/Report.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"

it.live(
  "after chaos over every operation, usage, counters and budgets equal what the providers billed",
  () =>
    Gateway.run({ ...gatewayOptions, ingresses: 2, workers: 2 }, async (gateway) => {
      const report = await billing({ gateway, servers: [gateway.nats] }, {
        seed: 7,
        forMs: 10_000,
        clients: 12,
        batchLines: 100,
        everyMs: 1_000,
        misbehaving: 0.15,
        log: (line) => console.log(line)
      })
      for (const line of lines(report)) console.log(line)
      assert.deepStrictEqual(report.wrong, [])
      assert.isAbove(report.equal, 50)
      assert.isAbove(report.differences.length + report.estimates.length, 0)
    }),
  180_000
)
