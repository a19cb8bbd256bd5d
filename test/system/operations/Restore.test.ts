/** A backup brings back everything or nothing: an incomplete backup, or one for a server that is not empty, restores nothing. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { ConfigProvider, Context, Effect, FileSystem, Layer, Option, PlatformError, Schedule, Sink } from "effect"
import { restoreAll, saveAll } from "../../../shared/bus/provision/Backup.ts"
import { provisionAll } from "../../../shared/bus/provision/Provision.ts"
import { lastSequence } from "../../../shared/nats/EventStream.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { layerBoth, Nats } from "../../../shared/nats/Nats.ts"
import { buckets, events } from "../../../shared/nats/Storage.ts"
import { countedUntilKey, dailyTally, monthlyTally } from "../../../shared/usage/Tally.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { type NatsAddress, NatsServer } from "../../fixture/nats/NatsServer.ts"
import { manyEvents, rowsAt, store, usageEvent, usageProcess } from "../../fixture/nats/UsageEvents.ts"

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

/** Counts on a server until everything is counted, with a new event, and returns the requests and the spending of the other keys. */
const countAt = Effect.fnUntraced(function*(server: NatsAddress, round: number) {
  const context = yield* usageProcess(server, UsageCounters.layer)
  // of its own key, because the counters of the others must not change
  yield* store([usageEvent({ id: `round-${round}`, key: `round_${round}` })]).pipe(Effect.provideContext(context))
  const { daily, monthly } = yield* Effect.gen(function*() {
    const last = yield* lastSequence(events.usage)
    const days = yield* openBucket(dailyTally.bucket)
    // written after all counters
    yield* days.get("checkpoint").pipe(
      Effect.repeat({
        until: (checkpoint) => Option.exists(checkpoint, (text) => JSON.parse(text).sequence === last),
        schedule: Schedule.spaced("20 millis")
      })
    )
    const months = yield* openBucket(monthlyTally.bucket)
    return { daily: yield* days.entries, monthly: yield* months.entries }
  }).pipe(Effect.provideContext(context))
  return [...daily, ...monthly]
    .filter(({ key }) => key !== "checkpoint" && key !== countedUntilKey && !key.includes("round_"))
    .map(({ key, value }) => `${key} ${Option.getOrThrow(value)}`)
    .toSorted()
}, Effect.scoped)

type Step = "restore" | "provision" | "forget identity"

/** What an upgrade finds: a stream whose identity was the server's creation time. */
const forgetIdentity = Effect.gen(function*() {
  const { connection } = yield* Nats
  yield* Effect.promise(async () => {
    const { streams } = await jetstreamManager(connection)
    await streams.update(events.usage.name, { ...(await streams.info(events.usage.name)).config, description: "" })
  })
})

describe("usage and spending", () => {
  // each event is counted once, whatever NATS has been through: `shared/usage/README.md`
  it.live.each<readonly [name: string, steps: ReadonlyArray<Step>]>([
    ["after a restore", ["restore"]],
    ["after the restore of a restored NATS", ["restore", "restore"]],
    ["after three restores", ["restore", "restore", "restore"]],
    ["after an upgrade", ["forget identity", "provision"]],
    ["after an upgrade and two restores", ["forget identity", "provision", "restore", "restore"]],
    ["after two restores without provisioning", ["forget identity", "restore", "restore"]],
    ["after restores and provisioning in turn", ["restore", "provision", "restore", "provision"]]
  ])("are the same %s", ([_name, steps]) =>
    Effect.gen(function*() {
      let server = yield* NatsServer.make()
      if (steps[0] === "forget identity") {
        yield* Effect.provide(Effect.andThen(provisionAll([]), forgetIdentity), connectionsTo(server))
      }
      yield* Effect.gen(function*() {
        const context = yield* usageProcess(server, UsageCounters.layer)
        yield* store(manyEvents(0, 40)).pipe(Effect.provideContext(context))
        yield* rowsAt(Context.get(context, UsageCounters), 40, { from: "2026-11-01", to: "2026-11-30", by: "key" })
      }).pipe(Effect.scoped)
      const before = yield* countAt(server, 0)
      // a day and a month of each key
      assert.lengthOf(before, 8)
      for (const [index, step] of steps.entries()) {
        if (step === "provision") yield* Effect.provide(provisionAll([]), connectionsTo(server))
        if (step === "restore") {
          const folder = yield* folderNamed(`backup-${index}`)
          yield* Effect.provide(saveAll(folder), connectionsTo(server))
          server = yield* NatsServer.make()
          yield* Effect.provide(restoreAll(folder), connectionsTo(server))
        }
        assert.deepStrictEqual(yield* countAt(server, index + 1), before, `after ${step}`)
      }
    }).pipe(Effect.provide(NodeServices.layer)))
})
