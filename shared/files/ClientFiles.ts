/**
 * Stores files of clients: the requests that they upload for batches, and the results of batches. Files are kept for 30 days.
 *
 * The content is an object in the object store. It consists of pages, each sealed for the owner and as large as a chunk of the store,
 * so that any part of a file can be read alone. A file exists once its record is complete.
 */
import { Clock, Config, Context, Effect, Exit, Layer, Option, Schedule, Schema, Stream } from "effect"
import { ofSize } from "../bounds/ByteChunks.ts"
import { Turns } from "../bounds/Turns.ts"
import { atLeast } from "../contract/Fields.ts"
import type { Owner } from "../contract/Owner.ts"
import { backOff, type JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { chunkBytes, openStore } from "../nats/ObjectStore.ts"
import { buckets, stores } from "../nats/Storage.ts"
import * as KeyBindings from "../records/KeyBindings.ts"
import type { KeyedRequest, OtherBody } from "../records/KeyBindings.ts"
import * as Seal from "../records/Seal.ts"
import { BatchLines } from "./BatchLines.ts"
import * as FileQuota from "./FileQuota.ts"
import * as FileRecord from "./FileRecord.ts"
import type { ClientFile, FilePurpose } from "./FileRecord.ts"
import { LineCount } from "./LineCount.ts"

export type { ClientFile, FilePurpose }
export { newId } from "./FileRecord.ts"

/** A new file was refused; its content is not stored. */
export class FileRefused extends Schema.TaggedError<FileRefused>()("FileRefused", {
  /** `size`: larger than any file may be. `quota`: more than the owner may store. `content`: invalid for the purpose. */
  reason: Schema.Literals(["size", "quota", "content"]),
  /** What is wrong, for the client; for `content` with the line and the field. */
  message: Schema.String
}) {}

/** Stored bytes were tampered with, or are missing. */
export class FileDamaged extends Schema.TaggedError<FileDamaged>()("FileDamaged", { id: Schema.String }) {
  override get message() {
    return `The content of ${this.id} is damaged`
  }
}

export interface NewFile extends Pick<ClientFile, "purpose" | "filename"> {
  /** From `FileRecord.newId`. Default: a new id. */
  readonly id?: string
  /** The maximum size of the content in bytes, if it is known in advance. */
  readonly announced?: number
}

export interface FilesAsked {
  /** The last file of the previous page. */
  readonly after?: string
  readonly limit: number
  /** By creation time; default `desc`, the latest first. */
  readonly order?: "asc" | "desc"
  readonly purpose?: FilePurpose
}

export interface FilePage {
  readonly files: ReadonlyArray<ClientFile>
  readonly hasMore: boolean
}

export class ClientFiles extends Context.Service<ClientFiles, {
  /**
   * Stores a file while its content arrives. For the purpose `batch`, validates the lines. If the content fails, is refused or is
   * interrupted, nothing of it stays. The quota never refuses `batch_output`, because that has been paid for.
   */
  readonly create: <E, R>(
    owner: Owner,
    about: NewFile,
    content: Stream.Stream<Uint8Array, E, R>
  ) => Effect.Effect<ClientFile, E | FileRefused | JetStreamFailed, R>
  /**
   * Binds an idempotency key to a new file. If the key belongs to an earlier file, deletes the new file and returns the earlier one. If
   * it belongs to a request with other content, deletes the new file and fails.
   */
  readonly bind: (
    owner: Owner,
    keyed: KeyedRequest,
    file: ClientFile
  ) => Effect.Effect<ClientFile, OtherBody | JetStreamFailed>
  /** Fails if the owner stores more than the quota, as results of batches may. */
  readonly checkQuota: (owner: Owner) => Effect.Effect<void, FileRefused | JetStreamFailed>
  /** `None` if the file is unknown, expired or another owner's. */
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<ClientFile>, JetStreamFailed>
  readonly list: (owner: Owner, asked: FilesAsked) => Effect.Effect<FilePage, JetStreamFailed>
  /** The bytes from `from` up to but not including `until`; by default all. */
  readonly read: (
    owner: Owner,
    file: ClientFile,
    from?: number,
    until?: number
  ) => Stream.Stream<Uint8Array, FileDamaged | JetStreamFailed>
  /** Deletes a file; `false` if there is none. */
  readonly delete: (owner: Owner, id: string) => Effect.Effect<boolean, JetStreamFailed>
}>()("shared/files/ClientFiles") {
  /** Reads `GATEWAY_SECRET`. */
  static readonly layer = (options: Options) => Layer.effect(ClientFiles, open(options))
}

interface Options {
  /** For how long everything that fails with `JetStreamFailed` is retried, in milliseconds. */
  readonly patienceMs: number
  /** How many MiB of files each owner may store; without a limit by default. */
  readonly quotaMiB?: Config.Config<number>
}

/** Reads `GATEWAY_FILES_MIB`, by default 1024. */
export const quotaMiB = Config.schema(atLeast(1), "GATEWAY_FILES_MIB").pipe(Config.withDefault(1024))

/** Maximum size of a file of requests in bytes: OpenAI's limit. */
export const maxUploadBytes = 200 * 1024 * 1024

const keptForMs = buckets.clientFiles.ttlMs

/** The size of a page in bytes: sealed, it fills a chunk. */
const pageBytes = chunkBytes - Seal.sealBytes

/** Maximum number of records that are read concurrently. */
const concurrency = 16

const contents = {
  batch: { lines: () => new BatchLines(), maxBytes: maxUploadBytes, isLimited: true },
  batch_output: { lines: () => new LineCount(), maxBytes: Number.POSITIVE_INFINITY, isLimited: false }
}

const refuse = (reason: FileRefused["reason"], message: string) => Effect.fail(new FileRefused({ reason, message }))

const unlimited = Config.succeed(Number.POSITIVE_INFINITY)

const open = Effect.fn("ClientFiles.open")(function*({ patienceMs, quotaMiB = unlimited }: Options) {
  const seal = yield* Seal.fromSecret
  const bucket = yield* openBucket(buckets.clientFiles).pipe(Effect.retry(whileJetStreamFails))
  const store = yield* openStore(stores.clientFiles).pipe(Effect.retry(whileJetStreamFails))
  const mebibytes = yield* quotaMiB
  const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)
  const turns = yield* Turns
  const { keyOf } = FileRecord
  const placeOf = (owner: Owner, id: string, page: number): Seal.Place => ({ owner, kind: "file", id, page })

  /** Removes the record first: without it no client finds the content. */
  const remove = (key: string) => Effect.andThen(again(bucket.purge(key)), again(store.delete(key)))
  const quota = FileQuota.make({ bucket, patience, remove, bytes: mebibytes * 1024 * 1024 })
  const overQuota = (stores: string) =>
    refuse(
      "quota",
      `${stores} more than ${mebibytes} MiB. Delete files that are not needed any more. The operator of the gateway sets the limit ` +
        "with GATEWAY_FILES_MIB."
    )

  const find = Effect.fnUntraced(function*(owner: Owner, id: string) {
    if (!FileRecord.isId(id)) return Option.none()
    const found = yield* again(bucket.get(keyOf(owner, id)))
    const now = yield* Clock.currentTimeMillis
    return Option.filter(
      Option.flatMap(found, (text) => FileRecord.decode(seal, owner, id, text)),
      ({ expires }) => expires > now
    )
  })

  const bindings = KeyBindings.make({ bucket, find, isFree: Option.isNone, patience })

  const write = Effect.fnUntraced(function*<E, R>(
    owner: Owner,
    id: string,
    { announced = 0, filename, purpose }: NewFile,
    content: Stream.Stream<Uint8Array, E, R>
  ) {
    const { isLimited, lines: makeLines, maxBytes } = contents[purpose]
    const lines = makeLines()
    const key = keyOf(owner, id)
    const claim = yield* quota.claim(owner, id, isLimited)
    const claimed = (bytes: number) =>
      Effect.flatMap(
        claim.take(bytes),
        (isTaken) => isTaken ? Effect.void : overQuota("With this file the key's owner would store")
      )
    yield* claimed(Math.min(announced, maxBytes))
    let bytes = 0
    const check = (piece: Uint8Array) =>
      Effect.gen(function*() {
        // yields, so that large uploads do not block other work of this process
        yield* turns.next
        bytes += piece.length
        if (bytes > maxBytes) return yield* refuse("size", `The file is larger than ${maxBytes / 1024 / 1024} MiB`)
        const wrong = lines.push(piece)
        if (wrong !== undefined) return yield* refuse("content", wrong)
        yield* claimed(bytes)
      })
    const end = Effect.suspend(() => {
      const wrong = lines.end()
      return wrong === undefined ? Effect.void : refuse("content", wrong)
    })
    const created = yield* Clock.currentTimeMillis
    yield* store.put(
      key,
      content.pipe(
        Stream.tap(check),
        Stream.concat(Stream.fromEffectDrain(end)),
        ofSize(pageBytes),
        Stream.zipWithIndex,
        Stream.map(([page, number]) => seal.seal(placeOf(owner, id, number), page))
      )
    )
    const file: ClientFile = { id, purpose, filename, bytes, lines: lines.count, created, expires: created + keptForMs }
    yield* claim.complete((entry) => FileRecord.encode(seal, owner, file, entry), bytes)
    return file
  }, Effect.scoped)

  return ClientFiles.of({
    create: Effect.fn("ClientFiles.create")(function*(owner, about, content) {
      const id = about.id ?? FileRecord.newId(yield* Clock.currentTimeMillis)
      return yield* Effect.onExit(
        write(owner, id, about, content),
        (exit) => Exit.isSuccess(exit) ? Effect.void : Effect.ignore(remove(keyOf(owner, id)))
      )
    }),
    bind: Effect.fn("ClientFiles.bind")(function*(owner, keyed, file) {
      const removed = Effect.ignore(remove(keyOf(owner, file.id)))
      const id = yield* Effect.tapError(bindings.bind(owner, keyed, file.id), () => removed)
      const earlier = id === file.id ? Option.none() : yield* find(owner, id)
      if (Option.isNone(earlier)) return file
      yield* removed
      return earlier.value
    }),
    checkQuota: (owner) =>
      Effect.flatMap(quota.hasRoom(owner), (hasRoom) => hasRoom ? Effect.void : overQuota("The key's owner stores")),
    find,
    list: Effect.fn("ClientFiles.list")(function*(owner, { after, limit, order = "desc", purpose }) {
      const keys = yield* again(bucket.keys(FileRecord.keysOf(owner)))
      const oldestFirst = keys.map(FileRecord.idOf).toSorted()
      const all = order === "asc" ? oldestFirst : oldestFirst.toReversed()
      const isBehind = (id: string) => after === undefined || (order === "asc" ? id > after : id < after)
      const ids = all.filter(isBehind)
      const files: Array<ClientFile> = []
      // some keys may be of incomplete uploads, so more are read until the page is full
      for (let at = 0; at < ids.length && files.length <= limit; at += concurrency) {
        const found = yield* Effect.forEach(ids.slice(at, at + concurrency), (id) => find(owner, id), { concurrency })
        files.push(
          ...found.flatMap((one) => Option.toArray(one)).filter((file) =>
            purpose === undefined || file.purpose === purpose
          )
        )
      }
      return { files: files.slice(0, limit), hasMore: files.length > limit }
    }),
    read: (owner, { bytes, id }, from = 0, until = bytes) => {
      const last = Math.min(until, bytes)
      if (from >= last) return Stream.empty
      const first = Math.floor(from / pageBytes)
      const end = bytes + Math.ceil(bytes / pageBytes) * Seal.sealBytes
      const pages = store.read(
        keyOf(owner, id),
        first * chunkBytes,
        Math.min(end, Math.ceil(last / pageBytes) * chunkBytes)
      )
      return pages.pipe(
        ofSize(chunkBytes),
        Stream.zipWithIndex,
        Stream.mapEffect(([sealed, index]) => {
          const number = first + index
          const begin = number * pageBytes
          return Option.match(seal.open(placeOf(owner, id, number), sealed), {
            onNone: () => Effect.fail(new FileDamaged({ id })),
            onSome: (page) => Effect.succeed(page.subarray(Math.max(0, from - begin), last - begin))
          })
        })
      )
    },
    delete: Effect.fn("ClientFiles.delete")(function*(owner, id) {
      if (Option.isNone(yield* find(owner, id))) return false
      yield* remove(keyOf(owner, id))
      return true
    })
  })
})
