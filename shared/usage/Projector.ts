/**
 * Counts usage events, each exactly once.
 *
 * Events are read in the order of their stream. Every record says up to which place in the stream it has been counted into,
 * and is written in one piece with that: an event that is read again after a crash is passed over by the records that had
 * it and taken by those that had not. Only when all records have been written is it remembered from where to go on. So
 * several projectors at the same time do no harm: of two that count the same, the second finds it counted.
 */
import { Cause, Clock, Effect, Option, Schema, Stream } from "effect"
import { openEvents, readEvents, type StoredEvent } from "../nats/EventStream.ts"
import { JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { type Bucket, openBucket } from "../nats/KeyValue.ts"
import { events } from "../nats/Storage.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { days, months, Place, type Tally } from "./Tally.ts"
import { UsageEvent } from "./UsageEvent.ts"

/** Where it is remembered from where to go on. */
const checkpointKey = "checkpoint"

/** As many events are counted together as come within so long (milliseconds), up to so many. */
const gatherMs = 500
const maxGathered = 1_000

/** How many records are written at the same time. */
const writersAtOnce = 16

/** How often a record is counted into anew because another projector has written it. */
const maxTries = 10

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(UsageEvent))
const placeText = Schema.fromJsonString(Place)
const encodePlace = Schema.encodeSync(placeText)
const decodePlace = Schema.decodeUnknownOption(placeText)

interface Placed {
  readonly sequence: number
  readonly event: UsageEvent
}

/** Counts events into one record, as far as it has not had them. */
const countInto = Effect.fnUntraced(function*<A>(
  tally: Tally<A>,
  bucket: Bucket,
  key: string,
  stream: string,
  events: ReadonlyArray<Placed>
): Effect.fn.Return<void, JetStreamFailed> {
  for (let tries = 0; tries < maxTries; tries++) {
    const stored = Option.getOrUndefined(yield* bucket.getRevision(key))
    const record = stored === undefined ? undefined : Option.getOrUndefined(tally.decode(stored.value))
    if (stored !== undefined && record === undefined) {
      return yield* new JetStreamFailed({ detail: `${tally.bucket.name} ${key} is not of this version of the gateway` })
    }
    const counted = record?.upTo.stream === stream ? record.upTo.sequence : 0
    const news = events.filter(({ sequence }) => sequence > counted)
    const last = news.at(-1)
    if (last === undefined) return
    const next = tally.encode({
      upTo: { stream, sequence: last.sequence },
      value: news.reduce((value, { event }) => tally.count(value, event), record?.value ?? tally.zero)
    })
    const written = stored === undefined
      ? yield* bucket.create(key, next)
      : Option.isSome(yield* bucket.update(key, next, stored.revision))
    if (written) return
  }
  return yield* new JetStreamFailed({ detail: `${tally.bucket.name} ${key} is written by others all the time` })
})

const countAll = <A>(tally: Tally<A>, bucket: Bucket, stream: string, events: ReadonlyArray<Placed>) => {
  const byKey = Map.groupBy(events, ({ event }) => tally.keyOf(event))
  return Effect.forEach(
    byKey,
    ([key, events]) => key === undefined ? Effect.void : countInto(tally, bucket, key, stream, events),
    { concurrency: writersAtOnce, discard: true }
  )
}

const decoded = Effect.fnUntraced(function*(stored: ReadonlyArray<StoredEvent>) {
  const events: Array<Placed> = []
  for (const { payload, sequence } of stored) {
    const event = decodeEvent(payload)
    if (Option.isSome(event)) events.push({ sequence, event: event.value })
    else yield* Effect.logError("a usage event is not understood and not counted", { sequence })
  }
  return events
})

/** When the first event ended that is not counted yet, as far as one has been read. */
interface Backlog {
  since: number | undefined
}

/** Goes on from where counting was left, until something fails. */
const pass = Effect.fnUntraced(function*(backlog: Backlog) {
  const { created: stream } = yield* openEvents(events.usage)
  const counters = yield* openBucket(days.bucket)
  const spending = yield* openBucket(months.bucket)
  const remembered = Option.flatMap(yield* counters.get(checkpointKey), decodePlace)
  let next = Option.isSome(remembered) && remembered.value.stream === stream ? remembered.value.sequence + 1 : 1
  yield* readEvents(events.usage.name, next).pipe(
    Stream.groupedWithin(maxGathered, gatherMs),
    Stream.runForEach(Effect.fnUntraced(function*(stored) {
      const first = stored[0]?.sequence ?? next
      if (first > next) yield* Effect.logError("usage was forgotten before it was counted", { events: first - next })
      const events = yield* decoded(stored)
      backlog.since ??= events[0]?.event.time
      yield* countAll(days, counters, stream, events)
      yield* countAll(months, spending, stream, events)
      const last = stored.at(-1)?.sequence ?? first
      yield* counters.put(checkpointKey, encodePlace({ stream, sequence: last }))
      next = last + 1
      backlog.since = undefined
    }))
  )
})

/** Begins anew where something has failed. */
const passes = (backlog: Backlog) =>
  Effect.suspend(() => pass(backlog)).pipe(
    Effect.tapError((error) => Effect.logWarning("usage is not counted just now", { detail: error.message })),
    Effect.retry(whileJetStreamFails),
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("usage is not counted any more", cause)
    )
  )

/** Counts for as long as it runs. */
export const project = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const backlog: Backlog = { since: undefined }
  const delayMs = () => backlog.since === undefined ? 0 : Math.max(0, clock.currentTimeMillisUnsafe() - backlog.since)
  yield* Metrics.observe(Metrics.usageDelay(), () => delayMs() / 1_000)
  return yield* passes(backlog)
}).pipe(
  Effect.scoped,
  // a trace for every look would drown those of requests
  Effect.withTracerEnabled(false)
)
