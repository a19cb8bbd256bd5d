/** The cost of a request by its model's prices. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import { costAt } from "../../../shared/catalogue/Model.ts"
import { costOf, highestOf, largestCostOf, type Price } from "../../../shared/catalogue/Price.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"

const none: Usage = { inputTokens: 0, outputTokens: 0 }

it("a request costs the sum over its units", () => {
  const cases: ReadonlyArray<readonly [price: Price, usage: Partial<Usage>, dollars: number]> = [
    [{ inputPerMillion: 2 }, { inputTokens: 500_000 }, 1],
    [{ inputPerMillion: 2, outputPerMillion: 8 }, { inputTokens: 1_000_000, outputTokens: 250_000 }, 4],
    [{ inputPerMillion: 2, cachedPerMillion: 0.5 }, { inputTokens: 1_000_000, cachedTokens: 400_000 }, 1.4],
    [{ inputPerMillion: 2, cachedPerMillion: 0 }, { inputTokens: 1_000_000, cachedTokens: 1_000_000 }, 0],
    // cached input without a price of its own costs as much as input
    [{ inputPerMillion: 2 }, { inputTokens: 1_000_000, cachedTokens: 400_000 }, 2],
    // a provider that counts cached tokens beside the input does not reduce the cost below zero
    [{ inputPerMillion: 2, cachedPerMillion: 1 }, { inputTokens: 10, cachedTokens: 1_000_000 }, 0.000_01],
    [
      { inputPerMillion: 2, cachedPerMillion: 0.2, cacheWritePerMillion: 2.5 },
      { inputTokens: 1_000_000, cachedTokens: 500_000, cacheWriteTokens: 200_000 },
      1.2
    ],
    [
      { inputPerMillion: 2, cacheWritePerMillion: 2.5, cacheWriteHourPerMillion: 4 },
      { inputTokens: 1_000_000, cacheWriteTokens: 500_000, cacheWriteHourTokens: 100_000 },
      2.4
    ],
    [{ perImage: 0.04 }, { images: 3 }, 0.12],
    [{ perSearchUnit: 0.002 }, { searchUnits: 2 }, 0.004],
    [{ perSecond: 0.5 }, { seconds: 4.5 }, 2.25],
    [{ perMillionCharacters: 15 }, { characters: 2_000 }, 0.03],
    [{ perRequest: 0.002 }, {}, 0.002],
    [{}, { inputTokens: 5, images: 2 }, 0]
  ]
  for (const [price, usage, dollars] of cases) {
    assert.closeTo(costOf(price, { ...none, ...usage }) ?? -1, dollars, 1e-12, JSON.stringify({ price, usage }))
  }
})

it("a cost is unknown without prices or without usage", () => {
  assert.isNull(costOf(undefined, none))
  assert.isNull(costOf({ perRequest: 1 }, undefined))
})

it.effect("an answer costs what its target does, or its model or fallback", () =>
  Effect.gen(function*() {
    const { models } = yield* Catalogue.parse(
      "gateway.yaml",
      `
providers: { a: { protocol: local }, b: { protocol: local } }
models:
  main:
    workload: chat
    price: { perRequest: 1 }
    fallbacks: [spare]
    targets: [{ provider: a }, { provider: b, model: other, price: { perRequest: 2 } }]
  spare: { workload: chat, price: { perRequest: 3 }, targets: [{ provider: a, model: large }, { provider: b }] }
`
    )
    const cost = (name?: string, model = "") =>
      costAt(models, "main", none, name === undefined ? undefined : { name, model })
    assert.deepStrictEqual(
      [cost(), cost("a", "main"), cost("b", "other"), cost("a", "large"), cost("b", "spare"), cost("gone", "x")],
      [1, 1, 2, 3, 3, 1]
    )
  }))

const parse = (price: string) =>
  Catalogue.parse(
    "gateway.yaml",
    `providers: { local: { protocol: local } }\nmodels: { m: { workload: chat, targets: [{ provider: local }], price: ${price} } }`
  )

it.effect("prices are read from the catalogue, and an error names the field", () =>
  Effect.gen(function*() {
    const { models } = yield* parse("{ inputPerMillion: 0.15, outputPerMillion: 0.6 }")
    assert.deepStrictEqual(models.get("m")?.price, { inputPerMillion: 0.15, outputPerMillion: 0.6 })
    assert.include((yield* Effect.flip(parse("{ perImage: -1 }"))).message, "models.m.price.perImage")
    assert.include((yield* Effect.flip(parse("{ perMillionTokens: 1 }"))).message, "models.m.price.perMillionTokens")
  }))

it("the highest of several prices is lower than none of them in any part", () => {
  const cheap: Price = { inputPerMillion: 1, perRequest: 0.5 }
  const dear: Price = { inputPerMillion: 3, outputPerMillion: 9 }
  assert.deepStrictEqual(highestOf([cheap, dear]), { inputPerMillion: 3, outputPerMillion: 9, perRequest: 0.5 })
  assert.isUndefined(highestOf([]))
})

it("the largest cost takes each token of the input as one that the provider caches, if that is dearer", () => {
  const usage: Usage = { inputTokens: 1_000_000, outputTokens: 100_000 }
  const price: Price = { inputPerMillion: 2, cachedPerMillion: 0.2, cacheWritePerMillion: 2.5, outputPerMillion: 10 }
  assert.strictEqual(largestCostOf(price, usage), 3.5)
})
