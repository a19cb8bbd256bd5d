/**
 * Makes everything that the gateway keeps in NATS, and brings what exists up to how it should be: streams and consumers of
 * jobs, streams of events, buckets, object stores.
 *
 * A local start needs none of this: there each process makes what it lacks. In production services have no right to, and
 * an administrator runs this before them, again after every upgrade. Nothing is ever deleted; what a former version kept in
 * another account is moved first (`Move.ts`).
 */
import type { ConsumerConfig, JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import { jetstreamManager } from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect } from "effect"
import { type Workload, workloads } from "../../contract/Operation.ts"
import { eventConfig } from "../../nats/EventStream.ts"
import { attempt, isMissing, isOtherKind, otherKind, replicas } from "../../nats/JetStream.ts"
import { consumerConfig, streamConfig } from "./JobStreams.ts"
import { createBucket } from "../../nats/KeyValue.ts"
import { moveAll } from "./Move.ts"
import { Nats, natsOf } from "../../nats/Nats.ts"
import { createStore } from "../../nats/ObjectStore.ts"
import { buckets, bucketStream, events, type InAccount, stores, storeStream } from "../../nats/Storage.ts"
import { jobStream } from "../protocol/Subjects.ts"

/** A queue that models of the catalogue use. */
export interface Pool {
  readonly workload: Workload
  readonly pool: string
}

/** What was done to one thing. */
export interface Provisioned {
  readonly name: string
  readonly outcome: "moved" | "created" | "changed" | "unchanged"
}

/** The fields of a configuration that are not as they should be. */
const differences = <A extends object>(wanted: Partial<A>, actual: A): ReadonlyArray<string> =>
  Object.keys(wanted).filter((field) => {
    const name = field as keyof A
    return JSON.stringify(wanted[name]) !== JSON.stringify(actual[name])
  })

/** Creates a stream where it is missing, then changes what of it is not as wanted. */
const stream = async (
  manager: JetStreamManager,
  name: string,
  create: () => Promise<unknown>,
  wanted: Partial<StreamConfig>
): Promise<Provisioned> => {
  const known = await infoOf(() => manager.streams.info(name))
  if (known === undefined) {
    await create()
    return { name, outcome: "created" }
  }
  if (isOtherKind(wanted, known.config)) throw otherKind(name)
  if (differences(wanted, known.config).length === 0) return { name, outcome: "unchanged" }
  await manager.streams.update(name, { ...known.config, ...wanted })
  return { name, outcome: "changed" }
}

const consumer = async (manager: JetStreamManager, { pool, workload }: Pool): Promise<Provisioned> => {
  const stream = jobStream(workload)
  const name = `${stream}/${pool}`
  const wanted = consumerConfig(workload, pool)
  const known = await infoOf(() => manager.consumers.info(stream, pool))
  if (known === undefined) {
    await manager.consumers.add(stream, wanted)
    return { name, outcome: "created" }
  }
  if (differences<ConsumerConfig>(wanted, known.config).length === 0) return { name, outcome: "unchanged" }
  await manager.consumers.update(stream, pool, wanted)
  return { name, outcome: "changed" }
}

const infoOf = async <A>(ask: () => Promise<A>): Promise<A | undefined> => {
  try {
    return await ask()
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw cause
  }
}

/**
 * Provisions all of it, for the pools that the catalogue names and the default pool of each workload. Reads
 * `NATS_REPLICAS`. Fails with `JetStreamFailed` at the first thing that cannot be made, or is there and of another kind.
 */
export const provisionAll = Effect.fn("Provision.all")(function*(pools: ReadonlyArray<Pool>) {
  const { connection } = yield* Nats
  const num_replicas = yield* replicas
  const manager = yield* attempt(() => jetstreamManager(connection))
  /** The connection to where something is kept. */
  const placeOf = <K extends InAccount>(kept: K) =>
    Effect.flatMap(
      natsOf(kept),
      ({ connection }) =>
        Effect.map(attempt(() => jetstreamManager(connection)), (manager) => ({ connection, manager }))
    )
  const done: Array<Provisioned> = (yield* moveAll).map((name) => ({ name, outcome: "moved" }))
  const note = (run: () => Promise<Provisioned>) => Effect.map(attempt(run), (one) => void done.push(one))

  for (const workload of workloads) {
    const config = streamConfig(workload, num_replicas)
    yield* note(() => stream(manager, config.name, () => manager.streams.add(config), config))
  }
  for (const kept of Object.values(events)) {
    const { manager } = yield* placeOf(kept)
    const config = eventConfig(kept, num_replicas)
    yield* note(() => stream(manager, config.name, () => manager.streams.add(config), config))
  }
  const all = new Map(
    [...workloads.map((workload) => ({ workload, pool: "default" })), ...pools]
      .map((pool) => [`${pool.workload}/${pool.pool}`, pool])
  )
  for (const pool of all.values()) yield* note(() => consumer(manager, pool))
  for (const kept of Object.values(buckets)) {
    const { connection, manager } = yield* placeOf(kept)
    yield* note(() =>
      stream(manager, bucketStream(kept), () => createBucket(connection, kept, num_replicas), {
        num_replicas,
        max_age: nanos("ttlMs" in kept ? kept.ttlMs : 0)
      })
    )
  }
  for (const kept of Object.values(stores)) {
    yield* note(() =>
      stream(manager, storeStream(kept), () => createStore(connection, kept, num_replicas), {
        num_replicas,
        max_age: nanos(kept.ttlMs)
      })
    )
  }
  return done
})
