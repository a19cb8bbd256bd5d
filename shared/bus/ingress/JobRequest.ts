/** A request to the bus, and the listener for its answer. */
import type { Tracer } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import type { Workload } from "../../contract/Operation.ts"
import type { Owner } from "../../contract/Owner.ts"
import type { PriorityClass } from "../../contract/PriorityClass.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { AnswerHead } from "../protocol/Frame.ts"

export interface JobRequest {
  readonly workload: Workload
  readonly pool: string
  readonly operation: string
  readonly model: string
  /** The tenant's opaque id; queues are fair between tenants. */
  readonly tenant: string
  /** Whose records the worker may read and write, for operations that keep state. */
  readonly owner: Owner | undefined
  /** The tenant's share of the turns within its class, at least 1. */
  readonly weight: number
  readonly priority: PriorityClass
  readonly contentType: string
  /** Further request headers that the worker needs. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** As the client sent it. */
  readonly body: Uint8Array
  /** The part of the body's memory that the tenant has reserved already, which the job takes over. Default 0. */
  readonly reservedBytes?: number
  /** The body names `model` and asks for no stream: a worker with nothing to change in the body need not parse it. */
  readonly isPlain: boolean
  /** Epoch milliseconds: the job fails with `QueueTimeout` if no worker has started it by then. */
  readonly deadline: number
  /** Passed to the worker if the gateway records no spans. */
  readonly traceparent: string | undefined
  /** The request's span, if it is recorded. */
  readonly parent?: Tracer.AnySpan | undefined
}

/** Receives a job's answer synchronously; `onEnd` or `onError` is the last call. None follows `cancel`. */
export interface AnswerListener {
  /** A worker has the job. */
  readonly onClaim: () => void
  /** The worker waits for this provider, or no longer. Not called at the end of the job, which ends its wait as well. */
  readonly onWait: (provider: string | undefined) => void
  readonly onStart: (head: AnswerHead) => void
  /** `isLast` if `onEnd` follows within the same turn. */
  readonly onChunk: (bytes: Uint8Array, isLast: boolean) => void
  /** Discards the answer so far: another worker starts again. Never called after `flushed`. */
  readonly onRestart: () => void
  readonly onEnd: (usage: Usage | undefined) => void
  readonly onError: (error: JobError) => void
}

export interface JobHandle {
  readonly id: string
  /** The client has taken this many bytes; the worker may send as many more. */
  readonly taken: (bytes: number) => void
  /** The client gets bytes: from now on a lost worker is an error. */
  readonly flushed: () => void
  /** The client is gone. */
  readonly cancel: () => void
}
