/**
 * Creates everything that the gateway stores in NATS and updates existing configurations: job streams and consumers, event
 * streams, work queues, buckets, object stores.
 *
 * On a local start each process creates what is missing. In production services have no right to, so an administrator runs this
 * before the first start and after every upgrade. It never deletes anything. It first moves what earlier releases stored in another
 * account (`Move.ts`).
 */
import type { ConsumerConfig, JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import { jetstreamManager } from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect } from "effect"
import { type Workload, workloads } from "../../contract/Operation.ts"
import { eventConfig } from "../../nats/EventStream.ts"
import { attempt, orMissing, replicas, requireKind } from "../../nats/JetStream.ts"
import { consumerConfig, streamConfig } from "./JobStreams.ts"
import { createBucket, ttlOf } from "../../nats/KeyValue.ts"
import { moveAll } from "./Move.ts"
import { Nats, natsOf } from "../../nats/Nats.ts"
import { createStore } from "../../nats/ObjectStore.ts"
import { buckets, bucketStream, events, type InAccount, queues, stores, storeStream } from "../../nats/Storage.ts"
import { consumerName, queueConfig, queueConsumer } from "../../nats/WorkQueue.ts"
import { batchQueue, jobStream, queuesIn, queuesOf, versionsOf } from "../protocol/Subjects.ts"

/** A pool of a model in the catalogue. */
export interface Pool {
  readonly workload: Workload
  readonly pool: string
}

/** The outcome for one stream, consumer, bucket or store. */
export interface Provisioned {
  readonly name: string
  readonly outcome: "moved" | "created" | "changed" | "unchanged"
}

/** Whether every wanted field has the same value in the actual configuration. */
const isUpToDate = <A extends object>(wanted: Partial<A>, actual: A): boolean =>
  (Object.keys(wanted) as Array<keyof A>).every((name) => JSON.stringify(wanted[name]) === JSON.stringify(actual[name]))

/** Creates a stream if it is missing, or updates its configuration. */
const stream = async (
  manager: JetStreamManager,
  name: string,
  create: () => Promise<unknown>,
  wanted: Partial<StreamConfig>
): Promise<Provisioned> => {
  const known = await orMissing(manager.streams.info(name))
  if (known === undefined) {
    await create()
    return { name, outcome: "created" }
  }
  requireKind(wanted, known.config)
  if (isUpToDate(wanted, known.config)) return { name, outcome: "unchanged" }
  await manager.streams.update(name, { ...known.config, ...wanted })
  return { name, outcome: "changed" }
}

const consumer = async (
  manager: JetStreamManager,
  stream: string,
  durable: string,
  wanted: Partial<ConsumerConfig>
): Promise<Provisioned> => {
  const name = `${stream}/${durable}`
  const known = await orMissing(manager.consumers.info(stream, durable))
  if (known === undefined) {
    await manager.consumers.add(stream, wanted)
    return { name, outcome: "created" }
  }
  if (isUpToDate<ConsumerConfig>(wanted, known.config)) return { name, outcome: "unchanged" }
  await manager.consumers.update(stream, durable, wanted)
  return { name, outcome: "changed" }
}

/**
 * Provisions everything, for the catalogue's pools and each workload's default pool. Reads `NATS_REPLICAS`. Fails with
 * `JetStreamFailed` at the first thing that it cannot create, or that exists with another retention or storage.
 */
export const provisionAll = Effect.fn("Provision.all")(function*(pools: ReadonlyArray<Pool>) {
  const { connection } = yield* Nats
  const num_replicas = yield* replicas
  const manager = yield* attempt(() => jetstreamManager(connection))
  /** The connection to the account that stores `kept`, and a manager on it. */
  const placeOf = Effect.fnUntraced(function*<K extends InAccount>(kept: K) {
    const { connection } = yield* natsOf(kept)
    return { connection, manager: yield* attempt(() => jetstreamManager(connection)) }
  })
  const jobs = ([...workloads.flatMap(queuesOf), batchQueue] as const).flatMap((queue) =>
    versionsOf(queue).map((version) => streamConfig(queue, version, num_replicas))
  )
  // before any change: with another NATS_REPLICAS than before, the first of these streams would get its number and the next fail
  for (const config of jobs) {
    yield* attempt(async () => {
      const known = await orMissing(manager.streams.info(config.name))
      if (known !== undefined) requireKind(config, known.config)
    })
  }
  const done: Array<Provisioned> = (yield* moveAll).map((name) => ({ name, outcome: "moved" }))
  const note = (run: () => Promise<Provisioned>) => Effect.map(attempt(run), (one) => void done.push(one))

  for (const config of jobs) {
    yield* note(() => stream(manager, config.name, () => manager.streams.add(config), config))
  }
  for (const kept of Object.values(events)) {
    const { manager } = yield* placeOf(kept)
    const known = yield* attempt(() => orMissing(manager.streams.info(kept.name)))
    const config = eventConfig(kept, num_replicas, known)
    yield* note(() => stream(manager, config.name, () => manager.streams.add(config), config))
  }
  const all = new Map(
    [...workloads.map((workload) => ({ workload, pool: "default" })), ...pools]
      .map((pool) => [`${pool.workload}/${pool.pool}`, pool])
  )
  for (const { pool, queue } of queuesIn([...all.values()])) {
    for (const version of versionsOf(queue)) {
      yield* note(() => consumer(manager, jobStream(queue, version), pool, consumerConfig(queue, pool, version)))
    }
  }
  for (const kept of Object.values(queues)) {
    const config = queueConfig(kept, num_replicas)
    yield* note(() => stream(manager, config.name, () => manager.streams.add(config), config))
    yield* note(() => consumer(manager, kept.name, consumerName, queueConsumer(kept)))
  }
  for (const kept of Object.values(buckets)) {
    const { connection, manager } = yield* placeOf(kept)
    const ttlMs = yield* ttlOf(kept)
    const config = { num_replicas, max_age: nanos(ttlMs) }
    const create = () => createBucket(connection, kept, ttlMs, num_replicas)
    yield* note(() => stream(manager, bucketStream(kept), create, config))
  }
  for (const kept of Object.values(stores)) {
    const config = { num_replicas, max_age: nanos(kept.ttlMs) }
    yield* note(() => stream(manager, storeStream(kept), () => createStore(connection, kept, num_replicas), config))
  }
  return done
})
