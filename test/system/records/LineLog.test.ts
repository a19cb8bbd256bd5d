/** The log of a batch on a real server, with an entry of a newer version of the gateway. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option, Schedule, Stream } from "effect"
import * as LineLog from "../../../shared/batches/lines/LineLog.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { ownerToken } from "../../../shared/records/OwnerToken.ts"
import { testSecret } from "../../fixture/gateway/Gateway.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const place = { owner: { id: "key_1", salt: "salt" }, batch: `batch_${"0".repeat(32)}`, line: 7 }

describe("an entry that this version cannot read", () => {
  it.live("counts as begun for every reader, and the holder can end the line", () =>
    Effect.gen(function*() {
      const { url } = yield* NatsServer.make()
      const settings = ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url, GATEWAY_SECRET: testSecret }))
      const context = yield* Layer.build(Nats.layer).pipe(Effect.provide(settings))
      const bucket = yield* openBucket(buckets.batchLines).pipe(Effect.provideContext(context))
      const log = yield* LineLog.open(Schedule.recurs(3)).pipe(Effect.provideContext(context), Effect.provide(settings))
      const key = `${ownerToken(place.owner)}.${place.batch}.${place.line}`
      const written = yield* bucket.updateBytes(key, Buffer.from(`{"kind":"paused","worker":"w"}\nsealed`), 0)

      const found = Option.getOrThrow(yield* log.read(place))
      assert.strictEqual(found.entry.kind, "begun")
      assert.strictEqual(found.revision, Option.getOrThrow(written))
      const [followed] = yield* log.follow(place.owner, place.batch).pipe(Stream.take(1), Stream.runCollect)
      assert.deepInclude(followed, { line: place.line, entry: found.entry })

      assert.isTrue(Option.isSome(yield* log.write(place, { ...found.entry, kind: "stopped" }, found.revision)))
      assert.strictEqual(Option.getOrThrow(yield* log.read(place)).entry.kind, "stopped")
    }))
})
