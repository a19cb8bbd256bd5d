/** A bucket keeps its records, and a watch misses no change, even if the server is away meanwhile. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import {
  ConfigProvider,
  Context,
  Deferred,
  Effect,
  Fiber,
  Layer,
  Logger,
  Option,
  Queue,
  Schedule,
  Stream
} from "effect"
import { randomBytes } from "node:crypto"
import * as Snapshot from "../../../shared/bus/provision/Snapshot.ts"
import { type Bucket, openBucket, type WatchEvent } from "../../../shared/nats/KeyValue.ts"
import type { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { Cable } from "../../fixture/nats/Cable.ts"
import { type NatsAddress, NatsServer } from "../../fixture/nats/NatsServer.ts"
import { ingress } from "../../fixture/bus/Sides.ts"

/** Only a connection: an ingress would send messages of its own. */
const natsAt = (url: string) =>
  Layer.provide(Nats.layer, ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url })))

const bucketOf = Effect.fnUntraced(function*(server: NatsAddress) {
  const nats = Context.get(yield* Layer.build(natsAt(server.url)), Nats)
  return {
    nats,
    bucket: yield* openBucket({ name: "RECORDS", account: "data" }).pipe(Effect.provideService(Nats, nats))
  }
})

const text = (event: WatchEvent): string =>
  typeof event === "string" ? event : `${event.key}: ${Option.getOrElse(event.value, () => "deleted")}`

/** A watch's events, in order. */
const collectEvents = Effect.fnUntraced(function*(bucket: Bucket) {
  const events = yield* Queue.unbounded<string>()
  yield* bucket.watch.pipe(
    Stream.runForEach((event) => Queue.offer(events, text(event))),
    Effect.forkScoped
  )
  return { next: (count: number) => Queue.takeN(events, count), rest: Queue.clear(events) }
})

describe("a bucket", () => {
  it.live("keeps a record until it is replaced or deleted", () =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      assert.isTrue(Option.isNone(yield* bucket.get("a")))
      yield* bucket.put("a", "é 🙂")
      assert.deepStrictEqual(yield* bucket.get("a"), Option.some("é 🙂"))
      yield* bucket.put("a", "")
      assert.deepStrictEqual(yield* bucket.get("a"), Option.some(""))
      yield* bucket.delete("a")
      yield* bucket.delete("never.there")
      assert.isTrue(Option.isNone(yield* bucket.get("a")))
    }))

  const histories: ReadonlyArray<
    readonly [title: string, before: (bucket: Bucket) => Effect.Effect<unknown, JetStreamFailed>, outcome: string]
  > = [
    ["was never written", () => Effect.void, "created"],
    ["exists", (bucket) => bucket.put("a", "another"), "exists"],
    ["was deleted", (bucket) => Effect.andThen(bucket.put("a", "another"), bucket.delete("a")), "deleted"],
    ["was deleted before it was written", (bucket) => bucket.delete("a"), "deleted"],
    ["was written by the same request, whose answer was lost", (bucket) => bucket.put("a", "value"), "created"],
    [
      "was created first, deleted and asked for again",
      (bucket) => Effect.andThen(bucket.createFirst("a", "value"), bucket.delete("a")),
      "deleted"
    ]
  ]
  it.live.each(histories)("creates a record first if its key %s", ([, before, outcome]) =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      yield* before(bucket)
      assert.strictEqual(yield* bucket.createFirst("a", "value"), outcome)
    }))

  it.live("that the process may not create is awaited by its watch, which logs it", () =>
    Effect.gen(function*() {
      const { nats } = yield* ingress((yield* NatsServer.make()).url)
      const logged = yield* Deferred.make<unknown>()
      const open = openBucket({ name: "RECORDS", account: "data" }).pipe(Effect.provideService(Nats, nats))
      const bucket = yield* open.pipe(
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ GATEWAY_PROVISION: "false" })))
      )
      const watch = yield* collectEvents(bucket).pipe(
        Effect.provide(Logger.layer([Logger.make(({ message }) => {
          Deferred.doneUnsafe(logged, Effect.succeed(message))
        })]))
      )
      assert.include(JSON.stringify(yield* Deferred.await(logged)), "RECORDS")
      yield* open
      yield* Effect.repeat(watch.next(1), { until: ([event]) => event === "loaded" })
    }))

  it.live("creates a record once, and again after it was deleted", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const buckets = yield* Effect.forEach([1, 2, 3], () => Effect.map(bucketOf(server), ({ bucket }) => bucket))
      for (let round = 0; round < 3; round++) {
        const created = yield* Effect.forEach(
          [...buckets, ...buckets],
          (bucket, index) => bucket.create("key", `${index}`),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(created.filter(Boolean).length, 1)
        assert.deepStrictEqual(yield* buckets[0]!.get("key"), Option.some(`${created.indexOf(true)}`))
        yield* buckets[1]!.delete("key")
      }
    }))

  it.live("counts the records that a purge has removed, also if others purge at the same time", () =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      yield* Effect.forEach(["a", "a.1", "a.2", "b"], (key) => bucket.put(key, key))
      const purged = yield* Effect.all(Array.from({ length: 8 }, () => bucket.purge("a")), { concurrency: "unbounded" })
      assert.deepStrictEqual(purged.toSorted(), [0, 0, 0, 0, 0, 0, 0, 1])
      assert.strictEqual(yield* bucket.purge("a.>"), 2)
      assert.strictEqual(yield* bucket.purge("a.>"), 0)
      assert.deepStrictEqual(yield* bucket.keys(">"), ["b"])
    }))

  it.live("lists the present value of a record that was replaced during a snapshot", () =>
    Effect.gen(function*() {
      const { bucket, nats } = yield* bucketOf(yield* NatsServer.make())
      yield* bucket.put("a", "1")
      // more than the server sends ahead
      yield* Effect.forEach(Array.from({ length: 40 }, (_, at) => `b.${at}`), (key) =>
        bucket.put(key, randomBytes(512_000)))
      const { pieces } = yield* Snapshot.take(nats, "KV_RECORDS", { consumers: false })
      yield* Stream.runDrain(Stream.take(pieces, 1))
      yield* bucket.put("a", "2")
      assert.deepStrictEqual(yield* Stream.runCollect(bucket.matching("a")), [{ key: "a", value: Option.some("2") }])
    }))

  it.live("updates a record only at the given revision", () =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      yield* bucket.create("a", "1")
      const { revision } = Option.getOrThrow(yield* bucket.getRevision("a"))
      const writers = ["2", "3", "4"].map((value) => bucket.update("a", value, revision))
      const written = yield* Effect.all(writers, { concurrency: "unbounded" })
      assert.lengthOf(written.filter(Option.isSome), 1)
      const now = Option.getOrThrow(yield* bucket.getRevision("a"))
      assert.deepStrictEqual(written.filter(Option.isSome), [Option.some(now.revision)])
      // repeated because the first answer was lost
      assert.deepStrictEqual(yield* bucket.update("a", now.value, revision), Option.some(now.revision))
      assert.isTrue(Option.isNone(yield* bucket.update("a", "5", revision)))
      assert.isTrue(Option.isSome(yield* bucket.update("a", "5", now.revision)))
      yield* bucket.delete("a")
      assert.isTrue(Option.isNone(yield* bucket.getRevision("a")))
      assert.isTrue(Option.isNone(yield* bucket.update("a", "6", now.revision)))
    }))

  it.live("knows the newest write to keys that match a filter", () =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      assert.strictEqual(yield* bucket.newest("a.*"), 0)
      yield* Effect.forEach(["a.1", "a.2", "a.1", "b.1"], (key) => bucket.put(key, key))
      const { revision } = Option.getOrThrow(yield* bucket.getRevision("a.1"))
      assert.strictEqual(yield* bucket.newest("a.*"), revision)
      assert.isAbove(yield* bucket.newest("*.1"), revision)
    }))

  it.live("lists its current records only", () =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      assert.deepStrictEqual(yield* bucket.entries, [])
      yield* Effect.forEach(["a", "b", "c"], (key) => bucket.put(key, key.toUpperCase()))
      yield* bucket.delete("b")
      assert.sameMembers((yield* bucket.entries).map(text), ["a: A", "c: C"])
      yield* bucket.delete("a")
      yield* bucket.delete("c")
      assert.deepStrictEqual(yield* bucket.entries, [])
    }))

  it.live("of five thousand records is listed with about as many requests as one of two, and finds those asked for", () =>
    Effect.gen(function*() {
      const { bucket, nats } = yield* bucketOf(yield* NatsServer.make())
      const sentFor = Effect.fnUntraced(function*(filter: string) {
        const before = nats.connection.stats().outMsgs
        const found = yield* Stream.runCollect(bucket.matching(filter))
        return { found: found.map(text), sent: nats.connection.stats().outMsgs - before }
      })
      yield* Effect.forEach(["few.1", "few.2"], (key) => bucket.put(key, "x"))
      const { found: few, sent } = yield* sentFor("few.*")
      assert.sameMembers(few, ["few.1: x", "few.2: x"])
      const keys = Array.from({ length: 5_000 }, (_, index) => `many.${index}`)
      yield* Effect.forEach(keys, (key) => bucket.put(key, key), { concurrency: 200, discard: true })
      yield* bucket.put("many.7", "again")
      yield* bucket.delete("many.8")
      const many = yield* sentFor("many.*")
      // the reader asks again if the server pauses
      assert.isAtMost(many.sent, 3 * sent)
      const expected = keys.map((key) => `${key}: ${key === "many.7" ? "again" : key}`)
      assert.sameMembers(many.found, expected.filter((entry) => entry !== "many.8: many.8"))
    }))

  it.live("is listed although records are removed meanwhile", () =>
    Effect.gen(function*() {
      const { bucket } = yield* bucketOf(yield* NatsServer.make())
      const keys = Array.from({ length: 200 }, (_, index) => `${index}`)
      // more than is in flight at once
      yield* Effect.forEach(keys, (key) => bucket.put(key, "x".repeat(64_000)), { concurrency: 10, discard: true })
      const found: Array<string> = []
      yield* Stream.runForEach(bucket.matching(">"), ({ key }) =>
        Effect.suspend(() => found.push(key) === 1 ? Effect.asVoid(bucket.purge(">")) : Effect.void))
      assert.isBelow(found.length, keys.length)
    }))

  it.live("is listed although a record is removed before it is read, and others are written without pause", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket: others } = yield* bucketOf(server)
      const cable = yield* Cable.make(server.url)
      const { bucket } = yield* bucketOf(cable)
      yield* Effect.forEach(["a", "b"], (key) => others.put(key, key))
      const listed = cable.holdAt((command) => command.includes("CONSUMER.CREATE") ? "before" : undefined)
      const reading = yield* Effect.forkChild(bucket.entries)
      yield* Effect.promise(() => listed)
      yield* others.purge("b")
      yield* others.put("c", "0").pipe(Effect.repeat(Schedule.spaced("20 millis")), Effect.forkScoped)
      cable.mend()
      assert.deepStrictEqual(yield* Fiber.join(reading), [{ key: "a", value: Option.some("a") }])
    }))

  it.live("fails a listing if the connection is lost, and lists everything afterwards", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket } = yield* bucketOf(server)
      const keys = Array.from({ length: 200 }, (_, index) => `${index}`)
      // more than is in flight at once
      yield* Effect.forEach(keys, (key) => bucket.put(key, "x".repeat(64_000)), { concurrency: 10, discard: true })
      let isFirst = true
      const lost = yield* Stream.runForEach(bucket.matching(">"), () =>
        Effect.promise(async () => {
          if (!isFirst) return
          isFirst = false
          await server.kill()
          await server.restart()
        })).pipe(Effect.flip)
      assert.strictEqual(lost._tag, "JetStreamFailed")
      const listed = yield* bucket.entries.pipe(Effect.retry(Schedule.spaced("50 millis")))
      assert.sameMembers(listed.map(({ key }) => key), keys)
    }))
})

it.live("a reader does not stand still at a record that is much larger than those before it", () =>
  Effect.gen(function*() {
    const { bucket } = yield* bucketOf(yield* NatsServer.make())
    const sizes = Array.from({ length: 1_000 }, (_, index) => index % 200 === 199 ? 20_000 : 500)
    yield* Effect.forEach(sizes, (size, index) => bucket.put(`a.${index}`, "x".repeat(size)), {
      concurrency: 100,
      discard: true
    })
    yield* bucket.follow("a.*", 1).pipe(
      // less than the client waits for missed heartbeats
      Stream.timeoutOrElse({ duration: "3 seconds", orElse: () => Stream.die("the reader stands still") }),
      Stream.take(sizes.length),
      Stream.runDrain
    )
  }))

describe("a watch", () => {
  it.live("lists its records while others write", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const [{ bucket }, { bucket: other }] = yield* Effect.all([bucketOf(server), bucketOf(server)])
      yield* bucket.put("a", "0")
      const write = Effect.forEach(Array.from({ length: 2_000 }, (_, at) => `${at}`), (text) => other.put("a", text))
      const writing = yield* Effect.forkScoped(write)
      while (writing.pollUnsafe() === undefined) {
        assert.deepStrictEqual((yield* bucket.entries).map(({ key }) => key), ["a"])
      }
      assert.deepStrictEqual(yield* bucket.entries, [{ key: "a", value: Option.some("1999") }])
    }))

  it.live("that starts while others write misses nothing", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const [{ bucket }, { bucket: other }] = yield* Effect.all([bucketOf(server), bucketOf(server)])
      for (let round = 0; round < 100; round++) {
        const write = Effect.forEach(["a", "b", "last"], (text) => other.put("a", `${round} ${text}`))
        const seen = bucket.watch.pipe(
          Stream.takeUntil((event) => typeof event !== "string" && Option.getOrNull(event.value) === `${round} last`),
          Stream.runDrain
        )
        yield* Effect.all([seen, write], { concurrency: "unbounded" })
      }
    }))

  it.live("reports the records, their end, and then the changes", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket } = yield* bucketOf(server)
      yield* bucket.put("a", "1")
      yield* bucket.put("b", "1")
      yield* bucket.put("a", "2")
      yield* bucket.delete("b")
      const { next } = yield* collectEvents((yield* bucketOf(server)).bucket)
      const [loading, ...initial] = yield* next(4)
      assert.strictEqual(loading, "loading")
      assert.deepStrictEqual(initial, ["a: 2", "b: deleted", "loaded"])
      yield* bucket.put("c", "1")
      assert.deepStrictEqual(yield* next(1), ["c: 1"])
      yield* bucket.delete("c")
      assert.deepStrictEqual(yield* next(1), ["c: deleted"])
      // the server delivers what it still has: all of these, or only the last of each key
      yield* bucket.put("c", "2")
      yield* bucket.put("c", "3")
      yield* bucket.put("a", "3")
      const last = new Map<string, string>()
      while (last.get("c") !== "c: 3" || last.get("a") !== "a: 3") {
        const [event = ""] = yield* next(1)
        last.set(event.charAt(0), event)
      }
      assert.deepStrictEqual(last, new Map([["c", "c: 3"], ["a", "a: 3"]]))
    }))

  it.live("deletes its consumer when it ends, and so does a reader, even if the connection ends with them", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket: own } = yield* bucketOf(server)
      yield* own.put("a", "1")
      const context = yield* Layer.build(natsAt(server.url))
      const { consumers } = yield* Effect.promise(() => jetstreamManager(Context.get(context, Nats).connection))
      const count = Effect.promise(async () => (await consumers.list("KV_RECORDS").next()).length)
      yield* Effect.scoped(Effect.gen(function*() {
        const { bucket } = yield* bucketOf(server)
        const watch = yield* collectEvents(bucket)
        yield* watch.next(3)
        yield* bucket.follow(">", 1).pipe(Stream.take(1), Stream.runDrain)
        const started = yield* Deferred.make<void>()
        yield* bucket.follow(">", 1).pipe(
          Stream.runForEach(() => Deferred.succeed(started, undefined)),
          Effect.forkScoped
        )
        yield* Deferred.await(started)
        yield* Effect.repeat(count, { until: (left) => left === 2, schedule: Schedule.spaced("20 millis") })
      }))
      yield* Effect.repeat(count, { until: (left) => left === 0, schedule: Schedule.spaced("20 millis") })
    }))

  it.live("of an empty bucket is loaded at once", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket } = yield* bucketOf(server)
      const { next } = yield* collectEvents(bucket)
      assert.deepStrictEqual(yield* next(2), ["loading", "loaded"])
      yield* bucket.put("a", "1")
      assert.deepStrictEqual(yield* next(1), ["a: 1"])
    }))

  it.live("of many records reports its end after all of them", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket } = yield* bucketOf(server)
      const keys = Array.from({ length: 1_000 }, (_, index) => `key${index}`)
      yield* Effect.forEach(keys, (key) => bucket.put(key, "x"), { concurrency: 50 })
      const { next } = yield* collectEvents(bucket)
      const events = yield* next(1_002)
      assert.strictEqual(events.at(0), "loading")
      assert.strictEqual(events.at(-1), "loaded")
      assert.sameMembers(events.slice(1, -1), keys.map((key) => `${key}: x`))
    }))

  it.live("restarts after the server was away, with the changes made meanwhile", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const { bucket } = yield* bucketOf(server)
      yield* bucket.put("a", "1")
      yield* bucket.put("b", "1")
      const { next, rest } = yield* collectEvents((yield* bucketOf(server)).bucket)
      yield* next(4)
      for (let round = 2; round < 5; round++) {
        yield* Effect.promise(() => server.kill())
        yield* Effect.promise(() => server.restart())
        // another client, reconnected before the watch
        const other = (yield* bucketOf(server)).bucket
        yield* other.put("a", `${round}`)
        yield* other.delete("b")
        // the watch may be back for the first of these, or for both
        let seen: ReadonlyArray<string> = []
        while (!(seen.includes("loaded") && seen.includes(`a: ${round}`) && seen.includes("b: deleted"))) {
          seen = [...seen, ...yield* next(1)]
        }
        assert.strictEqual(seen[0], "loading")
        yield* other.put("a", `${round} later`)
        yield* other.put("b", "again")
        let late: ReadonlyArray<string> = []
        while (!late.includes("b: again")) late = [...late, ...yield* next(1)]
        assert.include([...seen, ...late], `a: ${round} later`)
        assert.deepStrictEqual(yield* rest, [])
      }
    }))
})
