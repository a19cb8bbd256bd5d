/**
 * The life of a job in a worker, to be read aloud: it was pulled, it is claimed, decoded, performed (which is routed,
 * admitted and sent to a provider), replied to, metered, and acknowledged when this effect ends.
 */
import { Cause, Clock, Context, Effect, Metric, Option } from "effect"
import type { Redispatch } from "../bus/Frame.ts"
import type { JobReply } from "../bus/JobReply.ts"
import type { ServedJob } from "../bus/JobServer.ts"
import { InternalError, InvalidRequest, type JobError } from "../contract/JobError.ts"
import type { Operation } from "../contract/Operation.ts"
import { operationNamed } from "../contract/operations.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Span from "../telemetry/Span.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"

/** What is to be done, and for whom. */
export interface Work {
  readonly operation: Operation
  readonly model: string
  readonly tenant: string
  readonly contentType: string
  /** Those of the client's headers that the operation passes on; see `Operation.headers`. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Epoch milliseconds: by then it should have been begun, whatever it still has to wait for. */
  readonly deadline: number
  /** How long it lay in the queue, in milliseconds. */
  readonly queuedMs: number
}

/** Does the work of a workload: what a worker service brings. */
export class Performer extends Context.Service<Performer, {
  readonly redispatch: (model: string) => Redispatch
  /** Answers into the reply; fails before the reply has started where nothing of an answer was given. */
  readonly perform: (work: Work, reply: JobReply) => Effect.Effect<Usage | undefined, JobError>
}>()("shared/worker/Performer") {}

const decoded = (job: ServedJob, begun: number): Effect.Effect<Work, JobError> =>
  Effect.flatMap(job.body, (body) => {
    const { contentType, deadline, headers, model, operation: name, publishedAt, tenant } = job.pulled
    const operation = operationNamed(name)
    const queuedMs = Math.max(0, begun - publishedAt)
    return operation === undefined
      ? Effect.fail(
        new InvalidRequest({ message: `Unknown operation ${name}`, param: null, code: "unknown_operation" })
      )
      : Effect.succeed({ operation, model, tenant, contentType, headers, body, deadline, queuedMs })
  })

/** Tells ingress how it ended. Whatever is not an error of the job is ours, and is logged here, where it happened. */
const failed = (job: ServedJob, cause: Cause.Cause<JobError>): Effect.Effect<void> => {
  const error = Cause.findErrorOption(cause)
  if (Option.isSome(error)) {
    if (error.value._tag === "Cancelled") job.reply.abandon()
    else job.reply.fail(error.value)
    return Metric.update(Metrics.jobs(error.value._tag), 1)
  }
  if (Cause.hasInterruptsOnly(cause)) return Metric.update(Metrics.jobs("Cancelled"), 1)
  job.reply.fail(new InternalError())
  return Effect.andThen(
    Metric.update(Metrics.jobs("InternalError"), 1),
    Effect.logError("job failed by a mistake of ours", { job: job.pulled.id, operation: job.pulled.operation }, cause)
  )
}

const ended = (job: ServedJob, usage: Usage | undefined): Effect.Effect<void> => {
  job.reply.end(usage)
  return Metric.update(Metrics.jobs("Done"), 1)
}

export const live = (performer: Performer["Service"], job: ServedJob): Effect.Effect<void> =>
  job.claim(performer.redispatch(job.pulled.model)).pipe(
    Effect.andThen(Clock.currentTimeMillis),
    Effect.flatMap((begun) => decoded(job, begun)),
    Effect.flatMap((work) => performer.perform(work, job.reply)),
    Effect.tap((usage) => usage === undefined ? Effect.void : Effect.annotateCurrentSpan(Attributes.usage(usage))),
    Span.around(`process ${job.pulled.operation}`, {
      kind: "consumer",
      attributes: Attributes.job(job.pulled),
      ...TraceParent.asParent(job.pulled.traceparent)
    }),
    Effect.matchCauseEffect({
      onSuccess: (usage) => ended(job, usage),
      onFailure: (cause) => failed(job, cause)
    })
  )
