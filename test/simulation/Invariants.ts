/** Invariants of every simulation, whatever fails. */
import { attemptKey, jobStream, versionsOf } from "../../shared/bus/protocol/Subjects.ts"
import { maxAttempts, maxDeliveries } from "../../shared/bus/protocol/Timings.ts"
import { checks as drills } from "./DrillInvariants.ts"
import { checks as flow } from "./FlowInvariants.ts"
import type { Client } from "./gateway/Client.ts"
import { workerGraceMs } from "./gateway/Processes.ts"
import { placeIn } from "./gateway/Provider.ts"
import { endOf } from "./Scenario.ts"
import { checks as limits } from "./LimitInvariants.ts"
import { checks as providers } from "./ProviderInvariants.ts"
import { checks as tasks } from "./TaskInvariants.ts"
import { type Check, isTouched, mayBeStarting, named, type Violation } from "./Violation.ts"
import type { Ended } from "./Simulation.ts"
import { usageEventsOf } from "./UsageEvents.ts"

export type { Violation }

/** A request that is not rejected within this time may wait for a worker until its deadline, in milliseconds. */
const rejectedMs = 100

/** Whether a client's request was ended between immediate rejection and its deadline. */
const isEarly = ({ endedAt = 0, request: { at, patienceMs }, submittedAt }: Client): boolean => {
  const waitedMs = endedAt - (submittedAt ?? at)
  return waitedMs > rejectedMs && waitedMs < patienceMs - rejectedMs
}

/** Every request ends exactly once. If no worker claims it, it ends at its deadline, unless it is rejected at once. */
function* endsOnce({ clients, scenario }: Ended): Generator<Violation> {
  for (const client of clients) {
    const { claimedAt, endedAt, ends, outcome, request } = client
    if (outcome === undefined || endedAt === undefined) yield named("ends once", client, "has not ended")
    else if (ends !== 1) yield named("ends once", client, `ended ${ends} times`)
    else if (outcome === "QueueTimeout" && isEarly(client)) yield named("ends once", client, "timed out too early")
    else if (claimedAt === undefined && outcome === "QueueTimeout" && !isTouched(scenario, request.at, endedAt)) {
      const lateMs = endedAt - request.at - request.patienceMs
      if (lateMs > 1_000) yield named("ends once", client, `ended ${lateMs.toFixed(0)} ms after its deadline`)
    }
  }
}

/** A client gets the bytes of its own request and of one call, complete and in order, or an error. */
function* ownBytesInOrder({ clients }: Ended): Generator<Violation> {
  for (const client of clients) {
    const places = client.chunks.map(placeIn)
    const call = places[0]?.call
    for (const [at, place] of places.entries()) {
      if (place.request !== client.request.request) {
        yield named("own bytes", client, `got bytes of request ${place.request}`)
      } else if (place.call !== call) yield named("own bytes", client, `got bytes of calls ${call} and ${place.call}`)
      else if (place.at !== at) yield named("own bytes", client, `got chunk ${place.at} as number ${at}`)
      else continue
      break
    }
    if (client.outcome === "complete" && (client.starts.length !== 1 || client.starts[0] !== 200)) {
      yield named("own bytes", client, `has started with ${client.starts.join(", ")}`)
    }
    if (client.outcome === "complete" && places.length !== client.request.chunks) {
      yield named("own bytes", client, `is complete with ${places.length} of ${client.request.chunks} chunks`)
    }
  }
}

/** No two calls for one paid request. Providers that fail have rules of their own: `ProviderInvariants.ts`. */
function* paidOnce({ clients, provider, scenario }: Ended): Generator<Violation> {
  if (scenario.weather !== undefined) return
  for (const client of clients) {
    const calls = provider.calls.filter(({ isPaid, request }) => isPaid && request === client.request.request)
    if (calls.length > 1) {
      yield named("paid once", client, `was called by ${calls.map(({ worker }) => worker).join(", ")}`)
    }
  }
}

/**
 * Whether a message of the job is gone from its queue, or was delivered to a second worker as if for the first time. No worker can
 * then learn that the job was called: a job without an earlier delivery, and unknown to its ingress, looks like one whose client
 * left in time.
 */
const isQueueLost = ({ cluster: { jetStream } }: Ended, { job }: Client): boolean =>
  job !== undefined &&
  Array.from({ length: maxAttempts }, (_, at) => attemptKey(job, at + 1))
    .some((id) => jetStream.hasLost(id) || jetStream.hasRecounted(id))

/**
 * One usage event for each request that was called, with the provider's bill if its worker survived. If the worker died, the next
 * one writes the event.
 */
function* usageIsTheBill(ended: Ended): Generator<Violation> {
  const { clients, provider, scenario, workers, world } = ended
  const { events, forgotten } = usageEventsOf(ended)
  for (const client of clients) {
    const own = events.filter(({ id }) => id === client.job)
    if (own.length > 1) yield named("usage is the bill", client, `has ${own.length} events`)
    const calls = provider.calls.filter(({ request }) => request === client.request.request)
    const last = calls.at(-1)
    // an event that was confirmed and then lost cannot be written again
    if (last === undefined || (client.job !== undefined && forgotten.has(client.job))) continue
    const worker = workers.find(({ machine }) => machine.name === last.worker)
    // killed, or ended after a deploy
    if (worker?.machine.isAlive !== true) {
      if (own.length === 0 && last.isPaid && !isQueueLost(ended, client)) {
        yield named("usage is the bill", client, "has no event, and its worker is gone")
      }
      continue
    }
    if (client.outcome === "complete" && last.outcome === "complete" && own[0]?.error === "WorkerLost") {
      yield named("usage is the bill", client, "has an answer, and its event a lost worker")
    }
    // any of several free calls may be counted, or none if the job has moved and no other worker has taken it
    if (!last.isPaid && (calls.length > 1 || last.outcome !== "complete")) continue
    // an attempt that no provider accepted has metered the job, and the report of its failure was lost with a connection
    const isOfLostAttempt = scenario.weather !== undefined && scenario.faults.length > 0 &&
      own[0]?.outcome === "failure"
    if (isOfLostAttempt) continue
    const isCancelled = client.outcome === "left" && last.outcome === "aborted" &&
      !isTouched(scenario, client.request.at, world.now)
    if (own.length === 0) yield named("usage is the bill", client, "has no event")
    else if (isCancelled && own[0]?.outcome !== "cancelled") {
      yield named("usage is the bill", client, `is cancelled, its event ${own[0]?.outcome}`)
    } else if (
      last.outcome === "complete" && client.outcome === "complete" && own[0]?.usage?.outputTokens !== last.made
    ) {
      yield named("usage is the bill", client, `has ${own[0]?.usage?.outputTokens} tokens, was billed for ${last.made}`)
    }
  }
}

/** Only requests that a fault may have touched fail. */
function* onlyTouchedFail({ clients, scenario }: Ended): Generator<Violation> {
  for (const client of clients) {
    const { outcome, request } = client
    if (outcome === "complete" || outcome === "left" || outcome === "refused" || outcome === undefined) continue
    if (outcome === "no ingress" && mayBeStarting(request.at)) continue
    const until = client.endedAt ?? Number.POSITIVE_INFINITY
    if (!isTouched(scenario, request.at, until)) {
      yield named("only touched requests fail", client, `${outcome} without a fault`)
    }
  }
}

/** Faults that may make a worker look lost, because it or every route to it is silent for long. */
const silences: ReadonlyArray<string> = [
  "kill worker",
  "freeze worker",
  "hold worker",
  "slow worker",
  "freeze ingress",
  "hold ingress",
  "kill nats",
  "restart nats",
  "freeze nats",
  "isolate nats",
  "slow routes"
]

const losses: ReadonlyArray<string> = [...silences, "deploy worker"]

/** How long after its end a fault may still make a worker look lost, in milliseconds: as long as a job may be silent. */
const lossMs = 10_000

/** Whether a fault that makes workers look lost acted shortly before this time. */
const mayLoseWorkers = (scenario: Ended["scenario"], at: number): boolean =>
  scenario.faults.some((fault) => {
    const graceMs = fault.kind === "deploy worker" ? workerGraceMs : 0
    return losses.includes(fault.kind) && fault.at <= at && endOf(scenario, fault) + graceMs + lossMs >= at
  })

/** Whether the job was in version 2 of the protocol, whose frames may be lost. */
const wasInVersion2 = ({ cluster: { jetStream } }: Ended, { job = "" }: Client): boolean =>
  Array.from({ length: maxAttempts }, (_, at) => attemptKey(job, at + 1))
    .some((id) => jetStream.hasStored(jobStream("chat", 2), id))

/** Frames arrive whatever connections lose. Broken connections alone cost no worker, and deploys do not make a job poison. */
function* answersArrive(ended: Ended): Generator<Violation> {
  const { clients, scenario } = ended
  for (const client of clients) {
    const { endedAt = Number.POSITIVE_INFINITY, outcome } = client
    if (outcome === "AnswerLost" && !wasInVersion2(ended, client)) {
      yield named("answers arrive", client, "has lost a frame")
    } else if (outcome === "WorkerLost" && scenario.upgradedAt === undefined && !mayLoseWorkers(scenario, endedAt)) {
      yield named("answers arrive", client, "has lost its worker")
    } else if (outcome === "PoisonJob" && !scenario.faults.some(({ kind }) => silences.includes(kind))) {
      yield named("answers arrive", client, "counts as poison")
    }
  }
}

/** The call of a client that left ends within two seconds. */
function* leavingStopsTheCall({ clients, provider, scenario, world }: Ended): Generator<Violation> {
  for (const client of clients) {
    const { endedAt, outcome, request } = client
    if (outcome !== "left" || endedAt === undefined || isTouched(scenario, request.at, endedAt + 2_000)) continue
    for (const call of provider.calls) {
      if (call.request !== request.request) continue
      const lateMs = (call.until ?? world.now) - endedAt
      if (lateMs > 2_000) yield named("leaving stops the call", client, `its call ran for ${lateMs.toFixed(0)} ms more`)
    }
  }
}

/** Five seconds after the last fault, requests are answered promptly again. */
function* flowsAgain({ probes, scenario }: Ended): Generator<Violation> {
  // while an open circuit is probed, other requests are rejected; with clocks that differ, they may have no time left to wait
  const hasWrongClock = scenario.faults.some(({ kind }) => kind.startsWith("clock"))
  const turnedAway = hasWrongClock ? ["ProviderFailed", "ProviderRateLimited"] : ["ProviderFailed"]
  for (const client of probes) {
    if (scenario.weather !== undefined && turnedAway.includes(client.outcome ?? "")) continue
    const tookMs = (client.endedAt ?? Number.POSITIVE_INFINITY) - client.request.at
    if (client.outcome !== "complete") {
      yield named("flows again", client, `${client.outcome} although all faults have healed`)
    } else if (tookMs > 2_000) {
      yield named("flows again", client, `took ${tookMs.toFixed(0)} ms although all faults have healed`)
    }
  }
}

/** Nothing is left: no job, no call, no delivery. */
function* nothingIsLeft({ cluster, ingresses, provider }: Ended): Generator<Violation> {
  for (const { client, machine } of ingresses) {
    if (!machine.isAlive || client === undefined) continue
    const depth = client.depth("chat", "default")
    if (depth.waiting !== 0 || depth.unclaimed !== 0 || depth.running !== 0) {
      yield { invariant: "nothing is left", detail: `${machine.name} has ${JSON.stringify(depth)}` }
    }
  }
  if (provider.open > 0) yield { invariant: "nothing is left", detail: `${provider.open} calls are open` }
  for (const version of versionsOf("chat")) {
    const name = jobStream("chat", version)
    const consumer = cluster.jetStream.streams.get(name)?.consumers.get("default")
    if ((consumer?.unacknowledged ?? 0) + (consumer?.undelivered ?? 0) > 0) {
      yield {
        invariant: "nothing is left",
        detail:
          `${consumer?.undelivered} jobs of ${name} are undelivered and ${consumer?.unacknowledged} unacknowledged`
      }
    }
  }
}

/** No job runs out of deliveries unless enough workers may have died with it: a delivery of a job that another worker has is free. */
function* deliveriesLast({ cluster, scenario }: Ended): Generator<Violation> {
  if (scenario.faults.filter(({ kind }) => losses.includes(kind)).length >= maxDeliveries) return
  for (const version of versionsOf("chat")) {
    const name = jobStream("chat", version)
    const orphans = cluster.jetStream.streams.get(name)?.consumers.get("default")?.orphans ?? 0
    if (orphans > 0) {
      yield { invariant: "deliveries last", detail: `${orphans} jobs of ${name} were delivered too often` }
    }
  }
}

/** Messages that the gateway logs if its own code fails. */
const bugs: ReadonlyArray<string> = [
  "a message handler failed",
  "a periodic task failed",
  "job failed by a bug of the gateway",
  "task failed by an internal error"
]

/** The gateway's own code does not fail. */
function* noBugs({ world }: Ended): Generator<Violation> {
  for (const { what, who } of world.trace.lines) {
    if (!what.startsWith("Error: ") || !bugs.some((bug) => what.includes(bug))) continue
    return yield { invariant: "no bugs", detail: `${who} logs ${what}` }
  }
}

const checks: ReadonlyArray<Check> = [
  noBugs,
  endsOnce,
  ownBytesInOrder,
  paidOnce,
  usageIsTheBill,
  onlyTouchedFail,
  answersArrive,
  leavingStopsTheCall,
  flowsAgain,
  nothingIsLeft,
  deliveriesLast,
  ...drills,
  ...flow,
  ...limits,
  ...providers,
  ...tasks
]

export const violationsOf = (ended: Ended): ReadonlyArray<Violation> => checks.flatMap((check) => [...check(ended)])
