/** Stores of large results that outlive their request: pictures behind a URL, videos. */
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream"
import { type ObjectInfo, Objm } from "@nats-io/obj"
import { nanos, type NatsConnection } from "@nats-io/nats-core"
import { Effect, Option } from "effect"
import { hash } from "node:crypto"
import { attempt, type JetStreamFailed, mayCreate, replicas } from "./JetStream.ts"
import { Nats } from "./Nats.ts"
import { type StoreSpec, storeStream } from "./Storage.ts"

export interface Store {
  readonly put: (id: string, bytes: Uint8Array) => Effect.Effect<void, JetStreamFailed>
  /** `None` if the object is missing or has expired. */
  readonly get: (id: string) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  readonly delete: (id: string) => Effect.Effect<void, JetStreamFailed>
}

export const createStore = (connection: NatsConnection, { name, ttlMs }: StoreSpec, replicas: number) =>
  new Objm(connection).create(name, { replicas, ttl: nanos(ttlMs) })

/**
 * Reads an object piece by piece. The client's own way creates a consumer on the server for each read and keeps it for five
 * minutes.
 */
const read = async (
  manager: JetStreamManager,
  store: StoreSpec,
  { chunks, digest, nuid, size }: ObjectInfo
): Promise<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  const next = { next_by_subj: `$O.${store.name}.C.${nuid}`, seq: 1 }
  while (pieces.length < chunks) {
    const message = await manager.streams.getMessage(storeStream(store), next)
    if (message === null) throw new Error("a part of the object is missing")
    pieces.push(message.data)
    next.seq = message.seq + 1
  }
  const bytes = Buffer.concat(pieces, size)
  if (hash("sha256", bytes, "base64url") !== digest.replace(/^SHA-256=|=+$/g, "")) {
    throw new Error("the object is damaged")
  }
  return bytes
}

/** Opens a store on disk, or creates it if `mayCreate`. */
export const openStore = Effect.fn("ObjectStore.openStore")(function*(kept: StoreSpec) {
  const nats = yield* Nats
  const creates = yield* mayCreate
  const copies = yield* replicas
  const store = yield* attempt(() =>
    creates ? createStore(nats.connection, kept, copies) : new Objm(nats.connection).open(kept.name)
  )
  const manager = yield* attempt(() => jetstreamManager(nats.connection, { checkAPI: false }))
  return {
    put: (id, bytes) => Effect.asVoid(attempt(() => store.putBlob({ name: id }, bytes))),
    get: (id) =>
      attempt(async () => {
        const info = await store.info(id)
        return info === null || info.deleted ? Option.none<Uint8Array>() : Option.some(await read(manager, kept, info))
      }),
    delete: (id) => Effect.asVoid(attempt(() => store.delete(id)))
  } satisfies Store
})
