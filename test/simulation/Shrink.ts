/** Makes a failing scenario as small as possible: fewer faults, then fewer requests and processes. */
import type { Scenario } from "./Scenario.ts"
import { simulate } from "./Simulation.ts"

/** Maximum number of simulations. */
const mostRuns = 200

/** A smaller scenario that violates the same invariant. */
export const shrink = async (scenario: Scenario, invariant: string): Promise<Scenario> => {
  let smallest = scenario
  let runs = 0
  /** Keeps the smaller scenario if it fails as well. */
  const attempt = async (smaller: Scenario): Promise<boolean> => {
    if (runs++ >= mostRuns) return false
    const { violations } = await simulate(smaller)
    if (!violations.some((violation) => violation.invariant === invariant)) return false
    smallest = smaller
    return true
  }
  for (let at = smallest.faults.length - 1; at >= 0; at--) {
    await attempt({ ...smallest, faults: smallest.faults.filter((_, index) => index !== at) })
  }
  for (let size = Math.ceil(smallest.requests.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < smallest.requests.length;) {
      const rest = smallest.requests.filter((_, index) => index < from || index >= from + size)
      if (!await attempt({ ...smallest, requests: rest })) from += size
    }
  }
  const fewerWorkers = ({ slots, workers }: Scenario) => ({
    workers: workers - 1,
    // as many slots in total, so that requests do not wait for them
    slots: Math.ceil(slots * workers / (workers - 1))
  })
  while (smallest.ingresses > 1 && await attempt({ ...smallest, ingresses: smallest.ingresses - 1 }));
  while (smallest.workers > 1 && await attempt({ ...smallest, ...fewerWorkers(smallest) }));
  return smallest
}
