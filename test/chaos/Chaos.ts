/**
 * Injects random faults into a gateway under load, in an order that a seed determines, and reports the outcome.
 *
 * Processes die and freeze, connections break or stall, NATS goes away.
 */
import { isAllowedDuringFailure, tally } from "../fixture/client/ChatClient.ts"
import { eventually } from "../fixture/general/Eventually.ts"
import type { ServiceProcess } from "../fixture/gateway/Gateway.ts"
import { untilJobs } from "../fixture/nats/JobStream.ts"
import { askChat, type Entry, Load } from "../fixture/client/Load.ts"
import { randomFrom } from "../fixture/general/Random.ts"
import { type BatchReport, ChaosBatch } from "./ChaosBatch.ts"
import { type FaultName, faultNames, type Ground } from "./Faults.ts"
import { Strikes } from "./Strikes.ts"

export interface ChaosOptions {
  readonly seed: number
  /** How long to inject faults, in milliseconds, and the minimum number of requests meanwhile. */
  readonly forMs: number
  readonly requests?: number
  /** The number of concurrent requests. */
  readonly clients: number
  /** The faults to choose from. Default: all. */
  readonly among?: ReadonlyArray<FaultName>
  /** The number of requests of a batch, which runs beside the others. Faults go on until it has ended. Default: no batch. */
  readonly batchLines?: number
  /** The longest time between two faults, in milliseconds. */
  readonly everyMs: number
  readonly log: (line: string) => void
}

export interface ChaosReport {
  readonly requests: number
  readonly answers: number
  /** The errors that clients received. */
  readonly errors: Readonly<Record<string, number>>
  /** How often each fault was injected. */
  readonly faults: Readonly<Record<string, number>>
  /**
   * Requests without an answer or a valid error: they hung, broke off although their ingress lived, or seemed complete and
   * were not.
   */
  readonly lost: ReadonlyArray<Entry>
  /** Requests that failed with their worker before the provider was called. */
  readonly unsent: ReadonlyArray<Entry>
  /** Requests whose paid call was made twice. */
  readonly doubled: ReadonlyArray<Entry>
  /** Finished jobs that the cluster still stores. */
  readonly orphans: number
  readonly longestOutageMs: number
  readonly batch: BatchReport | undefined
  /** Processes that exited by themselves. */
  readonly ended: ReadonlyArray<ServiceProcess>
}

/** Longer than any fault and its consequences. */
const patienceMs = 60_000

/** The time in which everything must recover after the last fault has ended, in milliseconds. */
const healedWithinMs = 30_000

const models = ["free-chat", "paid-chat"]

export const chaos = async (ground: Ground, options: ChaosOptions): Promise<ChaosReport> => {
  const { gateway } = ground
  const { clients, everyMs, forMs, log, among = faultNames, batchLines = 0, requests = 0, seed } = options
  gateway.provider.behave({ kind: "paced", chunks: 5, everyMs: 10 })
  const load = new Load(gateway, {
    clients,
    patienceMs,
    ask: (index, id) => askChat(models[index % 2] ?? "", id, { stream: index % 4 < 2 })
  })
  const start = performance.now()
  const since = () => `${((performance.now() - start) / 1_000).toFixed(1).padStart(6)} s`
  let batch: ChaosBatch | undefined
  const strikes = new Strikes(ground, {
    random: randomFrom(seed),
    among,
    log: (line) => log(`${since()}  ${line}${batch === undefined ? "" : `, ${batch.done} requests of the batch done`}`)
  })

  await load.untilWhole(clients)
  batch = batchLines === 0 ? undefined : await ChaosBatch.start(gateway, load, batchLines)
  const goesOn = async () =>
    performance.now() - start < forMs || load.entries.length < requests || await batch?.isRunning() === true
  await strikes.strikeWhile(goesOn, everyMs)
  const healed = performance.now()
  await load.untilWhole(2 * clients, healed, healedWithinMs)
  log(`${since()}  recovered ${(performance.now() - healed).toFixed(0)} ms after the last fault ended`)
  await load.stop()
  const batchReport = await batch?.report()
  // does not wait for an empty stream: after its leader was frozen, a cluster may keep acknowledged jobs until they expire,
  // although it delivers them no more (https://github.com/nats-io/nats-server/issues/5542)
  const { stored: orphans } = await untilJobs(
    gateway.nats,
    ({ pending, unacknowledged }) => pending === 0 && unacknowledged === 0
  )
  await eventually(() => Promise.resolve(gateway.provider.open), (open) => open === 0, healedWithinMs)

  const failed = load.entries.filter(({ outcome }) => outcome.kind !== "whole")
  const isLost = ({ ingress, outcome }: Entry) =>
    !isAllowedDuringFailure(outcome) &&
    !(outcome.kind === "broken" && ingress.hasExited && !/Timeout/.test(outcome.reason))
  return {
    requests: load.entries.length,
    answers: load.entries.length - failed.length,
    errors: tally(failed.map(({ outcome }) => outcome)),
    faults: strikes.counts(faultNames),
    lost: failed.filter(isLost),
    unsent: failed.filter(({ id, outcome }) =>
      "code" in outcome && ["worker_lost", "answer_lost"].includes(outcome.code) && !load.calls.has(id)
    ),
    doubled: load.calledTwice("paid-chat"),
    orphans,
    longestOutageMs: load.longestOutageMs,
    batch: batchReport,
    ended: gateway.processes.filter((one) => one.hasExited && !strikes.stopped.has(one))
  }
}
