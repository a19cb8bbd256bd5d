/** The parts of a task record that are specific to batches: the request, the progress and the result. */
import { Schema } from "effect"
import type { TaskRecord } from "../tasks/TaskRecord.ts"

const Metadata = Schema.Record(Schema.String, Schema.String)

export const BatchRequest = Schema.Struct({
  /** The path of the requests, and the model that the path names, if any. */
  endpoint: Schema.String,
  model: Schema.optionalKey(Schema.String),
  /** The id of the file with the requests. `total`: the number of requests. */
  input: Schema.String,
  /** Whether the file was made for this batch and is deleted with it. */
  ownsInput: Schema.optionalKey(Schema.Boolean),
  total: Schema.Int,
  /** Maximum number of requests that wait in queues or run concurrently, from the key's settings. */
  atOnce: Schema.Int,
  /** The time within which the client wants the results, such as `24h`. */
  window: Schema.String,
  /** When the remaining requests fail, in epoch milliseconds. */
  expires: Schema.Finite,
  /** Headers that travel with each request. */
  headers: Schema.Record(Schema.String, Schema.String),
  metadata: Schema.NullOr(Metadata)
})
export type BatchRequest = typeof BatchRequest.Type

/** Epoch milliseconds; `null` if the event has not happened. */
const Moment = Schema.NullOr(Schema.Finite)

export const BatchProgress = Schema.Struct({
  phase: Schema.Literals(["validating", "in_progress", "finalizing"]),
  /** How many requests have an answer, and how many have failed. */
  completed: Schema.Int,
  failed: Schema.Int,
  /** How many requests were not finished before the batch ended. Included in `failed`. */
  unfinished: Schema.Int,
  began: Moment,
  finalizing: Moment,
  /** The files of answers and of errors. */
  output: Schema.NullOr(Schema.String),
  errors: Schema.NullOr(Schema.String)
})
export type BatchProgress = typeof BatchProgress.Type

export const noProgress: BatchProgress = {
  phase: "validating",
  completed: 0,
  failed: 0,
  unfinished: 0,
  began: null,
  finalizing: null,
  output: null,
  errors: null
}

/** Why the file of requests is refused. */
export const Mistake = Schema.Struct({
  code: Schema.String,
  message: Schema.String,
  /** From 1. */
  line: Schema.NullOr(Schema.Int),
  param: Schema.NullOr(Schema.String)
})
export type Mistake = typeof Mistake.Type

export const ends = ["completed", "failed", "expired", "cancelled"] as const

export const BatchResult = Schema.Struct({
  end: Schema.Literals(ends),
  progress: BatchProgress,
  /** Why the batch has failed. */
  mistakes: Schema.Array(Mistake)
})
export type BatchResult = typeof BatchResult.Type

export const decodeRequest = Schema.decodeUnknownOption(BatchRequest)
export const decodeProgress = Schema.decodeUnknownOption(BatchProgress)
export const decodeResult = Schema.decodeUnknownOption(BatchResult)

export const batchStatuses = ["validating", "in_progress", "finalizing", "cancelling", ...ends] as const
export type BatchStatus = typeof batchStatuses[number]

/** A batch, decoded from its task's record. */
export interface Batch {
  readonly task: TaskRecord
  readonly request: BatchRequest
  readonly status: BatchStatus
  readonly progress: BatchProgress
  readonly mistakes: ReadonlyArray<Mistake>
}

const batchId = /^batch_[0-9a-f]{32}$/

/** Checks text from a client before it becomes part of a key. */
export const isBatchId = (id: string): boolean => batchId.test(id)
