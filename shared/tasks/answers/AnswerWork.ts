/** Performs a task whose result is the answer to a request: asks for units of the key's limits, then runs `StoredAnswer.ts`. */
import { Clock, Effect, Option, Random } from "effect"
import type { PulledJob } from "../../bus/worker/JobSource.ts"
import { InternalError, type JobError, WorkerLost } from "../../contract/JobError.ts"
import type { Owner } from "../../contract/Owner.ts"
import type { Holds, NotNow, Spend } from "../../limits/Holds.ts"
import type { Announcer } from "../../webhooks/Announcer.ts"
import type { Event } from "../../webhooks/Delivery.ts"
import type { ClaimedTask } from "../RecordStore.ts"
import { type Failure, TaskDeferred, type TaskWork } from "../TaskLife.ts"
import { answerResult } from "./AnswerResult.ts"
import { type StoredAnswers, unconfirmed } from "./StoredAnswer.ts"
import { recordKey, type TaskPages } from "./TaskPages.ts"
import type { TaskRecord } from "../TaskRecord.ts"
import { resumption } from "../TaskState.ts"

export const ownerOf = ({ owner }: PulledJob): Effect.Effect<Owner, JobError> =>
  owner === undefined ? Effect.fail(new InternalError()) : Effect.succeed(owner)

/** Fails if an earlier worker may have caused costs, or has stored part of an answer, which a new answer would contradict. */
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

/** The longest time before a task whose key's limits were reached asks for units again, in milliseconds, give or take a quarter. */
const mostDeferredMs = 30_000

/**
 * How long work that exceeds its key's limits goes back to the queue, in milliseconds: normally at least a tenth of the time since
 * `created`, so that a large backlog does not keep the workers busy.
 */
export const deferralMs = Effect.fnUntraced(function*({ retryAfterMs }: NotNow, created: number) {
  const waitedMs = (yield* Clock.currentTimeMillis) - created
  const afterMs = Math.min(mostDeferredMs, Math.max(retryAfterMs, waitedMs / 10))
  return Math.ceil(afterMs * (yield* Random.nextBetween(0.75, 1.25)))
})

export const make = (
  answers: StoredAnswers,
  pages: TaskPages,
  holds: Holds["Service"],
  announcer: Announcer
): TaskWork => {
  const perform = Effect.fnUntraced(function*(
    claimed: ClaimedTask,
    job: PulledJob
  ): Effect.fn.Return<unknown, Failure> {
    const { id } = job
    const owner = yield* ownerOf(job)
    const { created, request } = claimed.current()
    answers.forget(id)
    yield* refuseRepetition(claimed, yield* pages.read(owner, id, 0))
    if (request === undefined) return yield* new InternalError()
    const work = { task: id, key: job.tenant, model: job.model, tokens: request.tokens }
    return yield* holds.around(work, (spend) => answer(claimed, job, owner, request.pages, spend)).pipe(
      Effect.catchTag(
        "NotNow",
        (error) => Effect.flatMap(deferralMs(error, created), (retryAfterMs) => new TaskDeferred({ retryAfterMs }))
      )
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
    return yield* answers.answer({
      job,
      body: body.value,
      spend,
      taskId: id,
      claim: {
        refusal: claimed.refusal,
        isCommitted: () => claimed.current().providerTask !== null,
        commit: ({ model, name }) => claimed.record({ event: "starting", provider: name, model }),
        retract: claimed.record({ event: "declined" })
      },
      append: (...page) => pages.append(owner, id, ...page)
    })
  })

  return {
    perform: (claimed, _, job) => perform(claimed, job),
    // nothing to stop: the call to the provider ends with the work
    stop: () => Effect.void,
    keyOf: ({ id, owner }) => owner === undefined ? id : recordKey(owner, id),
    usageOf: ({ result }) => Option.getOrUndefined(answerResult(result))?.usage,
    announce: (task, { owner }) => {
      const event = eventOf(task)
      return event === undefined || owner === undefined ? Effect.void : announcer.announce(owner.id, event)
    },
    meter: ({ id }) => answers.metered(id)
  }
}
