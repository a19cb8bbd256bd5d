/** Makes the vectors of a request in as many calls as its texts need, and meters the finished calls if a later one fails. */
import { Array, Effect, Stream } from "effect"
import { type JobError, ProviderFailed } from "../../../contract/JobError.ts"
import type { Usage } from "../../../contract/Usage.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import * as EstimatedUsage from "../../call/EstimatedUsage.ts"
import * as PaidParts from "../../call/PaidParts.ts"
import type { Call } from "../../call/Protocol.ts"
import type { EmbeddingResult, Vector } from "./EmbeddingModel.ts"

/** The answer to one call. */
export interface Batch {
  /** One per text, in order; any other number fails the request. */
  readonly vectors: ReadonlyArray<Vector>
  /** `undefined` or 0 if the provider does not report them. */
  readonly tokens: number | undefined
  readonly warnings?: EmbeddingResult["warnings"]
}

export interface Limits {
  /** At least 1; may be infinite. */
  readonly textsPerCall: number
  /** Maximum number of concurrent calls. */
  readonly callsAtOnce: number
}

/** The usual maximum number of concurrent calls of a request. */
export const callsAtOnce = 4

/** `embed` makes one call. */
export const make = (
  call: Call,
  texts: ReadonlyArray<string>,
  { callsAtOnce, textsPerCall }: Limits,
  embed: (texts: ReadonlyArray<string>) => Effect.Effect<Batch, JobError>
): Effect.Effect<EmbeddingResult, JobError> =>
  PaidParts.metered(call, (paid) => {
    const metered = Effect.fnUntraced(function*(some: ReadonlyArray<string>) {
      const { tokens = 0, vectors, warnings = [] } = yield* embed(some)
      const reported = tokens > 0 ? { inputTokens: tokens, outputTokens: 0 } : undefined
      if (vectors.length !== some.length) {
        paid(reported)
        return yield* ProviderFailed.malformed(call.endpoint.name)
      }
      const usage = reported ?? estimate(some)
      paid(usage)
      return { vectors, usage, warnings }
    })
    const batches = Array.chunksOf(texts, Math.min(textsPerCall, texts.length))
    return Effect.map(Effect.forEach(batches, metered, { concurrency: callsAtOnce }), (answers): EmbeddingResult => ({
      vectors: Stream.fromIterable(answers.map(({ vectors }) => vectors)),
      usage: answers.map(({ usage }) => usage).reduce(UsageSum.sum, UsageSum.none),
      warnings: [...new Set(answers.flatMap(({ warnings }) => warnings))]
    }))
  })

const estimate = (texts: ReadonlyArray<string>): Usage =>
  EstimatedUsage.ofSizes(EstimatedUsage.textBytes({ input: texts }), 0)
