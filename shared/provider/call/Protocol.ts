/** What a provider protocol is: one function that makes one attempt at one call. */
import { Effect } from "effect"
import { InvalidRequest, type JobError } from "../../contract/JobError.ts"
import type { Operation, Workload } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import type { Sink } from "../transport/Sink.ts"

export interface Call {
  readonly operation: Operation
  /** The model's name as the client knows it. */
  readonly model: string
  /** What the model is for: one operation may be served by models of several kinds. */
  readonly workload: Workload
  /** Whose request it is, as an opaque id. */
  readonly tenant: string
  readonly contentType: string
  /** Those of the client's headers that the operation passes on; see `Operation.headers`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The client's body as it came, already validated. */
  readonly body: Uint8Array
  /** Hears what an answer had consumed, as far as its provider has said so, that had begun and came to no good end. */
  readonly onCut?: (usage: Usage) => void
  readonly endpoint: Endpoint
}

/**
 * Makes the call and writes the answer to the sink. Fails before `sink.start` where another attempt may be made, after it
 * where the answer is broken. Interruption stops the provider's work.
 */
export type Perform = (call: Call, sink: Sink) => Effect.Effect<Usage | undefined, JobError>

/** What is asked of which model. */
export type Served = Pick<Call, "model" | "operation">

/** The failure of a call whose provider does not serve the operation. */
export const notSupported = ({ model, operation }: Served): Effect.Effect<never, InvalidRequest> =>
  Effect.fail(
    InvalidRequest.at("model", `'${model}' does not serve ${operation.name}`, "operation_not_supported")
  )

/** Serves the operations of the table, by their names, and no others. */
export const performByName = (performs: ReadonlyMap<string, Perform>): Perform => (call, sink) =>
  performs.get(call.operation.name)?.(call, sink) ?? notSupported(call)
