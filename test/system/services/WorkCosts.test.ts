/** What work in the background has cost stays reserved in its key's budget, from the worker's report until it is counted. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, DateTime, Effect, Layer } from "effect"
import { Admission } from "../../../services/ingress/request/Admission.ts"
import * as WorkAdmission from "../../../services/ingress/request/WorkAdmission.ts"
import { Models, parse } from "../../../shared/catalogue/Models.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { defaults } from "../../../shared/keys/KeySettings.ts"
import { Holds, type Spend } from "../../../shared/limits/Holds.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { TeamTree } from "../../../shared/teams/TeamTree.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const createdAt = DateTime.makeUnsafe(0)
const key = { ...defaults, id: "key_1", owner: "key_1", name: "one", createdAt, editedAt: null, monthlyBudgetUsd: 1 }

/** Nothing is counted. */
const ingress = WorkAdmission.layer.pipe(
  Layer.provide(Admission.layerNoDeps),
  Layer.provide([
    Layer.mock(KeyRing)({ find: () => Effect.succeed(key), isLoaded: () => true }),
    Layer.succeed(TeamTree, { all: () => new Map(), pathOf: () => undefined }),
    Layer.succeed(Spending, { of: () => 0, countedUntil: () => 0, resetMs: () => 0 }),
    Limits.layerMemory,
    Layer.effect(
      Models,
      Effect.map(
        parse(
          "gateway.yaml",
          "models:\n  vectors: { workload: embeddings, highestPrice: { inputPerMillion: 1 } }\n" +
            "  sorter: { workload: rerank, highestPrice: { perSearchUnit: 0.9 } }"
        ),
        (snapshot) => ({ current: () => snapshot })
      )
    )
  ])
)

/** A worker's holds. */
const start = Effect.gen(function*() {
  const { url } = yield* NatsServer.make()
  const settings = ConfigProvider.fromUnknown({ NATS_URL: url })
  const built = yield* Layer.build(
    Layer.merge(Holds.layer("embeddings"), ingress).pipe(Layer.provideMerge(Nats.layer))
  ).pipe(Effect.provide(ConfigProvider.layer(settings)))
  yield* Effect.promise(() => Context.get(built, Nats).connection.flush())
  return Context.get(built, Holds)
})

describe("work in the background", () => {
  it.live("keeps its cost reserved although only its input, or only its searches, have a price", () =>
    Effect.gen(function*() {
      const work = { key: "key_1", tokens: 900_000, inBatch: true }
      for (
        const [model, used] of [
          ["vectors", { inputTokens: 900_000, outputTokens: 0 }],
          ["sorter", { inputTokens: 0, outputTokens: 0, searchUnits: 1 }]
        ] as const
      ) {
        const { around } = yield* start
        const use = (spend: Spend) => Effect.sync(() => spend(used))
        yield* around({ ...work, model, task: "first" }, use)
        const next = { ...work, model: "vectors", task: "second" }
        assert.strictEqual((yield* Effect.flip(around(next, use)))._tag, "NotNow", model)
      }
    }))
})
