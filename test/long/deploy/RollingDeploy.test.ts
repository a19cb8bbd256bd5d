/** A rolling deploy under load replaces every process and drops no request. */
import { assert, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { environment, rollingDeploy } from "../../figures/RollingDeploy.ts"

it.live(
  "a deploy of every process under load fails no request",
  () =>
    Gateway.run({ ingresses: 2, workers: 2, environment }, async (gateway) => {
      const log = (line: string) => console.log(line)
      const report = await rollingDeploy(gateway, { services: [], clients: 24, perSecond: 60, log })
      log(`${report.requests} requests, ${report.perSecond.toFixed(0)} per second`)
      assert.deepStrictEqual(report.failed, [])
    }),
  240_000
)
