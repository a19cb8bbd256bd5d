/** Makes vectors by a provider's API, which accepts a limited number of texts per call. */
import { Effect, Predicate, Schema } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import { type Calls, callsFor } from "../../call/Calls.ts"
import type * as Json from "../../json/Json.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import * as EmbeddingCalls from "./EmbeddingCalls.ts"
import type { EmbeddingModel, EmbeddingRequest } from "./EmbeddingModel.ts"

type Vectors = ReadonlyArray<ReadonlyArray<number>>

export interface EmbeddingApi {
  /** The path below `baseUrl`. */
  readonly path: (model: string) => string
  /** Maximum number of texts per call. */
  readonly textsPerCall: number
  /** The request for the texts of one call. */
  readonly toBody: (model: string, request: EmbeddingRequest) => object
  /** The vectors in an answer, in the order of the texts. */
  readonly vectorsIn: (answer: Json.Fields) => unknown
  /** The billed tokens; `undefined` if the answer does not report them. */
  readonly tokensIn: (answer: Json.Fields) => number | undefined
  /** Which unknown fields the API does not accept. */
  readonly lost: (names: ReadonlyArray<string>) => ReadonlyArray<string>
}

/** Whether a value is a list of vectors. Without a schema, which would take a tenth of a second for several hundred thousand numbers. */
const areVectors = (value: unknown): value is Vectors =>
  Array.isArray(value) && value.every((vector) => Array.isArray(vector) && vector.every(Number.isFinite))

/** The schema of whole answers. */
export const answerOf = ({ vectorsIn }: EmbeddingApi) =>
  Schema.declare((value): value is Json.Fields => Predicate.isReadonlyObject(value) && areVectors(vectorsIn(value)))

/** The calls for a request with this number of texts. */
export const callsOf = (texts: number, { textsPerCall }: EmbeddingApi): Calls =>
  callsFor(texts, textsPerCall, EmbeddingCalls.callsAtOnce)

/** `post` sends a request as JSON. */
export const make = (
  api: EmbeddingApi,
  post: (
    endpoint: Endpoint,
    request: { readonly path: string; readonly body: object }
  ) => Effect.Effect<Json.Fields, JobError>
): EmbeddingModel =>
  Effect.fnUntraced(function*(call, request) {
    const { endpoint } = call
    const { model } = endpoint
    const lost = new Set(api.lost(Object.keys(request.extra)))
    const { lost: unknown = [], kept = [] } = Object.groupBy(
      Object.entries(request.extra),
      ([field]) => lost.has(field) ? "lost" : "kept"
    )
    request.losses.recordUnmapped(Object.fromEntries(unknown), {})
    yield* request.losses.failIfRefused
    const extra = Object.fromEntries(kept)
    const batchOf = Effect.fnUntraced(function*(texts: ReadonlyArray<string>) {
      const body = api.toBody(model, { ...request, texts, extra })
      const answer = yield* post(endpoint, { path: api.path(model), body })
      const vectors = api.vectorsIn(answer)
      return { vectors: areVectors(vectors) ? vectors : [], tokens: api.tokensIn(answer) }
    })
    const limits = { textsPerCall: api.textsPerCall, callsAtOnce: EmbeddingCalls.callsAtOnce }
    return yield* EmbeddingCalls.make(call, request.texts, limits, batchOf)
  })
