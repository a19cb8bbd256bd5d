/** What a request costs by the prices of its model. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Catalogue from "../../../shared/catalogue/Catalogue.ts"
import { costOf, type Price } from "../../../shared/catalogue/Price.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"

const none: Usage = { inputTokens: 0, outputTokens: 0 }

it("a request costs what each unit of it costs", () => {
  const cases: ReadonlyArray<readonly [price: Price, usage: Partial<Usage>, dollars: number]> = [
    [{ inputPerMillion: 2 }, { inputTokens: 500_000 }, 1],
    [{ inputPerMillion: 2, outputPerMillion: 8 }, { inputTokens: 1_000_000, outputTokens: 250_000 }, 4],
    [{ inputPerMillion: 2, cachedPerMillion: 0.5 }, { inputTokens: 1_000_000, cachedTokens: 400_000 }, 1.4],
    [{ inputPerMillion: 2, cachedPerMillion: 0 }, { inputTokens: 1_000_000, cachedTokens: 1_000_000 }, 0],
    // where nothing is said of it, input from a cache is input
    [{ inputPerMillion: 2 }, { inputTokens: 1_000_000, cachedTokens: 400_000 }, 2],
    // a provider that counts it beside the input is not paid for less than nothing
    [{ inputPerMillion: 2, cachedPerMillion: 1 }, { inputTokens: 10, cachedTokens: 1_000_000 }, 0.000_01],
    [
      { inputPerMillion: 2, cachedPerMillion: 0.2, cacheWritePerMillion: 2.5 },
      { inputTokens: 1_000_000, cachedTokens: 500_000, cacheWriteTokens: 200_000 },
      1.2
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

it("what is not known costs nothing that is known", () => {
  assert.isNull(costOf(undefined, none))
  assert.isNull(costOf({ perRequest: 1 }, undefined))
})

const parse = (price: string) =>
  Catalogue.parse(
    "gateway.yaml",
    `providers: { local: { protocol: local } }\nmodels: { m: { workload: chat, targets: [{ provider: local }], price: ${price} } }`
  )

it.effect("prices are read from the catalogue, and a mistake in them is named", () =>
  Effect.gen(function*() {
    const { models } = yield* parse("{ inputPerMillion: 0.15, outputPerMillion: 0.6 }")
    assert.deepStrictEqual(models.get("m")?.price, { inputPerMillion: 0.15, outputPerMillion: 0.6 })
    assert.include((yield* Effect.flip(parse("{ perImage: -1 }"))).message, "models.m.price.perImage")
    assert.include((yield* Effect.flip(parse("{ perMillionTokens: 1 }"))).message, "models.m.price.perMillionTokens")
  }))
