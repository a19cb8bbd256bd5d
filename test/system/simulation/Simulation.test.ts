/**
 * Simulations of fixed seeds hold all invariants, and run the same way every time. `npm run simulate` runs others, for as long
 * as wanted.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { inherited } from "../../fixture/general/Inherited.ts"

const main = join(import.meta.dirname, "../../simulation/main.ts")

/** Its code replaces Node's timers and sockets, so it has a process of its own. */
const simulate = (seed: number, count: number, story?: string) =>
  spawnSync(process.execPath, [main], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: {
      ...inherited,
      SIMULATE_SEED: `${seed}`,
      SIMULATE_COUNT: `${count}`,
      ...(story === undefined ? {} : { STORY: story })
    }
  })

/** Seeds that showed faults of the past. */
const found: ReadonlyArray<readonly [seed: number, fault: string]> = [
  [35, "a clock set back during a reconnect delays the reconnect"],
  [666, "a job counts as lost while its worker waits for JetStream to store its usage"],
  [1_428, "the first call of a repeated job is metered in place of the last"]
]

describe("a simulation", () => {
  it.each(found)("of seed %d holds all invariants: %s", (seed) => {
    const { status, stdout } = simulate(seed, 1)
    assert.strictEqual(status, 0, stdout)
  })

  it("of forty seeds holds all invariants", { timeout: 120_000 }, () => {
    const { status, stdout } = simulate(10_000, 40)
    assert.strictEqual(status, 0, stdout)
    assert.match(stdout, /^40 seeds from 10000, \d+ requests, \d+ faults, 0 violations$/m)
  })

  it("of one seed is the same every time, to the microsecond", () => {
    const [first, second] = [simulate(7, 1, ""), simulate(7, 1, "")]
    assert.isAbove(first.stdout.length, 10_000)
    assert.strictEqual(first.stdout, second.stdout)
  })
})
