/** Overload: the gateway keeps its throughput and rejects the other requests at once. */
import { assert, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { environment, overload } from "../../figures/Overload.ts"

const play = Gateway.run({ environment }, async (gateway) => {
  const report = await overload(gateway, 3_000)
  console.log(report)
  // 0.9 and 100 ms on an otherwise idle machine
  assert.isAtLeast(report.overloaded, 0.7 * report.best)
  assert.isAbove(report.rejected, 20)
  assert.isAtMost(report.rejectedWithinMs, 500)
  assert.isAtMost(report.grownMb, 150)
})

it.live("at three times its capacity a gateway keeps its throughput and rejects the rest", () => play, 90_000)
