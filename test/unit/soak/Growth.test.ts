/** When the resources of a process count as growing. */
import { assert, describe, it } from "@effect/vitest"
import { randomFrom } from "../../fixture/general/Random.ts"
import { growthIn, slopeOf } from "../../soak/Growth.ts"
import type { Sample } from "../../soak/Sample.ts"

const minuteMs = 60_000

/** A sample every half minute for two hours, in which the heap is as told, plus up to `noiseMb`. */
const samples = (
  heapAt: (hours: number) => number,
  noiseMb = 0,
  resource = "heap (MB)"
): ReadonlyArray<Sample> => {
  const random = randomFrom(1)
  return Array.from({ length: 240 }, (_, index) => {
    const heap = heapAt(index / 120) + noiseMb * random()
    return { atMs: index * minuteMs / 2, of: new Map([["chat", { [resource]: heap }]]) }
  })
}

const judge = (all: ReadonlyArray<Sample>) => growthIn(all, 20 * minuteMs, 1)[0]

describe("the growth of a resource", () => {
  it("is the slope of its samples", () => {
    const steady = Array.from({ length: 5 }, (_, index) => [index * 15 * minuteMs, 10 + index / 2] as const)
    for (const slope of Object.values(slopeOf(steady))) assert.closeTo(slope, 2, 1e-9)
    const { least, most, perHour } = slopeOf(steady.map(([at, value], index) => [at, value + index % 2 / 4] as const))
    assert.closeTo(perHour, 2, 0.2)
    assert.isBelow(least, 2)
    assert.isAbove(most, 2)
  })

  it("is too fast above the limit, also beneath noise", () => {
    assert.deepInclude(judge(samples((hours) => 50 + 2 * hours)), { isTooFast: true, limit: 1 })
    assert.deepInclude(judge(samples((hours) => 50 + 2 * hours, 5)), { isTooFast: true })
    assert.deepInclude(judge(samples((hours) => 50 + 0.5 * hours, 5)), { isTooFast: false })
    assert.deepInclude(judge(samples(() => 50, 5)), { isTooFast: false })
  })

  it("is too fast in repeated steps, but not in a single one", () => {
    assert.deepInclude(judge(samples((hours) => 50 + Math.floor(3 * hours), 0.5)), { isTooFast: true })
    assert.deepInclude(judge(samples((hours) => hours < 0.4 ? 50 : 75, 0.5)), { isTooFast: false })
  })

  it("is judged in the second half if it is of memory that an allocator keeps", () => {
    const settles = (hours: number) => 50 + 5 * Math.min(hours, 1)
    assert.deepInclude(judge(samples(settles, 0.1, "RSS (MB)")), { isTooFast: false })
    assert.deepInclude(judge(samples(settles, 0.1)), { isTooFast: true })
    assert.deepInclude(judge(samples((hours) => 50 + 2 * hours, 0.1, "RSS (MB)")), { isTooFast: true })
  })

  it("is not judged before a process has settled", () => {
    assert.deepInclude(judge(samples((hours) => 60 - 40 * Math.max(0, 0.3 - hours))), { isTooFast: false })
  })
})
