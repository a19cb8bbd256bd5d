/**
 * The life of a job in a worker, to be read aloud: it was pulled, it is claimed, decoded, performed (which is routed,
 * admitted and sent to a provider), replied to, metered, and acknowledged when this effect ends.
 */
import { Cause, Context, Effect, Metric, Option } from "effect"
import type { JobReply } from "../bus/worker/JobReply.ts"
import type { ServedJob } from "../bus/worker/JobServer.ts"
import { type Cancelled, InternalError, InvalidRequest, type JobError } from "../contract/JobError.ts"
import type { Operation } from "../contract/Operation.ts"
import { operationNamed } from "../contract/operations/operations.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Span from "../telemetry/Span.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import { Meter, type Metering } from "./Meter.ts"

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
  /** Hears of every call to a provider before it is made. */
  readonly onCall: Meter["called"]
  /** Hears what an answer had consumed that came to no good end. */
  readonly onCut: Meter["cut"]
  /** Comes before whatever must not be done twice, however often a worker is lost. */
  readonly commit: ServedJob["commit"]
}

/** Does the work of a workload: what a worker service brings. */
export class Performer extends Context.Service<Performer, {
  /** Whether a job for this model may be performed twice. */
  readonly isIdempotent: (model: string) => boolean
  /** Answers into the reply; fails before the reply has started where nothing of an answer was given. */
  readonly perform: (work: Work, reply: JobReply) => Effect.Effect<Usage | undefined, JobError>
  readonly cost: Metering["cost"]
}>()("shared/worker/Performer") {}

/** What jobs are lived with. */
export interface Means extends Metering {
  readonly performer: Performer["Service"]
}

const noHeaders: Work["headers"] = {}

const decoded = (job: ServedJob, meter: Meter, queuedMs: number): Effect.Effect<Work, JobError> =>
  Effect.flatMap(job.body, (body) => {
    const { contentType, deadline, headers = noHeaders, model, operation: name, tenant } = job.pulled
    const operation = operationNamed(name)
    return operation === undefined
      ? Effect.fail(
        new InvalidRequest({ message: `Unknown operation ${name}`, param: null, code: "unknown_operation" })
      )
      : Effect.succeed({
        operation,
        model,
        tenant,
        contentType,
        headers,
        body,
        deadline,
        queuedMs,
        onCall: (endpoint) => meter.called(endpoint),
        onCut: (usage) => meter.cut(usage),
        commit: job.commit
      })
  })

/** Whether a provider may have been asked for it: where it was not, it is somebody else's to count. */
const mayBeSent = ({ performer }: Means, { pulled, reply }: ServedJob): boolean =>
  reply.committed || performer.isIdempotent(pulled.model)

/** Tells ingress how it ended. Whatever is not an error of the job is ours, and is logged here, where it happened. */
const failed = (means: Means, job: ServedJob, meter: Meter, cause: Cause.Cause<JobError>): Effect.Effect<void> => {
  const found = Cause.findErrorOption(cause)
  const error = Option.isSome(found) ? found.value : new InternalError()
  if (error._tag === "Cancelled") {
    job.reply.abandon()
    if (mayBeSent(means, job)) meter.cancelled()
  } else {
    job.reply.fail(error)
    meter.failed(error._tag)
  }
  const counted = Metric.update(Metrics.jobs(job.pulled.operation, error._tag), 1)
  return Option.isSome(found) ? counted : Effect.andThen(
    counted,
    Effect.logError("job failed by a mistake of ours", { job: job.pulled.id, operation: job.pulled.operation }, cause)
  )
}

const ended = (job: ServedJob, meter: Meter, usage: Usage | undefined): void => {
  job.reply.end(usage)
  meter.ended(usage)
  Metrics.update(Metrics.jobs(job.pulled.operation, "Done"), 1)
}

/** Ingress does not want it any more, or this worker has to end. */
const interrupted = (means: Means, job: ServedJob, meter: Meter): Effect.Effect<void> => {
  if (!job.reply.over) meter.failed("WorkerLost")
  else if (mayBeSent(means, job)) meter.cancelled()
  return Metric.update(Metrics.jobs(job.pulled.operation, "Cancelled"), 1)
}

/** A job that another worker had, and that is over since, was begun by that one, which may have died before it told of it. */
const claimed = (job: ServedJob, meter: Meter, isIdempotent: boolean): Effect.Effect<void, Cancelled> => {
  const claim = job.claim(isIdempotent ? "idempotent" : "unsent")
  return job.pulled.delivery === 1 ? claim : Effect.tapError(claim, () => Effect.sync(() => meter.lost()))
}

/** What it has waited and consumed stands in its span. */
const performed = (means: Means, job: ServedJob, meter: Meter): Effect.Effect<Usage | undefined, JobError> =>
  Effect.withFiber(({ cache }) => {
    const span = cache.span?._tag === "Span" ? cache.span : undefined
    const queuedMs = Math.max(0, means.now() - job.pulled.publishedAt)
    span?.attribute(Attributes.name.queueMs, queuedMs)
    return decoded(job, meter, queuedMs).pipe(
      Effect.flatMap((work) => means.performer.perform(work, job.reply)),
      Effect.map((usage) => {
        if (usage !== undefined && span !== undefined) Attributes.usage(usage)(span)
        return usage
      })
    )
  })

export const live = (means: Means, job: ServedJob): Effect.Effect<void> =>
  Effect.suspend(() => {
    const meter = new Meter(means, job)
    return claimed(job, meter, means.performer.isIdempotent(job.pulled.model)).pipe(
      Effect.flatMap(() => performed(means, job, meter)),
      Span.around(`process ${job.pulled.subject}`, {
        kind: "consumer",
        ...TraceParent.asParent(job.pulled.traceparent)
      }, Attributes.pulled(job.pulled)),
      Effect.matchCauseEffect({
        onSuccess: (usage) => Effect.sync(() => ended(job, meter, usage)),
        onFailure: (cause) => failed(means, job, meter, cause)
      }),
      Effect.onInterrupt(() => interrupted(means, job, meter))
    )
  })
