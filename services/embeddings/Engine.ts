/**
 * Offers the built-in embedding engine to the `local` protocol: vectors by feature hashing, of any length, without a model.
 * Texts that share words come out alike; what texts mean in other words it does not know.
 */
import { Effect, Layer, Stream } from "effect"
import type { EmbeddingModel } from "../../shared/provider/dialects/embeddings/EmbeddingModel.ts"
import * as Embeddings from "../../shared/provider/dialects/embeddings/Embeddings.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { textVector } from "../../shared/text/TextVector.ts"
import { loadTokenizer, type Tokenizer } from "../../shared/text/Tokens.ts"

/** The length of a vector unless the request says otherwise. */
const defaultDimensions = 1_536

/** Vectors that are made and printed in one go: some milliseconds of work at the longest length. */
const vectorsAtOnce = 16

const model = (tokenizer: Tokenizer): EmbeddingModel => (_call, { dimensions = defaultDimensions, texts }) => {
  const starts = Array.from({ length: Math.ceil(texts.length / vectorsAtOnce) }, (_, batch) => batch * vectorsAtOnce)
  const vectors = Stream.mapEffect(
    Stream.fromIterable(starts),
    (start) => Effect.forEach(texts.slice(start, start + vectorsAtOnce), (text) => textVector(text, dimensions))
  )
  return Effect.map(tokenizer.countAll(texts), (tokens) => ({ vectors, tokens }))
}

export const layer = Layer.effect(
  LocalEngines,
  Effect.map(
    loadTokenizer,
    (tokenizer) => LocalEngines.of({ performs: Embeddings.performs(model(tokenizer)) })
  )
)
