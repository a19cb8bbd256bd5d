/** More requests than can be served: as many are served as before, and the others are told at once. */
import { assert, it } from "@effect/vitest"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { environment, overload } from "../../figures/Overload.ts"

const play = Gateway.run({ environment }, async (gateway) => {
  const report = await overload(gateway, 3_000)
  console.log(report)
  // nine tenths, and a tenth of a second, where nothing else is on the machine
  assert.isAtLeast(report.overloaded, 0.7 * report.best)
  assert.isAbove(report.refused, 20)
  assert.isAtMost(report.toldWithinMs, 500)
  assert.isAtMost(report.grownMb, 150)
})

it.live("at three times its capacity a gateway answers as much as ever, and turns the rest away", () => play, 90_000)
