/** What ingress asks of the bus, and how it hears of the answer. */
import type { Tracer } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import type { Workload } from "../../contract/Operation.ts"
import type { PriorityClass } from "../../contract/PriorityClass.ts"
import type { Usage } from "../../contract/Usage.ts"
import type { AnswerHead } from "../protocol/Frame.ts"

export interface JobRequest {
  readonly workload: Workload
  readonly pool: string
  readonly operation: string
  readonly model: string
  /** The opaque id of whom the request is for; queues are fair between these. */
  readonly tenant: string
  /** The tenant's share of the turns within its class, at least 1. */
  readonly weight: number
  readonly priority: PriorityClass
  readonly contentType: string
  /** What the worker is to know of the request's other headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** As the client sent it. */
  readonly body: Uint8Array
  /** Epoch milliseconds: where no worker has begun by then, the job fails with `QueueTimeout`. */
  readonly deadline: number
  /** What the worker is told where there are no spans of our own. */
  readonly traceparent: string | undefined
  /** The request's span, where somebody listens to it. */
  readonly parent?: Tracer.AnySpan | undefined
}

/** Hears of a job's answer. Called synchronously; after `onEnd` or `onError` nothing more is called. */
export interface AnswerListener {
  /** A worker has the job. */
  readonly onClaim: () => void
  readonly onStart: (head: AnswerHead) => void
  /** `isLast` where `onEnd` follows within the same turn. */
  readonly onChunk: (bytes: Uint8Array, isLast: boolean) => void
  /** The answer so far is void: another worker begins anew. Never called after `flushed`. */
  readonly onRestart: () => void
  readonly onEnd: (usage: Usage | undefined) => void
  readonly onError: (error: JobError) => void
}

export interface JobHandle {
  readonly id: string
  /** The client has taken this many bytes: the worker may send as many more. */
  readonly taken: (bytes: number) => void
  /** Bytes are on their way to the client: from now on a lost worker is an error. */
  readonly flushed: () => void
  /** The client is gone. */
  readonly cancel: () => void
}
