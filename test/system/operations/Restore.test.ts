/** A backup brings back everything or nothing: an incomplete backup, or one for a server that is not empty, restores nothing. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { ConfigProvider, Effect, FileSystem, Layer, Option, PlatformError, Sink } from "effect"
import { restoreAll, saveAll } from "../../../shared/bus/provision/Backup.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { layerBoth, Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { type NatsAddress, NatsServer } from "../../fixture/nats/NatsServer.ts"

const settings = (environment: Readonly<Record<string, string>>) =>
  ConfigProvider.layer(ConfigProvider.fromUnknown(environment))

/** The administrator's connections to a server. */
const connectionsTo = ({ url }: NatsAddress) => Layer.fresh(layerBoth).pipe(Layer.provide(settings({ NATS_URL: url })))

const folderNamed = (name: string) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    return `${yield* fs.makeTempDirectoryScoped()}/${name}`
  })

type MakeSink = FileSystem.FileSystem["sink"]

/** Writes the pieces of a stream in another way. */
const withSinkOf = (stream: string, change: (sink: ReturnType<MakeSink>) => ReturnType<MakeSink>) =>
  Effect.provideServiceEffect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs): FileSystem.FileSystem => ({
      ...fs,
      sink: (path, options) => path.includes(stream) ? change(fs.sink(path, options)) : fs.sink(path, options)
    }))
  )

const diskIsFull = Sink.fail(PlatformError.systemError({ _tag: "WriteZero", module: "FileSystem", method: "sink" }))

/** A server with a key and an owner. */
const startFull = Effect.gen(function*() {
  const server = yield* NatsServer.make()
  yield* Effect.gen(function*() {
    yield* (yield* openBucket(buckets.apiKeys)).put("key", "a key")
    yield* (yield* openBucket(buckets.owners)).put("owner", "a salt")
  }).pipe(Effect.provide(connectionsTo(server)))
  return server
})

describe("a backup", () => {
  it.live("is restored into an empty server", () =>
    Effect.gen(function*() {
      const folder = yield* folderNamed("backup")
      const saved = yield* Effect.provide(saveAll(folder), connectionsTo(yield* startFull))
      yield* Effect.gen(function*() {
        assert.deepStrictEqual(yield* restoreAll(folder), saved)
        assert.deepStrictEqual(yield* (yield* openBucket(buckets.apiKeys)).get("key"), Option.some("a key"))
        assert.deepStrictEqual(yield* (yield* openBucket(buckets.owners)).get("owner"), Option.some("a salt"))
      }).pipe(Effect.provide(connectionsTo(yield* NatsServer.make())))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.live("has the records that were replaced while it was made", () =>
    Effect.gen(function*() {
      const folder = yield* folderNamed("backup")
      yield* Effect.gen(function*() {
        const keys = yield* openBucket(buckets.apiKeys)
        const replace = yield* Effect.cached(Effect.orDie(keys.put("key", "a newer key")))
        yield* saveAll(folder).pipe(
          withSinkOf("KV_API_KEYS", (sink) => Sink.unwrap(Effect.as(replace, sink)))
        )
      }).pipe(Effect.provide(connectionsTo(yield* startFull)))
      yield* Effect.gen(function*() {
        yield* restoreAll(folder)
        assert.deepStrictEqual(yield* (yield* openBucket(buckets.apiKeys)).get("key"), Option.some("a newer key"))
      }).pipe(Effect.provide(connectionsTo(yield* NatsServer.make())))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.live("counts the writes that came each time that a bucket was saved", () =>
    Effect.gen(function*() {
      const folder = yield* folderNamed("backup")
      yield* Effect.gen(function*() {
        const keys = yield* openBucket(buckets.apiKeys)
        const replace = Effect.orDie(keys.put("key", "a newer key"))
        const saved = yield* saveAll(folder).pipe(
          withSinkOf("KV_API_KEYS", (sink) => Sink.unwrap(Effect.as(replace, sink)))
        )
        assert.strictEqual(saved.find(({ stream }) => stream === "KV_API_KEYS")?.writes, 1)
      }).pipe(Effect.provide(connectionsTo(yield* startFull)))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.live("of a cluster is restored into one server with NATS_REPLICAS=1", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* folderNamed("backup")
      const saved = yield* Effect.provide(saveAll(folder), connectionsTo(yield* startFull))
      for (const { stream } of saved) {
        const file = `${folder}/${stream}.json`
        const text = yield* fs.readFileString(file)
        assert.include(text, `"num_replicas":1`)
        yield* fs.writeFileString(file, text.replace(`"num_replicas":1`, `"num_replicas":3`))
      }
      const restored = restoreAll(folder).pipe(Effect.provide(settings({ NATS_REPLICAS: "1" })))
      assert.deepStrictEqual(yield* Effect.provide(restored, connectionsTo(yield* NatsServer.make())), saved)
    }).pipe(Effect.provide(NodeServices.layer)))

  it.live("is not restored at all if a stream exists", () =>
    Effect.gen(function*() {
      const folder = yield* folderNamed("backup")
      yield* Effect.provide(saveAll(folder), connectionsTo(yield* startFull))
      yield* Effect.gen(function*() {
        yield* openBucket(buckets.owners)
        const error = yield* Effect.flip(restoreAll(folder))
        assert.include(error.message, "NATS already has the stream KV_OWNERS")
        const { connection } = yield* Nats
        const { streams } = yield* Effect.promise(() => jetstreamManager(connection))
        assert.deepStrictEqual(yield* Effect.promise(() => streams.names().next()), ["KV_OWNERS"])
      }).pipe(Effect.provide(connectionsTo(yield* NatsServer.make())))
    }).pipe(Effect.provide(NodeServices.layer)))

  it.live("that was interrupted is not restored, nor is a folder that does not exist", () =>
    Effect.gen(function*() {
      const folder = yield* folderNamed("backup")
      const server = connectionsTo(yield* startFull)
      yield* saveAll(folder).pipe(withSinkOf("KV_OWNERS", () => diskIsFull), Effect.flip, Effect.provide(server))
      const fs = yield* FileSystem.FileSystem
      assert.include(yield* fs.readDirectory(folder), "KV_API_KEYS.json")
      yield* Effect.gen(function*() {
        for (const one of [folder, `${folder}-of-yesterday`]) {
          const error = yield* Effect.flip(restoreAll(one))
          assert.include(error.message, `The folder ${one} holds no complete backup`)
        }
      }).pipe(Effect.provide(connectionsTo(yield* NatsServer.make())))
    }).pipe(Effect.provide(NodeServices.layer)))
})
