/** Named stores of large results that outlive the request that made them: pictures behind a URL, videos. */
import { Objm } from "@nats-io/obj"
import { nanos, type NatsConnection } from "@nats-io/nats-core"
import { Effect, Option } from "effect"
import { attempt, type JetStreamFailed, mayCreate, replicas } from "./JobStreams.ts"
import { Nats } from "./Nats.ts"
import type { KeptStore } from "./Storage.ts"

export interface Store {
  readonly put: (id: string, bytes: Uint8Array) => Effect.Effect<void, JetStreamFailed>
  /** `None` where there is none, or not any more. */
  readonly get: (id: string) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  readonly delete: (id: string) => Effect.Effect<void, JetStreamFailed>
}

export const createStore = (connection: NatsConnection, { name, ttlMs }: KeptStore, replicas: number) =>
  new Objm(connection).create(name, { replicas, ttl: nanos(ttlMs) })

/** Opens a store on disk, creating it where this process may: see `mayCreate`. */
export const openStore = Effect.fn("ObjectStore.openStore")(function*(kept: KeptStore) {
  const nats = yield* Nats
  const creates = yield* mayCreate
  const copies = yield* replicas
  const store = yield* attempt(() =>
    creates ? createStore(nats.connection, kept, copies) : new Objm(nats.connection).open(kept.name)
  )
  return {
    put: (id, bytes) => Effect.asVoid(attempt(() => store.putBlob({ name: id }, bytes))),
    get: (id) => Effect.map(attempt(() => store.getBlob(id)), Option.fromNullishOr),
    delete: (id) => Effect.asVoid(attempt(() => store.delete(id)))
  } satisfies Store
})
