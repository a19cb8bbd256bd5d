/** Invariants of scenarios with a single failure, whose maximum cost is known. */
import { attemptKey, jobStream, newestVersion } from "../../shared/bus/protocol/Subjects.ts"
import {
  ingressGoneAfterMs,
  inlineBodyBytes,
  maxAttempts,
  overtakenAfterMs,
  windowBytes
} from "../../shared/bus/protocol/Timings.ts"
import { type Cost, costs, usualMs } from "./Drills.ts"
import type { Client } from "./gateway/Client.ts"
import { formerJobsIn } from "./gateway/FormerWorker.ts"
import { workerGraceMs } from "./gateway/Processes.ts"
import { mostRepairMs, mostSlowMs } from "./nats/Faults.ts"
import { type Fault, type FaultKind, warmUpMs } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"
import { usageEventsOf } from "./UsageEvents.ts"
import { type Check, named, roomAt, runs, stepsOf, type Violation } from "./Violation.ts"

/** How long after the warm-up a new cluster has elected its leaders, in milliseconds. */
const startMs = 2_000

/** How long an answer takes if nothing fails, in milliseconds. */
export const idealMs = ({ request: { chunkBytes, chunks, everyMs, readMs } }: Client): number => {
  const turns = Math.floor(2 * chunks * chunkBytes / windowBytes)
  return chunks * everyMs + turns * (readMs + 20) + readMs
}

/** How long before a failure the last sign of an ingress may be, in milliseconds. */
const heardMs = 1_000

/** The number of workers, servers or ingresses, whichever the last word of the fault's kind names. */
const countOf = ({ servers, workers }: Ended["scenario"], kind: FaultKind): number =>
  kind.endsWith(" worker") ? workers : kind.endsWith(" nats") ? servers : kind.endsWith(" ingress") ? 1 : Infinity

/** The cost of a scenario's only failure; `undefined` if there are several or the cost is unknown. */
const costIn = (scenario: Ended["scenario"]): Cost | undefined => {
  const { faults: [fault, ...others], limits, tasks, upgradedAt, weather } = scenario
  const isPlain = limits === undefined && tasks === undefined && weather === undefined && upgradedAt === undefined
  if (others.length > 0 || !isPlain) return undefined
  if (fault === undefined) return { lateMs: usualMs }
  const cost = (costs as Partial<Record<FaultKind, Cost>>)[fault.kind]
  const aloneMs = countOf(scenario, fault.kind) === 1 ? Math.max(0, fault.ms) : 0
  if (cost === undefined) return undefined
  // workers give up an ingress that is silent for this long
  const isGivenUp = fault.kind.endsWith(" ingress") && fault.ms > ingressGoneAfterMs - heardMs
  const repairMs = fault.kind.startsWith("jobs forget") ? mostRepairMs[scenario.servers > 1 ? "several" : "one"] : 0
  const outcomes = [...cost.outcomes ?? [], ...(isGivenUp ? ["WorkerLost" as const] : [])]
  return { lateMs: cost.lateMs + aloneMs + repairMs, outcomes }
}

/**
 * How much longer a request waits while routes are slow, in milliseconds: the smallest window of its ingress lets two earlier jobs
 * pass per round trip.
 */
const slowMs = (
  clients: ReadonlyArray<Client>,
  { faults: [fault] }: Ended["scenario"],
  { request: { at } }: Client
): number => {
  if (fault?.kind !== "slow routes") return 0
  const ahead = clients.filter(({ claimedAt = Infinity, request }) => request.at < at && claimedAt > at).length
  return Math.min(fault.ms, ahead * mostSlowMs)
}

/** The gateway survives each failure at a known cost. */
function* failuresCostLittle({ clients, scenario }: Ended): Generator<Violation> {
  const cost = costIn(scenario)
  if (cost === undefined) return
  const isDeploy = scenario.faults[0]?.kind === "deploy worker"
  for (const client of clients) {
    const { endedAt = Number.POSITIVE_INFINITY, outcome = "no ingress", request } = client
    if (outcome === "left" || request.at < warmUpMs + startMs) continue
    // an unpaid call whose worker is gone is made again
    const calls = scenario.faults[0]?.kind.endsWith(" worker") === true && !request.isPaid ? 2 : 1
    const lateMs = endedAt - roomAt(clients, client) - calls * idealMs(client)
    // the only worker takes no more jobs when it ends, so that ingress expects long waits
    const isRejected = isDeploy && scenario.workers === 1 && outcome === "QueueTimeout"
    const mayFail = isRejected || cost.outcomes?.includes(outcome) === true &&
        (!isDeploy || idealMs(client) > workerGraceMs - usualMs)
    if (outcome !== "complete" && !mayFail) {
      yield named("a failure costs little", client, `${outcome} after one failure`)
    } else if (outcome === "complete" && lateMs > cost.lateMs + slowMs(clients, scenario, client)) {
      yield named("a failure costs little", client, `is ${lateMs.toFixed(0)} ms late after one failure`)
    }
  }
}

/**
 * How much longer jobs may wait once NATS serves their queue again, in milliseconds: jobs that NATS delivers to a connection that a
 * worker has already left must first count as overtaken.
 */
const afterOutageMs = overtakenAfterMs + 500

/** With this share of the slots in use, some jobs must wait: the rest is kept for new tenants. */
const fullShare = 0.8

/** The last time between `from` and `until` at which other jobs took the slots, in milliseconds of the world. */
const fullUntil = (
  { clients, scenario: { slots, workers } }: Pick<Ended, "clients" | "scenario">,
  from: number,
  until: number
): number =>
  stepsOf(from, until).findLast((at) =>
    clients.filter((client) => runs(client, at)).length >= fullShare * slots * workers
  ) ?? from

/** Jobs that wait for NATS are claimed soon after it serves their queue again and slots are free. */
function* outagesEnd({ clients, outages, scenario, world }: Ended): Generator<Violation> {
  const cost = costIn(scenario)
  if (cost === undefined) return
  const [fault] = scenario.faults
  // workers may be behind a server that cannot reach the others
  const isolatedUntil = fault?.kind === "isolate nats" ? fault.at + fault.ms : 0
  for (const { until } of outages) {
    if (until === undefined || until < warmUpMs + startMs) continue
    const backAt = Math.max(until, isolatedUntil)
    for (const client of clients) {
      const { claimedAt, endedAt, request } = client
      const claimed = claimedAt ?? endedAt ?? world.now
      if (request.at >= until || claimed < until || outages.some(({ from }) => from > until && from < claimed)) continue
      const from = Math.max(backAt, roomAt(clients, client))
      if (claimed - from <= afterOutageMs) continue
      if (claimed - fullUntil({ clients, scenario }, from, claimed) > afterOutageMs) {
        yield named("outages end", client, `waited for ${(claimed - backAt).toFixed(0)} ms after NATS was back`)
      }
    }
  }
}

/** A job's next attempt is published only after the previous one was delivered, unless that one is lost or undeliverable. */
function* attemptsFollowDeliveries({ clients, cluster: { jetStream }, scenario }: Ended): Generator<Violation> {
  if (costIn(scenario) === undefined) return
  const history = jetStream.streams.get(jobStream("chat", newestVersion))?.history
  for (const client of clients) {
    for (let attempt = 2; attempt <= maxAttempts; attempt++) {
      const before = history?.get(attemptKey(client.job ?? "", attempt - 1))
      const after = history?.get(attemptKey(client.job ?? "", attempt))
      if (before === undefined || before.isBehind || after === undefined) continue
      if ((before.deliveredAt ?? Infinity) > after.storedAt) {
        yield named(
          "attempts follow deliveries",
          client,
          `was published again before attempt ${attempt - 1} was delivered`
        )
      }
    }
  }
}

/** How long a worker or ingress may be silent and keep its jobs, in milliseconds. */
const shortMs = 1_000

/** A job whose body is in its message gets another attempt only if something fails for longer than `shortMs`. */
function* attemptsAreNeeded(
  { clients, cluster: { jetStream }, scenario: { answers, faults, tasks } }: Ended
): Generator<Violation> {
  const isShort = ({ kind, ms }: Fault) => /^(freeze|hold) (worker|ingress)$/.test(kind) && ms <= shortMs
  if (tasks !== undefined || answers !== undefined || faults.length > 1 || !faults.every(isShort)) return
  const history = jetStream.streams.get(jobStream("chat", newestVersion))?.history
  for (const client of clients) {
    if (client.request.bodyBytes > inlineBodyBytes || client.request.at < warmUpMs + startMs) continue
    if (history?.has(attemptKey(client.job ?? "", 2)) === true) {
      yield named("attempts are needed", client, "was published again for nothing")
    }
  }
}

/** How long NATS servers may be frozen without the loss of a worker, even of one that cannot change servers, in milliseconds. */
const frozenMs = 4_500

function* frozenServersCostNoWorker(
  { clients, scenario: { faults, servers, upgradedAt } }: Ended
): Generator<Violation> {
  const lastMs = Math.max(...faults.map(({ at, ms }) => at + ms)) - Math.min(...faults.map(({ at }) => at))
  if (servers === 1 || upgradedAt !== undefined || lastMs > frozenMs) return
  if (!faults.every(({ kind }) => kind === "freeze nats")) return
  for (const client of clients) {
    if (client.outcome === "WorkerLost") yield named("frozen servers cost no worker", client, "has lost its worker")
  }
}

/** How long it takes until another worker has the jobs that a silent worker had not claimed, in milliseconds. */
const movedMs = 4_000

/** A worker that dies or falls silent delays only what it has claimed, if the others have slots for everything. */
function* unclaimedJobsMove({ clients, scenario }: Ended): Generator<Violation> {
  const { faults: [fault], slots, workers } = scenario
  if (costIn(scenario) === undefined || !/^(kill|freeze|hold) worker$/.test(fault?.kind ?? "")) return
  if (clients.length > slots * (workers - 1) / 2) return
  for (const client of clients) {
    const { claimedAt, endedAt = Number.POSITIVE_INFINITY, outcome, request } = client
    const waitedMs = (claimedAt ?? endedAt) - roomAt(clients, client)
    if (outcome === "left" || request.at < warmUpMs + startMs || waitedMs <= movedMs) continue
    yield named("unclaimed jobs move", client, `waited for ${waitedMs.toFixed(0)} ms beside a worker`)
  }
}

/** A worker sends at most one window of bytes ahead of its client. */
function* windowsHold({ clients, scenario }: Ended): Generator<Violation> {
  // with an HTTP provider, bytes that have arrived do not wait at the provider
  if (scenario.weather !== undefined) return
  for (const client of clients) {
    const { mostUnread, request: { chunkBytes } } = client
    if (mostUnread > windowBytes + chunkBytes) yield named("windows hold", client, `has ${mostUnread} unread bytes`)
  }
}

/** How long a call may continue without a client, whatever else fails, in milliseconds. */
const orphanMs = 30_000

/** Workers end the calls of clients that have left, and of ingresses that have died. */
function* orphansEnd({ clients, provider, world }: Ended): Generator<Violation> {
  for (const client of clients) {
    for (const { request, until = world.now } of provider.calls) {
      if (request !== client.request.request || client.endedAt === undefined) continue
      const lateMs = until - client.endedAt
      if (lateMs > orphanMs) yield named("orphans end", client, `its call ran for ${lateMs.toFixed(0)} ms more`)
    }
  }
}

/** How long a worker that gets SIGTERM may take after its last job, in milliseconds. */
const closeMs = 1_500

/** A worker ends soon after its last job. */
function* deploysEnd({ provider, scenario, workers }: Ended): Generator<Violation> {
  if (costIn(scenario) === undefined) return
  for (const { endedAt = Number.POSITIVE_INFINITY, machine: { name }, terminatedAt } of workers) {
    if (terminatedAt === undefined) continue
    const calls = provider.calls.filter(({ worker }) => worker === name)
    const lateMs = endedAt - Math.max(terminatedAt, ...calls.map(({ until = 0 }) => until))
    if (lateMs > closeMs) yield { invariant: "deploys end", detail: `${name} took ${lateMs.toFixed(0)} ms to end` }
  }
}

/** The gateway reports the jobs that fail as poison, and no others. */
function* poisonIsReported({ clients, world }: Ended): Generator<Violation> {
  const reports = world.trace.lines.filter(({ what }) => what.startsWith("Error: ") && what.includes("poison job"))
  const poisoned = clients.filter(({ outcome }) => outcome === "PoisonJob")
  for (const client of poisoned) {
    if (!reports.some(({ what }) => what.includes(`"${client.job}"`))) {
      yield named("poison is reported", client, "is not")
    }
  }
  const left = clients.filter(({ outcome }) => outcome === "left" || outcome === "ingress lost").length
  if (reports.length > poisoned.length + left) {
    yield { invariant: "poison is reported", detail: `${reports.length} reports of ${poisoned.length} jobs` }
  }
}

/** How long a worker that ends waits for usage to be stored, in milliseconds. */
const storedWithinMs = 5_000

/** A worker that ends writes its own usage if the stream is writable again soon, and then ends soon. */
function* lastUsageIsWritten(ended: Ended): Generator<Violation> {
  const { clients, provider, scenario: { faults, upgradedAt, weather }, workers } = ended
  const [full, deploy, ...others] = faults
  if (full?.kind !== "full usage" || deploy?.kind !== "deploy worker" || others.length > 0) return
  if (upgradedAt !== undefined || weather !== undefined || full.ms > storedWithinMs - 1_000) return
  const { events } = usageEventsOf(ended)
  for (const { endedAt = Infinity, machine: { name }, terminatedAt } of workers) {
    if (terminatedAt === undefined) continue
    const calls = provider.calls.filter(({ outcome, worker }) => worker === name && outcome === "complete")
    for (const { made, request } of calls) {
      const client = clients.find((client) => client.request.request === request)
      const event = events.find(({ id }) => id === client?.job)
      if (client !== undefined && event?.usage?.outputTokens !== made) {
        yield named("usage is the bill", client, `has ${event?.usage?.outputTokens} tokens of ${made}`)
      }
    }
    const lateMs = endedAt - Math.max(terminatedAt, full.at + full.ms, ...calls.map(({ until = 0 }) => until))
    if (lateMs > closeMs + 1_500) yield { invariant: "deploys end", detail: `${name} took ${lateMs.toFixed(0)} ms` }
  }
}

/** A worker that learns before the end of a call that its job has moved leaves the job's event to the next worker. */
function* movedJobsAreMeteredOnce(ended: Ended): Generator<Violation> {
  const { clients, scenario } = ended
  if (costIn(scenario) === undefined || scenario.faults[0]?.kind !== "hold worker") return
  const { own } = usageEventsOf(ended)
  for (const client of clients) {
    const events = own.filter(({ id }) => id === client.job)
    if (events.length > 1 && events.some(({ outcome }) => outcome === "cancelled")) {
      yield named("usage is the bill", client, `was metered as ${events.map(({ outcome }) => outcome).join(", ")}`)
    }
  }
}

/** Version 2 is used only with workers of the previous release, and while ingress and workers discover each other. */
function* newestVersionIsUsed({ clients, cluster, formerJobs, scenario }: Ended): Generator<Violation> {
  const isUsual = costIn(scenario) !== undefined
  // in a new cluster, the queue of version 3 may be the last to have a leader
  const early = clients.filter(({ request }) => request.at < warmUpMs + startMs)
  const count = formerJobsIn(cluster) - (isUsual ? early.length : formerJobs)
  if (count > 0) yield { invariant: "the newest version is used", detail: `${count} jobs are in version 2` }
}

export const checks: ReadonlyArray<Check> = [
  failuresCostLittle,
  outagesEnd,
  attemptsFollowDeliveries,
  attemptsAreNeeded,
  frozenServersCostNoWorker,
  unclaimedJobsMove,
  windowsHold,
  orphansEnd,
  deploysEnd,
  poisonIsReported,
  lastUsageIsWritten,
  movedJobsAreMeteredOnce,
  newestVersionIsUsed
]
