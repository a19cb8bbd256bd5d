/**
 * The work of a video task: decodes its request, starts it at a provider, stores the provider's reference to it immediately, follows
 * it to its end and stores the video. A later worker follows what an earlier one has started.
 */
import { Clock, Effect, Exit, Option, Schema } from "effect"
import * as ExactJson from "../../shared/bounds/ExactJson.ts"
import {
  InternalError,
  isProviderFault,
  isTransient,
  isUnsent,
  type JobError,
  ProviderFailed
} from "../../shared/contract/JobError.ts"
import { VideoGenerationRequest, videoGenerations } from "../../shared/contract/operations/VideoGenerations.ts"
import { largestUsage } from "../../shared/contract/TokenEstimate.ts"
import type { Guardrail } from "../../shared/guardrail/Guardrail.ts"
import type { Holds, Spend } from "../../shared/limits/Holds.ts"
import * as TranslationWarnings from "../../shared/provider/call/TranslationWarnings.ts"
import { exactSeed } from "../../shared/provider/dialects/conversation/ClientRequest.ts"
import type { Seed } from "../../shared/provider/dialects/conversation/Conversation.ts"
import { lostIn } from "../../shared/provider/dialects/conversation/Losses.ts"
import { fatesOf } from "../../shared/provider/dialects/conversation/SchemaFates.ts"
import * as Json from "../../shared/provider/json/Json.ts"
import { patience } from "../../shared/provider/exchange/Polling.ts"
import type { VideoCall, VideoRequest } from "../../shared/provider/call/VideoEngine.ts"
import * as Endpoint from "../../shared/provider/transport/Endpoint.ts"
import type { VideoProvider, VideoProviders } from "../../shared/provider/routing/VideoProviders.ts"
import { deferralMs } from "../../shared/tasks/answers/AnswerWork.ts"
import { type Failure, isInterruption, TaskDeferred, type TaskWork } from "../../shared/tasks/TaskLife.ts"
import type { TaskRecord } from "../../shared/tasks/TaskRecord.ts"
import { resumption } from "../../shared/tasks/TaskState.ts"
import type { ClaimedTask } from "../../shared/tasks/RecordStore.ts"
import type { TaskStore } from "../../shared/tasks/TaskStore.ts"
import { type VideoResult, videoResult } from "../../shared/tasks/VideoResult.ts"
import * as Attributes from "../../shared/telemetry/Attributes.ts"
import * as Span from "../../shared/telemetry/Span.ts"
import * as Metrics from "../../shared/telemetry/Metrics.ts"
import * as Outcome from "../../shared/telemetry/Outcome.ts"

interface Dependencies {
  readonly guardrail: Pick<Guardrail["Service"], "checkRequest">
  readonly store: TaskStore["Service"]
  readonly providers: VideoProviders["Service"]
  /** Runs the work while its cost is reserved in the budgets of its key. */
  readonly reserve: Holds["Service"]["around"]
}

/** How long to wait for a provider's limits and circuit breaker, in milliseconds: normally, and while another can be tried first. */
const admittedWithinMs = 30 * 60_000
const momentMs = 100

const decodeRequest = Schema.decodeUnknownEffect(VideoGenerationRequest)
const fates = fatesOf(VideoGenerationRequest)

/** The request for one video, and warnings about the fields that no provider can get. */
const requestOf = Effect.fnUntraced(function*(dependencies: Dependencies, task: TaskRecord) {
  const text = Buffer.from(yield* dependencies.store.readBody(task)).toString("utf8")
  const body = Json.parse(text)
  // ingress has decoded it by the same schema
  const request = yield* Effect.mapError(decodeRequest(body), () => new InternalError())
  return { request: { ...request, n: 1, seed: seedOf(request.seed, text, task) }, lost: lostIn(body, fates) }
})

/** Seeds differ between the videos of a request, or all of them would be the same. A negative seed asks for a random one. */
const seedOf = (seed: number | null = null, text: string, { index }: TaskRecord): Seed | null => {
  if (seed === null) return null
  const step = seed < 0 ? 0 : index
  if (Number.isSafeInteger(seed + step)) return seed + step
  // the request's text has the digits that JavaScript's numbers lack
  const digits = ExactJson.toBigInt(exactSeed({ body: Buffer.from(text) }, "seed") ?? seed)
  return digits === undefined ? seed : ExactJson.fromBigInt(digits + BigInt(step))
}

/** Reports a call in a span and in metrics of its outcome and duration. */
const withTelemetry =
  ({ endpoint: { model, name } }: VideoCall, step: "start" | "follow") =>
  <A, E extends { readonly _tag: string }>(call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (begun) =>
        Effect.onExit(call, (exit) =>
          Effect.map(Clock.currentTimeMillis, (ended) => {
            Metrics.update(Metrics.attempts(name, Outcome.ofExit(exit)), 1)
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

const toStarted = (
  { id }: TaskRecord,
  request: VideoRequest,
  { provider, reference }: { readonly provider: VideoProvider; readonly reference: unknown }
): Started => ({ call: { id, request, endpoint: provider.endpoint }, provider, task: reference })

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
  { asked, claimed, spend }: Work,
  call: VideoCall,
  provider: VideoProvider
): Effect.Effect<Started, Failure> => {
  const { model, name } = call.endpoint
  // recorded before the wait for the next call, in which this worker may stop
  const decline = Effect.map(claimed.record({ event: "declined" }), () => spend("nothing"))
  return Effect.andThen(
    Effect.map(claimed.record({ event: "starting", provider: name, model }), () => {
      if (asked.has(name)) Metrics.update(Metrics.retries(name), 1)
      else if (asked.size > 0) Metrics.update(Metrics.fallbacks(name), 1)
      asked.add(name)
      // from here on, the call may cost what was reserved
      spend(undefined)
    }),
    // a start is finished even if the task is cancelled or the worker stops meanwhile, so that no task at a provider is
    // unknown here
    provider.engine.start(call).pipe(
      Effect.tapError((error) => isUnsent(error) ? decline : Effect.void),
      Effect.map((task): Started => ({ call, provider, task })),
      Effect.tap((started) =>
        Effect.tapError(claimed.record({ event: "started", task: started.task }), () => stopAt(started))
      ),
      Effect.uninterruptible
    )
  ).pipe(withTelemetry(call, "start"))
}

const unconfirmed = (provider: string) =>
  new ProviderFailed({ provider, reason: "unconfirmed", status: null, retryAfterMs: null })

/** One claimed task. */
interface Work {
  readonly dependencies: Dependencies
  readonly claimed: ClaimedTask
  readonly request: VideoRequest
  /** Warnings about unknown fields of the request. */
  readonly lost: ReadonlyArray<string>
  readonly report: (progress: number) => void
  /** The names of the providers called so far. */
  readonly asked: Set<string>
  readonly spend: Spend
}

/** Follows a started task from the provider's reference to the stored video. */
const follow = Effect.fnUntraced(function*({ lost, dependencies, claimed, report }: Work, started: Started) {
  const { call, provider, task } = started
  const { endpoint } = provider
  const video = yield* provider.engine.follow(call, task, report).pipe(
    Effect.timeoutOrElse({
      duration: Endpoint.timeoutsOf(endpoint).totalMs,
      orElse: () => Effect.fail(Endpoint.timedOut(endpoint, "total"))
    }),
    withTelemetry(call, "follow"),
    // the provider is still at work
    Effect.tapErrorTag("ProviderTimeout", () => stopAt(started))
  )
  yield* dependencies.store.writeContent(claimed.current().id, video.bytes)
  const { bytes: { length: size }, format, metadata } = video
  const warnings = TranslationWarnings.bounded([...metadata.warnings ?? [], ...lost])
  const result: VideoResult = {
    format,
    metadata: { ...metadata, ...(warnings.length === 0 ? {} : { warnings }) },
    size
  }
  return result
})

/** Runs the work at one provider, waiting for its limits and circuit breaker until a time (epoch milliseconds). */
const runAt = (provider: VideoProvider, work: Work, until: number) => {
  const { claimed, request } = work
  const call = { id: claimed.current().id, request, endpoint: provider.endpoint }
  const begun = provider.begin({
    owner: claimed.current().tenant,
    until,
    submit: submit(work, call, provider),
    failureOf: (error) => isInterruption(error) ? undefined : error,
    follow: (started) => follow(work, started)
  })
  const waiting: typeof begun = Effect.catchTag(begun, "Skipped", (passed) =>
    Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        passed.isBusy || now + passed.retryAfterMs > until
          ? Effect.fail(passed)
          : Effect.andThen(Effect.sleep(passed.retryAfterMs), waiting)
    ))
  return Effect.retry(waiting, {
    schedule: patience,
    while: (error) =>
      error._tag !== "Skipped" && !isInterruption(error) && isTransient(error) &&
      (provider.mayRepeat || isUnsent(error))
  })
}

/** Runs the work at the first provider that takes it. Waits for busy providers only after trying all others. */
const runAnywhere = Effect.fnUntraced(function*(work: Work): Effect.fn.Return<VideoResult, Failure> {
  const { id, model } = work.claimed.current()
  const providers = yield* work.dependencies.providers.forModel(model)
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
    if (isInterruption(miss)) return yield* miss
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

/** Fails unless the model's guardrail allows the request. */
const check = Effect.fnUntraced(function*({ guardrail, store }: Dependencies, task: TaskRecord) {
  const { id, model, tenant } = task
  const body = yield* store.readBody(task)
  const span = Option.getOrUndefined(yield* Effect.option(Effect.currentSpan))
  yield* guardrail.checkRequest({
    ...{ id, model, tenant, body },
    operation: videoGenerations,
    contentType: "application/json",
    onChecked: (direction, outcome) => span === undefined ? undefined : Attributes.checked(direction, outcome)(span)
  })
})

/** The amount that a video takes from budgets. */
const costOf = (
  { id, model, tenant }: TaskRecord,
  request: VideoRequest
): Parameters<Dependencies["reserve"]>[0] => {
  const fields: Readonly<Record<string, unknown>> = request
  const { seconds = 0 } = largestUsage(videoGenerations, 0, (name) => fields[name])
  return { task: id, key: tenant, model, tokens: 0, seconds }
}

/** Does the whole work, from the request to the stored video. */
const perform = Effect.fnUntraced(function*(
  dependencies: Dependencies,
  claimed: ClaimedTask,
  report: (progress: number) => void
): Effect.fn.Return<VideoResult, Failure> {
  const task = claimed.current()
  const asked = yield* requestOf(dependencies, task)
  const workWith = (spend: Spend): Work => ({ dependencies, claimed, ...asked, report, asked: new Set(), spend })
  // an earlier worker may have spent what is reserved
  const hasBegun = task.providerTask !== null
  const reserved = (use: (spend: Spend) => Effect.Effect<VideoResult, Failure>) =>
    dependencies.reserve(costOf(task, asked.request), use, hasBegun).pipe(
      Effect.catchTag(
        "NotNow",
        (error) => Effect.flatMap(deferralMs(error, task.created), (retryAfterMs) => new TaskDeferred({ retryAfterMs }))
      )
    )
  const next = resumption(task, dependencies.providers.find)
  switch (next.step) {
    case "begin":
      return yield* reserved((spend) => Effect.andThen(check(dependencies, task), runAnywhere(workWith(spend))))
    case "continue":
      return yield* reserved((spend) => {
        spend(undefined)
        return follow(workWith(spend), toStarted(task, asked.request, next))
      })
    case "unconfirmed":
      return yield* unconfirmed(next.provider)
  }
})

const stop = Effect.fnUntraced(function*(dependencies: Dependencies, task: TaskRecord) {
  const next = resumption(task, dependencies.providers.find)
  if (next.step !== "continue") return
  const { request } = yield* requestOf(dependencies, task)
  yield* stopAt(toStarted(task, request, next))
})

const count = (exit: Exit.Exit<VideoResult, Failure>): Effect.Effect<void> =>
  Effect.sync(() => {
    if (Exit.hasInterrupts(exit)) return
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (error !== undefined && isInterruption(error)) return
    Metrics.update(Metrics.jobs("video.generations", Outcome.ofExit(exit)), 1)
  })

export const make = (dependencies: Dependencies): TaskWork => ({
  perform: (claimed, report) => Effect.onExit(perform(dependencies, claimed, report), count),
  stop: (task) => stop(dependencies, task),
  keyOf: ({ id }) => id,
  usageOf: ({ result }) =>
    Option.getOrUndefined(Option.map(
      videoResult(result),
      ({ metadata: { duration } }) => ({ inputTokens: 0, outputTokens: 0, seconds: duration })
    ))
})
