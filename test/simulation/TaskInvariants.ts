/** What must hold for videos, whatever fails: paid once, an end for every task, one usage event, and poison stops. */
import type { TaskClient } from "./gateway/TaskClient.ts"
import type { Ended } from "./Simulation.ts"
import { usageEventsOf } from "./UsageEvents.ts"
import { type Check, isTouched, type Violation } from "./Violation.ts"

const of = (invariant: string, { id, request: { task } }: TaskClient, detail: string): Violation => ({
  invariant,
  detail: `task ${task} (${id}): ${detail}`
})

/** No task is created twice at a provider that charges for it. */
function* createdOnce({ videos: { studio } }: Ended): Generator<Violation> {
  const byTask = Map.groupBy(studio.creations, ({ task }) => task)
  for (const [task, creations] of byTask) {
    if (creations.length > 1) {
      yield { invariant: "video paid once", detail: `${task} was created by ${creations.map(({ worker }) => worker)}` }
    }
  }
}

/**
 * The record of every task that a client knows ends, unless JetStream has lost its message after it was stored, or has stored it
 * below what the consumer had delivered, and further messages arrived before the console looked.
 */
function* recordsEnd({ cluster: { jetStream }, videos: { clients } }: Ended): Generator<Violation> {
  for (const client of clients) {
    if (client.id === undefined || client.hasEnded) continue
    if (jetStream.hasLost(client.id) || jetStream.hasPassedOver(client.id)) continue
    const { claims, holder, leaseUntil, losses, status } = client.record ?? {}
    yield of("tasks end", client, `is ${JSON.stringify({ status, holder, claims, losses, leaseUntil })}`)
  }
}

const mostKilled = 2

function* poisonStops({ videos: { clients, studio } }: Ended): Generator<Violation> {
  for (const [task, workers] of studio.killed) {
    const client = clients.find(({ id }) => id === task)
    if (workers.length > mostKilled && client !== undefined) {
      yield of("poison stops", client, `has ended ${workers.join(", ")}`)
    }
  }
}

const outcomes = { completed: "success", failed: "failure", cancelled: "cancelled" } as const

/** One event for each task that a provider was called for, with the outcome of its record. */
function* videoUsage(ended: Ended): Generator<Violation> {
  const { events, forgotten } = usageEventsOf(ended)
  for (const client of ended.videos.clients) {
    const { hasEnded, id, record } = client
    if (id === undefined || record === undefined || !hasEnded) continue
    // its server has lost it after it was stored
    if (forgotten.has(id)) continue
    const own = events.filter((event) => event.id === id)
    const wanted = record.providerTask === null ? 0 : 1
    if (own.length !== wanted) yield of("video usage", client, `has ${own.length} events, not ${wanted}`)
    else if (own.some(({ outcome }) => outcome !== Reflect.get(outcomes, record.status))) {
      yield of("video usage", client, `is ${record.status}, its event ${own[0]?.outcome}`)
    }
  }
}

/** A task that nothing touched ends as its provider decides. */
function* videosAreMade({ scenario, videos: { clients, studio } }: Ended): Generator<Violation> {
  if (studio.killed.size > 0) return
  for (const client of clients) {
    const { isCancelling, record, request } = client
    if (isCancelling || isTouched(scenario, request.at, Number.POSITIVE_INFINITY)) continue
    const wanted = request.fate === "fails" ? "failed" : "completed"
    if (record?.status !== wanted) yield of("videos are made", client, `is ${record?.status} without a fault`)
  }
}

export const checks: ReadonlyArray<Check> = [createdOnce, recordsEnd, poisonStops, videoUsage, videosAreMade]
