/**
 * Saves what the gateway stores in NATS to a folder, and restores it into a NATS that has lost everything.
 *
 * Each stream becomes two files: `<stream>.snapshot` in JetStream's format, and `<stream>.json` with its configuration. The file
 * `backup.json` lists the streams. Not saved are jobs whose clients wait on a connection, results that expire within an hour, ledgers
 * of limits, and console sessions.
 */
import { jetstreamManager, RetentionPolicy, type StreamInfo } from "@nats-io/jetstream"
import { Array, Effect, FileSystem, Option, Path, Schema, Stream } from "effect"
import { workloads } from "../../contract/Operation.ts"
import { attempt, orMissing, otherReplicas } from "../../nats/JetStream.ts"
import { describe } from "../../nats/EventStream.ts"
import { natsOf } from "../../nats/Nats.ts"
import { type Account, buckets, bucketStream, events, queues, stores, storeStream } from "../../nats/Storage.ts"
import { batchQueue, jobStream, type QueueName, taskQueueOf, versionsOf } from "../protocol/Subjects.ts"
import * as Snapshot from "./Snapshot.ts"

const bucket = (spec: typeof buckets[keyof typeof buckets]) => [spec.account, bucketStream(spec)] as const
const queue = (name: QueueName) =>
  versionsOf(name).map((version): readonly [Account, string] => ["data", jobStream(name, version)])

/**
 * The streams to save, in order: counters before spending, and both before events (see `Move.ts`); queues of tasks before their
 * records, because a job without a record is dropped, but a record without a job would wait until it expires.
 */
export const saved: ReadonlyArray<readonly [Account, string]> = [
  ...[buckets.usageCounters, buckets.usageSpend].map(bucket),
  ["data", events.usage.name],
  ...[buckets.apiKeys, buckets.teams, buckets.owners, buckets.principals].map(bucket),
  ["control", events.keyChanges.name],
  ...workloads.flatMap((workload) => queue(taskQueueOf(workload))),
  ...queue(batchQueue),
  ["data", queues.webhooks.name],
  ...[buckets.videoTasks, buckets.tasks, buckets.batches, buckets.batchLines].map(bucket),
  ...[buckets.webhookEndpoints, buckets.webhookDeliveries, buckets.responses, buckets.clientFiles].map(bucket),
  ...[stores.videoContent, stores.compactions, stores.clientFiles].map((spec) => ["data", storeStream(spec)] as const)
]

/** A stream that was saved or restored. */
export interface Copied {
  readonly stream: string
  readonly messages: number
  /** How many writes came to the bucket while it was saved. Records that they have replaced may be missing. */
  readonly writes?: number
}

/** How often a bucket of at most this size is saved until no write comes meanwhile. */
const maxTries = 5
const againBytes = 64 * 1024 ** 2

const Description = Schema.fromJsonString(Snapshot.StreamState)
const encode = Schema.encodeSync(Description)
const decode = Schema.decodeUnknownEffect(Description)

/** The fields of a stream's state that matter here. */
const stateIn = ({ state }: Snapshot.StreamState) => state as { readonly messages: number; readonly last_seq: number }

/** The names of a backup's streams. This file is written last, so a backup that was interrupted has none. */
const Contents = Schema.fromJsonString(Schema.Struct({ streams: Schema.Array(Schema.String) }))
const encodeContents = Schema.encodeSync(Contents)
const decodeContents = Schema.decodeUnknownEffect(Contents)
const contentsOf = (folder: string) => Effect.map(Path.Path, (path) => path.join(folder, "backup.json"))

const filesOf = (folder: string, stream: string) =>
  Effect.map(Path.Path, (path) => ({
    about: path.join(folder, `${stream}.json`),
    pieces: path.join(folder, `${stream}.snapshot`)
  }))

const infoOf = Effect.fnUntraced(function*(account: Account, stream: string) {
  const { connection } = yield* natsOf({ account })
  const manager = yield* attempt(() => jetstreamManager(connection, { checkAPI: false }))
  return yield* attempt(() => orMissing(manager.streams.info(stream)))
})

const eventStreams = new Set<string>(Object.values(events).map(({ name }) => name))

/** The configuration to restore: with the stream's identity, also if provisioning has not written it yet. */
const identified = (stream: string, config: unknown, known: StreamInfo): unknown =>
  eventStreams.has(stream) ? { ...config as object, description: describe(known) } : config

const saveOnce = Effect.fnUntraced(function*(folder: string, account: Account, stream: string, known: StreamInfo) {
  const fs = yield* FileSystem.FileSystem
  const files = yield* filesOf(folder, stream)
  // other streams have only short-lived readers; newer servers end a snapshot if one of its consumers ends meanwhile
  const consumers = known.config.retention === RetentionPolicy.Workqueue
  const snapshot = yield* Snapshot.take(yield* natsOf({ account }), stream, { consumers })
  yield* Stream.run(snapshot.pieces, fs.sink(files.pieces, { mode: 0o600 }))
  const { config, state } = snapshot
  yield* fs.writeFileString(files.about, encode({ config: identified(stream, config, known), state }), { mode: 0o600 })
  return snapshot
}, Effect.scoped)

/**
 * Saves a stream if it exists. A small bucket is saved again if a write came meanwhile: the server copies a stream block by block, so
 * a snapshot lacks a record whose value was replaced before its block was copied, and whose new value came too late.
 */
const save = Effect.fnUntraced(function*(folder: string, account: Account, stream: string) {
  const info = yield* infoOf(account, stream)
  if (info === undefined) return []
  const isBucket = info.config.max_msgs_per_subject === 1
  for (let tries = 1;; tries++) {
    const snapshot = yield* saveOnce(folder, account, stream, info)
    const copied: Copied = { stream, messages: stateIn(snapshot).messages }
    const now = isBucket ? yield* infoOf(account, stream) : undefined
    const writes = now === undefined ? 0 : now.state.last_seq - stateIn(snapshot).last_seq
    if (writes === 0) return [copied]
    if (tries === maxTries || info.state.bytes > againBytes) return [{ ...copied, writes }]
  }
})

/** Saves every stream that exists to this folder, which must be empty or new. Returns them in order. */
export const saveAll = Effect.fn("Backup.saveAll")(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
  if ((yield* fs.readDirectory(folder)).length > 0) return yield* new FolderNotEmpty({ folder })
  const copied = Array.flatten(yield* Effect.forEach(saved, ([account, stream]) => save(folder, account, stream)))
  const contents = encodeContents({ streams: copied.map(({ stream }) => stream) })
  yield* fs.writeFileString(yield* contentsOf(folder), contents, { mode: 0o600 })
  return copied
})

export class FolderNotEmpty extends Schema.TaggedError<FolderNotEmpty>()("FolderNotEmpty", { folder: Schema.String }) {
  override get message() {
    return `The folder ${this.folder} is not empty: name another one for this backup.`
  }
}

export class NoBackup extends Schema.TaggedError<NoBackup>()("NoBackup", { folder: Schema.String }) {
  override get message() {
    return `The folder ${this.folder} holds no complete backup: the file backup.json, which is saved last, is missing. Name another one.`
  }
}

export class NatsNotEmpty extends Schema.TaggedError<NatsNotEmpty>()("NatsNotEmpty", { stream: Schema.String }) {
  override get message() {
    return `NATS already has the stream ${this.stream}: restore into an empty NATS, before any service or command uses it.`
  }
}

const load = Effect.fnUntraced(function*(folder: string, account: Account, stream: string) {
  const fs = yield* FileSystem.FileSystem
  const files = yield* filesOf(folder, stream)
  const about = yield* decode(yield* fs.readFileString(files.about))
  const num_replicas = Option.getOrUndefined(yield* otherReplicas)
  const config = num_replicas === undefined ? about.config : { ...about.config as object, num_replicas }
  const { connection } = yield* natsOf({ account })
  const pieces = fs.stream(files.pieces, { chunkSize: 128 * 1024 }).pipe(Stream.concat(Stream.make(new Uint8Array(0))))
  yield* Snapshot.restore(connection, stream, { ...about, config }, pieces)
  return { stream, messages: stateIn(about).messages } satisfies Copied
})

/**
 * Restores every stream of the backup in this folder, or none if one exists. Returns them in order. If `NATS_REPLICAS` is set, they get
 * that many replicas instead of their former number, for which the servers may be too few.
 */
export const restoreAll = Effect.fn("Backup.restoreAll")(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  const contents = yield* contentsOf(folder)
  // the whole path, because npm runs commands in the root of the clone
  if (!(yield* fs.exists(contents))) return yield* new NoBackup({ folder: (yield* Path.Path).resolve(folder) })
  const { streams } = yield* decodeContents(yield* fs.readFileString(contents))
  const wanted = saved.filter(([, stream]) => streams.includes(stream))
  for (const [account, stream] of wanted) {
    if ((yield* infoOf(account, stream)) !== undefined) return yield* new NatsNotEmpty({ stream })
  }
  return yield* Effect.forEach(wanted, ([account, stream]) => load(folder, account, stream))
})
