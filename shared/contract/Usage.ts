/** The consumption of a request, in the units that providers bill by. */
import { Schema } from "effect"
import { atLeast } from "./Fields.ts"

const Count = atLeast(0)

export const Usage = Schema.Struct({
  inputTokens: Count,
  outputTokens: Count,
  /** Part of `inputTokens` that the provider read from its cache. */
  cachedTokens: Schema.optionalKey(Count),
  /** Part of `inputTokens` that the provider wrote to its cache. */
  cacheWriteTokens: Schema.optionalKey(Count),
  /** Part of `cacheWriteTokens` that the provider keeps for an hour instead of minutes. */
  cacheWriteHourTokens: Schema.optionalKey(Count),
  /** Part of `outputTokens` spent on reasoning. */
  reasoningTokens: Schema.optionalKey(Count),
  /** Parts of `inputTokens` and `outputTokens` by kind, if known. `outputTextTokens` excludes reasoning. */
  inputTextTokens: Schema.optionalKey(Count),
  inputAudioTokens: Schema.optionalKey(Count),
  inputImageTokens: Schema.optionalKey(Count),
  outputTextTokens: Schema.optionalKey(Count),
  outputAudioTokens: Schema.optionalKey(Count),
  outputImageTokens: Schema.optionalKey(Count),
  /** Part of `inputTokens` and `outputTokens` together that the gateway estimated because the provider reported none. */
  estimatedTokens: Schema.optionalKey(Count),
  /** Unicode code points of the text turned into speech, if the provider bills by them. */
  characters: Schema.optionalKey(Count),
  /** Searches over documents, if the provider bills reranking by them. */
  searchUnits: Schema.optionalKey(Count),
  /** Generated pictures. */
  images: Schema.optionalKey(Count),
  /** Seconds of generated video, or of transcribed sound if the provider bills by them. */
  seconds: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))
})
export type Usage = typeof Usage.Type

/**
 * What a request has used when it has ended: `"nothing"` without an answer; `undefined` if the usage is unknown, so that the reserved
 * units count.
 */
export type Consumed = Usage | "nothing" | undefined

const otherUnits = ["characters", "searchUnits", "images", "seconds"] as const

/** The usage of an answer after a further report: none, or zeros, replace nothing. */
export const latest = (before: Usage | undefined, now: Usage | undefined): Usage | undefined =>
  now !== undefined && (isReported(now) || !isReported(before)) ? now : before

/** Whether usage is known, in tokens or in another unit. Zeros do not count: some servers that count no tokens report them. */
export const isReported = (usage: Usage | undefined): usage is Usage =>
  usage !== undefined &&
  (usage.inputTokens + usage.outputTokens > 0 || otherUnits.some((unit) => usage[unit] !== undefined))
