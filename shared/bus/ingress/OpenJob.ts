/** One job of this ingress that is not over: how far it is, and what it looks like in the stream. */
import { nuid } from "@nats-io/nats-core"
import type { Tracer } from "effect"
import { encodeJob } from "../protocol/JobHeader.ts"
import type { JobPool } from "./JobPool.ts"
import type { AnswerListener, JobRequest } from "./JobRequest.ts"
import { JobSpans } from "./JobSpans.ts"
import { initial, type JobState } from "../protocol/JobState.ts"
import * as Limits from "../protocol/Timings.ts"
import * as Subjects from "../protocol/Subjects.ts"
import type { WorkerLink } from "./WorkerLinks.ts"

export class OpenJob {
  readonly id = nuid.next()
  readonly request: JobRequest
  readonly listener: AnswerListener
  readonly pool: JobPool<OpenJob>
  /** When nobody waits any more for a worker to take it. */
  readonly expiresAt: number
  state: JobState = initial
  worker: WorkerLink<OpenJob> | undefined
  /** The number that the next frame of this attempt must have. */
  sequence = 0
  lastSeen = 0
  /** The number of its publication, when it was made, and since when later ones have been claimed. */
  publication = 0
  publishedAt = 0
  overtakenAt: number | undefined
  /** When to ask JetStream about the publication; `undefined` once it has confirmed. */
  confirmAt: number | undefined
  /** How many bytes of this attempt's answer the client has taken, and of how many the worker was told. */
  taken = 0
  toldTaken = 0
  /** Of the attempt that waits for a worker, or the last one that did. */
  span: Tracer.Span | undefined

  constructor(request: JobRequest, listener: AnswerListener, pool: JobPool<OpenJob>, expiresAt: number) {
    this.request = request
    this.listener = listener
    this.pool = pool
    this.expiresAt = expiresAt
  }

  /** As a message to the stream, whose answer comes to this ingress. */
  toMessage(ingress: string, attempt: number): [subject: string, payload: Uint8Array, headers: string] {
    const { id, request, span } = this
    const inline = request.body.length <= Limits.inlineBodyBytes
    return [
      Subjects.jobSubject(request.workload, request.pool),
      inline ? request.body : new Uint8Array(0),
      encodeJob({
        id,
        attempt,
        reply: Subjects.replySubject(request.workload, ingress, id, attempt),
        deadline: request.deadline,
        operation: request.operation,
        model: request.model,
        tenant: request.tenant,
        contentType: request.contentType,
        headers: request.headers,
        traceparent: span === undefined ? request.traceparent : JobSpans.header(span),
        bodySize: request.body.length
      }, `${id}.${attempt}`)
    ]
  }
}
