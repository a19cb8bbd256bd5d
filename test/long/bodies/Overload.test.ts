/** Overload: the gateway keeps its throughput and rejects the other requests at once. */
import { assert, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { environment, overload } from "../../figures/Overload.ts"

const play = Gateway.run({ environment }, async (gateway) => {
  const report = await overload(gateway, 10_000)
  console.log(report)
  // 0.9 on an otherwise idle machine
  assert.isAtLeast(report.overloaded, 0.5 * report.best)
  assert.isAbove(report.rejected, 20)
  // 0.1 s for nearly all on an otherwise idle machine; those that wait for their deadline take 2 s
  assert.isAtMost(report.halfRejectedWithinMs, 1_000)
  assert.isAtMost(report.grownMb, 150)
})

it.live("at three times its capacity a gateway keeps its throughput and rejects the rest", () => play, 120_000)
