/**
 * Simulations of fixed seeds hold all invariants, run the same way every time, and find a fault of the past that is put back.
 * `test/long/simulation/Simulation.test.ts`, `npm run simulate` and `npm run simulate:mutants` run more.
 */
import { assert, describe, it } from "@effect/vitest"
import { simulation } from "../../fixture/general/SimulationRun.ts"

describe("a simulation", () => {
  it("of four seeds holds all invariants", async () => {
    const { status, stdout } = await simulation("main.ts", { SIMULATE_SEED: "1", SIMULATE_COUNT: "4" })
    assert.strictEqual(status, 0, stdout)
    assert.match(stdout, /^4 seeds from 1, \d+ requests, \d+ faults, 0 violations$/m)
  })

  it.each([["a window", 16], ["a bucket", 282]])(
    "whose first provider limits by %s holds all invariants",
    async (_, seed) => {
      const { status, stdout } = await simulation("main.ts", { SIMULATE_SEED: `${seed}`, SIMULATE_COUNT: "1" })
      assert.strictEqual(status, 0, stdout)
    }
  )

  it("of one seed is the same every time, to the microsecond", async () => {
    // as one part, without a process for each core
    const once = () => simulation("main.ts", { SIMULATE_PART: "0", SIMULATE_SEED: "7", SIMULATE_COUNT: "1", STORY: "" })
    const [first, second] = await Promise.all([once(), once()])
    assert.isAbove(first.stdout.length, 10_000)
    assert.strictEqual(first.stdout, second.stdout)
  })

  it("finds that a paid call does not wait for ingress", async () => {
    const { status, stdout } = await simulation("mutants/main.ts", { MUTANTS: "a paid call does not wait for ingress" })
    assert.strictEqual(status, 0, stdout)
  })
})
