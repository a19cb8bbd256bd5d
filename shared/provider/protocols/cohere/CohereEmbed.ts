/** Embeddings by Cohere's /v2/embed, from requests of the OpenAI dialect. */
import { Array, Effect, Schema, Stream } from "effect"
import { ProviderFailed } from "../../../contract/JobError.ts"
import type { EmbeddingModel, EmbeddingRequest } from "../../dialects/embeddings/EmbeddingModel.ts"
import * as Json from "../../json/Json.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import { optionsOf } from "./CohereOptions.ts"

// Path

const path = "/v2/embed"

// Request

/** As many texts as it takes in one call, and calls that are made at once for a request with more. */
const textsPerCall = 96
const callsAtOnce = 4

/** What OpenAI's clients send that it has no place for, and would refuse. */
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

/** Checked in one go: a schema of its own for each of some hundred thousand numbers costs a tenth of a second. */
const Vectors = Schema.declare((value): value is ReadonlyArray<ReadonlyArray<number>> =>
  Array.isArray(value) && value.every((vector) => Array.isArray(vector) && vector.every(Number.isFinite))
)

const Answer = Schema.Struct({
  embeddings: Schema.Struct({ float: Vectors }),
  // what is told of the bill is worth less than the vectors
  meta: Schema.optionalKey(Schema.Unknown)
})

const tokensIn = (meta: unknown): number =>
  Json.count(Json.fields(Json.fields(meta)["billed_units"])["input_tokens"]) ?? 0

export const make = (tools: JsonExchange.Tools): EmbeddingModel => {
  const exchange = JsonExchange.make(tools, Answer)
  return Effect.fnUntraced(function*({ endpoint }, request) {
    const { inputType = "search_document" } = yield* optionsOf(endpoint)
    const vectorsOf = (texts: ReadonlyArray<string>) =>
      exchange(endpoint, {
        path,
        authorize: JsonExchange.bearer,
        body: toBody(endpoint.model, texts, inputType, request)
      }).pipe(Effect.filterOrFail(
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
