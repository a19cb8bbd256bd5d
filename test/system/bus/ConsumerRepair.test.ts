/** A queue whose consumer cannot deliver is repaired, on a real server. */
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import * as QueueKeeper from "../../../services/console/QueueKeeper.ts"
import { jobStream, jobSubject } from "../../../shared/bus/protocol/Subjects.ts"
import { repairConsumer } from "../../../shared/bus/provision/ConsumerRepair.ts"
import { consumerConfig, streamConfig } from "../../../shared/bus/provision/JobStreams.ts"
import { Catalogue } from "../../../shared/catalogue/Catalogue.ts"
import { Model } from "../../../shared/catalogue/Model.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { ingress, untilConnected, untilDisconnected } from "../../fixture/bus/Sides.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const stream = jobStream("chat", 3)
const subject = jobSubject("chat", "default", 3)

const model = Schema.decodeSync(Model)({ workload: "chat", targets: [{ provider: "any" }] })
const catalogue = { current: () => ({ providers: new Map(), models: new Map([["model", model]]) }) }

/** A queue on disk. */
const queueOf = Effect.fnUntraced(function*(server: NatsServer) {
  const side = yield* ingress(server.url)
  const { connection } = side.nats
  const manager = yield* Effect.promise(() => jetstreamManager(connection))
  yield* Effect.promise(() => manager.streams.add({ ...streamConfig("chat", 3, 3), num_replicas: 1 }))
  yield* Effect.promise(() => manager.consumers.add(stream, consumerConfig("chat", "default", 3)))
  const publish = (count: number) =>
    Effect.promise(async () => {
      for (let job = 0; job < count; job++) await jetstream(connection).publish(subject, "job")
    })
  /** Takes and acknowledges what the queue delivers of `count` jobs. */
  const take = (count: number) =>
    Effect.promise(async () => {
      const consumer = await jetstream(connection).consumers.get(stream, "default")
      let taken = 0
      for await (const message of await consumer.fetch({ max_messages: count, expires: 1_000 })) {
        taken++
        await message.ackAck()
      }
      return taken
    })
  const repair = repairConsumer("chat", "default", 3).pipe(Effect.provideService(Nats, side.nats))
  return { side, manager, publish, take, repair }
})

describe("the consumer of a queue", () => {
  it.live("that delivers is left alone", () =>
    Effect.gen(function*() {
      const { publish, repair, take } = yield* queueOf(yield* NatsServer.make())
      yield* publish(3)
      assert.strictEqual(yield* take(2), 2)
      assert.isFalse(yield* repair)
    }))

  it.live("that is missing is created, but not without its stream", () =>
    Effect.gen(function*() {
      const { manager, publish, repair, take } = yield* queueOf(yield* NatsServer.make())
      yield* Effect.promise(() => manager.consumers.delete(stream, "default"))
      yield* publish(1)
      assert.isTrue(yield* repair)
      assert.strictEqual(yield* take(1), 1)
      yield* Effect.promise(() => manager.streams.delete(stream))
      assert.isFalse(yield* repair)
    }))

  it.live("that is ahead of its stream delivers again", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { manager, publish, repair, side, take } = yield* queueOf(server)
      yield* publish(5)
      assert.strictEqual(yield* take(5), 5)
      yield* Effect.promise(() => server.stop())
      server.loseMessages(stream)
      yield* untilDisconnected(side)
      yield* Effect.promise(() => server.restart())
      yield* untilConnected(side)
      yield* publish(2)
      const { delivered } = yield* Effect.promise(() => manager.consumers.info(stream, "default"))
      // newer servers correct the consumer when they start, unless they were in a cluster
      const isAhead = delivered.stream_seq === 5
      assert.strictEqual(yield* repair, isAhead)
      assert.strictEqual(yield* take(2), 2)
      assert.isFalse(yield* repair)
    }))

  it.live("that is missing after a reconnect is created at once by the console", () =>
    Effect.gen(function*() {
      const { manager, side } = yield* queueOf(yield* NatsServer.make())
      const lost = Effect.promise(() => manager.consumers.delete(stream, "default"))
      const isThere = () => manager.consumers.info(stream, "default").then(() => true, () => false)
      const untilBack = Effect.promise(() => eventually(isThere, (isThere) => isThere))
      yield* lost
      yield* Layer.build(QueueKeeper.layer).pipe(
        Effect.provideService(Catalogue, catalogue),
        Effect.provideService(Nats, side.nats)
      )
      yield* untilBack
      // the next check is due in twenty seconds
      yield* lost
      yield* Effect.promise(() => side.nats.connection.reconnect())
      yield* untilBack
    }))
})
