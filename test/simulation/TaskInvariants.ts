/**
 * Invariants of tasks, whatever fails, first for videos and then for answers: each is paid for once, ends once, has one usage event
 * and a whole answer, and poison stops.
 */
import type { AnswerClient } from "./gateway/AnswerClient.ts"
import { type Call, placeIn } from "./gateway/Provider.ts"
import type { TaskClient } from "./gateway/TaskClient.ts"
import type { Ended } from "./Simulation.ts"
import { usageEventsOf } from "./UsageEvents.ts"
import { type Check, isTouched, mayBeStarting, type Violation } from "./Violation.ts"

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
 * The record of every task that a client knows ends, unless JetStream has lost the task's message after it was stored, or has stored
 * it below the sequence that the consumer had delivered, and further messages arrived before the console checked.
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
    // the server has lost the event after it was stored
    if (forgotten.has(id)) continue
    const own = events.filter((event) => event.id === id)
    const wanted = record.providerTask === null && record.declinedBy === undefined ? 0 : 1
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
    if (client.hasFoundNone && mayBeStarting(request.at)) continue
    const wanted = request.fate === "fails" ? "failed" : "completed"
    if (record?.status !== wanted) yield of("videos are made", client, `is ${record?.status} without a fault`)
  }
}

const about = (invariant: string, { id, request: { request } }: AnswerClient, detail: string): Violation => ({
  invariant,
  detail: `request ${request} (${id}): ${detail}`
})

const callsOf = ({ provider }: Ended, { request: { request } }: AnswerClient): ReadonlyArray<Call> =>
  provider.calls.filter((call) => call.request === request)

/** No paid task is called twice, even if no client knows it. */
function* answersPaidOnce(ended: Ended): Generator<Violation> {
  for (const client of ended.answers) {
    const calls = callsOf(ended, client).filter(({ isPaid }) => isPaid)
    if (calls.length > 1) {
      yield about("answer paid once", client, `was called by ${calls.map(({ worker }) => worker).join(", ")}`)
    }
  }
}

/** A task that a client knows ends once, unless JetStream has lost its message after it was stored. */
function* answersEndOnce({ answers, cluster: { jetStream } }: Ended): Generator<Violation> {
  for (const client of answers) {
    const { ends, id } = client
    if (id === undefined) continue
    const seen = new Set(ends.map(({ ended, status }) => `${status} at ${ended}`))
    if (seen.size > 1) yield about("answers end once", client, `was ${[...seen].join(", then ")}`)
    if (seen.size === 0 && !jetStream.hasLost(id) && !jetStream.hasPassedOver(id)) {
      yield about("answers end once", client, "has not ended")
    }
  }
}

/** A completed answer has all bytes of one call, in order. */
function* answersAreWhole(ended: Ended): Generator<Violation> {
  for (const client of ended.answers) {
    const { answer, record, request: { chunkBytes, chunks, request } } = client
    if (record?.status !== "completed") continue
    if (answer === undefined) yield about("answers are whole", client, "cannot be read")
    else if (answer.length !== chunks * chunkBytes) {
      yield about("answers are whole", client, `has ${answer.length} bytes`)
    } else {
      const places = Array.from(
        { length: chunks },
        (_, at) => placeIn(answer.toString("latin1", at * chunkBytes, at * chunkBytes + 40).split(";")[0] ?? "")
      )
      const call = places[0]?.call
      if (places.some((place, at) => place.request !== request || place.call !== call || place.at !== at)) {
        yield about("answers are whole", client, `has chunks ${JSON.stringify(places)}`)
      }
    }
  }
}

/** One event for each task with a paid call, with what the provider bills if it is complete, and none without a call. */
function* answerUsageIsTheBill(ended: Ended): Generator<Violation> {
  const { answers, cluster: { jetStream }, scenario, world } = ended
  const { events, forgotten } = usageEventsOf(ended)
  for (const client of answers) {
    const { id, record, request } = client
    if (id === undefined || record === undefined || forgotten.has(id) || jetStream.hasLost(id)) continue
    const own = events.filter((event) => event.id === id)
    const calls = callsOf(ended, client)
    const paid = calls.find(({ isPaid }) => isPaid)
    if (own.length > 1) yield about("answer usage", client, `has ${own.length} events`)
    if (paid !== undefined && own.length === 0) yield about("answer usage", client, "was called, and has no event")
    // a worker may be lost right after it has recorded that it is about to call
    if (calls.length === 0 && record.providerTask === null && own.length > 0) {
      yield about("answer usage", client, "has an event without a call")
    }
    if (record.status === "completed" && own.some(({ usage }) => usage?.outputTokens !== calls.at(-1)?.made)) {
      yield about(
        "answer usage",
        client,
        `has ${own[0]?.usage?.outputTokens} tokens, was billed for ${calls.at(-1)?.made}`
      )
    }
    // a worker learns of the cancellation at its next renewal, and may have the whole answer by then
    const isLate = record.status === "cancelled" && calls.at(-1)?.outcome === "complete"
    if (isLate || isTouched(scenario, request.at, world.now)) continue
    if (own.some(({ outcome }) => outcome !== Reflect.get(outcomes, record.status))) {
      yield about("answer usage", client, `is ${record.status}, its event ${own[0]?.outcome}`)
    }
  }
}

/** A task that nothing touched is completed, unless its client cancels it. */
function* answersAreMade({ answers, scenario }: Ended): Generator<Violation> {
  for (const client of answers) {
    const { id, isCancelling, record, request } = client
    if (id === undefined || isCancelling || isTouched(scenario, request.at, Number.POSITIVE_INFINITY)) continue
    if (record?.status !== "completed") yield about("answers are made", client, `is ${record?.status} without a fault`)
  }
}

/** No more calls of a key run at once than it allows, if nothing has failed. */
function* answersHoldLimits(ended: Ended): Generator<Violation> {
  const { answers, clients, scenario } = ended
  if (scenario.faults.length > 0) return
  for (const client of answers) {
    const limit = client.key.plan.concurrentRequests
    const [call] = callsOf(ended, client)
    if (limit === null || call === undefined) continue
    const isOpen = ({ from, until = Number.POSITIVE_INFINITY }: Call) => from <= call.from && until > call.from
    const tasks = answers.filter(({ key }) => key === client.key).flatMap((other) => callsOf(ended, other)).filter(
      isOpen
    )
    const jobs = clients.filter((
      { admittedAt = Number.POSITIVE_INFINITY, key, settledAt = Number.POSITIVE_INFINITY }
    ) => key === client.key && admittedAt <= call.from && settledAt > call.from)
    const units = tasks.length + jobs.length
    if (units > limit) yield about("answers hold limits", client, `is number ${units} of ${limit} at once`)
  }
}

export const checks: ReadonlyArray<Check> = [
  createdOnce,
  recordsEnd,
  poisonStops,
  videoUsage,
  videosAreMade,
  answersPaidOnce,
  answersEndOnce,
  answersAreWhole,
  answerUsageIsTheBill,
  answersAreMade,
  answersHoldLimits
]
