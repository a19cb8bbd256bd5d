/**
 * Answers a request, and stores the answer. The pipeline is that of a job (`JobLife.ts`), with storage in place of the waiting ingress:
 * claims are recorded instead of agreed with the ingress, and the answer is written in pages.
 */
import { Clock, Effect, Latch } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { monotonicMs } from "../../bounds/MonotonicClock.ts"
import type { ServedJob } from "../../bus/worker/JobServer.ts"
import type { PulledJob } from "../../bus/worker/JobSource.ts"
import { Cancelled, InternalError, ProviderFailed } from "../../contract/JobError.ts"
import type { Spend } from "../../limits/Holds.ts"
import * as JobLife from "../../worker/JobLife.ts"
import type { Endpoint } from "../../worker/Meter.ts"
import type { Failure } from "../TaskLife.ts"
import type { AnswerResult } from "./AnswerResult.ts"
import { type Claim, TaskReply, type TaskReplyOptions } from "./TaskReply.ts"

/** How long a request may wait for a provider's limits and circuit breakers, in milliseconds. */
const admittedWithinMs = 30 * 60_000

/** How long to wait for the usage event of a task to be stored, in milliseconds. */
const meteredWithinMs = 10_000

const nothing = () => undefined
/** The work of a task keeps its slot while it waits. */
const keepsSlot = () => nothing

export const unconfirmed = (provider: string) =>
  new ProviderFailed({ provider, reason: "unconfirmed", status: null, retryAfterMs: null })

/** A worker's claim to a request. */
export interface RequestClaim extends Claim {
  /** Records that this provider is about to be called. */
  readonly commit: (endpoint: Endpoint) => Effect.Effect<unknown, Failure>
  /** Records that the provider has certainly done no work for the last call. */
  readonly retract: Effect.Effect<unknown, Failure>
}

export interface StoredRequest {
  readonly job: PulledJob
  readonly body: Uint8Array
  readonly claim: RequestClaim
  readonly append: TaskReplyOptions["append"]
  readonly spend: Spend
  /** A call to this provider counts: it is about to be made, or has been made. */
  readonly onCall?: (endpoint: Endpoint) => void
  /** The task's id, for the operation's own code. Absent if the answer has no id of its own. */
  readonly taskId?: string
}

export interface StoredAnswers {
  /** Answers a request, and returns when the last page is stored. */
  readonly answer: (request: StoredRequest) => Effect.Effect<AnswerResult, Failure>
  /** Waits until the usage event of work that ran here is stored, at most `meteredWithinMs`. `false` if it did not run here. */
  readonly metered: (id: string) => Effect.Effect<boolean>
  /** Forgets the metering of an earlier run, because the work begins anew. */
  readonly forget: (id: string) => void
}

export const make = (dependencies: JobLife.Dependencies): StoredAnswers => {
  /** By id of the work that ran here; opens when its usage event is stored. */
  const metered = new Map<string, Latch.Latch>()

  const answer = Effect.fnUntraced(function*(
    { append, body, claim, job, onCall, spend, taskId }: StoredRequest
  ): Effect.fn.Return<AnswerResult, Failure> {
    const { id } = job
    const clock = yield* Clock.Clock
    const now = monotonicMs(clock)
    const reply = new TaskReply({ claim, now, append })
    /** The provider of the last call that counts. */
    let endpoint: Endpoint | undefined
    /** The latest call, which counts unless `commit` refuses it. */
    let announced: { readonly endpoint: Endpoint; readonly meter: () => void } | undefined
    let isRepeated = false
    /** How often the latest call was committed: once for each of its requests to the provider. */
    let commits = 0
    let isIncomplete = false
    let failure: Failure | undefined
    const countCall = () => {
      if (announced === undefined) return
      endpoint = announced.endpoint
      onCall?.(endpoint)
      announced.meter()
      announced = undefined
    }
    const cancel = (error: Failure) => {
      failure = error
      return new Cancelled()
    }
    /** Runs before a call that must not be made twice. Fails if an earlier call has failed but may be billed. */
    const commit = Effect.suspend((): Effect.Effect<unknown, Failure> => {
      commits++
      const none = { name: "", model: job.model }
      return isRepeated
        ? Effect.fail(unconfirmed((endpoint ?? none).name))
        : claim.commit(announced?.endpoint ?? endpoint ?? none)
    }).pipe(
      Effect.mapError((error) => {
        announced = undefined
        return cancel(error)
      }),
      Effect.asVoid
    )
    /** Runs after a call that has certainly cost nothing, unless the provider may have answered another request of the call. */
    const retract = Effect.suspend(() =>
      commits === 1 ? Effect.map(claim.retract, () => spend("nothing")) : Effect.void
    ).pipe(Effect.mapError(cancel))
    const served: ServedJob = {
      // the caller settles the queue's message once the end is recorded
      pulled: {
        ...job,
        delivery: 1,
        deadline: clock.currentTimeMillisUnsafe() + admittedWithinMs,
        free: nothing,
        acknowledge: nothing,
        giveBack: nothing,
        working: nothing,
        join: nothing,
        park: nothing
      },
      onWait: keepsSlot,
      reply,
      claim: () => Effect.void,
      commit,
      takenAt: now(),
      now,
      hold: () => {
        const stored = Latch.makeUnsafe(false)
        metered.set(id, stored)
        return () => void stored.openUnsafe()
      },
      body: Effect.succeed(body)
    }
    const performer: JobLife.Dependencies["performer"] = {
      ...dependencies.performer,
      perform: (work, reply) =>
        Fiberless.onExit(
          dependencies.performer.perform({
            ...work,
            ...(taskId === undefined ? {} : { taskId }),
            isBackground: true,
            retract,
            onIncomplete: () => void (isIncomplete = true),
            onCall: (called, repeated) => {
              countCall()
              announced = { endpoint: called, meter: () => work.onCall(called, repeated) }
              spend(undefined)
              isRepeated ||= repeated === true
              commits = 0
            },
            onCut: (usage) => {
              countCall()
              work.onCut(usage)
            }
          }, reply),
          countCall
        )
    }
    yield* Effect.all([JobLife.runJob({ ...dependencies, performer }, served), reply.writePages], {
      concurrency: "unbounded",
      discard: true
    })
    const { bytes, end, pages } = reply.outcome
    if (end === undefined) return yield* failure ?? new InternalError()
    if ("_tag" in end) {
      if (!reply.hasStarted) spend("nothing")
      return yield* end
    }
    spend(end.usage)
    return {
      pages,
      bytes,
      ...(isIncomplete ? { isIncomplete } : {}),
      ...(end.usage === undefined ? {} : { usage: end.usage })
    }
  })

  return {
    answer,
    metered: (id) =>
      Effect.suspend(() => {
        const stored = metered.get(id)
        if (stored === undefined) return Effect.succeed(false)
        metered.delete(id)
        return Effect.as(Effect.timeoutOption(stored.await, meteredWithinMs), true)
      }),
    forget: (id) => void metered.delete(id)
  }
}
