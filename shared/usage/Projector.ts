/**
 * Counts each usage event exactly once.
 *
 * Pages of events are read in stream order. Every record contains its counters and the sequence of the last page that they include,
 * written together. If pages are read again after a crash, a record skips those that it already counts. The checkpoint is written
 * only after all records. So several projectors may run at the same time: each skips what another has counted. `RecentEvents` drops
 * events that are also in an earlier page, and withdraws those that a better one replaces. The records of days are written first,
 * and decide for which teams an event counts: see `Placements.ts`.
 */
import { Cause, Clock, Effect, Option, Order, Schema, Stream } from "effect"
import { lastSequence, openEvents, type Page, readEvents } from "../nats/EventStream.ts"
import { JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { type Bucket, openBucket } from "../nats/KeyValue.ts"
import { events } from "../nats/Storage.ts"
import { modify } from "../nats/Modify.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { KeyTeams } from "./KeyTeams.ts"
import { teamsIn } from "./Placements.ts"
import { RecentEvents } from "./RecentEvents.ts"
import { countedUntilKey, dailyTally, monthlyTally, Place, type Tally, type TeamChange } from "./Tally.ts"
import { decodeUsageEvent } from "./UsageEvent.ts"

/** The key of the record with the last counted page. */
const checkpointKey = "checkpoint"

/** Pages are counted in batches of this duration (milliseconds) or this size. */
const batchMs = 500
const maxBatch = 500

/** Maximum number of records that are written concurrently. */
const maxWriters = 16

/** The page up to which all events are counted. A projector that starts reads from `from` on, to know the recent events. */
const Checkpoint = Schema.fromJsonString(Schema.Struct({ from: Schema.optionalKey(Schema.Int), ...Place.fields }))
const encodeCheckpoint = Schema.encodeSync(Checkpoint)
const decodeCheckpoint = Schema.decodeUnknownOption(Checkpoint)

/** Applies to one record the changes that it does not count yet. Returns what it then holds. */
const countInto = <A>(
  tally: Tally<A>,
  bucket: Bucket,
  key: string,
  stream: string,
  changes: ReadonlyArray<TeamChange>
): Effect.Effect<A, JetStreamFailed> =>
  modify(
    bucket,
    key,
    Effect.fnUntraced(function*(stored) {
      const record = Option.getOrUndefined(Option.flatMap(stored, tally.decode))
      if (Option.isSome(stored) && record === undefined) {
        return yield* new JetStreamFailed({
          detail: `${tally.bucket.name} ${key} was written by another version of the gateway`
        })
      }
      const counted = record?.upTo.stream === stream ? record.upTo.sequence : 0
      const news = changes.filter(({ sequence }) => sequence > counted)
      const last = news.at(-1)
      const former = record?.value ?? tally.zero
      if (last === undefined) return [former]
      const value = news.reduce(tally.count, former)
      return [value, tally.encode({ upTo: { stream, sequence: last.sequence }, value })]
    })
  )

/** Counts changes into all their records. Returns what each record then holds, and its changes. */
const countAll = <A>(tally: Tally<A>, bucket: Bucket, stream: string, changes: ReadonlyArray<TeamChange>) => {
  const each = changes.flatMap((change) => tally.keysOf(change).map((key) => ({ key, change })))
  return Effect.forEach(
    Map.groupBy(each, ({ key }) => key),
    ([key, each]) => {
      const changes = each.map(({ change }) => change)
      return Effect.map(countInto(tally, bucket, key, stream, changes), (value) => ({ value, changes }))
    },
    { concurrency: maxWriters }
  )
}

const byPage = Order.mapInput(Order.Number, ({ sequence }: TeamChange) => sequence)

/** The changes to the counters from these pages. */
const decode = Effect.fnUntraced(function*(pages: ReadonlyArray<Page>, recent: RecentEvents) {
  const teamsOf = yield* KeyTeams
  const changes: Array<TeamChange> = []
  for (const page of pages) {
    const { sequence } = page
    const decoded = page.events.flatMap((text) => Option.toArray(decodeUsageEvent(text)))
    const malformed = page.events.length - decoded.length
    if (malformed > 0) {
      yield* Effect.logError("usage events cannot be decoded and are not counted", { sequence, events: malformed })
    }
    for (const change of recent.read(page, decoded)) {
      changes.push({ ...change, teams: teamsOf(change.event.key), sequence })
    }
  }
  return changes
})

/**
 * The intervals at which the projector records that all events are counted, in milliseconds: every `tellEveryMs` while there are new
 * events and for `tellAfterMs` after the last, otherwise every `tellIdleMs`. Until then ingress keeps the costs of ended requests
 * reserved.
 */
const tellEveryMs = 1_000
const tellAfterMs = 5_000
const tellIdleMs = 30_000

/** Records the latest time up to which all stored events are counted. Never ends. */
const tellProgress = Effect.fnUntraced(function*(bucket: Bucket, progress: Progress, next: () => number) {
  let toldOf = 0
  let activeUntil = 0
  let toldAt = 0
  for (;;) {
    yield* Effect.sleep(tellEveryMs)
    const now = yield* Clock.currentTimeMillis
    if (now > activeUntil && now - toldAt < tellIdleMs && next() - 1 === toldOf) continue
    const last = yield* lastSequence(events.usage)
    if (last !== toldOf) activeUntil = now + tellAfterMs
    if (next() <= last) progress.behindSince ??= now
    while (next() <= last) yield* Effect.sleep(countedWithinMs)
    yield* bucket.put(countedUntilKey, String(now))
    progress.behindSince = undefined
    toldOf = last
    toldAt = now
  }
})

/** How often to check whether events have been counted, in milliseconds. */
const countedWithinMs = 100

/** The state that is kept when counting is retried. */
interface Progress {
  /** The end time of the oldest event that was read but not counted yet. */
  since: number | undefined
  /** Since when there may be events that were not even read, because counting has failed or its reader gets none. */
  behindSince: number | undefined
  recent: RecentEvents | undefined
}

/** Counts events from the checkpoint on, until something fails. */
const countOnce = Effect.fnUntraced(function*(progress: Progress) {
  const { identity: stream } = yield* openEvents(events.usage)
  const counters = yield* openBucket(dailyTally.bucket)
  const spending = yield* openBucket(monthlyTally.bucket)
  const checkpoint = Option.flatMap(yield* counters.get(checkpointKey), decodeCheckpoint).pipe(
    Option.filter((checkpoint) => checkpoint.stream === stream),
    Option.getOrUndefined
  )
  let next = (checkpoint?.sequence ?? 0) + 1
  const isKnown = progress.recent?.stream === stream && progress.recent.next <= (yield* lastSequence(events.usage)) + 1
  // a restored stream may lack the last pages, whose numbers it uses again
  const recent = isKnown && progress.recent !== undefined
    ? progress.recent
    : new RecentEvents(stream, checkpoint?.from ?? next)
  progress.recent = recent
  const counting = readEvents(events.usage.name, Math.min(next, recent.next)).pipe(
    Stream.groupedWithin(maxBatch, batchMs),
    Stream.runForEach(Effect.fnUntraced(function*(pages) {
      const first = pages[0]?.sequence ?? next
      if (first > next) {
        yield* Effect.logError("usage events expired before they were counted", { pages: first - next })
      }
      const changes = (yield* decode(pages, recent)).filter(({ sequence }) => sequence >= next)
      const last = pages.at(-1)?.sequence ?? first
      if (last < next) return
      progress.since ??= changes[0]?.event.time
      const days = yield* countAll(dailyTally, counters, stream, changes)
      const placed = days.flatMap(({ changes, value: { placements } }) =>
        changes.map((change) => ({ ...change, teams: teamsIn(placements, change.page) }))
      )
      yield* countAll(monthlyTally, spending, stream, placed.toSorted(byPage))
      yield* counters.put(checkpointKey, encodeCheckpoint({ from: recent.from, stream, sequence: last }))
      next = last + 1
      progress.since = undefined
    }))
  )
  yield* Effect.raceFirst(counting, tellProgress(spending, progress, () => next))
})

/** Counts events until interrupted. Retries failures of JetStream. Reports the delay even after a defect has stopped the counting. */
export const countUsage = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const progress: Progress = { since: undefined, behindSince: undefined, recent: undefined }
  const delayMs = () => {
    const now = clock.currentTimeMillisUnsafe()
    return Math.max(0, now - (progress.since ?? now), now - (progress.behindSince ?? now))
  }
  yield* Metrics.observe(Metrics.usageDelay(), () => delayMs() / 1_000)
  return yield* countOnce(progress).pipe(
    Effect.tapCause(() => Effect.sync(() => void (progress.behindSince ??= clock.currentTimeMillisUnsafe()))),
    Effect.tapError((error) => Effect.logWarning("counting usage failed and is retried", { detail: error.message })),
    Effect.retry(whileJetStreamFails),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.andThen(Effect.logError("counting usage has stopped", cause), Effect.never)
    )
  )
}).pipe(
  Effect.scoped,
  // these frequent traces would drown out those of requests
  Effect.withTracerEnabled(false)
)
