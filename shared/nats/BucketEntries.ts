/** Reads or removes many records of a bucket with few requests. Reading waits for a slow caller. */
import { DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { openConsumer, openMessages } from "./EventStream.ts"
import { attempt, JetStreamFailed, orMissing } from "./JetStream.ts"
import type { Nats } from "./Nats.ts"
import { type BucketSpec, bucketStream } from "./Storage.ts"

export interface Entry {
  readonly key: string
  /** `None` if the key was deleted. */
  readonly value: Option.Option<string>
}

/** How long the server may be silent while records are missing, in milliseconds, and how many times they are requested in all. */
const silentMs = 1_000
const maxAttempts = 10

/** How long the server may take to answer a request, in milliseconds. */
const answerWithinMs = 5_000

const isDeleted = (operation: string | undefined): boolean => operation === "DEL" || operation === "PURGE"

/** The subject of a record is this prefix and the record's key. */
const prefixOf = ({ name }: BucketSpec): string => `$KV.${name}.`

const managerOf = (nats: Nats["Service"]) =>
  attempt(() => jetstreamManager(nats.connection, { checkAPI: false, timeout: answerWithinMs }))

const subjectsOf = Effect.fnUntraced(function*(nats: Nats["Service"], bucket: BucketSpec, filter: string) {
  const manager = yield* managerOf(nats)
  const { state } = yield* attempt(() =>
    manager.streams.info(bucketStream(bucket), { subjects_filter: prefixOf(bucket) + filter })
  )
  return { subjects: Object.keys(state.subjects ?? {}), last: state.last_seq }
})

/** The first message from a sequence on, or the last one, whose subject matches. The client's types lack `next_by_subj`. */
type MessageQuery =
  | { readonly seq: number; readonly next_by_subj: string }
  | { readonly last_by_subj: string }

/** The message that the query finds, if any. */
const messageOf = Effect.fnUntraced(function*(nats: Nats["Service"], bucket: BucketSpec, query: MessageQuery) {
  const manager = yield* managerOf(nats)
  return yield* attempt(() => orMissing(manager.streams.getMessage(bucketStream(bucket), query)))
})

/** The keys that match the filter, including deleted ones. */
export const keysOf = (nats: Nats["Service"], bucket: BucketSpec, filter: string) =>
  Effect.map(
    subjectsOf(nats, bucket, filter),
    ({ subjects }) => subjects.map((subject) => subject.slice(prefixOf(bucket).length))
  )

/** A record. `at`: the sequence of the write that made it. */
export interface Written {
  readonly key: string
  /** `None` if the key was deleted. */
  readonly value: Option.Option<Uint8Array>
  readonly at: number
}

/** The first record whose key matches the filter, at or after the write `from`. */
export const nextOf = Effect.fnUntraced(function*(
  nats: Nats["Service"],
  bucket: BucketSpec,
  filter: string,
  from: number
): Effect.fn.Return<Option.Option<Written>, JetStreamFailed> {
  const message = yield* messageOf(nats, bucket, { seq: from, next_by_subj: prefixOf(bucket) + filter })
  return Option.map(Option.fromNullishOr(message), ({ data, header, seq, subject }) => ({
    key: subject.slice(prefixOf(bucket).length),
    value: isDeleted(header.get("KV-Operation")) ? Option.none() : Option.some(data),
    at: seq
  }))
})

/** The last write to a key that matches the filter; 0 if there is none. */
export const newestOf = (nats: Nats["Service"], bucket: BucketSpec, filter: string) =>
  Effect.map(
    messageOf(nats, bucket, { last_by_subj: prefixOf(bucket) + filter }),
    (message) => message?.seq ?? 0
  )

/** The records whose keys match the filter, from the write `from` until the write `to`; `undefined` if they are more than `count`. */
const between = Effect.fnUntraced(function*(
  nats: Nats["Service"],
  bucket: BucketSpec,
  filter: string,
  from: number,
  to: number,
  count: number
): Effect.fn.Return<ReadonlyArray<Written> | undefined, JetStreamFailed> {
  const found: Array<Written> = []
  for (let at = from; at <= to;) {
    const next = Option.getOrUndefined(yield* nextOf(nats, bucket, filter, at))
    if (next === undefined || next.at > to) return found
    if (found.length === count) return undefined
    found.push(next)
    at = next.at + 1
  }
  return found
})

/**
 * The `count` records whose keys match the filter that were written last, the latest first. The server only reads forwards, so this
 * reads ranges of writes, from the last one backwards: each twice as long as the one after it, and half as long if it has too many.
 */
export const latestOf = Effect.fnUntraced(function*(
  nats: Nats["Service"],
  bucket: BucketSpec,
  filter: string,
  count: number
): Effect.fn.Return<ReadonlyArray<Written>, JetStreamFailed> {
  const latest: Array<Written> = []
  const oldest = Option.getOrUndefined(yield* nextOf(nats, bucket, filter, 1))
  if (oldest === undefined) return latest
  let to = yield* newestOf(nats, bucket, filter)
  let length = count
  while (to >= oldest.at && latest.length < count) {
    const from = Math.max(oldest.at, to - length + 1)
    const found = yield* between(nats, bucket, filter, from, to, count)
    if (found === undefined) {
      length = Math.ceil(length / 2)
      continue
    }
    latest.push(...found.toReversed())
    to = from - 1
    length *= 2
  }
  return latest.slice(0, count)
})

/** The entries in a message, and whether all records have now been read. */
interface Read {
  readonly entries: ReadonlyArray<Entry>
  readonly isLast: boolean
}
const nothing: Read = { entries: [], isLast: true }

/**
 * Every current record whose key matches the filter, once each. Lists the keys first, because the server's own count of pending
 * records is wrong if others write at the same time. If records do not arrive, lists and reads again: they may have been removed, or an
 * old server may have skipped them because others were removed.
 */
export const entriesOf = (
  nats: Nats["Service"],
  bucket: BucketSpec,
  filter: string
): Stream.Stream<Entry, JetStreamFailed> =>
  Stream.suspend(() => {
    const [stream, prefix] = [bucketStream(bucket), prefixOf(bucket)]
    const stopped = new JetStreamFailed({ detail: `the reader of ${stream} has stopped` })
    let awaited: Set<string> | undefined

    const read = (attempts: number): Stream.Stream<Read, JetStreamFailed> =>
      Stream.unwrap(Effect.gen(function*() {
        const { last, subjects } = yield* subjectsOf(nats, bucket, filter)
        const stored = new Set(subjects)
        const missing = awaited = awaited?.intersection(stored) ?? stored
        if (missing.size === 0) return Stream.make(nothing)
        const { consumers } = jetstream(nats.connection, { timeout: answerWithinMs })
        const consumer = yield* openConsumer(() =>
          consumers.getPushConsumer(stream, {
            // nats-server 2.9 keeps a record that is replaced during a snapshot beside its successor
            deliver_policy: DeliverPolicy.LastPerSubject,
            filter_subjects: prefix + filter
          })
        )
        const messages = yield* openMessages(nats, () => consumer.consume())
        return messages.pipe(
          Stream.concat(Stream.fail(stopped)),
          // later writes by others must not restart the timeout, or this reader would wait as long as they write
          Stream.filter(({ seq, subject }) => seq <= last || missing.has(subject)),
          Stream.map((message): Read => {
            // a record that is written during the read arrives twice
            const isCurrent = missing.delete(message.subject) && !isDeleted(message.headers?.get("KV-Operation"))
            const entry = { key: message.subject.slice(prefix.length), value: Option.some(message.string()) }
            return { entries: isCurrent ? [entry] : [], isLast: missing.size === 0 }
          }),
          Stream.timeoutOrElse({
            duration: silentMs,
            orElse: () => attempts > 1 ? read(attempts - 1) : Stream.fail(stopped)
          })
        )
      }))

    return read(maxAttempts).pipe(
      Stream.takeUntil(({ isLast }) => isLast),
      Stream.map(({ entries }) => entries),
      Stream.flattenIterable
    )
  })

/**
 * Options of the consumer in `followFrom`. Times are in milliseconds. A limit of messages, few because a record may have 512 KiB: with
 * a limit of bytes the client miscounts what nats-server 2.9 still owes, and stalls for seconds at a large record.
 */
const following = { max_messages: 16, expires: 10_000, idle_heartbeat: 2_000 } as const

/** The records whose keys match the filter, from the write `from` on, and then each new write. */
export const followFrom = (
  nats: Nats["Service"],
  bucket: BucketSpec,
  filter: string,
  from: number
): Stream.Stream<Written, JetStreamFailed> =>
  Stream.unwrap(Effect.gen(function*() {
    const [stream, prefix] = [bucketStream(bucket), prefixOf(bucket)]
    const consumer = yield* openConsumer(() =>
      // a pull consumer, so that a slow reader does not fill the memory
      jetstream(nats.connection, { timeout: answerWithinMs }).consumers.get(stream, {
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: Math.max(1, from),
        filter_subjects: prefix + filter
      })
    )
    const messages = yield* openMessages(nats, () => consumer.consume(following))
    return messages.pipe(
      Stream.map((message): Written => ({
        key: message.subject.slice(prefix.length),
        value: isDeleted(message.headers?.get("KV-Operation")) ? Option.none() : Option.some(message.data),
        at: message.seq
      })),
      Stream.concat(Stream.fail(new JetStreamFailed({ detail: `the reader of ${stream} has stopped` })))
    )
  }))

/**
 * Removes the records whose keys match the filter, all or only those from before the write `before`. Not even their keys remain.
 * Returns their number.
 */
export const purge = (nats: Nats["Service"], bucket: BucketSpec, filter: string, before?: number) =>
  attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: answerWithinMs })
    const { purged } = await manager.streams.purge(bucketStream(bucket), {
      filter: prefixOf(bucket) + filter,
      ...(before === undefined ? {} : { seq: before })
    })
    return purged
  })
