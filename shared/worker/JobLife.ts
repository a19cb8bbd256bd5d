/**
 * Runs each job of a worker: claims, decodes and performs it, ends its reply and meters it. The performer routes the job, applies the
 * provider's limits and calls the provider. The job is acknowledged when its usage event is stored, or at the end if it has none.
 */
import { Cause, Context, Effect, Exit, Option } from "effect"
import * as Fiberless from "../bounds/Fiberless.ts"
import type { Reply } from "../bus/worker/JobReply.ts"
import type { ServedJob } from "../bus/worker/JobServer.ts"
import type { ProcessState } from "../bus/provision/Presence.ts"
import { maxDeliveries } from "../bus/protocol/Timings.ts"
import { type Cancelled, InternalError, InvalidRequest, type JobError } from "../contract/JobError.ts"
import type { Operation } from "../contract/Operation.ts"
import type { Owner } from "../contract/Owner.ts"
import { operationNamed } from "../contract/operations/operations.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Outcome from "../telemetry/Outcome.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import { Meter, type Metering } from "./Meter.ts"

/** A decoded request, as the workload performs it. */
export interface Work {
  /** The id of the job or the task. */
  readonly id: string
  readonly operation: Operation
  readonly model: string
  readonly tenant: string
  /** Whose records the work may read and write; see `JobRequest`. */
  readonly owner: Owner | undefined
  readonly contentType: string
  /** The client's headers that travel with the job; see `Operation.headers`. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** See `JobRequest`. */
  readonly isPlain: boolean
  /** The latest time at which the work should start, in epoch milliseconds. */
  readonly deadline: number
  /** How long the job waited in the queue, in milliseconds. */
  readonly queuedMs: number
  /** The id of the task, if the answer outlives its client. */
  readonly taskId?: string
  /** Whether the answer is stored instead of sent on a connection. */
  readonly isBackground?: boolean
  /** Called before every call to a provider. */
  readonly onCall: Meter["called"]
  /** Called when the work begins to wait for a provider; see `ServedJob`. */
  readonly onWait: ServedJob["onWait"]
  /** Called with the usage so far, if an answer fails after it started. */
  readonly onCut: Meter["cut"]
  /** Called when a guardrail has checked the request or the answer, or could not. */
  readonly onChecked: Meter["checked"]
  /** Called if the answer is cut short, for example at its token limit. */
  readonly onIncomplete?: () => void
  /** Runs before anything that must not happen twice, even if workers are lost. */
  readonly commit: ServedJob["commit"]
  /** Takes `commit` back: runs after a call for which the provider has certainly done no work. */
  readonly retract?: ServedJob["commit"]
}

/** Performs a workload's requests. Each worker service provides one. */
export class Performer extends Context.Service<Performer, {
  /** Whether a job for this model may be performed twice. */
  readonly isIdempotent: (model: string) => boolean
  /** Writes the answer to the reply, and returns its usage. If there is no answer at all, fails before the reply has started. */
  readonly perform: (work: Work, reply: Reply) => Effect.Effect<Usage | undefined, JobError>
  /** Whose calls to which targets of providers are delayed; see `ProcessState`. */
  readonly delays?: () => NonNullable<ProcessState["delays"]>
  readonly cost: Metering["cost"]
  /** The cost of a line of a batch. */
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
        onWait: job.onWait,
        onCut: (usage) => meter.cut(usage),
        onChecked,
        commit: job.commit
      })
  })

/** Whether this worker meters a cancelled job: it may have called a provider, and no other worker has the job. */
const mayBeSent = ({ performer }: Dependencies, { pulled, reply }: ServedJob): boolean =>
  reply.isCommitted || (performer.isIdempotent(pulled.model) && !reply.isMoved)

/** Reports a failure to ingress. For a defect, which is a bug of the gateway, ingress gets `InternalError` and the log the cause. */
const fail = (
  dependencies: Dependencies,
  job: ServedJob,
  meter: Meter,
  cause: Cause.Cause<JobError>
): Effect.Effect<void> => {
  const found = Cause.findErrorOption(cause)
  const error = Option.isSome(found) ? found.value : new InternalError()
  if (error._tag === "Cancelled") {
    job.reply.abandon()
    if (mayBeSent(dependencies, job)) meter.cancelled()
  } else {
    job.reply.fail(error)
    meter.failed(error._tag)
  }
  Metrics.update(Metrics.jobs(job.pulled.operation, Outcome.ofError(error)), 1)
  return Option.isSome(found) ? Effect.void : Effect.logError(
    "job failed by a bug of the gateway",
    { job: job.pulled.id, operation: job.pulled.operation },
    cause
  )
}

const end = (job: ServedJob, meter: Meter, usage: Usage | undefined): void => {
  job.reply.end(meter.total(usage))
  meter.ended(usage)
  Metrics.update(Metrics.jobs(job.pulled.operation, Outcome.success), 1)
}

/** Meters a job that was interrupted: ingress has cancelled it, or this worker must end. */
const interrupt = (dependencies: Dependencies, job: ServedJob, meter: Meter): void => {
  if (!job.reply.isOver) meter.failed("WorkerLost")
  else if (mayBeSent(dependencies, job)) meter.cancelled()
  Metrics.update(Metrics.jobs(job.pulled.operation, Outcome.cancelled), 1)
}

/** How long to wait for the first worker of a redelivered job to store its usage event, if the job is over, in milliseconds. */
const meteringMs = 5_000

/**
 * Claims a job. If ingress refuses a redelivered job or is gone, and no other worker has the job, the job is over but not metered. Its
 * first worker may have died, or may be alive but unable to reach JetStream. So the job goes back to the queue once; if it is still
 * unsettled after `meteringMs`, it is metered as lost. An ingress that is silent but not gone may still agree later.
 */
const claim = (job: ServedJob, meter: Meter, isIdempotent: boolean): Effect.Effect<void, Cancelled> => {
  const claiming = job.claim(isIdempotent ? "idempotent" : "unsent")
  const { delivery } = job.pulled
  if (delivery === 1) return claiming
  const refused = (cause: Cause.Cause<Cancelled>) =>
    Effect.sync(() => {
      if (job.reply.isMoved) return
      // this worker must end before it learned anything about the job
      if (Cause.hasInterruptsOnly(cause) && !job.reply.isOver) job.pulled.giveBack()
      else if (delivery === 2 || (!job.reply.isOver && delivery < maxDeliveries)) job.pulled.giveBack(meteringMs)
      else meter.lost()
    })
  return Effect.onError(claiming, refused)
}

/** Claims, decodes and performs a job in its span, which gets queue time and usage. */
const perform = (
  dependencies: Dependencies,
  job: ServedJob,
  meter: Meter
): Effect.Effect<Usage | undefined, JobError> => {
  const { pulled, reply } = job
  const options = { kind: "consumer", ...TraceParent.asParent(pulled.traceparent) } as const
  return Fiberless.inSpan(`process ${pulled.subject}`, options, (span) => {
    Attributes.pulled(pulled)(span)
    const claimed = claim(job, meter, dependencies.performer.isIdempotent(pulled.model))
    const decoded = Fiberless.flatMap(claimed, () => {
      const queuedMs = Math.max(0, dependencies.now() - pulled.publishedAt)
      span.attribute(Attributes.name.queueMs, queuedMs)
      return decode(job, meter, queuedMs, (direction, outcome) => {
        meter.checked(direction, outcome)
        Attributes.checked(direction, outcome)(span)
      })
    })
    const performed = Fiberless.flatMap(decoded, (work) => dependencies.performer.perform(work, reply))
    return Fiberless.flatMap(performed, (usage) => {
      const total = meter.total(usage)
      if (total !== undefined) Attributes.usage(total)(span)
      return Exit.succeed(usage)
    })
  })
}

/** Runs a job. An ordinary job needs no fiber; see `Fiberless.ts`. */
export const runJob = (dependencies: Dependencies, job: ServedJob): Effect.Effect<void> =>
  Fiberless.suspend(() => {
    const meter = new Meter(dependencies, job)
    return Fiberless.matchExit(perform(dependencies, job, meter), (exit, { isStopped }) => {
      if (Exit.isSuccess(exit)) end(job, meter, exit.value)
      else if (!isStopped) return fail(dependencies, job, meter, exit.cause)
      else interrupt(dependencies, job, meter)
      return Effect.void
    })
  })
