/**
 * Offers the built-in embedding engine to the `local` protocol: vectors of any length by feature hashing, without a model.
 * Texts that share words are similar; texts that say the same in other words are not.
 */
import { Effect, Layer, Stream } from "effect"
import type { EmbeddingModel } from "../../shared/provider/dialects/embeddings/EmbeddingModel.ts"
import * as Embeddings from "../../shared/provider/dialects/embeddings/Embeddings.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { textVector } from "../../shared/text/TextVector.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"

const defaultDimensions = 1_536

/** Vectors computed and serialised between two pauses: a few milliseconds of work at the maximum length. */
const vectorsAtOnce = 16

const model: EmbeddingModel = (_call, { dimensions = defaultDimensions, texts }) => {
  const vectors = Stream.fromIterable(texts).pipe(
    Stream.grouped(vectorsAtOnce),
    Stream.mapEffect((batch) => Effect.forEach(batch, (text) => textVector(text, dimensions)))
  )
  const counted = Effect.flatMap(loadTokenizer, ({ countAll }) => countAll(texts))
  return Effect.map(counted, (inputTokens) => ({ vectors, usage: { inputTokens, outputTokens: 0 } }))
}

export const layer = Layer.succeed(LocalEngines, { performs: Embeddings.performs(model) })
