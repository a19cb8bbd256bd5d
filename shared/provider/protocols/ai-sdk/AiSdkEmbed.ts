/** Makes embeddings with AI SDK packages. */
import { Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import * as EmbeddingCalls from "../../dialects/embeddings/EmbeddingCalls.ts"
import type { EmbeddingModel } from "../../dialects/embeddings/EmbeddingModel.ts"
import * as Json from "../../json/Json.ts"
import { ask, attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

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
    const { most, parallel } = yield* ask(at, async () => ({
      most: await model.maxEmbeddingsPerCall,
      parallel: await model.supportsParallelCalls
    }))
    const batchOf = (values: ReadonlyArray<string>) =>
      Effect.map(
        attempt(at, (options) =>
          model.doEmbed({
            ...options,
            values: [...values],
            ...(dimensions === undefined ? {} : { dimensions }),
            providerOptions: providerOptions(opened, model, extra)
          })),
        ({ embeddings, usage, warnings }): EmbeddingCalls.Batch => ({
          vectors: embeddings,
          tokens: Json.count(usage?.tokens),
          warnings: lostFeatures(warnings)
        })
      )
    const limits = { textsPerCall: most ?? Infinity, ...(parallel ? {} : { callsAtOnce: 1 }) }
    return yield* EmbeddingCalls.make(call, texts, limits, batchOf)
  })
