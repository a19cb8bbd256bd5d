/** Serves both embeddings operations with an `EmbeddingModel`. */
import { Effect, type Schema, Stream } from "effect"
import {
  embeddings,
  EmbeddingsRequest,
  engineEmbeddings,
  EngineEmbeddingsRequest
} from "../../../contract/operations/Embeddings.ts"
import type { Usage } from "../../../contract/Usage.ts"
import * as EstimatedUsage from "../../call/EstimatedUsage.ts"
import { reader } from "../../call/RequestBody.ts"
import type { Perform } from "../../call/Protocol.ts"
import { writeAll } from "../../transport/Sink.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import { toEmbeddingUsage } from "../openai/OpenAiUsage.ts"
import type { EmbeddingModel, Vector } from "./EmbeddingModel.ts"

/** By the operation's name. */
export const performs = (model: EmbeddingModel): ReadonlyMap<string, Perform> =>
  new Map([...requests].map(([name, schema]) => [name, perform(model, schema)]))

type Request = EmbeddingsRequest | EngineEmbeddingsRequest

const requests = new Map<string, Schema.Codec<Request, unknown>>([
  [embeddings.name, EmbeddingsRequest],
  [engineEmbeddings.name, EngineEmbeddingsRequest]
])

/** The names of the operations. */
export const operations = [...requests.keys()]

const known = new Set(Object.keys(EmbeddingsRequest.fields))
const utf8 = new TextEncoder()

const perform = (model: EmbeddingModel, schema: Schema.Codec<Request, unknown>): Perform => {
  const read = reader(schema)
  return Effect.fnUntraced(function*(call, sink) {
    const { json, request: { dimensions, encoding_format, input } } = yield* read(call)
    const { tokens, vectors, warnings = [] } = yield* model(call, {
      texts: typeof input === "string" ? [input] : input,
      dimensions: dimensions ?? undefined,
      extra: unknownFields(json, known)
    })
    const print = encoding_format === "base64" ? toBase64 : toNumbers
    const usage: Usage = tokens > 0
      ? { inputTokens: tokens, outputTokens: 0 }
      : EstimatedUsage.ofSizes(EstimatedUsage.textBytes({ input }), 0)
    let index = 0
    const item = (vector: Vector): string => {
      const comma = index === 0 ? "" : ","
      return `${comma}{"object":"embedding","index":${index++},"embedding":${print(vector)}}`
    }
    const answer = Stream.make(`{"object":"list","data":[`).pipe(
      // yields to other requests between two pieces
      Stream.concat(Stream.mapEffect(vectors, (some) => Effect.as(Effect.yieldNow, some.map(item).join("")))),
      Stream.concat(
        Stream.make(`],"model":${JSON.stringify(call.answersAs)},"usage":${JSON.stringify(toEmbeddingUsage(usage))}}`)
      ),
      Stream.map((json) => utf8.encode(json))
    )
    sink.start({ status: 200, contentType: "application/json", headers: TranslationWarnings.toHeaders(warnings) })
    yield* writeAll(sink, answer)
    return usage
  })
}

const toNumbers = (vector: Vector): string => `[${Array.prototype.join.call(vector)}]`

/** Little-endian 32-bit floats, as a JSON string. */
export const toBase64 = (vector: Vector): string => {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (let at = 0; at < vector.length; at++) bytes.writeFloatLE(vector[at] as number, at * 4)
  return `"${bytes.toString("base64")}"`
}
