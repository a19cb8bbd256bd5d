/** A request that has been authenticated, decoded and admitted, as it is served. */
import type { OfferedModel } from "../../../shared/catalogue/Models.ts"
import type { Operation, Workload } from "../../../shared/contract/Operation.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import type { PriorityClass } from "../../../shared/contract/PriorityClass.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import type { Settle } from "./Admission.ts"
import type { Outlives } from "./Outlives.ts"

/** The parts of a request that decide how it is answered. */
export interface Wish {
  /** The number of results. */
  readonly count: number
  /** Whether the answer is a stream. */
  readonly streams: boolean
  /** See `JobRequest`. */
  readonly isPlain: boolean
  /** Set if the answer outlives the connection. */
  readonly outlives: Outlives | undefined
  /** The expected tokens of the work if it runs later; otherwise 0. */
  readonly tokens: number
}

export interface AdmittedRequest extends Wish {
  readonly operation: Operation
  readonly headers: RequestHeaders
  /** The key's id. */
  readonly tenant: string
  /** The id of the key's owner. */
  readonly ownerId: string
  /** The owner; only for operations that keep state. */
  readonly owner: Owner | undefined
  readonly weight: number
  readonly priority: PriorityClass
  readonly model: string
  readonly workload: Workload
  readonly pool: string
  /** The body as the client sent it. It is known to decode. */
  readonly body: Uint8Array
  readonly shadow: OfferedModel["shadow"]
  readonly traceparent: string
  readonly settle: Settle | undefined
  /** Passes on the memory reserved for the body, and returns its size: from then on the body's job counts it. */
  readonly handOverBody: () => number
  /** Releases the memory reserved for the body. Call it when the body is no longer needed. */
  readonly releaseBody: () => void
}
