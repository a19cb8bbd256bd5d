/** Invariants of throughput: no job waits beside free slots, shares are fair, slots and budgets come back, messages are few. */
import { inlineBodyBytes } from "../../shared/bus/protocol/Timings.ts"
import { queueBytes } from "./gateway/Processes.ts"
import { countedRestMs, warmUpMs } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"
import { type Check, isTouched, named, roomAt, runs, stepsOf, type Violation } from "./Violation.ts"

/** How long a request may wait beside a free slot, in milliseconds: announcements may be half a second old. */
const idleMs = 2_000

/** Whether requests wait only for slots, and only requests cause messages. */
const isPlain = ({ limits, tasks, weather }: Ended["scenario"]): boolean =>
  limits === undefined && tasks === undefined && weather === undefined

/**
 * A job with room for its body does not wait while half of the slots are free (one tenant may use seven eighths of them), or while
 * its tenant has less than half of an equal share.
 */
function* nothingWaits({ clients, scenario: { slots, workers }, scenario }: Ended): Generator<Violation> {
  if (!isPlain(scenario)) return
  const all = slots * workers
  const tenants = new Set(clients.map(({ request }) => request.tenant))
  for (const client of clients) {
    const { claimedAt, endedAt, request } = client
    const until = claimedAt ?? endedAt ?? Number.POSITIVE_INFINITY
    const from = roomAt(clients, client)
    if (until - from <= idleMs || isTouched(scenario, request.at, from + idleMs)) continue
    const steps = stepsOf(from, from + idleMs)
    const running = steps.map((at) => clients.filter((other) => runs(other, at)).length)
    if (running.every((count) => count < all / 2)) {
      yield named("nothing waits", client, `waited beside ${all - Math.max(...running)} of ${all} free slots`)
    }
    const own = steps.map((at) =>
      clients.filter((other) => other.request.tenant === request.tenant && runs(other, at)).length
    )
    if (own.every((count) => count < all / tenants.size / 2)) {
      yield named("fair shares", client, `waited although its tenant had ${Math.max(...own)} of ${all} slots`)
    }
  }
}

/** Most requests that no fault has touched are claimed within this time, in milliseconds. */
const usualStartMs = 100
/**
 * How long most requests may wait during an upgrade, in milliseconds: after the first job in the other protocol version, further jobs
 * wait until the worker's requests for the former version have expired.
 */
const upgradeStartMs = 1_300
/** The median of fewer requests is not significant. */
const fewRequests = 10

/** A worker claims most jobs as soon as ingress has them. */
function* jobsStartAtOnce({ clients, scenario }: Ended): Generator<Violation> {
  if (!isPlain(scenario)) return
  const waits = clients.flatMap(({ claimedAt, request: { at } }) =>
    claimedAt === undefined || isTouched(scenario, at, claimedAt) ? [] : [claimedAt - at]
  ).toSorted((a, b) => a - b)
  const median = waits[Math.floor(waits.length / 2)] ?? 0
  const mostMs = scenario.upgradedAt === undefined ? usualStartMs : upgradeStartMs
  if (waits.length >= fewRequests && median > mostMs) {
    yield { invariant: "jobs start at once", detail: `half of ${waits.length} jobs waited for ${median.toFixed(0)} ms` }
  }
}

/** While nothing fails and this share of the slots is free, jobs are claimed within `mostMs`, from `startMs` after the warm-up on. */
const peace = { freeShare: 0.75, mostMs: 100, startMs: 2_000 }

/** No job waits beside many free slots while nothing fails. */
function* peaceIsQuick(
  { clients, scenario, scenario: { faults, slots, upgradedAt, workers } }: Ended
): Generator<Violation> {
  if (!isPlain(scenario) || faults.length > 0 || upgradedAt !== undefined) return
  for (const client of clients) {
    const { claimedAt, request: { at, bodyBytes } } = client
    if (claimedAt === undefined || bodyBytes > inlineBodyBytes || at < warmUpMs + peace.startMs) continue
    const open = clients.filter(({ endedAt = Infinity, request }) => request.at <= at && endedAt > at).length
    if (open > slots * workers * (1 - peace.freeShare)) continue
    const waitedMs = claimedAt - at
    if (waitedMs > peace.mostMs) yield named("jobs start at once", client, `waited for ${waitedMs.toFixed(0)} ms`)
  }
}

/** Each event is sent once while nothing fails. */
function* eventsAreSentOnce(
  { answers, clients, cluster: { pages }, scenario: { faults, tasks } }: Ended
): Generator<Violation> {
  if (faults.length > 0 || tasks !== undefined || pages <= clients.length + answers.length) return
  yield { invariant: "messages are bounded", detail: `${pages} messages with events of ${clients.length} requests` }
}

/** For how many bodies that come with their jobs a worker has memory. */
const leastInlineJobs = 64

/** At the end, workers ask for jobs for all of their slots, and no memory for bodies is reserved. */
function* slotsReturn({ clients, ingresses, pulls, scenario, workers }: Ended): Generator<Violation> {
  const ready = workers.filter(({ isReady, machine }) => isReady && machine.isAlive)
  const free = ready.reduce((sum, { slots }) => sum + slots, 0)
  // each worker asks a quiet queue for one extra job; on a single server, it asks quiet queues only for that job
  const least = scenario.servers === 1
    ? ready.length
    : ready.reduce((sum, { slots }) => sum + Math.min(slots, leastInlineJobs), 0)
  if (pulls < least || pulls > free + ready.length) {
    yield { invariant: "slots return", detail: `workers ask for ${pulls} jobs with ${free} free slots` }
  }
  for (const { client, machine } of ingresses) {
    if (!machine.isAlive || client === undefined) continue
    for (const tenant of new Set(clients.map(({ request }) => request.tenant))) {
      // one tenant may take half of all, and no more
      const isFree = client.bodies.reserve(tenant, queueBytes / 2)
      const isMore = isFree && client.bodies.reserve(tenant, 1)
      if (!isFree || isMore) yield { invariant: "bytes return", detail: `${machine.name} counts bytes of ${tenant}` }
      if (isFree) client.bodies.release(tenant, queueBytes / 2)
    }
  }
}

/** Messages per request, without its answer: claims, controls, confirmations, acknowledgements and its event. */
const perRequest = 20
/** Messages per request and second: heartbeats, progress, repeated questions and credit. */
const perSecond = 4
/** Messages per pair of processes and second: announcements, pings and pull requests. */
const perPair = 3

/** The number of messages is bounded, whatever fails. */
function* messagesAreBounded({ clients, cluster, ingresses, scenario, workers, world }: Ended): Generator<Violation> {
  if (!isPlain(scenario)) return
  const processes = ingresses.length + workers.length
  const own = clients.reduce((sum, { endedAt = world.now, request: { at, bodyBytes, chunkBytes, chunks } }) => {
    const frames = 3 * chunks * Math.ceil(chunkBytes / 65_536) + bodyBytes / 65_536
    return sum + perRequest + frames + perSecond * (endedAt - at) / 1_000
  }, 0)
  const most = own + perPair * processes ** 2 * world.now / 1_000
  if (cluster.published > most) {
    yield {
      invariant: "messages are bounded",
      detail: `${cluster.published} messages for ${clients.length} requests, of at most ${most.toFixed(0)}`
    }
  }
}

/**
 * Messages per idle process and second with a single NATS server: announcements, a worker's pull requests, and the console's
 * questions about queues.
 */
const idle = { console: 2.5, ingress: 0.75, worker: 2 }

/** An idle gateway sends few messages. */
function* restIsQuiet({ ingresses, restMessages = 0, scenario, workers }: Ended): Generator<Violation> {
  if (!isPlain(scenario) || scenario.servers > 1) return
  const countOf = (all: ReadonlyArray<{ readonly machine: { readonly isAlive: boolean } }>) =>
    all.filter(({ machine }) => machine.isAlive).length
  const perSecond = idle.console + idle.ingress * countOf(ingresses) + idle.worker * countOf(workers)
  if (restMessages > perSecond * countedRestMs / 1_000) {
    yield { invariant: "messages are bounded", detail: `${restMessages} messages although nothing happens` }
  }
}

export const checks: ReadonlyArray<Check> = [
  nothingWaits,
  jobsStartAtOnce,
  peaceIsQuick,
  slotsReturn,
  messagesAreBounded,
  restIsQuiet,
  eventsAreSentOnce
]
