/**
 * Runs each job of a worker: claims, decodes and performs it (the performer routes, admits and sends it to a provider), ends
 * its reply and meters it. The job is acknowledged when the effect ends.
 */
import { Cause, Context, Effect, Exit, Option } from "effect"
import * as Fiberless from "../bounds/Fiberless.ts"
import type { Reply } from "../bus/worker/JobReply.ts"
import type { ServedJob } from "../bus/worker/JobServer.ts"
import { maxDeliveries } from "../bus/protocol/Timings.ts"
import { type Cancelled, InternalError, InvalidRequest, type JobError } from "../contract/JobError.ts"
import type { Operation } from "../contract/Operation.ts"
import type { Owner } from "../contract/Owner.ts"
import { operationNamed } from "../contract/operations/operations.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import { Meter, type Metering } from "./Meter.ts"

/** What to do, and for which tenant. */
export interface Work {
  /** The job's, or the task's. */
  readonly id: string
  readonly operation: Operation
  readonly model: string
  readonly tenant: string
  /** Of the records that it may read and write; see `JobRequest`. */
  readonly owner: Owner | undefined
  readonly contentType: string
  /** The client's headers that the operation passes on; see `Operation.headers`. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** See `JobRequest`. */
  readonly isPlain: boolean
  /** Epoch milliseconds: the latest time at which work should start, whatever it still waits for. */
  readonly deadline: number
  /** How long it waited in the queue, in milliseconds. */
  readonly queuedMs: number
  /** The id of the task, if the answer outlives its client. */
  readonly taskId?: string
  /** Called before every call to a provider. */
  readonly onCall: Meter["called"]
  /** Called with the usage so far, if an answer fails after it started. */
  readonly onCut: Meter["cut"]
  /** Called when a guardrail has checked the request or the answer, or could not do so. */
  readonly onChecked: Meter["checked"]
  /** Called if the answer ends before its end, as at the limit of its tokens. */
  readonly onIncomplete?: () => void
  /** Runs before anything that must not happen twice, even if workers are lost. */
  readonly commit: ServedJob["commit"]
}

/** Does a workload's work; each worker service provides it. */
export class Performer extends Context.Service<Performer, {
  /** Whether a job for this model may be performed twice. */
  readonly isIdempotent: (model: string) => boolean
  /** Writes the answer to the reply. Fails before the reply has started if there is no answer at all. */
  readonly perform: (work: Work, reply: Reply) => Effect.Effect<Usage | undefined, JobError>
  readonly cost: Metering["cost"]
  /** The same for lines of batches. */
  readonly costInBatch: Metering["cost"]
}>()("shared/worker/Performer") {}

export interface Dependencies extends Metering {
  readonly performer: Performer["Service"]
}

const noHeaders: Work["headers"] = {}

const decode = (
  job: ServedJob,
  meter: Meter,
  queuedMs: number,
  onChecked: Work["onChecked"]
): Effect.Effect<Work, JobError> =>
  Fiberless.flatMap(job.body, (body) => {
    const { contentType, deadline, headers = noHeaders, id, isPlain, model, operation: name, owner, tenant } =
      job.pulled
    const operation = operationNamed(name)
    return operation === undefined
      ? Effect.fail(
        new InvalidRequest({ message: `Unknown operation ${name}`, param: null, code: "unknown_operation" })
      )
      : Effect.succeed({
        id,
        operation,
        model,
        tenant,
        owner,
        contentType,
        headers,
        body,
        isPlain,
        deadline,
        queuedMs,
        onCall: (endpoint, isRepeated) => meter.called(endpoint, isRepeated),
        onCut: (usage) => meter.cut(usage),
        onChecked,
        commit: job.commit
      })
  })

/** Whether this worker meters a cancelled job: it may have called a provider, and no other worker has the job. */
const mayBeSent = ({ performer }: Dependencies, { pulled, reply }: ServedJob): boolean =>
  reply.isCommitted || (performer.isIdempotent(pulled.model) && !reply.isMoved)

/** Reports a failure to ingress. A defect is a bug of the gateway: ingress gets `InternalError`, the log the cause. */
const fail = (means: Dependencies, job: ServedJob, meter: Meter, cause: Cause.Cause<JobError>): Effect.Effect<void> => {
  const found = Cause.findErrorOption(cause)
  const error = Option.isSome(found) ? found.value : new InternalError()
  if (error._tag === "Cancelled") {
    job.reply.abandon()
    if (mayBeSent(means, job)) meter.cancelled()
  } else {
    job.reply.fail(error)
    meter.failed(error._tag)
  }
  Metrics.update(Metrics.jobs(job.pulled.operation, error._tag), 1)
  return Option.isSome(found) ? Effect.void : Effect.logError(
    "job failed by a bug of the gateway",
    { job: job.pulled.id, operation: job.pulled.operation },
    cause
  )
}

const end = (job: ServedJob, meter: Meter, usage: Usage | undefined): void => {
  job.reply.end(meter.total(usage))
  meter.ended(usage)
  Metrics.update(Metrics.jobs(job.pulled.operation, "Done"), 1)
}

/** Ingress has cancelled the job, or this worker has to end. */
const interrupt = (means: Dependencies, job: ServedJob, meter: Meter): void => {
  if (!job.reply.isOver) meter.failed("WorkerLost")
  else if (mayBeSent(means, job)) meter.cancelled()
  Metrics.update(Metrics.jobs(job.pulled.operation, "Cancelled"), 1)
}

/** How long the first worker of a redelivered job that is over has to store its usage event, in milliseconds. */
const meteringMs = 5_000

/**
 * If ingress refuses a redelivered job or is gone, the job is over unless another worker has it. Its first worker has died before
 * it metered the job, or lives and could not reach JetStream: only if the job is still unsettled a while later, it counts as lost.
 * An ingress that is silent, but not gone, may still agree to it.
 */
const claim = (job: ServedJob, meter: Meter, isIdempotent: boolean): Effect.Effect<void, Cancelled> => {
  const claiming = job.claim(isIdempotent ? "idempotent" : "unsent")
  const { delivery } = job.pulled
  if (delivery === 1) return claiming
  const refused = (cause: Cause.Cause<Cancelled>) =>
    Effect.sync(() => {
      if (job.reply.isMoved) return
      // this worker has to end, and knows nothing about the job
      if (Cause.hasInterruptsOnly(cause) && !job.reply.isOver) job.pulled.giveBack()
      else if (delivery === 2 || (!job.reply.isOver && delivery < maxDeliveries)) job.pulled.giveBack(meteringMs)
      else meter.lost()
    })
  return Effect.onError(claiming, refused)
}

/** Records queue time and usage in the job's span. */
const perform = (means: Dependencies, job: ServedJob, meter: Meter): Effect.Effect<Usage | undefined, JobError> => {
  const { pulled, reply } = job
  const options = { kind: "consumer", ...TraceParent.asParent(pulled.traceparent) } as const
  return Fiberless.inSpan(`process ${pulled.subject}`, options, (span) => {
    Attributes.pulled(pulled)(span)
    const claimed = claim(job, meter, means.performer.isIdempotent(pulled.model))
    const decoded = Fiberless.flatMap(claimed, () => {
      const queuedMs = Math.max(0, means.now() - pulled.publishedAt)
      span.attribute(Attributes.name.queueMs, queuedMs)
      return decode(job, meter, queuedMs, (direction, outcome) => {
        meter.checked(direction, outcome)
        Attributes.checked(direction, outcome)(span)
      })
    })
    const performed = Fiberless.flatMap(decoded, (work) => means.performer.perform(work, reply))
    return Fiberless.flatMap(performed, (usage) => {
      const total = meter.total(usage)
      if (total !== undefined) Attributes.usage(total)(span)
      return Exit.succeed(usage)
    })
  })
}

/** An ordinary job needs no fiber; see `Fiberless.ts`. */
export const runJob = (means: Dependencies, job: ServedJob): Effect.Effect<void> =>
  Fiberless.suspend(() => {
    const meter = new Meter(means, job)
    return Fiberless.matchExit(perform(means, job, meter), (exit, { isStopped }) => {
      if (Exit.isSuccess(exit)) end(job, meter, exit.value)
      else if (!isStopped) return fail(means, job, meter, exit.cause)
      else interrupt(means, job, meter)
      return Effect.void
    })
  })
