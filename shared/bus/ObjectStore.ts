/** Named stores of large results that outlive the request that made them: pictures behind a URL, videos. */
import { Objm } from "@nats-io/obj"
import { nanos } from "@nats-io/nats-core"
import { Config, Effect, Option } from "effect"
import { attempt, type JetStreamFailed } from "./JobStreams.ts"
import { Nats } from "./Nats.ts"

export interface Store {
  readonly put: (id: string, bytes: Uint8Array) => Effect.Effect<void, JetStreamFailed>
  /** `None` where there is none, or not any more. */
  readonly get: (id: string) => Effect.Effect<Option.Option<Uint8Array>, JetStreamFailed>
  readonly delete: (id: string) => Effect.Effect<void, JetStreamFailed>
}

/**
 * Opens a store on disk, creating it where this process may (see `provision` for `GATEWAY_PROVISION` and
 * `NATS_REPLICAS`). What is in it is gone after `ttlMs` milliseconds.
 */
export const openStore = Effect.fn("ObjectStore.openStore")(function*(name: string, ttlMs: number) {
  const nats = yield* Nats
  const replicas = yield* Config.Int("NATS_REPLICAS").pipe(Config.withDefault(1))
  const mayCreate = yield* Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))
  const manager = new Objm(nats.connection)
  const store = yield* attempt(() =>
    mayCreate ? manager.create(name, { replicas, ttl: nanos(ttlMs) }) : manager.open(name)
  )
  return {
    put: (id, bytes) => Effect.asVoid(attempt(() => store.putBlob({ name: id }, bytes))),
    get: (id) => Effect.map(attempt(() => store.getBlob(id)), Option.fromNullishOr),
    delete: (id) => Effect.asVoid(attempt(() => store.delete(id)))
  } satisfies Store
})
