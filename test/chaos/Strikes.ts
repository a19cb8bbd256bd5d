/**
 * Strikes a gateway with one random fault after another, each of which ends after a while.
 *
 * One process of each kind is always spared, because a gateway needs at least one of each to answer anything. A NATS server fails
 * only while nothing else does.
 */
import type { ServiceProcess } from "../fixture/gateway/Gateway.ts"
import { type FaultName, faults, type Ground, type Victim } from "./Faults.ts"

export interface StrikeOptions {
  /** A number from 0 up to 1. */
  readonly random: () => number
  readonly among: ReadonlyArray<FaultName>
  readonly log: (line: string) => void
}

const isService = (victim: Victim): victim is ServiceProcess => "port" in victim

export class Strikes {
  /** The faults so far, in their order. */
  readonly injected: Array<FaultName> = []
  /** Processes that a fault has killed or stopped. */
  readonly stopped = new Set<ServiceProcess>()
  readonly #ground: Ground
  readonly #options: StrikeOptions
  readonly #affected = new Set<Victim>()
  readonly #healing: Array<Promise<unknown>> = []

  constructor(ground: Ground, options: StrikeOptions) {
    this.#ground = ground
    this.#options = options
  }

  /** Injects one fault, or none if its victims are affected already or have to be spared. */
  strike(): void {
    const { among, log, random } = this.#options
    const below = (limit: number) => Math.floor(random() * limit)
    const name = among[below(among.length)]!
    const { ends, mostMs, targets } = faults[name]
    const free = targets(this.#ground).filter(({ victim }) => !this.#affected.has(victim))
    const target = free[below(free.length)]
    const lastsMs = 100 + below(mostMs)
    const isSpared = target === undefined ||
      (isService(target.victim) ? free.length === 1 : this.#affected.size > 0)
    if (isSpared) return
    const { victim } = target
    this.#affected.add(victim)
    this.injected.push(name)
    if (ends && isService(victim)) this.stopped.add(victim)
    log(`${name} (${victim.pid}) for ${lastsMs} ms`)
    this.#healing.push((async () => {
      const heal = await target.strike()
      await new Promise((resolve) => setTimeout(resolve, lastsMs))
      await heal()
      this.#affected.delete(victim)
    })())
  }

  /** Strikes as long as this holds, with a random pause of 50 ms to `everyMs` more between two strikes; returns once all faults have ended. */
  async strikeWhile(holds: () => Promise<boolean>, everyMs: number): Promise<void> {
    while (await holds()) {
      this.strike()
      await new Promise((resolve) => setTimeout(resolve, 50 + Math.floor(this.#options.random() * everyMs)))
    }
    await Promise.all(this.#healing)
  }

  /** How often each of these faults was injected. */
  counts(names: ReadonlyArray<FaultName>): Readonly<Record<string, number>> {
    return Object.fromEntries(names.map((name) => [name, this.injected.filter((one) => one === name).length]))
  }
}
