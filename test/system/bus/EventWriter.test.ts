/** Events reach their stream once each, whatever happens to NATS meanwhile. */
import { jetstreamManager } from "@nats-io/jetstream"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Logger } from "effect"
import { openEvents } from "../../../shared/nats/EventStream.ts"
import { EventWriter } from "../../../shared/nats/EventWriter.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import type { EventStreamSpec } from "../../../shared/nats/Storage.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const stream: EventStreamSpec & { readonly account: "data" } = {
  account: "data",
  name: "EVENTS",
  subjects: "events.>",
  maxAgeMs: 60_000,
  maxBytes: 64 * 1024 * 1024,
  duplicatesMs: 60_000
}

/** A writer on a server, without a stream until it is opened. */
const make = Effect.gen(function*() {
  const server = yield* NatsServer.make()
  const context = yield* Layer.build(Layer.fresh(Nats.layer)).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })),
      // some of these tests lose the server on purpose
      Logger.layer([])
    ])
  )
  const nats = Context.get(context, Nats)
  let lost = 0
  const writer = new EventWriter({ nats, now: () => performance.now(), onLost: () => lost++ })
  yield* Effect.addFinalizer(() => Effect.promise(() => writer.close(0)))
  const one = (id: string, bytes = 100) =>
    new Promise<void>((resolve) => writer.write("events.x", id, Buffer.alloc(bytes, id), resolve))
  return {
    server,
    nats,
    writer,
    one,
    /** Resolves once each is stored. */
    many: (from: number, until: number) =>
      Promise.all(Array.from({ length: until - from }, (_, index) => one(`${from + index}`))),
    lost: () => lost,
    open: openEvents(stream).pipe(Effect.provideContext(context)),
    stored: async () => {
      const manager = await jetstreamManager(nats.connection)
      return (await manager.streams.info(stream.name)).state.messages
    }
  }
})

describe("events", { timeout: 30_000 }, () => {
  it.live("are stored once each, even if they are written twice", () =>
    Effect.gen(function*() {
      const { many, open, stored } = yield* make
      yield* open
      yield* Effect.promise(() => Promise.all([many(0, 200), many(100, 300)]))
      assert.strictEqual(yield* Effect.promise(stored), 300)
    }))

  it.live("are kept until their stream exists", () =>
    Effect.gen(function*() {
      const { many, open, stored } = yield* make
      const written = many(0, 50)
      yield* open
      yield* Effect.promise(() => written)
      assert.strictEqual(yield* Effect.promise(stored), 50)
    }))

  it.live("survive a server that is killed while they are written", () =>
    Effect.gen(function*() {
      const { many, nats, open, server, stored } = yield* make
      yield* open
      const before = many(0, 500)
      const killed = Effect.promise(() => server.kill())
      yield* killed
      yield* Effect.promise(() => eventually(async () => nats.isConnected(), (connected) => !connected, 5_000))
      const meanwhile = many(500, 600)
      yield* Effect.promise(() => server.restart())
      yield* Effect.promise(() => Promise.all([before, meanwhile, many(600, 650)]))
      assert.strictEqual(yield* Effect.promise(stored), 650)
    }))

  it.live("delay the end of their writer, but not for ever", () =>
    Effect.gen(function*() {
      const { many, open, stored, writer } = yield* make
      void many(0, 20)
      yield* open
      assert.strictEqual(yield* Effect.promise(() => writer.close(10_000)), 0)
      assert.strictEqual(yield* Effect.promise(stored), 20)

      const other = yield* make
      void other.many(0, 20)
      assert.strictEqual(yield* Effect.promise(() => other.writer.close(50)), 20)
    }))

  it.live("are dropped without delay if there is no room for them", () =>
    Effect.gen(function*() {
      const { lost, one } = yield* make
      const megabytes = Array.from({ length: 40 }, (_, index) => `${index}`)
      for (const id of megabytes.slice(0, 32)) void one(id, 1024 * 1000)
      assert.strictEqual(lost(), 0)
      yield* Effect.promise(() => Promise.all(megabytes.slice(33).map((id) => one(id, 1024 * 1024))))
      assert.strictEqual(lost(), 7)
    }))
})
