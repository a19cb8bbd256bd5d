/** Makes embeddings with AI SDK packages. */
import { Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import { callsFor } from "../../call/Calls.ts"
import type { Call } from "../../call/Protocol.ts"
import * as EmbeddingCalls from "../../dialects/embeddings/EmbeddingCalls.ts"
import * as Embeddings from "../../dialects/embeddings/Embeddings.ts"
import type { EmbeddingModel } from "../../dialects/embeddings/EmbeddingModel.ts"
import * as Json from "../../json/Json.ts"
import { ask, type Attempt, attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

const modelFor = Effect.fnUntraced(function*(call: Call, open: Opener) {
  const { endpoint } = call
  const opened = yield* open(endpoint)
  const model = yield* modelOf("embedding", opened, endpoint, call)
  const at: Attempt = { endpoint, secrets: opened.secrets }
  const limits = ask(at, async (): Promise<EmbeddingCalls.Limits> => ({
    textsPerCall: (await model.maxEmbeddingsPerCall) ?? Infinity,
    callsAtOnce: (await model.supportsParallelCalls) ? EmbeddingCalls.callsAtOnce : 1
  }))
  return { at, limits, model, opened }
})

/** The calls of a request. */
export const callsOf = Effect.fnUntraced(function*(call: Call, open: Opener) {
  const { limits } = yield* modelFor(call, open)
  const { callsAtOnce, textsPerCall } = yield* limits
  return callsFor(Embeddings.textCount(call), textsPerCall, callsAtOnce)
})

export const make = (open: Opener): EmbeddingModel =>
  Effect.fnUntraced(function*(call, { dimensions, dimensionsName, extra, texts }) {
    const { at, limits, model, opened } = yield* modelFor(call, open)
    if (dimensions !== undefined && model.specificationVersion !== "v4") {
      const what = "must be left out: this model has vectors of one length"
      return yield* InvalidRequest.at(dimensionsName, what, "not_supported")
    }
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
    return yield* EmbeddingCalls.make(call, texts, yield* limits, batchOf)
  })
