/**
 * Simulations of fixed seeds hold all invariants, run the same way every time, and find faults of the past that are put back.
 * `npm run simulate` and `npm run simulate:mutants` run more.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { inherited } from "../../fixture/general/Inherited.ts"

const folder = join(import.meta.dirname, "../../simulation")

/** The simulation replaces Node's timers and sockets, so it has a process of its own. */
const run = (file: string, environment: Readonly<Record<string, string>>) =>
  spawnSync(process.execPath, [join(folder, file)], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: { ...inherited, ...environment }
  })

describe("a simulation", () => {
  it("of sixteen seeds holds all invariants", { timeout: 120_000 }, () => {
    const { status, stdout } = run("main.ts", { SIMULATE_SEED: "1", SIMULATE_COUNT: "16" })
    assert.strictEqual(status, 0, stdout)
    assert.match(stdout, /^16 seeds from 1, \d+ requests, \d+ faults, 0 violations$/m)
  })

  it("counts the usage of a worker that only seemed lost", () => {
    // the worker's server of NATS is cut off after a call; another worker writes its usage as lost
    const { status, stdout } = run("main.ts", { SIMULATE_SEED: "9302565", SIMULATE_COUNT: "1" })
    assert.strictEqual(status, 0, stdout)
  })

  it("of one seed is the same every time, to the microsecond", () => {
    const once = () => run("main.ts", { SIMULATE_SEED: "7", SIMULATE_COUNT: "1", STORY: "" }).stdout
    const first = once()
    assert.isAbove(first.length, 10_000)
    assert.strictEqual(once(), first)
  })

  it.each([
    "a missing bundle is not noticed",
    "a client that leaves does not stop its call",
    "a paid call does not wait for ingress"
  ])("finds that %s", { timeout: 120_000 }, (fault) => {
    const { status, stdout } = run("mutants/main.ts", { MUTANTS: fault })
    assert.strictEqual(status, 0, stdout)
  })
})
