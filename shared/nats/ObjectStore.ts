/**
 * Stores large objects that outlive their request: pictures behind a URL, videos, files of clients.
 *
 * An object consists of chunks, which are messages of a stream, and a description, which is written last, so an object that can be
 * found is complete. The format is that of NATS's own clients, so they can read it. In their format a chunk can be found only by
 * reading all chunks before it, so the description also lists the chunks' sequences in the stream.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { type ObjectInfo, Objm } from "@nats-io/obj"
import { headers, nanos, type NatsConnection, nuid } from "@nats-io/nats-core"
import { DateTime, Effect, Exit, Option, Schedule, Stream } from "effect"
import { createHash } from "node:crypto"
import { ofSize } from "../bounds/ByteChunks.ts"
import { attempt, backOff, JetStreamFailed, mayCreate, orMissing, replicas } from "./JetStream.ts"
import { Nats } from "./Nats.ts"
import { type StoreSpec, storeStream } from "./Storage.ts"

export interface StoredObject {
  /** In bytes. */
  readonly size: number
  /** Keeps one chunk in memory. */
  readonly content: Stream.Stream<Uint8Array, JetStreamFailed>
}

export interface Store {
  /** Stores or replaces an object. If `content` fails or is interrupted, nothing of it stays. Keeps at most two chunks in memory. */
  readonly put: <E, R>(
    id: string,
    content: Stream.Stream<Uint8Array, E, R>
  ) => Effect.Effect<void, E | JetStreamFailed, R>
  /** Reads a whole object; `None` if it is missing or has expired. */
  readonly get: (id: string) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  /** Finds an object; `None` if it is missing or has expired. */
  readonly find: (id: string) => Effect.Effect<Option.Option<StoredObject>, JetStreamFailed>
  /** The bytes from `from` up to but not including `until`. Fails if the object is missing. Keeps one chunk in memory. */
  readonly read: (id: string, from: number, until: number) => Stream.Stream<Uint8Array, JetStreamFailed>
  readonly delete: (id: string) => Effect.Effect<void, JetStreamFailed>
}

/** The size of each chunk but the last, in bytes. */
export const chunkBytes = 128 * 1024

/** How long each request may take, and how long it is retried, in milliseconds. */
const answerWithinMs = 5_000
const patience = backOff.pipe(Schedule.upTo({ duration: 10_000 }))

/** The metadata field with the chunks' sequences. */
const placesField = "places"

export const createStore = (connection: NatsConnection, { name, ttlMs }: StoreSpec, replicas: number) =>
  new Objm(connection).create(name, { replicas, ttl: nanos(ttlMs) })

/** Encodes ascending numbers in base 36, each as the difference from the previous one. */
const encodePlaces = (places: ReadonlyArray<number>): string =>
  places.map((place, index) => (place - (places[index - 1] ?? 0)).toString(36)).join(" ")

const decodePlaces = (text: string): ReadonlyArray<number> => {
  let place = 0
  return text.split(" ").map((distance) => place += Number.parseInt(distance, 36))
}

const missing = new JetStreamFailed({ detail: "a part of the object is missing" })

/** Opens a store on disk, or creates it if `mayCreate`. */
export const openStore = Effect.fn("ObjectStore.openStore")(function*(kept: StoreSpec) {
  const { connection } = yield* Nats
  const creates = yield* mayCreate
  const copies = yield* replicas
  const store = yield* attempt(() =>
    creates ? createStore(connection, kept, copies) : new Objm(connection).open(kept.name)
  )
  const manager = yield* attempt(() => jetstreamManager(connection, { checkAPI: false, timeout: answerWithinMs }))
  const stream = jetstream(connection, { timeout: answerWithinMs })
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)
  const chunkSubject = (nuid: string) => `$O.${kept.name}.C.${nuid}`
  const infoSubject = (id: string) => `$O.${kept.name}.M.${padded(Buffer.from(id).toString("base64url"))}`
  const purge = (filter: string) => attempt(() => manager.streams.purge(storeStream(kept), { filter }))
  const infoOf = (id: string) =>
    Effect.map(attempt(() => store.info(id)), (info) => info === null || info.deleted ? undefined : info)

  const put = Effect.fnUntraced(function*<E, R>(id: string, content: Stream.Stream<Uint8Array, E, R>) {
    const former = yield* infoOf(id)
    const own = nuid.next()
    const digest = createHash("sha256")
    const places: Array<number> = []
    let size = 0
    const add = (chunk: Uint8Array) => {
      digest.update(chunk)
      size += chunk.length
      // retries share a message id, so the server stores the chunk once; interrupted, a chunk in transit could arrive after the purge
      const msgID = `${own}.${places.length}`
      return Effect.uninterruptible(again(attempt(() => stream.publish(chunkSubject(own), chunk, { msgID })))).pipe(
        Effect.map(({ seq }) => void places.push(seq))
      )
    }
    const describe = Effect.gen(function*() {
      const info = {
        name: id,
        bucket: kept.name,
        nuid: own,
        size,
        chunks: places.length,
        mtime: DateTime.formatIso(yield* DateTime.now),
        digest: `SHA-256=${padded(digest.digest("base64url"))}`,
        deleted: false,
        options: { max_chunk_size: chunkBytes },
        metadata: places.length === 0 ? {} : { [placesField]: encodePlaces(places) }
      }
      const replaces = headers()
      replaces.set("Nats-Rollup", "sub")
      const text = JSON.stringify(info)
      yield* again(attempt(() => stream.publish(infoSubject(id), text, { headers: replaces, msgID: own })))
    })
    yield* content.pipe(
      ofSize(chunkBytes),
      Stream.runForEach(add),
      Effect.andThen(Effect.uninterruptible(describe)),
      Effect.onExit((exit) => Exit.isSuccess(exit) ? Effect.void : Effect.ignore(again(purge(chunkSubject(own)))))
    )
    // if the purge fails, the old chunks expire
    if (former !== undefined) yield* Effect.ignore(purge(chunkSubject(former.nuid)))
  })

  /** The chunks from the one that contains the byte `from` on, and the offset at which that chunk begins. */
  const chunksOf = ({ chunks, metadata, nuid, options }: ObjectInfo, from: number) => {
    const subject = chunkSubject(nuid)
    const text = metadata?.[placesField]
    const places = text === undefined ? undefined : decodePlaces(text)
    const size = options?.max_chunk_size ?? chunkBytes
    // without places only the first chunk can be found directly
    const first = places === undefined ? 0 : Math.floor(from / size)
    let last = 0
    const next = (number: number) => {
      const place = places?.[number]
      const query = place === undefined ? { next_by_subj: subject, seq: last + 1 } : { seq: place }
      return Effect.map(
        again(attempt(() => orMissing(manager.streams.getMessage(storeStream(kept), query)))),
        (found) => {
          if (found === undefined || found === null || found.subject !== subject) return undefined
          last = found.seq
          return found.data
        }
      )
    }
    const data = Stream.range(first, chunks - 1).pipe(
      Stream.mapEffect((number) => Effect.filterOrFail(next(number), (found) => found !== undefined, () => missing))
    )
    return { data: first < chunks ? data : Stream.empty, begin: first * size }
  }

  const read = (info: ObjectInfo, from: number, until: number): Stream.Stream<Uint8Array, JetStreamFailed> =>
    Stream.suspend(() => {
      const { begin, data } = chunksOf(info, from)
      let at = begin
      return data.pipe(
        Stream.map((chunk) => {
          const start = at
          at += chunk.length
          return chunk.subarray(Math.max(0, from - start), Math.max(0, until - start))
        }),
        Stream.takeUntil(() => at >= until),
        Stream.filter(({ length }) => length > 0)
      )
    })

  return {
    put,
    get: Effect.fnUntraced(function*(id): Effect.fn.Return<Option.Option<Uint8Array>, JetStreamFailed> {
      const info = yield* infoOf(id)
      if (info === undefined) return Option.none()
      const bytes = Buffer.concat(yield* Stream.runCollect(read(info, 0, info.size)))
      const digest = createHash("sha256").update(bytes).digest("base64url")
      return digest === info.digest.replace(/^SHA-256=|=+$/g, "")
        ? Option.some(bytes)
        : yield* new JetStreamFailed({ detail: "the object is damaged" })
    }),
    find: (id) =>
      Effect.map(infoOf(id), (info) =>
        info === undefined
          ? Option.none()
          : Option.some({ size: info.size, content: read(info, 0, info.size) })),
    read: (id, from, until) =>
      from >= until ? Stream.empty : Stream.unwrap(Effect.map(
        again(infoOf(id)),
        (info) => info === undefined ? Stream.fail(missing) : read(info, from, until)
      )),
    delete: Effect.fnUntraced(function*(id): Effect.fn.Return<void, JetStreamFailed> {
      const info = yield* infoOf(id)
      if (info === undefined) return
      // deletes the description last, so that a failed deletion can be repeated
      yield* purge(chunkSubject(info.nuid))
      yield* purge(infoSubject(id))
    })
  } satisfies Store
})

/** Pads base64, as NATS's own clients do. */
const padded = (text: string): string => text.padEnd(Math.ceil(text.length / 4) * 4, "=")
