/** What a model costs, in US dollars. */
import { Schema } from "effect"
import type { Usage } from "../contract/Usage.ts"

const Dollars = Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))

/** Whatever is left out costs nothing, but for what is said otherwise. */
export const Price = Schema.Struct({
  /** For a million tokens. */
  inputPerMillion: Dollars,
  outputPerMillion: Dollars,
  /** For input that the provider has read from its cache. Default: as for other input. */
  cachedPerMillion: Dollars,
  /** For input that the provider has written to its cache. Default: as for other input. */
  cacheWritePerMillion: Dollars,
  perImage: Dollars,
  /** Of reranking, where that is what is billed. */
  perSearchUnit: Dollars,
  /** Of video. */
  perSecond: Dollars,
  /** Of text that is read aloud. */
  perMillionCharacters: Dollars,
  perRequest: Dollars
})
export type Price = typeof Price.Type

const million = 1_000_000

/** What a request has cost that consumed this; `null` where nothing is known of the one or the other. */
export const costOf = (price: Price | undefined, usage: Usage | undefined): number | null => {
  if (price === undefined || usage === undefined) return null
  const { cacheWriteTokens = 0, cachedTokens = 0, characters = 0, images = 0, inputTokens, outputTokens } = usage
  const { inputPerMillion = 0, outputPerMillion = 0, perImage = 0, perMillionCharacters = 0, perRequest = 0 } = price
  const {
    cacheWritePerMillion = inputPerMillion,
    cachedPerMillion = inputPerMillion,
    perSearchUnit = 0,
    perSecond = 0
  } = price
  const cached = Math.min(cachedTokens, inputTokens)
  const cacheWritten = Math.min(cacheWriteTokens, inputTokens - cached)
  const input = (inputTokens - cached - cacheWritten) * inputPerMillion
  return perRequest +
    (input + cached * cachedPerMillion + cacheWritten * cacheWritePerMillion) / million +
    outputTokens * outputPerMillion / million +
    images * perImage +
    (usage.searchUnits ?? 0) * perSearchUnit +
    (usage.seconds ?? 0) * perSecond +
    characters * perMillionCharacters / million
}
