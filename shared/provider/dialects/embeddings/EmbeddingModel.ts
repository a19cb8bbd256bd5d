/** What turns texts into vectors, whoever it is. */
import type { Effect, Stream } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Call } from "../../call/Protocol.ts"

export interface EmbeddingRequest {
  /** At least one, none of them empty. */
  readonly texts: ReadonlyArray<string>
  /** Length of the vectors; the model's own where `undefined`. */
  readonly dimensions: number | undefined
  /** Fields that the gateway does not know. */
  readonly extra: Readonly<Record<string, unknown>>
}

export type Vector = ArrayLike<number>

export interface Embedded {
  /** One for each text, in their order, some at a time. */
  readonly vectors: Stream.Stream<ReadonlyArray<Vector>, JobError>
  readonly tokens: number
  /** What of the request could not be carried over, by its path. */
  readonly warnings?: ReadonlyArray<string>
}

/** Fails before there are vectors where another attempt may be made. */
export type EmbeddingModel = (call: Call, request: EmbeddingRequest) => Effect.Effect<Embedded, JobError>
