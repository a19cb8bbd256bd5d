/** Which scenarios may show a fault. */
import { inlineBodyBytes } from "../../../shared/bus/protocol/Timings.ts"
import type { FaultKind, Scenario } from "../Scenario.ts"

export type Needs = (scenario: Scenario) => boolean

export const limits: Needs = (scenario) => scenario.limits !== undefined
export const tasks: Needs = (scenario) => scenario.tasks !== undefined
/** Jobs fail although their workers live. */
export const weather: Needs = (scenario) => (scenario.weather?.length ?? 0) > 0
export const version2: Needs = ({ faults, upgradedAt }) => upgradedAt !== undefined && faults.length > 0
export const fault = (...kinds: ReadonlyArray<FaultKind>): Needs => ({ faults }) =>
  faults.some(({ kind }) => kinds.includes(kind))
/** Links are forgotten; see `restMs` in `Simulation.ts`. */
export const rests: Needs = ({ faults }) => faults.length <= 1
/** The only failure, which invariants look at closely. */
export const alone = (...kinds: ReadonlyArray<FaultKind>): Needs => (scenario) =>
  scenario.faults.length === 1 && scenario.upgradedAt === undefined && scenario.limits === undefined &&
  scenario.tasks === undefined && scenario.weather === undefined && fault(...kinds)(scenario)
export const cluster = (needs: Needs): Needs => (scenario) => scenario.servers > 1 && needs(scenario)
/** A stream has no leader for a while, and nothing else fails. */
export const election = cluster(alone("no stream leader", "no consumer leader", "kill nats", "freeze nats"))
/** Some answers need credit and heartbeats. */
export const extremes: Needs = ({ requests }) => requests.some(({ everyMs }) => everyMs > 1_000)
/** Calls go on for long after their ingress has died. */
export const orphans: Needs = (scenario) => extremes(scenario) && fault("kill ingress")(scenario)
/** Answers need credit, and an ingress loses some. */
export const lostCredit: Needs = (scenario) =>
  extremes(scenario) &&
  scenario.faults.some(({ kind, moment }) =>
    kind === "cut ingress" && moment?.isBefore === true && moment.text === "Gw-Ctl: credit"
  )
/** Long answers, of which invariants know how long they take. */
export const longAlone: Needs = (scenario) =>
  extremes(scenario) && scenario.faults.length <= 1 && scenario.upgradedAt === undefined
/** Connections lose what is in their buffers. */
export const cuts = fault("cut worker", "cut ingress", "cut nats")
export const frozenServer = cluster(alone("freeze nats"))
/** Workers pull bodies, and have no room for all. */
export const bodies: Needs = ({ requests }) =>
  requests.filter(({ bodyBytes }) => bodyBytes > inlineBodyBytes).length > 2
/** A worker dies or falls silent when it says that it has a job, which may be lost. */
export const lostClaim: Needs = ({ faults }) =>
  faults.some(({ kind, moment }) =>
    /^(kill|freeze|hold) worker$/.test(kind) && /^(claim|ask) id$/.test(moment?.text ?? "")
  )
/** A clock changes while jobs wait for the only worker or server of NATS. */
export const clockWhileWaiting: Needs = ({ faults, servers, workers }) =>
  faults.some(({ at, kind }) =>
    kind === "clock of ingress" && faults.some((other) =>
      other.at < at && at < other.at + other.ms &&
      (workers === 1 && /^(kill|freeze|hold|deploy) worker$/.test(other.kind) ||
        servers === 1 && /^(kill|freeze) nats$/.test(other.kind))
    )
  )
/** Connections break while messages are on their way for long. */
export const cutWhileSlow: Needs = ({ faults }) =>
  faults.some(({ at, kind }) =>
    kind.startsWith("cut ") &&
    faults.some((other) =>
      /^(slow|hold) (worker|ingress)$/.test(other.kind) && other.at < at && at < other.at + other.ms
    )
  )
/** Messages arrive by a server that was away after they have been sent again by another. */
export const lateBundles = cluster(fault("freeze nats", "isolate nats", "slow routes"))
/** Many bytes are lost. */
export const longAndCut: Needs = (scenario) => extremes(scenario) && cuts(scenario)
/** Jobs in version 2 are silent for so long that ingress asks for their workers. */
export const slowVersion2: Needs = (scenario) => extremes(scenario) && scenario.upgradedAt !== undefined
/** One of several workers is silent for longer than its jobs may be. */
export const longSilence: Needs = (scenario) =>
  scenario.workers > 1 && alone("freeze worker", "hold worker")(scenario) &&
  scenario.faults.some(({ ms }) => ms > 7_000)
