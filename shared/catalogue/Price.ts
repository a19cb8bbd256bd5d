/** Prices of models and costs of requests, in US dollars. */
import { Schema, Struct } from "effect"
import { between } from "../contract/Fields.ts"
import type { Usage } from "../contract/Usage.ts"

const Dollars = Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))

/** A price. A missing part is 0 unless its comment says otherwise. */
export const Price = Schema.Struct({
  /** Per million tokens. */
  inputPerMillion: Dollars,
  outputPerMillion: Dollars,
  /** For input read from the provider's cache. Default: `inputPerMillion`. */
  cachedPerMillion: Dollars,
  /** For input written to the provider's cache. Default: `inputPerMillion`. */
  cacheWritePerMillion: Dollars,
  /** For input written to the provider's cache for an hour. Default: `cacheWritePerMillion`. */
  cacheWriteHourPerMillion: Dollars,
  perImage: Dollars,
  /** For reranking, if billed by search unit. */
  perSearchUnit: Dollars,
  /** For generated video, and for transcribed audio. */
  perSecond: Dollars,
  /** For text that is turned into speech. */
  perMillionCharacters: Dollars,
  perRequest: Dollars,
  /** The factor for the cost of lines of batches, such as 0.5. Default 1. */
  batch: Schema.optionalKey(between(0, 1))
})
export type Price = typeof Price.Type

const million = 1_000_000

/** The cost of a request; `null` if its price or usage is unknown. */
export const costOf = (price: Price | undefined, usage: Usage | undefined): number | null => {
  if (price === undefined || usage === undefined) return null
  const { cacheWriteHourTokens = 0, cacheWriteTokens = 0, cachedTokens = 0, characters = 0 } = usage
  const { images = 0, inputTokens, outputTokens } = usage
  const { inputPerMillion = 0, outputPerMillion = 0, perImage = 0, perMillionCharacters = 0, perRequest = 0 } = price
  const {
    cacheWritePerMillion = inputPerMillion,
    cachedPerMillion = inputPerMillion,
    perSearchUnit = 0,
    perSecond = 0
  } = price
  const { cacheWriteHourPerMillion = cacheWritePerMillion } = price
  const cached = Math.min(cachedTokens, inputTokens)
  const cacheWritten = Math.min(cacheWriteTokens, inputTokens - cached)
  const forAnHour = Math.min(cacheWriteHourTokens, cacheWritten)
  const written = (cacheWritten - forAnHour) * cacheWritePerMillion + forAnHour * cacheWriteHourPerMillion
  const input = (inputTokens - cached - cacheWritten) * inputPerMillion
  return perRequest +
    (input + cached * cachedPerMillion + written) / million +
    outputTokens * outputPerMillion / million +
    images * perImage +
    (usage.searchUnits ?? 0) * perSearchUnit +
    (usage.seconds ?? 0) * perSecond +
    characters * perMillionCharacters / million
}

/** An upper bound of these prices in every part; `undefined` if there are none. */
export const highestOf = (prices: ReadonlyArray<Price>): Price | undefined => {
  const [first, ...rest] = prices
  if (first === undefined) return undefined
  const highest: { -readonly [Part in keyof Price]?: number } = { ...first }
  for (const price of rest) {
    for (const part of Struct.keys(Price.fields)) {
      const amount = price[part]
      if (amount !== undefined) highest[part] = Math.max(highest[part] ?? 0, amount)
    }
  }
  return highest as Price
}

/** The highest possible cost of this usage: every input token at the most expensive of the input and cache prices. */
export const largestCostOf = (price: Price, usage: Usage): number => {
  const { cacheWriteHourPerMillion = 0, cacheWritePerMillion = 0, cachedPerMillion = 0, inputPerMillion = 0 } = price
  const dearest = Math.max(inputPerMillion, cachedPerMillion, cacheWritePerMillion, cacheWriteHourPerMillion)
  return costOf({ ...price, inputPerMillion: dearest }, usage) ?? 0
}
