/** Prices of models and costs of requests, in US dollars. */
import { Schema } from "effect"
import { between } from "../contract/Fields.ts"
import type { Usage } from "../contract/Usage.ts"

const Dollars = Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))

/** A missing price is 0 unless its comment says otherwise. */
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
  /** For reranking billed by search unit. */
  perSearchUnit: Dollars,
  /** For video, and for sound turned into text. */
  perSecond: Dollars,
  /** For the text of speech. */
  perMillionCharacters: Dollars,
  perRequest: Dollars,
  /** The factor by which lines of batches cost less, such as 0.5. Default 1. */
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
