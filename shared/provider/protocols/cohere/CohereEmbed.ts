/** Embeddings by Cohere's `/v2/embed`, for requests of the OpenAI dialect. */
import { Array, Effect, Schema, Stream } from "effect"
import { ProviderFailed } from "../../../contract/JobError.ts"
import type { EmbeddingModel, EmbeddingRequest } from "../../dialects/embeddings/EmbeddingModel.ts"
import * as Json from "../../json/Json.ts"
import type { ExchangeTools } from "../../exchange/Exchange.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import { optionsOf } from "./CohereOptions.ts"

const path = "/v2/embed"

// Request

/** Maximum number of texts per call, and of concurrent calls for a request with more. */
const textsPerCall = 96
const callsAtOnce = 4

/** Fields of OpenAI's clients that Cohere rejects. */
const lost = ["user"]

const toBody = (
  model: string,
  texts: ReadonlyArray<string>,
  inputType: string,
  { dimensions, extra }: EmbeddingRequest
) => ({
  input_type: inputType,
  ...Object.fromEntries(Object.entries(extra).filter(([name]) => !lost.includes(name))),
  model,
  texts,
  embedding_types: ["float"],
  ...(dimensions === undefined ? {} : { output_dimension: dimensions })
})

// Answer

/** One check: a schema for each of several hundred thousand numbers would take a tenth of a second. */
const Vectors = Schema.declare((value): value is ReadonlyArray<ReadonlyArray<number>> =>
  Array.isArray(value) && value.every((vector) => Array.isArray(vector) && vector.every(Number.isFinite))
)

const Answer = Schema.Struct({
  embeddings: Schema.Struct({ float: Vectors }),
  // decoded separately, because malformed billing data must not make the call fail
  meta: Schema.optionalKey(Schema.Unknown)
})

const tokensIn = (meta: unknown): number =>
  Json.count(Json.fields(Json.fields(meta)["billed_units"])["input_tokens"]) ?? 0

export const make = (tools: ExchangeTools): EmbeddingModel => {
  const exchange = JsonExchange.make(tools, Answer)
  return Effect.fnUntraced(function*({ endpoint }, request) {
    const { inputType = "search_document" } = yield* optionsOf(endpoint)
    const vectorsOf = (texts: ReadonlyArray<string>) =>
      exchange(endpoint, { path, body: toBody(endpoint.model, texts, inputType, request) }).pipe(Effect.filterOrFail(
        ({ embeddings }) => embeddings.float.length === texts.length,
        () => ProviderFailed.malformed(endpoint.name)
      ))
    const answers = yield* Effect.forEach(Array.chunksOf(request.texts, textsPerCall), vectorsOf, {
      concurrency: callsAtOnce
    })
    return {
      vectors: Stream.fromIterable(answers.map(({ embeddings }) => embeddings.float)),
      tokens: answers.reduce((sum, { meta }) => sum + tokensIn(meta), 0),
      warnings: lost.filter((name) => name in request.extra)
    }
  })
}
