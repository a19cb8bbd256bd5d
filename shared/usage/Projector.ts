/**
 * Counts each usage event exactly once.
 *
 * Events are read in stream order. Every record contains the sequence of the last event it counts, written together with the
 * counters. If events are read again after a crash, a record skips those it already counts. The checkpoint is written only
 * after all records. So several projectors may run at the same time: each skips what another has counted.
 */
import { Cause, Clock, Effect, Option, Schema, Stream } from "effect"
import { openEvents, readEvents, type StoredEvent } from "../nats/EventStream.ts"
import { JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { type Bucket, openBucket } from "../nats/KeyValue.ts"
import { events } from "../nats/Storage.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { dailyTally, monthlyTally, Place, type Tally } from "./Tally.ts"
import { UsageEvent } from "./UsageEvent.ts"

/** The key of the record with the last counted event. */
const checkpointKey = "checkpoint"

/** Events are counted in batches of this duration (milliseconds) or this size. */
const batchMs = 500
const maxBatch = 1_000

/** Concurrent writes of records. */
const maxWriters = 16

/** Maximum number of tries to write a record that other projectors write first. */
const maxTries = 10

const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(UsageEvent))
const placeText = Schema.fromJsonString(Place)
const encodePlace = Schema.encodeSync(placeText)
const decodePlace = Schema.decodeUnknownOption(placeText)

interface Placed {
  readonly sequence: number
  readonly event: UsageEvent
}

/** Adds to one record the events that it does not count yet. */
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
      return yield* new JetStreamFailed({
        detail: `${tally.bucket.name} ${key} was written by another version of the gateway`
      })
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
  return yield* new JetStreamFailed({ detail: `other projectors kept writing ${tally.bucket.name} ${key} first` })
})

const countAll = <A>(tally: Tally<A>, bucket: Bucket, stream: string, events: ReadonlyArray<Placed>) => {
  const byKey = Map.groupBy(events, ({ event }) => tally.keyOf(event))
  return Effect.forEach(
    byKey,
    ([key, events]) => key === undefined ? Effect.void : countInto(tally, bucket, key, stream, events),
    { concurrency: maxWriters, discard: true }
  )
}

const decode = Effect.fnUntraced(function*(stored: ReadonlyArray<StoredEvent>) {
  const events: Array<Placed> = []
  for (const { payload, sequence } of stored) {
    const event = decodeEvent(payload)
    if (Option.isSome(event)) events.push({ sequence, event: event.value })
    else yield* Effect.logError("a usage event cannot be decoded and is not counted", { sequence })
  }
  return events
})

interface Backlog {
  /** The end time of the oldest event that was read but not counted yet. */
  since: number | undefined
}

/** Counts events from the checkpoint on, until something fails. */
const countOnce = Effect.fnUntraced(function*(backlog: Backlog) {
  const { created: stream } = yield* openEvents(events.usage)
  const counters = yield* openBucket(dailyTally.bucket)
  const spending = yield* openBucket(monthlyTally.bucket)
  const checkpoint = Option.flatMap(yield* counters.get(checkpointKey), decodePlace)
  let next = Option.isSome(checkpoint) && checkpoint.value.stream === stream ? checkpoint.value.sequence + 1 : 1
  yield* readEvents(events.usage.name, next).pipe(
    Stream.groupedWithin(maxBatch, batchMs),
    Stream.runForEach(Effect.fnUntraced(function*(stored) {
      const first = stored[0]?.sequence ?? next
      if (first > next) {
        yield* Effect.logError("usage events expired before they were counted", { events: first - next })
      }
      const events = yield* decode(stored)
      backlog.since ??= events[0]?.event.time
      yield* countAll(dailyTally, counters, stream, events)
      yield* countAll(monthlyTally, spending, stream, events)
      const last = stored.at(-1)?.sequence ?? first
      yield* counters.put(checkpointKey, encodePlace({ stream, sequence: last }))
      next = last + 1
      backlog.since = undefined
    }))
  )
})

/** Counts events as long as it runs. Retries failures. */
export const countUsage = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const backlog: Backlog = { since: undefined }
  const delayMs = () => backlog.since === undefined ? 0 : Math.max(0, clock.currentTimeMillisUnsafe() - backlog.since)
  yield* Metrics.observe(Metrics.usageDelay(), () => delayMs() / 1_000)
  return yield* countOnce(backlog).pipe(
    Effect.tapError((error) => Effect.logWarning("counting usage failed and is retried", { detail: error.message })),
    Effect.retry(whileJetStreamFails),
    Effect.tapCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("counting usage has stopped", cause)
    )
  )
}).pipe(
  Effect.scoped,
  // the frequent traces would hide those of requests
  Effect.withTracerEnabled(false)
)
