/** Turns texts into vectors, by any provider or engine. */
import type { Effect, Stream } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Usage } from "../../../contract/Usage.ts"
import type { Call } from "../../call/Protocol.ts"
import type { Losses } from "../conversation/Losses.ts"

/** What vectors are for, as Cohere names it. */
export type Purpose = "search_document" | "search_query" | "classification" | "clustering"

export interface EmbeddingRequest {
  /** At least one, none of them empty. */
  readonly texts: ReadonlyArray<string>
  /** Length of the vectors; `undefined` for the model's own. */
  readonly dimensions: number | undefined
  /** The client's name of `dimensions`. */
  readonly dimensionsName: string
  readonly purpose: Purpose | undefined
  /** Unknown fields. */
  readonly extra: Readonly<Record<string, unknown>>
  /** Takes the fields that the model cannot use, before its provider is called. */
  readonly losses: Losses
}

export type Vector = ArrayLike<number>

export interface EmbeddingResult {
  /** One per text, in order, in batches. */
  readonly vectors: Stream.Stream<ReadonlyArray<Vector>, JobError>
  /** Estimated if the provider reports none. */
  readonly usage: Usage
  /** Paths of fields that the provider has ignored. */
  readonly warnings?: ReadonlyArray<string>
}

/** A failure that allows another attempt comes before the first vector. */
export type EmbeddingModel = (call: Call, request: EmbeddingRequest) => Effect.Effect<EmbeddingResult, JobError>
