/**
 * The work of a task whose result is the answer to a request: the same life that a job has, with storage in place of the ingress
 * that waits for it. The record is claimed and committed where a job asks its ingress, and the answer goes into pages.
 */
import { Clock, Effect, Latch, Option, Random } from "effect"
import { monotonicMs } from "../../bounds/MonotonicClock.ts"
import type { ServedJob } from "../../bus/worker/JobServer.ts"
import type { PulledJob } from "../../bus/worker/JobSource.ts"
import { Cancelled, InternalError, type JobError, ProviderFailed, WorkerLost } from "../../contract/JobError.ts"
import type { Owner } from "../../contract/Owner.ts"
import type { Holds, NotNow, Spend } from "../../limits/Holds.ts"
import * as JobLife from "../../worker/JobLife.ts"
import type { Endpoint } from "../../worker/Meter.ts"
import type { Announcer } from "../../webhooks/Announcer.ts"
import type { Event } from "../../webhooks/Delivery.ts"
import type { ClaimedTask } from "../RecordStore.ts"
import { type Failure, TaskDeferred, type TaskWork } from "../TaskLife.ts"
import { type AnswerResult, answerResult } from "./AnswerResult.ts"
import { recordKey, type TaskPages } from "./TaskPages.ts"
import type { TaskRecord } from "../TaskRecord.ts"
import { TaskReply } from "./TaskReply.ts"
import { resumption } from "../TaskState.ts"

/** The wait for a provider's limits and circuit breakers, in milliseconds. */
const admittedWithinMs = 30 * 60_000

/** How long the usage event of a task may take to be stored before the next worker has to see to it, in milliseconds. */
const meteredWithinMs = 10_000

const nothing = () => undefined

const unconfirmed = (provider: string) =>
  new ProviderFailed({ provider, reason: "unconfirmed", status: null, retryAfterMs: null })

const ownerOf = ({ owner }: PulledJob): Effect.Effect<Owner, JobError> =>
  owner === undefined ? Effect.fail(new InternalError()) : Effect.succeed(owner)

/** Fails if an earlier worker may have caused costs, or has stored a part of an answer that another one would contradict. */
const refuseRepetition = Effect.fnUntraced(function*(claimed: ClaimedTask, firstPage: Option.Option<unknown>) {
  const next = resumption(claimed.current(), () => undefined)
  if (next.step === "unconfirmed") return yield* unconfirmed(next.provider)
  if (Option.isSome(firstPage)) return yield* new WorkerLost()
})

/** The event at the end of a task; `undefined` if none is wanted. */
const eventOf = ({ announcedAs, ended, id, result, status, updated }: TaskRecord): Event | undefined => {
  if (announcedAs === undefined) return undefined
  const isIncomplete = Option.exists(answerResult(result), (made) => made.isIncomplete === true)
  return {
    id: `evt_${id.slice(id.indexOf("_") + 1)}`,
    type: `${announcedAs}.${isIncomplete ? "incomplete" : status}`,
    subject: id,
    at: ended ?? updated
  }
}

/** How long a task waits at most before its key's limits are asked again, in milliseconds. */
const mostDeferredMs = 30_000

/**
 * Returns a task that its key's limits do not allow now to the queue, at least for a tenth of the time that it has waited already, so
 * that many waiting tasks do not keep the workers busy.
 */
const defer = Effect.fnUntraced(function*(claimed: ClaimedTask, { retryAfterMs }: NotNow) {
  const waitedMs = (yield* Clock.currentTimeMillis) - claimed.current().created
  const afterMs = Math.min(mostDeferredMs, Math.max(retryAfterMs, waitedMs / 10))
  return yield* new TaskDeferred({ retryAfterMs: Math.ceil(afterMs * (yield* Random.nextBetween(0.75, 1.25))) })
})

export const make = (
  means: JobLife.Dependencies,
  pages: TaskPages,
  holds: Holds["Service"],
  announcer: Announcer
): TaskWork => {
  /** Whether the usage events of tasks that ran here are stored. */
  const metered = new Map<string, Latch.Latch>()

  const perform = Effect.fnUntraced(function*(
    claimed: ClaimedTask,
    job: PulledJob
  ): Effect.fn.Return<unknown, Failure> {
    const { id } = job
    const owner = yield* ownerOf(job)
    const { request } = claimed.current()
    metered.delete(id)
    yield* refuseRepetition(claimed, yield* pages.read(owner, id, 0))
    if (request === undefined) return yield* new InternalError()
    const work = { task: id, key: job.tenant, model: job.model, tokens: request.tokens }
    return yield* holds.around(work, (spend) => answer(claimed, job, owner, request.pages, spend)).pipe(
      Effect.catchTag("NotNow", (error) => defer(claimed, error))
    )
  })

  const answer = Effect.fnUntraced(function*(
    claimed: ClaimedTask,
    job: PulledJob,
    owner: Owner,
    requestPages: number,
    spend: Spend
  ): Effect.fn.Return<unknown, Failure> {
    const { id } = job
    const body = yield* pages.readRequest(owner, id, requestPages)
    if (Option.isNone(body)) return yield* new InternalError()

    const clock = yield* Clock.Clock
    const now = monotonicMs(clock)
    const reply = new TaskReply({ claimed, now, append: (...page) => pages.append(owner, id, ...page) })
    let endpoint: Endpoint | undefined
    let isRepeated = false
    let isIncomplete = false
    let failure: Failure | undefined
    /** Before a call that must not be made twice. A failed one that may be billed is not followed by another. */
    const commit = Effect.suspend((): Effect.Effect<unknown, Failure> => {
      const { model, name } = endpoint ?? { name: "", model: job.model }
      return isRepeated
        ? Effect.fail(unconfirmed(name))
        : claimed.record({ event: "starting", provider: name, model })
    }).pipe(
      Effect.mapError((error) => {
        failure = error
        return new Cancelled()
      }),
      Effect.asVoid
    )
    const served: ServedJob = {
      // the queue's message is settled when the record has ended
      pulled: {
        ...job,
        delivery: 1,
        deadline: clock.currentTimeMillisUnsafe() + admittedWithinMs,
        free: nothing,
        acknowledge: nothing,
        giveBack: nothing,
        working: nothing,
        join: nothing
      },
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
      body: Effect.succeed(body.value)
    }
    const performer: JobLife.Dependencies["performer"] = {
      ...means.performer,
      perform: (work, reply) =>
        means.performer.perform({
          ...work,
          taskId: id,
          onIncomplete: () => void (isIncomplete = true),
          onCall: (called, repeated) => {
            endpoint = called
            spend(undefined)
            isRepeated ||= repeated === true
            work.onCall(called, repeated)
          }
        }, reply)
    }
    yield* Effect.all([JobLife.runJob({ ...means, performer }, served), reply.writePages], {
      concurrency: "unbounded",
      discard: true
    })
    const { bytes, end, pages: count } = reply.outcome
    if (end === undefined) return yield* failure ?? new InternalError()
    if ("_tag" in end) {
      if (!reply.hasStarted) spend(0)
      return yield* end
    }
    spend(end.usage && end.usage.inputTokens + end.usage.outputTokens)
    return {
      pages: count,
      bytes,
      ...(isIncomplete ? { isIncomplete } : {}),
      ...(end.usage === undefined ? {} : { usage: end.usage })
    } satisfies AnswerResult
  })

  return {
    perform: (claimed, _, job) => perform(claimed, job),
    // the call ends with the work
    stop: () => Effect.void,
    keyOf: ({ id, owner }) => owner === undefined ? id : recordKey(owner, id),
    usageOf: ({ result }) => Option.getOrUndefined(answerResult(result))?.usage,
    announce: (task, { owner }) => {
      const event = eventOf(task)
      return event === undefined || owner === undefined ? Effect.void : announcer.announce(owner.id, event)
    },
    meter: (job) =>
      Effect.suspend(() => {
        const stored = metered.get(job.id)
        if (stored === undefined) return Effect.succeed(false)
        metered.delete(job.id)
        return Effect.as(Effect.timeoutOption(stored.await, meteredWithinMs), true)
      })
  }
}
