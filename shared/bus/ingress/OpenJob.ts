/** The state of one open job at this ingress, and its message. */
import { nuid } from "@nats-io/nats-core"
import type { Tracer } from "effect"
import * as TraceParent from "../../telemetry/TraceParent.ts"
import { encodeJob } from "../protocol/JobMessage.ts"
import type { JobPool } from "./JobPool.ts"
import { Publication } from "./Publication.ts"
import type { AnswerListener, JobRequest } from "./JobRequest.ts"
import { initial, isOver, type JobState } from "../protocol/JobState.ts"
import * as Timings from "../protocol/Timings.ts"
import * as Subjects from "../protocol/Subjects.ts"
import type { Version } from "../protocol/Subjects.ts"
import type { WorkerLink } from "./WorkerLinks.ts"

const nothing = new Uint8Array(0)

export class OpenJob {
  readonly id = nuid.next()
  readonly request: JobRequest
  readonly listener: AnswerListener
  readonly pool: JobPool<OpenJob>
  /** When the job fails if no worker has claimed it, by the monotonic clock. */
  readonly expiresAt: number
  state: JobState = initial
  /** The protocol version of its latest attempt. */
  version: Version = 3
  worker: WorkerLink<OpenJob> | undefined
  /** The number of the next frame of this attempt. */
  sequence = 0
  lastSeen = 0
  readonly publication = new Publication()
  /** How many bytes of this attempt's answer the client has taken, and how many ingress has reported to the worker. */
  taken = 0
  reportedTaken = 0
  /** The span of the latest attempt that waited for a worker. */
  span: Tracer.Span | undefined

  constructor(request: JobRequest, listener: AnswerListener, pool: JobPool<OpenJob>, expiresAt: number) {
    this.request = request
    this.listener = listener
    this.pool = pool
    this.expiresAt = expiresAt
  }

  /** The provider for which the job waits. Its slot counts as free meanwhile. */
  #waitsFor: string | undefined

  setWait(provider: string | undefined): void {
    if (provider === this.#waitsFor) return
    if (this.#waitsFor === undefined) this.pool.parked(this.request)
    if (provider === undefined) this.pool.resumed(this.request)
    this.#waitsFor = provider
    if (!isOver(this.state)) this.listener.onWait(provider)
  }

  /** The message to the stream; frames of the answer go to this ingress. */
  toMessage(ingress: string, attempt: number): [subject: string, payload: Uint8Array, headers: string] {
    const { id, request, span } = this
    const { payload, headers } = encodeJob(
      {
        version: this.version,
        id,
        attempt,
        reply: Subjects.replySubject(request.workload, ingress, id, attempt),
        deadline: request.deadline,
        operation: request.operation,
        model: request.model,
        tenant: request.tenant,
        owner: request.owner,
        contentType: request.contentType,
        headers: request.headers,
        traceparent: span === undefined ? request.traceparent : TraceParent.format(span),
        bodySize: request.body.length,
        isPlain: request.isPlain
      },
      request.body.length <= Timings.inlineBodyBytes ? request.body : nothing,
      `${id}.${attempt}`
    )
    return [Subjects.jobSubject(request.workload, request.pool, this.version), payload, headers]
  }
}
