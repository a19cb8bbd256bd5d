/**
 * The life of a video task in a worker: claims it, decodes its request, starts it at a provider, stores the provider's
 * reference to it at once, follows it to its end, stores the video, records the completion, and writes its usage.
 *
 * Meanwhile the worker renews its claim. If a renewal is refused, the task belongs to another worker or was cancelled, and
 * all work on it stops.
 */
import { Cause, Clock, Effect, Metric, Option, Schema } from "effect"
import { maxLosses } from "../../shared/bus/protocol/Timings.ts"
import type { PulledJob } from "../../shared/bus/worker/JobSource.ts"
import { JetStreamFailed } from "../../shared/nats/JetStream.ts"
import type { Settlement } from "../../shared/bus/tasks/TaskQueue.ts"
import {
  InternalError,
  isProviderFault,
  isTransient,
  isUnsent,
  type JobError,
  PoisonJob,
  ProviderFailed,
  ProviderTimeout
} from "../../shared/contract/JobError.ts"
import { VideoGenerationRequest } from "../../shared/contract/operations/VideoGenerations.ts"
import * as TranslationWarnings from "../../shared/provider/call/TranslationWarnings.ts"
import { lostIn } from "../../shared/provider/dialects/conversation/Losses.ts"
import { fatesOf } from "../../shared/provider/dialects/conversation/SchemaFates.ts"
import * as Json from "../../shared/provider/json/Json.ts"
import * as AttemptTelemetry from "../../shared/provider/routing/AttemptTelemetry.ts"
import { patience } from "../../shared/provider/exchange/Polling.ts"
import type { VideoCall } from "../../shared/provider/call/VideoEngine.ts"
import type { VideoProvider, VideoProviders } from "../../shared/provider/routing/VideoProviders.ts"
import type { VideoTask } from "../../shared/tasks/VideoTask.ts"
import type { OwnedTask, TaskRefused, VideoTasks } from "../../shared/tasks/VideoTasks.ts"
import * as Attributes from "../../shared/telemetry/Attributes.ts"
import * as Span from "../../shared/telemetry/Span.ts"
import * as Metrics from "../../shared/telemetry/Metrics.ts"
import * as TraceParent from "../../shared/telemetry/TraceParent.ts"
import { type TaskMetering, writeUsage } from "./TaskUsage.ts"

export interface Dependencies extends TaskMetering {
  readonly tasks: VideoTasks["Service"]
  readonly providers: VideoProviders["Service"]
  /** This worker's id on the bus. */
  readonly worker: string
}

type Failure = JobError | TaskRefused | JetStreamFailed

/** The interval between renewals of the claim, in milliseconds: the time until a cancellation is noticed. */
const renewEveryMs = 500

/** The default time limit from the provider's reference to the stored video, in milliseconds. */
const defaultTotalMs = 30 * 60_000

/** The wait for a provider's limits and circuit breaker, in milliseconds; and the wait if there is another provider. */
const admittedWithinMs = 30 * 60_000
const momentMs = 100

/** The time limit for a stopping worker to release its task, in milliseconds. */
const releaseWithinMs = 2_000

const decodeRequest = Schema.decodeUnknownEffect(VideoGenerationRequest)
const fates = fatesOf(VideoGenerationRequest)

/** The request for one video, and warnings about the fields that no provider can get. */
const requestOf = Effect.fnUntraced(function*(means: Dependencies, task: VideoTask) {
  const body = Json.parse(Buffer.from(yield* means.tasks.readBody(task)).toString("utf8"))
  // ingress has decoded it by the same schema
  const request = yield* Effect.mapError(decodeRequest(body), () => new InternalError())
  return { request: { ...request, n: 1, seed: seedOf(request, task) }, lost: lostIn(body, fates) }
})

/** With one seed all videos of a request would be the same. A negative seed asks for a random one. */
const seedOf = ({ seed = null }: VideoGenerationRequest, { index }: VideoTask): number | null =>
  seed === null || seed < 0 ? seed : seed + index

/** Reports a call in a span and in metrics of its outcome and duration. */
const withTelemetry =
  ({ endpoint: { model, name } }: VideoCall, step: "start" | "follow") =>
  <A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (begun) =>
        Effect.onExit(call, (exit) =>
          Effect.map(Clock.currentTimeMillis, (ended) => {
            Metrics.update(Metrics.attempts(name, AttemptTelemetry.outcomeOf(exit)), 1)
            Metrics.update(Metrics.attemptDuration(name, model), (ended - begun) / 1_000)
          }))
    ).pipe(
      Span.around(`video.generations ${model}`, { kind: "client" }, Attributes.videoStep({ name, model }, step))
    )

interface Started {
  readonly call: VideoCall
  readonly provider: VideoProvider
  readonly task: unknown
}

/** Stops the task at its provider, which would otherwise finish it and charge for it. */
const stopAt = ({ call, provider, task }: Started) =>
  provider.engine.cancel(call, task).pipe(
    Effect.retry({ schedule: patience, while: isTransient }),
    Effect.catch((error) =>
      Effect.logWarning("a task may still run at its provider", {
        id: call.id,
        provider: call.endpoint.name,
        error: error.message
      })
    )
  )

/** Submits the task to a provider and stores the provider's reference to it. */
const submit = (
  { asked, owned }: Work,
  call: VideoCall,
  provider: VideoProvider
): Effect.Effect<Started, Failure> => {
  const { model, name } = call.endpoint
  return Effect.andThen(
    Effect.map(owned.record({ event: "starting", provider: name, model }), () => {
      if (asked.has(name)) Metrics.update(Metrics.retries(name), 1)
      else if (asked.size > 0) Metrics.update(Metrics.fallbacks(name), 1)
      asked.add(name)
    }),
    // a start is finished even if the task is cancelled or the worker stops meanwhile, so that no task at a provider is
    // unknown here
    provider.engine.start(call).pipe(
      Effect.map((task): Started => ({ call, provider, task })),
      Effect.tap((started) =>
        Effect.tapError(owned.record({ event: "started", task: started.task }), () => stopAt(started))
      ),
      Effect.uninterruptible
    )
  ).pipe(withTelemetry(call, "start"))
}

const isOfStore = (error: Failure): error is TaskRefused | JetStreamFailed =>
  error._tag === "TaskRefused" || error._tag === "JetStreamFailed"

const unconfirmed = (provider: string) =>
  new ProviderFailed({ provider, reason: "unconfirmed", status: null, retryAfterMs: null })

/** One claimed task. */
interface Work {
  readonly means: Dependencies
  readonly owned: OwnedTask
  readonly request: VideoGenerationRequest
  /** Warnings about unknown fields of the request. */
  readonly lost: ReadonlyArray<string>
  readonly report: (progress: number) => void
  /** The names of the providers called so far. */
  readonly asked: Set<string>
}

/** From the provider's reference to the stored video. */
const follow = Effect.fnUntraced(function*({ lost, means, owned, report }: Work, started: Started) {
  const { call, provider, task } = started
  const totalMs = provider.endpoint.provider.timeouts?.totalMs ?? defaultTotalMs
  const video = yield* provider.engine.follow(call, task, report).pipe(
    Effect.timeoutOrElse({
      duration: totalMs,
      orElse: () => Effect.fail(new ProviderTimeout({ provider: provider.endpoint.name, phase: "total" }))
    }),
    withTelemetry(call, "follow"),
    // the provider is still at work
    Effect.tapErrorTag("ProviderTimeout", () => stopAt(started))
  )
  yield* means.tasks.writeContent(owned.current().id, video.bytes)
  const { bytes: { length: size }, format, metadata } = video
  const warnings = TranslationWarnings.bounded([...metadata.warnings ?? [], ...lost])
  const result = { format, metadata: { ...metadata, ...(warnings.length === 0 ? {} : { warnings }) }, size }
  yield* owned.record({ event: "completed", result })
})

/** Finds the provider that already has the task; `undefined` if no provider has it. */
const findStarted = Effect.fnUntraced(function*(
  { means, owned, request }: Work
): Effect.fn.Return<Started | undefined, Failure> {
  const { id, providerTask } = owned.current()
  if (providerTask === null) return undefined
  const provider = means.providers.find(providerTask.provider, providerTask.model)
  if (provider !== undefined && providerTask.task !== null) {
    return { call: { id, request, endpoint: provider.endpoint }, provider, task: providerTask.task }
  }
  // the last worker may have been lost before or after it called the provider
  return provider?.mayRepeat === true ? undefined : yield* unconfirmed(providerTask.provider)
})

/** Runs the work at one provider, waiting for its limits and circuit breaker until a time (epoch milliseconds). */
const runAt = (provider: VideoProvider, work: Work, until: number) => {
  const { owned, request } = work
  const call = { id: owned.current().id, request, endpoint: provider.endpoint }
  const begun = provider.begin({
    until,
    submit: submit(work, call, provider),
    failureOf: (error) => isOfStore(error) ? undefined : error,
    follow: (started) => follow(work, started)
  })
  const waiting: typeof begun = Effect.catchTag(begun, "Skipped", (passed) =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        passed.reason === "busy" || now + passed.retryAfterMs > until
          ? Effect.fail(passed)
          : Effect.andThen(Effect.sleep(passed.retryAfterMs), waiting)
    ))
  return Effect.retry(waiting, {
    schedule: patience,
    while: (error) =>
      error._tag !== "Skipped" && !isOfStore(error) && isTransient(error) && (provider.mayRepeat || isUnsent(error))
  })
}

/** Runs the work at the first provider that takes it. Waits for busy providers only after trying all others. */
const runAnywhere = Effect.fnUntraced(function*(work: Work): Effect.fn.Return<void, Failure> {
  const { id, model } = work.owned.current()
  const providers = yield* work.means.providers.forModel(model)
  const turns = providers.map((provider) => ({
    provider,
    waitMs: providers.length === 1 ? admittedWithinMs : momentMs
  }))
  let failure: JobError | undefined
  for (const { provider, waitMs } of turns) {
    const { name } = provider.endpoint
    const result = yield* Effect.result(runAt(provider, work, (yield* Clock.currentTimeMillis) + waitMs))
    if (result._tag === "Success") return yield* result.success
    const miss = result.failure
    if (miss._tag === "Skipped") {
      failure ??= miss.toError(name)
      if (waitMs === momentMs) turns.push({ provider, waitMs: admittedWithinMs })
      continue
    }
    if (isOfStore(miss)) return yield* miss
    failure = miss
    // another provider would reject the request, too
    if (!isProviderFault(failure)) break
    if (!provider.mayRepeat && !isUnsent(failure)) {
      yield* Effect.logWarning("a task may have been submitted to its provider", { id, error: failure.message })
      return yield* unconfirmed(name)
    }
  }
  return yield* failure ?? new InternalError()
})

/** From the request to the stored video. */
const perform = Effect.fnUntraced(function*(means: Dependencies, owned: OwnedTask, report: (progress: number) => void) {
  if (owned.current().losses >= maxLosses) {
    Metrics.update(Metrics.poisonJobs("video", owned.current().pool), 1)
    yield* Effect.logError("task failed: two workers were lost while running it", { id: owned.current().id })
    return yield* new PoisonJob()
  }
  const work: Work = { means, owned, ...yield* requestOf(means, owned.current()), report, asked: new Set() }
  const started = yield* findStarted(work)
  yield* started === undefined ? runAnywhere(work) : follow(work, started)
})

/** Renews the claim until a renewal is refused. */
const renewClaim = (owned: OwnedTask, progress: () => number): Effect.Effect<never, TaskRefused | JetStreamFailed> =>
  Effect.forever(
    Effect.andThen(
      Effect.sleep(renewEveryMs),
      Effect.suspend(() => owned.record({ event: "renewed", progress: progress() }))
    )
  )

/** Stops a cancelled task at its provider. May be repeated: every worker that finds it cancelled does this. */
const stopCancelled = Effect.fnUntraced(function*(means: Dependencies, id: string) {
  const task = Option.getOrUndefined(yield* means.tasks.find(id))
  if (task?.status !== "cancelled" || task.providerTask === null || task.providerTask.task === null) return
  const provider = means.providers.find(task.providerTask.provider, task.providerTask.model)
  if (provider === undefined) return
  const { request } = yield* requestOf(means, task)
  const call = { id, request, endpoint: provider.endpoint }
  yield* stopAt({ call, provider, task: task.providerTask.task })
})

/** Handles a failure of the work, and returns whether the queue is done with the task. */
const recover = (
  means: Dependencies,
  id: string,
  owned: OwnedTask | undefined,
  cause: Cause.Cause<Failure>
): Effect.Effect<Settlement, Failure> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error === undefined && Cause.hasInterruptsOnly(cause)) return Effect.interrupt
  switch (error?._tag) {
    case "JetStreamFailed":
      return Effect.as(Effect.logWarning("task returned to its queue", { id, detail: error.message }), "later")
    case "TaskRefused":
      return error.refusal === "fenced" || error.refusal === "unreadable"
        ? Effect.succeed("later")
        : Effect.as(stopCancelled(means, id), "done" as const)
    default: {
      const ours = error === undefined
      const outcome = ours ? new InternalError() : error
      return Effect.gen(function*() {
        if (ours) yield* Effect.logError("task failed by an internal error", { id }, cause)
        Metrics.update(Metrics.jobs("video.generations", outcome._tag), 1)
        if (owned !== undefined) yield* owned.record({ event: "failed", error: outcome })
        return "done" as const
      })
    }
  }
}

const settle = (means: Dependencies, id: string, owned: OwnedTask): Effect.Effect<Settlement, Failure> => {
  let progress = 0
  const work = perform(means, owned, (percent) => void (progress = percent))
  return Effect.raceFirst(work, renewClaim(owned, () => progress)).pipe(
    Effect.andThen(Metric.update(Metrics.jobs("video.generations", "Done"), 1)),
    Effect.as("done" as const),
    Effect.onInterrupt(() => owned.record({ event: "released" }).pipe(Effect.timeout(releaseWithinMs), Effect.ignore)),
    Effect.catchCause((cause) => recover(means, id, owned, cause))
  )
}

/**
 * How long a new task may be unknown, in milliseconds: a server that was the leader until a moment ago does not know its record,
 * which ingress stores before it submits the task.
 */
const unknownForMs = 60_000

export const runTask = (means: Dependencies, job: PulledJob): Effect.Effect<Settlement> =>
  Effect.flatMap(Clock.currentTimeMillis, (begun) =>
    means.tasks.claim(job.id, means.worker).pipe(
      Effect.catchIf(
        (error) =>
          error._tag === "TaskRefused" && error.refusal === "unknown" && begun - job.publishedAt < unknownForMs,
        () => Effect.fail(new JetStreamFailed({ detail: "the task's record cannot be read yet" }))
      ),
      Effect.flatMap((owned) => settle(means, job.id, owned)),
      // a refused claim, or an end that could not be written
      Effect.catchCause((cause) => recover(means, job.id, undefined, cause)),
      Effect.tap((settlement) => settlement === "done" ? writeUsage(means.tasks, means, job.id) : Effect.void),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.as(Effect.logWarning("task returned to its queue", { id: job.id }, cause), "later" as const)
      ),
      Span.around(`process ${job.subject}`, { kind: "consumer", ...TraceParent.asParent(job.traceparent) }, (span) => {
        Attributes.pulled(job)(span)
        span.attribute(Attributes.name.queueMs, Math.max(0, begun - job.publishedAt))
      })
    ))
