/** The records of webhooks: their URLs and secrets, and the deliveries of events. */
import { assert, it } from "@effect/vitest"
import { Array, ConfigProvider, Effect, Layer, Option, Redacted } from "effect"
import { layerBoth, Nats } from "../../../shared/nats/Nats.ts"
import { openDeliveries } from "../../../shared/webhooks/Deliveries.ts"
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

it.live("the latest deliveries are listed without reading all, also beside those of other owners", () =>
  onNats(Effect.gen(function*() {
    const { connection } = yield* Nats
    const { add, list } = yield* openDeliveries
    const store = (owner: string, from: number, until: number) =>
      Effect.forEach(
        Array.range(from, until - 1),
        (at) => add(owner, { id: `evt_${at}`, type: "response.completed", subject: `resp_${at}`, at })
      )
    /** When the listed events were, and the number of messages that listing them took. */
    const listed = Effect.fnUntraced(function*(owner: string, count: number) {
      const before = connection.stats().inMsgs
      const deliveries = yield* list(owner, count)
      return [deliveries.map(({ at }) => at), connection.stats().inMsgs - before] as const
    })
    const latest = (until: number) => Array.range(until - 10, until - 1).toReversed()

    yield* store("key_a", 0, 400)
    const [ofBusy, messages] = yield* listed("key_a", 10)
    assert.deepStrictEqual(ofBusy, latest(400))
    assert.isBelow(messages, 60)

    yield* store("key_b", 0, 203)
    const [ofSilent, more] = yield* listed("key_a", 10)
    assert.deepStrictEqual(ofSilent, latest(400))
    assert.isBelow(more, 60)
    yield* store("key_a", 400, 403)
    assert.deepStrictEqual((yield* listed("key_a", 10))[0], latest(403))

    assert.deepStrictEqual((yield* listed("key_b", 500))[0], Array.range(0, 202).toReversed())
    assert.deepStrictEqual((yield* listed("key_c", 10))[0], [])
  })))
