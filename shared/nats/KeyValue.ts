/** Buckets of small records in JetStream, read and watched by many processes, written by few. */
import { JetStreamApiError, type PushConsumer } from "@nats-io/jetstream"
import type { KV, KvEntry } from "@nats-io/kv"
import { Kvm } from "@nats-io/kv"
import type { NatsConnection } from "@nats-io/nats-core"
import { Cause, Config, Deferred, Effect, Option, Queue, type Scope, Stream } from "effect"
import { atLeast } from "../contract/Fields.ts"
import {
  entriesOf,
  type Entry,
  followFrom,
  keysOf,
  latestOf,
  newestOf,
  nextOf,
  purge,
  type Written
} from "./BucketEntries.ts"
import { attempt, backOff, JetStreamFailed, mayCreate, replicas } from "./JetStream.ts"
import { type Nats, type NatsOf, natsOf } from "./Nats.ts"
import type { BucketSpec } from "./Storage.ts"

/** A value with the sequence of the write that made it. */
export interface Revision {
  readonly value: string
  /** The sequence of the write, for `update`. */
  readonly revision: number
}

export interface WrittenBytes {
  readonly value: Uint8Array
  readonly revision: number
}

export interface Bucket {
  readonly get: (key: string) => Effect.Effect<Option.Option<string>, JetStreamFailed>
  readonly getBytes: (key: string) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  readonly getRevision: (key: string) => Effect.Effect<Option.Option<Revision>, JetStreamFailed>
  /** Creates a record; `false` if the key exists already. */
  readonly create: (key: string, value: string) => Effect.Effect<boolean, JetStreamFailed>
  readonly createBytes: (key: string, value: Uint8Array) => Effect.Effect<boolean, JetStreamFailed>
  /**
   * Creates a record from a key that others know, such as the fingerprint of a secret, unless it exists or was deleted: what an
   * administrator has deleted stays deleted. The value should be unique to its writer: a repetition after a failure finds it.
   */
  readonly createFirst: (key: string, value: string) => Effect.Effect<"created" | "exists" | "deleted", JetStreamFailed>
  readonly put: (key: string, value: string | Uint8Array) => Effect.Effect<void, JetStreamFailed>
  /**
   * Replaces this revision and returns the new one; `None` if another write came first. May be repeated after a failure. The value
   * should be unique to its writer: if it is found in the bucket, the earlier write has succeeded.
   */
  readonly update: (
    key: string,
    value: string,
    revision: number
  ) => Effect.Effect<Option.Option<number>, JetStreamFailed>
  /**
   * The same for bytes. Revision 0 stands for a missing record. The bytes should be unique to their writer.
   */
  readonly updateBytes: (
    key: string,
    value: Uint8Array,
    revision: number
  ) => Effect.Effect<Option.Option<number>, JetStreamFailed>
  readonly getWritten: (key: string) => Effect.Effect<Option.Option<WrittenBytes>, JetStreamFailed>
  readonly delete: (key: string) => Effect.Effect<void, JetStreamFailed>
  /**
   * Removes the records whose keys match a filter, all or only those from before the write `before`. Not even their keys remain.
   * Watchers are not notified. Returns the number of records that this request has removed.
   */
  readonly purge: (filter: string, before?: number) => Effect.Effect<number, JetStreamFailed>
  /** How long a record is kept after its last write, in milliseconds; 0 for no limit. */
  readonly keptForMs: Effect.Effect<number, JetStreamFailed>
  readonly entries: Effect.Effect<ReadonlyArray<Entry>, JetStreamFailed>
  /** The entries whose key matches a filter: `*` matches one token between dots, `>` any rest. */
  readonly matching: (filter: string) => Stream.Stream<Entry, JetStreamFailed>
  /** The keys that match a filter, including deleted ones. */
  readonly keys: (filter: string) => Effect.Effect<ReadonlyArray<string>, JetStreamFailed>
  /** The first record whose key matches a filter, at or after the write `from`. */
  readonly next: (filter: string, from: number) => Effect.Effect<Option.Option<Written>, JetStreamFailed>
  /**
   * At most `count` records whose keys match a filter: those that were written last, the latest first. Lacks records that others write
   * meanwhile. Makes a request for each record, and for some more.
   */
  readonly latest: (filter: string, count: number) => Effect.Effect<ReadonlyArray<Written>, JetStreamFailed>
  /** The sequence of the last write to a key that matches a filter; 0 if there is none. */
  readonly newest: (filter: string) => Effect.Effect<number, JetStreamFailed>
  /**
   * The records whose keys match a filter, from the write `from` on, and then each new write. Never ends, but fails if the connection
   * is lost. A reader has all records that it began with when it gets the write that was `newest` then, or a later one. It cannot
   * learn this from the server's count of pending records, which is wrong if others write at the same time.
   */
  readonly follow: (filter: string, from: number) => Stream.Stream<Written, JetStreamFailed>
  /** All entries and then all changes. Never ends. After a lost connection it starts again from `"loading"`, so it misses no change. */
  readonly watch: Stream.Stream<WatchEvent>
}

/**
 * `"loading"`, then every entry of the bucket, then `"loaded"`, then changes as they happen. Of several changes to one key, only the
 * last is certain to be seen.
 */
export type WatchEvent = Entry | "loading" | "loaded"

const toEntry = (entry: KvEntry): Entry => ({
  key: entry.key,
  value: entry.operation === "PUT" ? Option.some(entry.string()) : Option.none()
})

const isConflict = (cause: unknown): boolean =>
  cause instanceof JetStreamApiError && wrongLastSequence.includes(cause.code)

/** JetStream's error codes for a write whose expected sequence is not the last: with the last one in the message, or without. */
const wrongLastSequence = [10_071, 10_164]

const dayMs = 24 * 60 * 60_000

/** How long the bucket should keep a record, in milliseconds; 0 for no limit. Reads the bucket's variable, if it has one. */
export const ttlOf = ({ daysVariable, ttlMs = 0 }: BucketSpec) =>
  daysVariable === undefined
    ? Effect.succeed(ttlMs)
    : Config.schema(atLeast(1), daysVariable).pipe(
      Config.map((days) => days * dayMs),
      Config.withDefault(ttlMs)
    )

/** Creates a bucket. Only the leader answers reads: a stale read from another server could lose a task or run it twice. */
export const createBucket = (connection: NatsConnection, { name }: BucketSpec, ttlMs: number, replicas: number) =>
  new Kvm(connection).create(name, { replicas, history: 1, ttl: ttlMs, allow_direct: false })

/** Opens a bucket, or creates it if `mayCreate`. */
export const openBucket = Effect.fn("KeyValue.openBucket")(function*<K extends BucketSpec>(kept: K): Effect.fn.Return<
  Bucket,
  JetStreamFailed | Config.ConfigError,
  NatsOf<K>
> {
  const nats = yield* natsOf(kept)
  const creates = yield* mayCreate
  const copies = yield* replicas
  const ttlMs = yield* ttlOf(kept)
  const bucket: KV = yield* attempt(() =>
    creates ? createBucket(nats.connection, kept, ttlMs, copies) : new Kvm(nats.connection).open(kept.name)
  )
  const matching = (filter: string) => entriesOf(nats, kept, filter)
  const getRevision = (key: string) =>
    Effect.map(attempt(() => bucket.get(key)), (entry) =>
      entry?.operation === "PUT"
        ? Option.some({ value: entry.string(), revision: entry.revision })
        : Option.none())

  const create = (key: string, value: string | Uint8Array) =>
    attempt(async () => {
      try {
        await bucket.create(key, value)
        return true
      } catch (cause) {
        const entry = await bucket.get(key)
        if (entry?.operation === "PUT") return false
        throw cause
      }
    })

  const updateBytes = (key: string, value: Uint8Array, revision: number) =>
    attempt(async () => {
      try {
        return Option.some(await bucket.put(key, value, { previousSeq: revision }))
      } catch (cause) {
        if (!isConflict(cause)) throw cause
        const entry = await bucket.get(key)
        return entry?.operation === "PUT" && Buffer.from(entry.value).equals(value)
          ? Option.some(entry.revision)
          : Option.none()
      }
    })

  const createFirst = Effect.fnUntraced(function*(key: string, value: string) {
    // a deletion is stored as well, so revision 0 is that of a key that was never written
    if (Option.isSome(yield* updateBytes(key, Buffer.from(value), 0))) return "created"
    return Option.isSome(yield* getRevision(key)) ? "exists" : "deleted"
  })

  const getWritten = (key: string) =>
    Effect.map(attempt(() => bucket.get(key)), (entry) =>
      entry?.operation === "PUT"
        ? Option.some({ value: entry.value, revision: entry.revision })
        : Option.none())

  return {
    getRevision,
    getWritten,
    get: (key) => Effect.map(getRevision(key), Option.map(({ value }) => value)),
    getBytes: (key) => Effect.map(getWritten(key), Option.map(({ value }) => value)),
    create,
    createBytes: create,
    createFirst,
    put: (key, value) => Effect.asVoid(attempt(() => bucket.put(key, value))),
    update: (key, value, revision) =>
      attempt(async () => {
        try {
          return Option.some(await bucket.update(key, value, revision))
        } catch (cause) {
          if (!isConflict(cause)) throw cause
          const entry = await bucket.get(key)
          return entry?.operation === "PUT" && entry.string() === value ? Option.some(entry.revision) : Option.none()
        }
      }),
    updateBytes,
    delete: (key) => attempt(() => bucket.delete(key)),
    purge: (filter, before) => purge(nats, kept, filter, before),
    keptForMs: Effect.map(attempt(() => bucket.status()), ({ ttl }) => ttl),
    entries: Stream.runCollect(matching(">")),
    matching,
    keys: (filter) => keysOf(nats, kept, filter),
    next: (filter, from) => nextOf(nats, kept, filter, from),
    latest: (filter, count) => latestOf(nats, kept, filter, count),
    newest: (filter) => newestOf(nats, kept, filter),
    follow: (filter, from) => followFrom(nats, kept, filter, from),
    watch: Stream.callback<WatchEvent, JetStreamFailed>((queue) => watchBucket(nats, kept.name, bucket, queue)).pipe(
      Stream.retry(backOff),
      Stream.orDie
    )
  }
})

/** How often a watch is compared with its bucket, and how long a change may be in transit, in milliseconds. */
const compareEveryMs = 15_000
const deliveredWithinMs = 5_000

/** Deletes the consumer of a watch, which the client would leave to expire after five minutes. It is in a private field. */
const deleteConsumer = (watcher: object): void => {
  const consumer = Reflect.get(watcher, "_data") as PushConsumer | undefined
  // if the deletion does not reach the server, the consumer expires
  consumer?.delete().catch(() => undefined)
}

const watchBucket = (
  nats: Nats["Service"],
  name: string,
  bucket: KV,
  queue: Queue.Queue<WatchEvent, JetStreamFailed | Cause.Done>
): Effect.Effect<unknown, JetStreamFailed, Scope.Scope> => {
  /** The newest revision that the watch has delivered. */
  let seen = 0
  let loaded = false
  const broken = (detail: string) => {
    Queue.failCauseUnsafe(queue, Cause.fail(new JetStreamFailed({ detail })))
  }
  // the client notices a lost message only when the next one arrives, which may never happen
  const compare = Effect.gen(function*() {
    yield* Effect.sleep(compareEveryMs)
    const { streamInfo: { state } } = yield* attempt(() => bucket.status())
    yield* Effect.sleep(deliveredWithinMs)
    // also restarts a watch that never loads: the client waits in vain for a record that expires before its delivery
    if (!loaded || (state.messages > 0 && seen < state.last_seq)) broken("the watch has missed a change")
  })
  const watch = Effect.acquireRelease(
    attempt(async () => {
      const forget = nats.onReconnect(() => broken("the connection was lost"))
      Queue.offerUnsafe(queue, "loading")
      try {
        const { values } = await bucket.status()
        loaded = values === 0
        if (loaded) Queue.offerUnsafe(queue, "loaded")
        const watcher = await bucket.watch()
        const pump = async () => {
          for await (const entry of watcher) {
            seen = entry.revision
            Queue.offerUnsafe(queue, toEntry(entry))
            if (loaded || !entry.isUpdate) continue
            loaded = true
            Queue.offerUnsafe(queue, "loaded")
          }
        }
        void pump().then(() => broken("the watch ended"), (cause) => broken(String(cause)))
        return { watcher, forget }
      } catch (cause) {
        // the next try adds its own listener
        forget()
        throw cause
      }
    }).pipe(
      // `Nats.ts` logs a lost connection
      Effect.tapError(({ detail }) =>
        nats.isConnected() ? Effect.logWarning("waiting for JetStream", { bucket: name, detail }) : Effect.void
      )
    ),
    ({ forget, watcher }) =>
      Effect.sync(() => {
        forget()
        watcher.stop()
        deleteConsumer(watcher)
      })
  )
  return Effect.andThen(watch, Effect.forkScoped(Effect.forever(Effect.ignore(compare))))
}

/**
 * Follows a bucket with a copy in memory. Returns a getter of the copy once the copy is complete. After a lost connection the old copy
 * stays in use until the new one is complete. `read` gets each entry and the key's current value in the copy, and returns the new
 * value; `undefined` removes the key.
 */
export const mirrorBucket = Effect.fnUntraced(function*<A>(
  bucket: Bucket,
  read: (entry: Entry, current: A | undefined) => A | undefined
): Effect.fn.Return<() => Map<string, A>, never, Scope.Scope> {
  const loaded = yield* Deferred.make<void>()
  let copy = new Map<string, A>()
  let target = copy
  yield* bucket.watch.pipe(
    Stream.runForEach((event) => {
      if (event === "loading") target = new Map()
      else if (event === "loaded") {
        copy = target
        return Deferred.succeed(loaded, undefined)
      } else {
        const value = read(event, copy.get(event.key))
        if (value === undefined) target.delete(event.key)
        else target.set(event.key, value)
      }
      return Effect.void
    }),
    Effect.forkScoped
  )
  yield* Deferred.await(loaded)
  return () => copy
})
