/** Simulations of more seeds hold all invariants, and find more faults of the past that are put back. */
import { assert, describe, it } from "@effect/vitest"
import { simulation } from "../../fixture/general/SimulationRun.ts"

describe("a simulation", () => {
  it("of sixteen seeds holds all invariants", async () => {
    const { status, stdout } = await simulation("main.ts", { SIMULATE_SEED: "1", SIMULATE_COUNT: "16" })
    assert.strictEqual(status, 0, stdout)
    assert.match(stdout, /^16 seeds from 1, \d+ requests, \d+ faults, 0 violations$/m)
  })

  it("counts the usage of a worker that only seemed lost", async () => {
    // the worker's server of NATS is cut off after a call; another worker writes its usage as lost
    const { status, stdout } = await simulation("main.ts", { SIMULATE_SEED: "9302565", SIMULATE_COUNT: "1" })
    assert.strictEqual(status, 0, stdout)
  })

  it.each([
    "a missing bundle is not noticed",
    "a client that leaves does not stop its call",
    "a paid call does not wait for ingress"
  ])("finds that %s", async (fault) => {
    const { status, stdout } = await simulation("mutants/main.ts", { MUTANTS: fault })
    assert.strictEqual(status, 0, stdout)
  })
})
