/** Events reach their stream, those of one turn in one message, whatever happens to NATS meanwhile. */
import { jetstreamManager } from "@nats-io/jetstream"
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Layer, Logger } from "effect"
import { eventsOf, openEvents } from "../../../shared/nats/EventStream.ts"
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

/** The writer sends a page again if this long passes without confirmation. */
const confirmMs = 2_000

const numbers = (from: number, until: number) => Array.from({ length: until - from }, (_, index) => `${from + index}`)

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
  let aheadMs = 0
  const clock = yield* Clock.Clock
  const now = () => clock.currentTimeMillisUnsafe() + aheadMs
  const writer = new EventWriter({ nats, now, onLost: () => lost++ })
  yield* Effect.addFinalizer(() => Effect.promise(() => writer.close(0)))
  const one = (event: string) => new Promise<void>((resolve) => writer.write("events.x", event, resolve))
  return {
    server,
    nats,
    writer,
    one,
    /** Resolves once each is stored. */
    many: (from: number, until: number) => Promise.all(numbers(from, until).map(one)),
    lost: () => lost,
    pass: (ms: number) => void (aheadMs += ms),
    open: openEvents(stream).pipe(Effect.provideContext(context)),
    /** The events of each message. */
    stored: async () => {
      const { streams } = await jetstreamManager(nats.connection)
      const { messages } = (await streams.info(stream.name)).state
      const pages: Array<ReadonlyArray<string>> = []
      for (let seq = 1; seq <= messages; seq++) {
        pages.push(eventsOf((await streams.getMessage(stream.name, { seq }))?.string() ?? ""))
      }
      return pages
    }
  }
})

describe("events", () => {
  it.live("of one turn are a message, up to 32 KiB", () =>
    Effect.gen(function*() {
      const { many, one, open, stored } = yield* make
      yield* open
      yield* Effect.promise(() => many(0, 200))
      yield* Effect.promise(() => one("200"))
      yield* Effect.promise(() => many(201, 203))
      const long = [..."abc"].map((letter) => letter.repeat(10 * 1024))
      yield* Effect.promise(() => Promise.all([...long, "d".repeat(40 * 1024), "e"].map(one)))
      const pages = yield* Effect.promise(stored)
      assert.deepStrictEqual(pages.map(({ length }) => length), [200, 1, 2, 3, 1, 1])
      assert.deepStrictEqual(pages.flat().slice(0, 203), numbers(0, 203))
    }))

  it.live("are kept until their stream exists", () =>
    Effect.gen(function*() {
      const { many, open, pass, stored } = yield* make
      const written = many(0, 50)
      yield* open
      pass(confirmMs)
      yield* Effect.promise(() => written)
      assert.deepStrictEqual(yield* Effect.promise(stored), [numbers(0, 50)])
    }))

  it.live("survive a server that is killed while they are written", () =>
    Effect.gen(function*() {
      const { many, nats, open, server, stored } = yield* make
      yield* open
      const before = many(0, 500)
      const killed = Effect.promise(() => server.kill())
      yield* killed
      yield* Effect.promise(() => eventually(async () => nats.isConnected(), (connected) => !connected))
      const meanwhile = many(500, 600)
      yield* Effect.promise(() => server.restart())
      yield* Effect.promise(() => Promise.all([before, meanwhile, many(600, 650)]))
      assert.sameMembers((yield* Effect.promise(stored)).flat(), numbers(0, 650))
    }))

  it.live("delay the end of their writer, but not for ever", () =>
    Effect.gen(function*() {
      const { many, open, pass, stored, writer } = yield* make
      void many(0, 20)
      yield* open
      pass(confirmMs)
      assert.strictEqual(yield* Effect.promise(() => writer.close(10_000)), 0)
      assert.deepStrictEqual(yield* Effect.promise(stored), [numbers(0, 20)])

      const other = yield* make
      void other.many(0, 20)
      assert.strictEqual(yield* Effect.promise(() => other.writer.close(50)), 20)
    }))

  it.live("count as stored after ten seconds without confirmation, but not at a writer that is about to end", () =>
    Effect.gen(function*() {
      const { one, pass, writer } = yield* make
      const first = one("a")
      pass(10_001)
      yield* Effect.promise(() => first)
      let isDone = false
      void one("b").then(() => isDone = true)
      const left = writer.close(1_200)
      pass(10_001)
      assert.deepStrictEqual([yield* Effect.promise(() => left), isDone], [2, false])
    }))

  it.live("are dropped without delay if there is no room for them", () =>
    Effect.gen(function*() {
      const { lost, one } = yield* make
      const megabyte = "x".repeat(1024 * 1024 - 1)
      for (let count = 0; count < 32; count++) void one(megabyte)
      assert.strictEqual(lost(), 0)
      yield* Effect.promise(() => Promise.all(Array.from({ length: 7 }, () => one(megabyte))))
      assert.strictEqual(lost(), 7)
    }))
})
