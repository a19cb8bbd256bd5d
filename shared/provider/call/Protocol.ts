/** A provider protocol: one function that makes one attempt at one call. */
import { Effect } from "effect"
import { InvalidRequest, type JobError } from "../../contract/JobError.ts"
import type { Continues } from "../../catalogue/Model.ts"
import type { Operation, Workload } from "../../contract/Operation.ts"
import type { Owner } from "../../contract/Owner.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import type { Sink } from "../transport/Sink.ts"

export interface Call {
  readonly operation: Operation
  /** The model's name as the client knows it. */
  readonly model: string
  /** The model's name in the answer: `model` for a request's first target, and any other target's own name. */
  readonly answersAs: string
  /** The model's workload: models of several workloads may serve one operation. */
  readonly workload: Workload
  /** An opaque id of the traffic's owner. */
  readonly tenant: string
  /** Of what the request seals; see `JobRequest`. */
  readonly owner?: Owner | undefined
  readonly contentType: string
  /** The client's headers that the operation passes on; see `Operation.headers`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The client's body, unchanged and validated. */
  readonly body: Uint8Array
  /** The body is known to name `model`, and to ask for no stream. */
  readonly isPlain?: boolean
  /** An id of the request's session, for providers whose caches it helps; `undefined` if unknown. */
  readonly session?: string | undefined
  /** Gets the usage of all exchanges so far, if an answer fails after it has started or after one of them has ended. */
  readonly onCut?: (usage: Usage) => void
  /** The request ends with the beginning of its own answer: how to tell the provider to continue it. */
  readonly continues?: Continues | undefined
  readonly endpoint: Endpoint
}

/**
 * Makes the call and writes the answer to the sink. After a failure before `sink.start` another attempt may be made; a failure
 * after it breaks the answer. Interruption stops the provider's work.
 */
export type Perform = (call: Call, sink: Sink) => Effect.Effect<Usage | undefined, JobError>

/** An operation and the model to serve it. */
export type Served = Pick<Call, "model" | "operation">

/** Fails because the model does not serve the operation. */
export const notSupported = ({ model, operation }: Served): Effect.Effect<never, InvalidRequest> =>
  Effect.fail(InvalidRequest.notSupported(model, operation.name))

/** Serves the operations of a table by name, and rejects all others. */
export const performByName = (performs: ReadonlyMap<string, Perform>): Perform => (call, sink) =>
  performs.get(call.operation.name)?.(call, sink) ?? notSupported(call)
