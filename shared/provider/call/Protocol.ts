/** The interface of a provider protocol: one function that makes one attempt at one call. */
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
  /** The model's name in the answer: `model` for a request's first target; for any other target, that target's own name. */
  readonly answersAs: string
  /** The model's workload, because models of several workloads may serve one operation. */
  readonly workload: Workload
  /** The opaque id of the tenant. */
  readonly tenant: string
  /** The owner of everything that the request seals; see `JobRequest`. */
  readonly owner?: Owner | undefined
  readonly contentType: string
  /** The client's headers that travel with the job; see `Operation.headers`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The client's body, unchanged and validated. */
  readonly body: Uint8Array
  /** Whether the body is known to name `model` and to ask for no stream. */
  readonly isPlain?: boolean
  /** The id of the request's session, for providers that use it for their caches; `undefined` if unknown. */
  readonly session?: string | undefined
  /** Called with the usage of all exchanges so far, if an answer fails after it has started or after one of them has ended. */
  readonly onCut?: (usage: Usage) => void
  /** How to tell the provider to continue the answer, if the request ends with the beginning of its own answer. */
  readonly continues?: Continues | undefined
  readonly endpoint: Endpoint
}

/**
 * Makes the call and writes the answer to the sink. After a failure before `sink.start` another attempt may be made; a later failure
 * breaks the answer. Interruption stops the provider's work.
 */
export type Perform = (call: Call, sink: Sink) => Effect.Effect<Usage | undefined, JobError>

/** An operation and the model to serve it. */
export type Served = Pick<Call, "model" | "operation">

/** The failure for a model that does not serve the operation. */
export const notSupported = ({ model, operation }: Served): Effect.Effect<never, InvalidRequest> =>
  Effect.fail(InvalidRequest.notSupported(model, operation.name))

/** Serves the operations of a table by name, and rejects all others. */
export const performByName = (performs: ReadonlyMap<string, Perform>): Perform => (call, sink) =>
  performs.get(call.operation.name)?.(call, sink) ?? notSupported(call)
