/** A short `npm run chaos`: random failures of a gateway under load. */
import { assert, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { chaos } from "../../chaos/Chaos.ts"
import { broken, text } from "../../chaos/Report.ts"

const options = { ingresses: 2, workers: 3, wired: true, environment: { DRAIN_DELAY_MS: "500" } }

it.live(
  "chaos loses no request, pays for none twice and leaves none hanging",
  () =>
    Gateway.run(options, async (gateway) => {
      const log = (line: string) => console.log(line)
      const playing = { seed: 7, clients: 16, forMs: 12_000, everyMs: 1_000, log }
      const report = await chaos({ gateway, servers: [gateway.nats] }, playing)
      log(text(report))
      assert.isAbove(report.answers, 100)
      assert.isUndefined(broken(report))
    }),
  180_000
)
