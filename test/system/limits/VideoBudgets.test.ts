/** A video that is being made holds its largest possible cost in the budget of its team. */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { chat } from "../../fixture/client/ChatClient.ts"
import { smallVideo, veryLongVideo, VideoClient } from "../../fixture/client/VideoClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { usageProcess } from "../../fixture/nats/UsageEvents.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import * as TeamsOfKeys from "../../../shared/teams/TeamsOfKeys.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"

const shared = sharedGateway({
  services: ["video"],
  models: `
  dear-video: { workload: video, targets: [{ provider: local }], price: { perSecond: 0.1 } }
  dear-chat: { workload: chat, targets: [{ provider: free }], price: { perRequest: 0.1 } }`
})

it("other requests wait for the budget until the video ends, and then have what it has not cost", () =>
  Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const services = (yield* usageProcess(
      shared().nats,
      Layer.mergeAll(
        UsageCounters.layer.pipe(Layer.provide(TeamsOfKeys.layer)),
        TeamStore.layer.pipe(Layer.provide(KeyStore.layer)),
        Spending.layer
      )
    )) as Context.Context<UsageCounters | TeamStore | Spending>
    const team = yield* Context.get(services, TeamStore).create({ name: "films", monthlyBudgetUsd: 2.05 })
    yield* Effect.promise(async () => {
      const { key } = await shared().createKeyWith({ team: team.id })
      const videos = new VideoClient(shared(), key)
      const ask = async () => {
        const answer = await shared().request(chat("dear-chat"), { headers: { authorization: `Bearer ${key}` } })
        const { error } = await answer.json() as { readonly error?: { readonly code: string } }
        return error?.code ?? answer.status
      }
      // twenty seconds at 0.1 USD
      const long = await eventually(
        () => videos.post({ ...veryLongVideo, model: "dear-video" }),
        ({ status }) => status === 200
      )
      const { task_id: id } = await long.json() as { readonly task_id: string }
      await videos.until(id, ({ progress }) => progress > 0)
      assert.strictEqual(await ask(), "rate_limit_exceeded")
      assert.strictEqual((await videos.request(`/${id}`, { method: "DELETE" })).status, 200)
      // a cancelled video costs nothing
      assert.strictEqual(await eventually(ask, (code) => code === 200), 200)

      const small = await videos.untilEnded(await videos.create({ ...smallVideo, model: "dear-video" }))
      assert.strictEqual(small.status, "completed")
      const spending = Context.get(services, Spending)
      await eventually(async () => spending.of(team.id).toFixed(6), (spent) => spent === "0.200000")
    })
  }))))
