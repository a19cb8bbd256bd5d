/** Makes embeddings with AI SDK packages. */
import { Array, Effect, Stream } from "effect"
import { InvalidRequest, ProviderFailed } from "../../../contract/JobError.ts"
import type { EmbeddingModel } from "../../dialects/embeddings/EmbeddingModel.ts"
import * as Json from "../../json/Json.ts"
import { attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

const callsAtOnce = 4

export const make = (open: Opener): EmbeddingModel =>
  Effect.fnUntraced(function*(call, { dimensions, dimensionsName, extra, texts }) {
    const { endpoint } = call
    const opened = yield* open(endpoint)
    const model = yield* modelOf("embedding", opened, endpoint, call)
    if (dimensions !== undefined && model.specificationVersion !== "v4") {
      const what = "must be left out: this model has vectors of one length"
      return yield* InvalidRequest.at(dimensionsName, what, "not_supported")
    }
    const at = { endpoint, secrets: opened.secrets }
    const { most, parallel } = yield* attempt(at, async () => ({
      most: await model.maxEmbeddingsPerCall,
      parallel: await model.supportsParallelCalls
    }))
    const vectorsOf = (values: ReadonlyArray<string>) =>
      attempt(at, (options) =>
        model.doEmbed({
          ...options,
          values: [...values],
          ...(dimensions === undefined ? {} : { dimensions }),
          providerOptions: providerOptions(opened, model, extra)
        })).pipe(Effect.filterOrFail(
          ({ embeddings }) => embeddings.length === values.length,
          () => ProviderFailed.malformed(endpoint.name)
        ))
    const answers = yield* Effect.forEach(Array.chunksOf(texts, Math.min(most ?? Infinity, texts.length)), vectorsOf, {
      concurrency: parallel ? callsAtOnce : 1
    })
    return {
      vectors: Stream.fromIterable(answers.map(({ embeddings }) => embeddings)),
      tokens: answers.reduce((sum, { usage }) => sum + (Json.count(usage?.tokens) ?? 0), 0),
      warnings: [...new Set(answers.flatMap(({ warnings }) => lostFeatures(warnings)))]
    }
  })
