/**
 * A gateway under load to which things happen, in an order that a seed decides, and a report of what came of it.
 *
 * What happens is what a machine room knows: processes die and freeze, wires are cut or go silent, NATS goes away. One
 * worker and one ingress are always left alone, for a gateway of which nothing is left promises nothing.
 */
import { isHonest, tally } from "../fixture/client/ChatClient.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import type { ServiceProcess } from "../fixture/gateway/Gateway.ts"
import { untilJobs } from "../fixture/nats/JobStream.ts"
import { askChat, type Entry, Load } from "../fixture/client/Load.ts"
import { randomFrom } from "../fixture/general/Random.ts"
import { type FaultName, faultNames, faults, type Ground, type Victim } from "./Faults.ts"

export interface ChaosOptions {
  readonly seed: number
  /** How long things happen, in milliseconds, and to how many requests at the least. */
  readonly forMs: number
  readonly requests?: number
  /** How many clients ask at the same time. */
  readonly clients: number
  /** Of what can happen, what does. Default: all of it. */
  readonly among?: ReadonlyArray<FaultName>
  /** The time between two things that happen, in milliseconds, at the most. */
  readonly everyMs: number
  readonly log: (line: string) => void
}

export interface ChaosReport {
  readonly requests: number
  readonly answers: number
  /** What clients were told instead of an answer. */
  readonly errors: Readonly<Record<string, number>>
  /** How often each thing happened. */
  readonly faults: Readonly<Record<string, number>>
  /**
   * Those that were told nothing, or something untrue: that hung, broke off though their ingress lived, or seemed whole and
   * were not.
   */
  readonly lost: ReadonlyArray<Entry>
  /** Those that failed with their worker, though the provider had never been asked. */
  readonly unsent: ReadonlyArray<Entry>
  /** Those that were paid twice. */
  readonly doubled: ReadonlyArray<Entry>
  /** Jobs that are over, and that the cluster still keeps. */
  readonly orphans: number
  readonly longestOutageMs: number
  /** Processes that ended by themselves. */
  readonly ended: ReadonlyArray<ServiceProcess>
}

/** Longer than anything that happens, and what follows from it. */
const patienceMs = 60_000

/** After the last thing has been made good everything has to be as before within so many milliseconds. */
const healedWithinMs = 30_000

const models = ["free-chat", "paid-chat"]

const isService = (victim: Victim): victim is ServiceProcess => "port" in victim

export const chaos = async (ground: Ground, options: ChaosOptions): Promise<ChaosReport> => {
  const { gateway } = ground
  const { clients, everyMs, forMs, log, among = faultNames, requests = 0, seed } = options
  const random = randomFrom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  gateway.provider.behave({ kind: "paced", chunks: 5, everyMs: 10 })
  const load = new Load(gateway, {
    clients,
    patienceMs,
    ask: (index, id) => askChat(models[index % 2] ?? "", id, { stream: index % 4 < 2 })
  })
  const start = performance.now()
  const since = () => `${((performance.now() - start) / 1_000).toFixed(1).padStart(6)} s`
  const happened: Array<FaultName> = []
  const struck = new Set<Victim>()
  /** Those that were killed, or told to end. */
  const told = new Set<ServiceProcess>()
  const healing: Array<Promise<unknown>> = []

  const strike = (name: FaultName) => {
    const { ends, mostMs, targets } = faults[name]
    const free = targets(ground).filter(({ victim }) => !struck.has(victim))
    const target = free[below(free.length)]
    const lastsMs = 100 + below(mostMs)
    // a server has something happen to it only where nothing else happens
    const spared = target === undefined || (isService(target.victim) ? free.length === 1 : struck.size > 0)
    if (spared) return
    const { victim } = target
    struck.add(victim)
    happened.push(name)
    if (ends && isService(victim)) told.add(victim)
    log(`${since()}  ${name} (${victim.pid}) for ${lastsMs} ms`)
    healing.push((async () => {
      const heal = await target.strike()
      await new Promise((resolve) => setTimeout(resolve, lastsMs))
      await heal()
      struck.delete(victim)
    })())
  }

  await load.untilWhole(clients)
  while (performance.now() - start < forMs || load.entries.length < requests) {
    strike(among[below(among.length)]!)
    await new Promise((resolve) => setTimeout(resolve, 50 + below(everyMs)))
  }
  await Promise.all(healing)
  const healed = performance.now()
  await load.untilWhole(2 * clients, healed, healedWithinMs)
  log(`${since()}  as before ${(performance.now() - healed).toFixed(0)} ms after all was made good`)
  await load.stop()
  // not until nothing is stored: after a leader was frozen a cluster may keep jobs that were acknowledged until they are too
  // old, which nobody is given (https://github.com/nats-io/nats-server/issues/5542)
  const { stored: orphans } = await untilJobs(
    gateway.nats,
    ({ pending, unacknowledged }) => pending === 0 && unacknowledged === 0,
    healedWithinMs
  )
  await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === 0, healedWithinMs)

  const failed = load.entries.filter(({ outcome }) => outcome.kind !== "whole")
  const isLost = ({ ingress, outcome }: Entry) =>
    !isHonest(outcome) && !(outcome.kind === "broken" && ingress.hasExited && !/Timeout/.test(outcome.reason))
  return {
    requests: load.entries.length,
    answers: load.entries.length - failed.length,
    errors: tally(failed.map(({ outcome }) => outcome)),
    faults: Object.fromEntries(faultNames.map((name) => [name, happened.filter((one) => one === name).length])),
    lost: failed.filter(isLost),
    unsent: failed.filter(({ id, outcome }) =>
      "code" in outcome && ["worker_lost", "answer_lost"].includes(outcome.code) && !load.calls.has(id)
    ),
    doubled: load.doubled("paid-chat"),
    orphans,
    longestOutageMs: load.longestOutageMs,
    ended: [...gateway.ingresses, ...gateway.workers].filter((one) => one.hasExited && !told.has(one))
  }
}
