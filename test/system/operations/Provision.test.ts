/** Provisioning with another number of replicas than before, by which the storage of jobs would change, changes nothing. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { ConfigProvider, Effect, Layer } from "effect"
import { streamConfig } from "../../../shared/bus/provision/JobStreams.ts"
import { provisionAll } from "../../../shared/bus/provision/Provision.ts"
import { layerBoth, Nats } from "../../../shared/nats/Nats.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

describe("provisioning", () => {
  it.live("without NATS_REPLICAS, which a cluster had, fails before it changes a stream", () =>
    Effect.gen(function*() {
      const { url } = yield* NatsServer.make()
      yield* Effect.gen(function*() {
        const { connection } = yield* Nats
        const { streams } = yield* Effect.promise(() => jetstreamManager(connection))
        // as in a cluster, except for the replicas, which one server does not have
        yield* Effect.promise(() => streams.add({ ...streamConfig("chat", 2, 1), max_msgs: 5 }))
        yield* Effect.promise(() => streams.add({ ...streamConfig("chat", 3, 3), num_replicas: 1 }))
        const error = yield* Effect.flip(provisionAll([]))
        assert.match(error.message, /^JetStream: stream JOBS3_CHAT exists with another .* NATS_REPLICAS/)
        const { config } = yield* Effect.promise(() => streams.info("JOBS_CHAT"))
        assert.strictEqual(config.max_msgs, 5)
      }).pipe(
        Effect.provide(Layer.provide(layerBoth, ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url }))))
      )
    }))
})
