/** That requests move on: nothing waits beside free slots, shares are fair, slots and budgets come back, messages are few. */
import { inlineBodyBytes } from "../../shared/bus/protocol/Timings.ts"
import { queueBytes } from "./gateway/Processes.ts"
import { countedRestMs, warmUpMs } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"
import { type Check, isTouched, named, roomAt, runs, stepsOf, type Violation } from "./Violation.ts"

/** How long a request may wait although there is a free slot, in milliseconds: announcements are as old as half a second. */
const idleMs = 2_000

/** Whether requests wait for slots only, and nothing but requests causes messages. */
const isPlain = ({ limits, tasks, weather }: Ended["scenario"]): boolean =>
  limits === undefined && tasks === undefined && weather === undefined

/**
 * Once there is room for its body, a job waits neither while half of the slots are free, nor while its tenant has less than half of
 * an equal share: a tenant alone may use seven eighths.
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
 * How long they may wait during an upgrade: after the first job in the other version of the protocol, the next ones wait until the
 * worker's requests for the former version have expired.
 */
const upgradeStartMs = 1_300
/** Fewer requests than these say nothing. */
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

/** Beside so many free slots a job is claimed within this time, in milliseconds, while nothing fails. */
const peace = { freeShare: 0.75, mostMs: 100, startMs: 2_000 }

/** While nothing fails, no job waits beside many free slots. */
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

/** While nothing fails, each event is sent once. */
function* eventsAreSentOnce(
  { answers, clients, cluster: { pages }, scenario: { faults, tasks } }: Ended
): Generator<Violation> {
  if (faults.length > 0 || tasks !== undefined || pages <= clients.length + answers.length) return
  yield { invariant: "messages are bounded", detail: `${pages} messages with events of ${clients.length} requests` }
}

/** Every slot of every worker is asked for again, and no bytes of bodies are taken. */
function* slotsReturn({ clients, ingresses, pulls, scenario, workers }: Ended): Generator<Violation> {
  const ready = workers.filter(({ isReady, machine }) => isReady && machine.isAlive)
  const free = ready.reduce((sum, { slots }) => sum + slots, 0)
  // each worker asks a quiet queue for one job more, and the queues of a single server, once both are quiet, only for that
  const least = scenario.servers === 1 ? ready.length : free
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

/** Messages of one request beside those of its answer: claims, controls, confirmations, acknowledgements and its event. */
const perRequest = 20
/** Messages of a request per second of its life: heartbeats, progress, repeated questions and credit. */
const perSecond = 4
/** Messages of a process per second and other process: announcements, pings and pull requests. */
const perPair = 3

/** No storm of messages, whatever fails. */
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
 * Messages of an idle process per second, if there is a single server of NATS: announcements, a worker's pull requests, and the
 * console's questions about queues.
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
