/** A team that is deleted while NATS is failing. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import { HttpApiTest } from "effect/http-api"
import { everything } from "../../../services/console/access/Scopes.ts"
import { ConsoleApi } from "../../../services/console/api/Api.ts"
import * as TeamHandlers from "../../../services/console/handlers/TeamHandlers.ts"
import { Webhooks } from "../../../services/console/handlers/WebhookHandlers.ts"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { layerBoth } from "../../../shared/nats/Nats.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { layerSignedIn } from "../../fixture/identity/SignedIn.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

it.live("a team is deleted after its webhook, so that the request can be repeated, and not while it has keys", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const stores = yield* Layer.build(
      TeamStore.layer.pipe(Layer.provideMerge(KeyStore.layer), Layer.provide(layerBoth))
    ).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url }))))
    let isAway = true
    const removed: Array<string> = []
    const endpoints = {
      remove: (owner: string) =>
        Effect.suspend(() => {
          if (isAway) return Effect.fail(new JetStreamFailed({ detail: "away" }))
          removed.push(owner)
          return Effect.succeed(true)
        })
    }
    const { teams } = yield* HttpApiTest.groups(ConsoleApi, ["teams"]).pipe(
      Effect.provide(
        TeamHandlers.layer.pipe(
          Layer.provide([
            Layer.succeedContext(stores),
            Layer.mock(KeyAudit)({ teamChanged: () => Effect.void }),
            Layer.mock(UsageCounters)({}),
            Layer.mock(Spending)({ of: () => 0, countedUntil: () => 0, resetMs: () => 0 }),
            Layer.mock(Webhooks)({ endpoints } as never)
          ]),
          Layer.provideMerge(layerSignedIn({ name: "ada", role: "admin", teams: [], session: null }, everything))
        )
      )
    )
    const store = Context.get(stores, TeamStore)
    const { id } = yield* store.create({ name: "search" })
    const remove = teams.remove({ params: { id } })
    assert.strictEqual((yield* Effect.flip(remove))._tag, "Unavailable")
    isAway = false
    yield* remove
    assert.deepStrictEqual([removed, yield* store.list], [[id], []])

    const { id: busy } = yield* store.create({ name: "ads" })
    yield* Context.get(stores, KeyStore).create({ name: "ours", team: busy })
    assert.strictEqual((yield* Effect.flip(teams.remove({ params: { id: busy } })))._tag, "TeamNotEmpty")
    assert.deepStrictEqual(removed, [id])
  }))
