/**
 * Offers the built-in embedding engine to the `local` protocol: vectors by feature hashing, of any length, without a model.
 * Texts that share words come out alike; what texts mean in other words it does not know.
 */
import { Effect, Layer, type Schema, Stream } from "effect"
import { Buffer } from "node:buffer"
import * as Contract from "../../shared/contract/Embeddings.ts"
import { LocalEngines } from "../../shared/provider/Local.ts"
import { decoder } from "../../shared/provider/local/RequestBody.ts"
import { textVector } from "../../shared/provider/local/TextVector.ts"
import { loadTokenizer, type Tokenizer } from "../../shared/provider/local/Tokens.ts"
import type { Perform } from "../../shared/provider/Protocol.ts"
import { writeAll } from "../../shared/provider/Sink.ts"

/** The length of a vector unless the request says otherwise. */
const defaultDimensions = 1_536

/** Vectors that are made and printed in one go: some milliseconds of work at the longest length. */
const vectorsAtOnce = 16

const utf8 = new TextEncoder()

type Request = Contract.EmbeddingsRequest | Contract.EngineEmbeddingsRequest

const make = (tokenizer: Tokenizer, schema: Schema.Codec<Request, unknown>): Perform => {
  const decode = decoder(schema)
  return Effect.fnUntraced(function*(call, sink) {
    const { dimensions, encoding_format, input } = yield* decode(call)
    const texts = typeof input === "string" ? [input] : input
    const tokens = yield* tokenizer.countAll(texts)
    const print = encoding_format === "base64" ? toBase64 : toNumbers

    const items = Effect.fnUntraced(function*(start: number) {
      let json = ""
      for (const [offset, text] of texts.slice(start, start + vectorsAtOnce).entries()) {
        const index = start + offset
        const embedding = print(yield* textVector(text, dimensions ?? defaultDimensions))
        json += `${index === 0 ? "" : ","}{"object":"embedding","index":${index},"embedding":${embedding}}`
      }
      // other requests have their turn
      yield* Effect.yieldNow
      return json
    })

    const starts = Array.from({ length: Math.ceil(texts.length / vectorsAtOnce) }, (_, batch) => batch * vectorsAtOnce)
    const usage = { prompt_tokens: tokens, total_tokens: tokens }
    const body = Stream.make(`{"object":"list","data":[`).pipe(
      Stream.concat(Stream.mapEffect(Stream.fromIterable(starts), items)),
      Stream.concat(Stream.make(`],"model":${JSON.stringify(call.model)},"usage":${JSON.stringify(usage)}}`)),
      Stream.map((text) => utf8.encode(text))
    )
    sink.start({ status: 200, contentType: "application/json", headers: {} })
    yield* writeAll(sink, body)
    return { inputTokens: tokens, outputTokens: 0 }
  })
}

const toNumbers = (vector: Float32Array): string => `[${vector.join()}]`

const toBase64 = (vector: Float32Array): string => {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (const [at, value] of vector.entries()) bytes.writeFloatLE(value, at * 4)
  return `"${bytes.toString("base64")}"`
}

export const layer = Layer.effect(
  LocalEngines,
  Effect.map(loadTokenizer, (tokenizer) =>
    LocalEngines.of({
      performs: new Map([
        [Contract.embeddings.name, make(tokenizer, Contract.EmbeddingsRequest)],
        [Contract.engineEmbeddings.name, make(tokenizer, Contract.EngineEmbeddingsRequest)]
      ])
    }))
)
