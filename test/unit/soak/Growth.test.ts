/** When the resources of a process count as growing. */
import { assert, describe, it } from "@effect/vitest"
import { randomFrom } from "../../fixture/general/Random.ts"
import { growthIn, slopeOf } from "../../soak/Growth.ts"
import type { Sample } from "../../soak/Sample.ts"

const minuteMs = 60_000

/** A sample every half minute for two hours, in which the heap is as told, plus up to `noiseMb`. */
const samples = (heapAt: (hours: number) => number, noiseMb = 0): ReadonlyArray<Sample> => {
  const random = randomFrom(1)
  return Array.from({ length: 240 }, (_, index) => {
    const heap = heapAt(index / 120) + noiseMb * random()
    return { atMs: index * minuteMs / 2, of: new Map([["chat", { "heap (MB)": heap }]]) }
  })
}

const judge = (all: ReadonlyArray<Sample>) => growthIn(all, 20 * minuteMs, 1)[0]

describe("the growth of a resource", () => {
  it("is the slope of its samples", () => {
    const { error, perHour } = slopeOf([[0, 10], [30 * minuteMs, 11], [60 * minuteMs, 12]])
    assert.closeTo(perHour, 2, 1e-9)
    assert.closeTo(error, 0, 1e-9)
  })

  it("is too fast above the limit, also beneath noise", () => {
    assert.deepInclude(judge(samples((hours) => 50 + 2 * hours)), { isTooFast: true, limit: 1 })
    assert.deepInclude(judge(samples((hours) => 50 + 2 * hours, 5)), { isTooFast: true })
    assert.deepInclude(judge(samples((hours) => 50 + 0.5 * hours, 5)), { isTooFast: false })
    assert.deepInclude(judge(samples(() => 50, 5)), { isTooFast: false })
  })

  it("is not judged before a process has settled", () => {
    assert.deepInclude(judge(samples((hours) => 60 - 40 * Math.max(0, 0.3 - hours))), { isTooFast: false })
  })
})
