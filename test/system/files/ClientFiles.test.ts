/** The store of clients' files on a real server: whole and in parts, only for their owners, and within their quota. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Option, Stream } from "effect"
import { jetstreamManager } from "@nats-io/jetstream"
import { hash, randomBytes } from "node:crypto"
import { type ClientFile, ClientFiles, FileRefused, quotaMiB } from "../../../shared/files/ClientFiles.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { openStore } from "../../../shared/nats/ObjectStore.ts"
import { buckets, stores, storeStream } from "../../../shared/nats/Storage.ts"
import { testSecret } from "../../fixture/gateway/Gateway.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const connect = Effect.fnUntraced(function*(server: NatsServer, settings: Readonly<Record<string, string>> = {}) {
  const environment = { NATS_URL: server.url, GATEWAY_SECRET: testSecret, ...settings }
  const provided = Layer.merge(ConfigProvider.layer(ConfigProvider.fromUnknown(environment)), Logger.layer([]))
  const context = yield* Layer.build(
    ClientFiles.layer({ patienceMs: 10_000, quotaMiB }).pipe(Layer.provideMerge(Nats.layer))
  )
    .pipe(
      Effect.provide(provided)
    )
  const files = Context.get(context, ClientFiles)
  const { connection } = Context.get(context, Nats)
  const bucket = yield* openBucket(buckets.clientFiles).pipe(Effect.provideContext(context))
  const store = yield* openStore(stores.clientFiles).pipe(Effect.provideContext(context))
  const manager = yield* Effect.promise(() => jetstreamManager(connection))
  /** The messages of all objects, with their descriptions. */
  const messages = Effect.promise(async () => {
    const { state } = await manager.streams.info(storeStream(stores.clientFiles), { subjects_filter: "$O.>" })
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
  })
  return { bucket, connection, files, messages, store }
})

const start = Effect.fnUntraced(function*(settings: Readonly<Record<string, string>> = {}) {
  const server = yield* NatsServer.make()
  return { server, ...yield* connect(server, settings) }
})

const owner = { id: "key_1", salt: randomBytes(16).toString("base64url") }
const other = { id: "key_2", salt: randomBytes(16).toString("base64url") }

/** Output of a batch, which may be anything. */
const output = { purpose: "batch_output", filename: "out.jsonl" } as const
const upload = { purpose: "batch", filename: "in.jsonl" } as const

const line = (id: number | string, text = "") =>
  Buffer.from(JSON.stringify({ custom_id: String(id), method: "POST", url: "/v1/embeddings", body: { text } }) + "\n")

const readAll = (files: ClientFiles["Service"], file: ClientFile, from?: number, until?: number) =>
  Effect.map(Stream.runCollect(files.read(owner, file, from, until)), (pieces) => Buffer.concat(pieces))

describe("a file", () => {
  it.live("is read whole and in parts as it was written, and says nothing where it is stored", () =>
    Effect.gen(function*() {
      const { bucket, files, messages, store } = yield* start()
      for (const length of [0, 1, 131_039, 131_040, 1_000_000]) {
        const bytes = randomBytes(length)
        const file = yield* files.create(owner, output, Stream.make(bytes.subarray(0, 10), bytes.subarray(10)))
        assert.strictEqual(file.bytes, length)
        assert.deepStrictEqual(yield* files.find(owner, file.id), Option.some(file))
        assert.strictEqual(hash("sha256", yield* readAll(files, file)), hash("sha256", bytes))
        for (const [from, until] of [[0, 1], [131_038, 131_041], [262_078, 400_000], [999_999, 2_000_000]] as const) {
          assert.deepStrictEqual(yield* readAll(files, file, from, until), bytes.subarray(from, until))
        }
      }
      const file = yield* files.create(owner, upload, Stream.make(line(1, "secret"), line(2)))
      assert.strictEqual(file.lines, 2)
      const entries = yield* bucket.entries
      const record = entries.find(({ key }) => key.endsWith(file.id)) ?? assert.fail("no record")
      const stored = Option.getOrThrow(yield* store.get(record.key))
      const text = `${record.key}${Option.getOrThrow(record.value)}${Buffer.from(stored).toString("latin1")}`
      assert.notMatch(text, /key_1|secret|in\.jsonl|custom_id/)
      for (const { id } of (yield* files.list(owner, { limit: 100 })).files) {
        assert.isTrue(yield* files.delete(owner, id))
        assert.isFalse(yield* files.delete(owner, id))
      }
      assert.deepStrictEqual([yield* bucket.keys(">"), yield* messages], [[], 0])
    }))

  it.live("exists only for its owner, while the owner's salt exists, and for 30 days", () =>
    Effect.gen(function*() {
      const { files } = yield* start()
      const file = yield* files.create(owner, upload, Stream.make(line(1)))
      for (const stranger of [other, { ...other, id: owner.id }, { ...other, salt: owner.salt }]) {
        assert.isTrue(Option.isNone(yield* files.find(stranger, file.id)))
        assert.deepStrictEqual((yield* files.list(stranger, { limit: 10 })).files, [])
        assert.isFalse(yield* files.delete(stranger, file.id))
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Stream.runDrain(files.read(stranger, file)))))
      }
      for (const id of ["", "file-", "*", ">", `${file.id}.0`]) {
        assert.isTrue(Option.isNone(yield* files.find(owner, id)))
      }
      const clock = yield* Clock.Clock
      const at = (ms: number) =>
        Effect.provideService(files.find(owner, file.id), Clock.Clock, {
          ...clock,
          currentTimeMillis: Effect.succeed(ms),
          currentTimeMillisUnsafe: () => ms
        } as Clock.Clock)
      const kept = 30 * 24 * 60 * 60_000
      assert.isTrue(Option.isSome(yield* at(file.created + kept - 1)))
      assert.isTrue(Option.isNone(yield* at(file.created + kept)))
    }))

  it.live("is not read if its pages are damaged or missing", () =>
    Effect.gen(function*() {
      const { bucket, files, store } = yield* start()
      const [one, two] = [
        yield* files.create(owner, output, Stream.make(randomBytes(300_000))),
        yield* files.create(owner, output, Stream.make(randomBytes(300_000)))
      ]
      const keys = yield* bucket.keys(">")
      const keyOf = (file: ClientFile) => keys.find((key) => key.endsWith(file.id)) ?? assert.fail(keys.join())
      const content = Buffer.from(Option.getOrThrow(yield* store.get(keyOf(one))))
      const refusal = (file: ClientFile) =>
        Effect.map(Effect.flip(Stream.runDrain(files.read(owner, file))), ({ _tag }) => _tag)
      yield* store.put(keyOf(two), Stream.make(content))
      assert.strictEqual(yield* refusal(two), "FileDamaged")
      content[200_000]! ^= 1
      yield* store.put(keyOf(one), Stream.make(content))
      assert.strictEqual(yield* refusal(one), "FileDamaged")
      assert.strictEqual((yield* readAll(files, one, 0, 100_000)).length, 100_000)
      yield* store.delete(keyOf(one))
      assert.strictEqual(yield* refusal(one), "JetStreamFailed")
    }))

  it.live("leaves nothing behind if its content is refused, fails or is interrupted", () =>
    Effect.gen(function*() {
      const { bucket, files, messages } = yield* start()
      const many = Array.from({ length: 400 }, (_, at) => line(at, "x".repeat(1_000)))
      const refused = yield* Effect.flip(files.create(owner, upload, Stream.fromIterable([...many, line(7)])))
      assert.deepStrictEqual(
        refused,
        new FileRefused({ reason: "content", message: "Line 401 is wrong: `custom_id` is also on an earlier line" })
      )
      const failing = Stream.concat(Stream.fromIterable(many), Stream.fail("lost" as const))
      assert.strictEqual(yield* Effect.flip(files.create(owner, upload, failing)), "lost")

      const isHalfway = yield* Deferred.make<void>()
      const stalling = Stream.concat(
        Stream.fromIterable(many),
        Stream.fromEffectDrain(
          Effect.andThen(Deferred.succeed(isHalfway, undefined), Effect.never)
        )
      )
      const creating = yield* Effect.forkChild(files.create(owner, upload, stalling))
      yield* Deferred.await(isHalfway)
      assert.isAbove(yield* messages, 0)
      yield* Fiber.interrupt(creating)
      assert.deepStrictEqual([yield* bucket.keys(">"), yield* messages], [[], 0])
    }))

  it.live("is written no faster than it is stored, and read no faster than it is used", () =>
    Effect.gen(function*() {
      const { connection, files, messages } = yield* start()
      const count = 100
      const pieces = Stream.range(1, count).pipe(
        Stream.rechunk(1),
        Stream.mapEffect((piece) =>
          Effect.map(messages, (stored) => {
            assert.isAtLeast(stored, piece - 4)
            return randomBytes(128 * 1024)
          })
        )
      )
      const file = yield* files.create(owner, output, pieces)
      const before = connection.stats().inBytes
      yield* Stream.runDrain(Stream.take(files.read(owner, file), 1))
      assert.isBelow(connection.stats().inBytes - before, 1_000_000)
      const middle = yield* readAll(files, file, 9_000_000, 9_000_100)
      assert.strictEqual(middle.length, 100)
      assert.isBelow(connection.stats().inBytes - before, 2_000_000)
    }))

  it.live("is refused beyond the owner's quota, wherever it is written", () =>
    Effect.gen(function*() {
      const settings = { GATEWAY_FILES_MIB: "4" }
      const { bucket, files, server } = yield* start(settings)
      const { files: elsewhere } = yield* connect(server, settings)
      const megabyte = () => Stream.fromIterable(Array.from({ length: 10 }, (_, at) => line(at, "x".repeat(99_900))))
      const first = yield* files.create(owner, upload, megabyte())
      yield* elsewhere.create(owner, upload, megabyte())
      yield* files.create(owner, upload, megabyte())
      const large = () =>
        Stream.concat(
          megabyte(),
          Stream.map(megabyte(), (bytes) => Buffer.from(String(bytes).replace(`"custom_id":"`, `"custom_id":"b`)))
        )
      const refused = yield* Effect.flip(elsewhere.create(owner, upload, large()))
      assert.deepInclude(refused, { _tag: "FileRefused", reason: "quota" })
      assert.match(refused.message, /4 MiB.*GATEWAY_FILES_MIB/s)
      // what is announced is refused before anything is stored
      assert.deepInclude(
        yield* Effect.flip(files.create(owner, { ...upload, announced: 2_000_000 }, Stream.die("not read"))),
        { reason: "quota" }
      )
      assert.strictEqual((yield* bucket.entries).length, 3)
      yield* files.create(other, upload, megabyte())
      yield* files.delete(owner, first.id)
      yield* elsewhere.create(owner, upload, large())
      yield* files.checkQuota(owner)
      // answers that have been paid for are always stored
      yield* files.create(owner, output, megabyte())
      assert.deepInclude(yield* Effect.flip(files.checkQuota(owner)), { _tag: "FileRefused", reason: "quota" })
      yield* elsewhere.checkQuota(other)
    }))

  it.live("is in the pages of a list, in the order of time", () =>
    Effect.gen(function*() {
      const { files } = yield* start()
      const made: Array<string> = []
      for (let at = 0; at < 5; at++) {
        made.push((yield* files.create(owner, at === 2 ? output : upload, Stream.make(line(at)))).id)
      }
      made.sort()
      const list = (asked: Parameters<typeof files.list>[1]) =>
        Effect.map(files.list(owner, asked), ({ files, hasMore }) => [files.map(({ id }) => made.indexOf(id)), hasMore])
      assert.deepStrictEqual(yield* list({ limit: 3 }), [[4, 3, 2], true])
      assert.deepStrictEqual(yield* list({ limit: 3, after: made[2]! }), [[1, 0], false])
      assert.deepStrictEqual(yield* list({ limit: 2, order: "asc", after: made[0]! }), [[1, 2], true])
      assert.deepStrictEqual((yield* files.list(owner, { limit: 9, purpose: "batch_output" })).files.length, 1)
    }))
})
