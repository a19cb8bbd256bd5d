/** Embeddings by Cohere's `/v2/embed`, for requests of other dialects. */
import { Effect } from "effect"
import * as EmbeddingApi from "../../dialects/embeddings/EmbeddingApi.ts"
import type { EmbeddingModel } from "../../dialects/embeddings/EmbeddingModel.ts"
import * as Json from "../../json/Json.ts"
import type { ExchangeTools } from "../../exchange/Exchange.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import { optionsOf } from "../../dialects/cohere/CohereOptions.ts"

export const path = "/v2/embed"

export const api: EmbeddingApi.EmbeddingApi = {
  path: () => path,
  textsPerCall: 96,
  toBody: (model, { dimensions, extra, texts }) => ({
    ...extra,
    model,
    texts,
    embedding_types: ["float"],
    ...(dimensions === undefined ? {} : { output_dimension: dimensions })
  }),
  vectorsIn: ({ embeddings }) => Json.fields(embeddings)["float"],
  tokensIn: ({ meta }) => Json.count(Json.fields(Json.fields(meta)["billed_units"])["input_tokens"]),
  // OpenAI's clients send `user`, and Cohere rejects it
  lost: (names) => names.filter((name) => name === "user")
}

export const make = (tools: ExchangeTools): EmbeddingModel => {
  const model = EmbeddingApi.make(api, JsonExchange.make(tools, EmbeddingApi.answerOf(api)))
  return Effect.fnUntraced(function*(call, request) {
    const { inputType = "search_document" } = yield* optionsOf(call.endpoint)
    return yield* model(call, { ...request, extra: { input_type: request.purpose ?? inputType, ...request.extra } })
  })
}
