/** A budget that teams share is spent over all ingress processes, and not more than it. */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { chat } from "../../fixture/client/ChatClient.ts"
import { waitAsToldBy } from "../../fixture/general/Patience.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { usageProcess } from "../../fixture/nats/UsageEvents.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import type { NewTeam } from "../../../shared/teams/Team.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import * as TeamsOfKeys from "../../../shared/teams/TeamsOfKeys.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"

const shared = sharedGateway({
  ingresses: 4,
  models: `
  dear-chat: { workload: chat, targets: [{ provider: free }], price: { perRequest: 0.4 } }
  odd-chat: { workload: chat, targets: [{ provider: free }], price: { perRequest: 0.3 } }`
})

/** A process that counts usage, and administers teams. */
const administrator = Effect.suspend(() =>
  usageProcess(
    shared().nats,
    Layer.mergeAll(
      UsageCounters.layer.pipe(Layer.provide(TeamsOfKeys.layer)),
      TeamStore.layer.pipe(Layer.provide(KeyStore.layer)),
      Spending.layer
    )
  ) as Effect.Effect<Context.Context<UsageCounters | TeamStore | Spending>, never, never>
)

const ask = (model: string, key: string, ingress: number) =>
  fetch(`${shared().ingresses[ingress % 4]!.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(chat(model))
  })

/**
 * Spends with many clients of several keys over all ingresses until the budget is spent. Returns the number of answers. The clients wait
 * as they are told: while the rest of the budget is reserved for others, requests without a pause would keep reserving it.
 */
const spendAll = async (model: string, keys: ReadonlyArray<string>): Promise<number> => {
  let answers = 0
  const spend = async (client: number): Promise<void> => {
    for (;;) {
      const response = await ask(model, keys[client % keys.length]!, client)
      const { error } = (await response.json()) as {
        readonly error?: { readonly code: string; readonly message: string }
      }
      if (response.status === 200) answers++
      else if (error?.code === "insufficient_quota") {
        return assert.include(error.message, "The team 'Example Ltd' has spent its budget of")
      } else {
        // the budget is reserved for others, or its ledger has not answered: the client is told when to come back
        assert.include(["rate_limit_exceeded", "limits_unavailable"], error?.code)
        await waitAsToldBy(response)
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, client) => spend(client)))
  return answers
}

it.each([
  // to the cent
  ["dear-chat", 4, 10],
  // a third of the last request does not fit into the budget
  ["odd-chat", 1, 4]
])(
  "a budget shared by two teams is spent across four ingresses: %s, %d USD",
  (model, budget, expected) =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      const services = yield* administrator
      const teams = Context.get(services, TeamStore)
      const create = (settings: NewTeam) => Effect.map(teams.create(settings), ({ id }) => id)
      const organisation = yield* create({ name: "Example Ltd", monthlyBudgetUsd: budget })
      const below = yield* Effect.forEach(["search", "ads"], (name) => create({ name, parent: organisation }))
      yield* Effect.promise(async () => {
        const keys = await Promise.all(below.map((team) => shared().createKeyWith({ team })))
        const before = shared().provider.requests.length
        const answers = await spendAll(model, keys.map(({ key }) => key))
        assert.strictEqual(answers, expected)
        assert.strictEqual(shared().provider.requests.length - before, expected)
      })
      const spending = Context.get(services, Spending)
      const price = model === "dear-chat" ? 0.4 : 0.3
      const ofTeams = () => below.reduce((sum, team) => sum + spending.of(team), 0)
      yield* Effect.promise(() =>
        eventually(
          // a record for each team, counted one after another
          async () => [spending.of(organisation), ofTeams()].map((usd) => usd.toFixed(6)),
          (spent) => spent.every((usd) => usd === (price * expected).toFixed(6))
        )
      )
    })))
)
