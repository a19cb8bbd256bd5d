/** The records of webhooks: their URLs and secrets. */
import { assert, it } from "@effect/vitest"
import { Array, ConfigProvider, Effect, Layer, Option, Redacted } from "effect"
import { layerBoth } from "../../../shared/nats/Nats.ts"
import { openEndpoints, secretsAt } from "../../../shared/webhooks/Endpoints.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const onNats = <A, E>(effect: Effect.Effect<A, E, Layer.Success<typeof layerBoth>>) =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const environment = { NATS_URL: server.url, GATEWAY_SECRET: "a secret of at least 32 characters" }
    const configured = ConfigProvider.layer(ConfigProvider.fromUnknown(environment))
    return yield* Effect.provide(effect, Layer.provideMerge(layerBoth, configured))
  })

it.live("changes of a webhook at the same time all succeed, and only one shows its first secret", () =>
  onNats(Effect.gen(function*() {
    const { find, rotate, set } = yield* openEndpoints
    const urls = Array.makeBy(8, (index) => `https://example.com/${index}`)
    const all = yield* Effect.forEach(urls, (url) => set("key_a", url), { concurrency: "unbounded" })
    const shown = all.flatMap(({ secret }) => secret === undefined ? [] : [Redacted.value(secret)])
    const stored = Option.getOrThrow(yield* find("key_a"))
    assert.include(urls, stored.url)
    assert.deepStrictEqual(secretsAt(stored, 0), shown)

    const rotated = yield* Effect.all(Array.replicate(rotate("key_a"), 8), { concurrency: "unbounded" })
    const [current = ""] = secretsAt(Option.getOrThrow(yield* find("key_a")), 0)
    assert.include(rotated.map((each) => Redacted.value(Option.getOrThrow(each).secret)), current)
  })))
