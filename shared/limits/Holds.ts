/**
 * A worker's side of holds: asks an ingress to hold units of a key's limits while the worker runs a task. If that ingress is gone, its
 * units return by themselves, and another ingress holds what the work still needs.
 */
import { Context, Effect, Layer, Option, Schema } from "effect"
import * as Subjects from "../bus/protocol/Subjects.ts"
import type { JobError } from "../contract/JobError.ts"
import type { Workload } from "../contract/Operation.ts"
import type { Consumed } from "../contract/Usage.ts"
import { attempt, JetStreamFailed } from "../nats/JetStream.ts"
import { Nats } from "../nats/Nats.ts"
import {
  type Answer,
  answerWithinMs,
  decodeAnswer,
  encodeQuestion,
  type Question,
  renewMs,
  type Work
} from "./HoldMessage.ts"

/** The key has no units now, or no ingress answers. */
export class NotNow extends Schema.TaggedError<NotNow>()("NotNow", { retryAfterMs: Schema.Finite }) {}

/** Reports what the work has used. */
export type Spend = (used: Consumed) => void

/** How long the search for an ingress may take, in milliseconds. */
const findWithinMs = 1_000

/** When to try again if no ingress answers, in milliseconds. */
const unansweredMs = 2_000

interface Hold {
  /** The ingress that holds the units; `undefined` if there is none yet. */
  ingress: string | undefined
  used: Consumed
}

const unheld = (): Hold => ({ ingress: undefined, used: "nothing" })

/** Work that has begun may have been paid for, so it goes on, but not without a trace. */
const goesOn = ({ key, task }: Work, reason: string) =>
  Effect.logWarning("a task goes on without a hold on its key's limits, until an ingress gives one", {
    task,
    key,
    reason
  })

export class Holds extends Context.Service<Holds, {
  /**
   * Runs `use` while an ingress holds the units of the work. Until `use` calls `spend`, the work counts as having used nothing. Fails
   * with `NotNow`, or with the error for which the key may not do this work at all. If `hasBegun`, `use` runs even without a hold, and
   * an ingress takes the hold as soon as it can.
   */
  readonly around: <A, E>(
    work: Work,
    use: (spend: Spend) => Effect.Effect<A, E>,
    hasBegun?: boolean
  ) => Effect.Effect<A, E | JobError | NotNow>
}>()("shared/limits/Holds") {
  static readonly layer = (workload: Workload) =>
    Layer.effect(
      Holds,
      Effect.gen(function*() {
        const nats = yield* Nats
        const { connection } = nats
        let known: string | undefined

        /** The known ingress, or else the first one that answers. */
        const find = Effect.suspend(() =>
          known !== undefined ? Effect.succeed(known) : Effect.map(
            attempt(() => connection.request(Subjects.admittersSubject(workload), "", { timeout: findWithinMs })),
            (answer) => known = answer.string()
          )
        )

        const askAt = (ingress: string, question: Question): Effect.Effect<Answer, JetStreamFailed> =>
          attempt(() =>
            connection.request(Subjects.admitSubject(workload, ingress), encodeQuestion(question), {
              timeout: answerWithinMs
            })
          ).pipe(
            Effect.flatMap((answer) =>
              Effect.fromOption(
                decodeAnswer(answer.string()),
                () => new JetStreamFailed({ detail: "unreadable answer" })
              )
            ),
            Effect.tapError(() => Effect.sync(() => known === ingress ? known = undefined : undefined))
          )

        const take = (work: Work) =>
          Effect.flatMap(
            find,
            (ingress) => Effect.map(askAt(ingress, { ask: "take", work }), (answer) => ({ ingress, answer }))
          )

        const acquire = Effect.fnUntraced(function*(work: Work): Effect.fn.Return<Hold, JobError | NotNow> {
          // retried once, because the known ingress may be gone
          const { answer, ingress } = yield* Effect.retry(take(work), { times: 1 }).pipe(
            Effect.mapError(() => new NotNow({ retryAfterMs: unansweredMs }))
          )
          if (answer.answer === "refused") return yield* answer.error
          if (answer.answer === "held") return { ingress, used: "nothing" }
          return yield* new NotNow({ retryAfterMs: "retryAfterMs" in answer ? answer.retryAfterMs : unansweredMs })
        })

        /** Renews the hold forever. Work that has begun continues, whatever the answer. */
        const renew = (work: Work, hold: Hold): Effect.Effect<never> =>
          Effect.forever(Effect.gen(function*() {
            yield* Effect.sleep(renewMs)
            const { task } = work
            if (hold.ingress !== undefined) {
              const renewed = yield* Effect.option(askAt(hold.ingress, { ask: "renew", task }))
              if (Option.isSome(renewed) && renewed.value.answer === "held") return
            }
            const taken = yield* Effect.option(take({ ...work, isHoldLost: true }))
            if (Option.isSome(taken) && taken.value.answer.answer === "held") hold.ingress = taken.value.ingress
          }))

        return Holds.of({
          around: (work, use, hasBegun = false) =>
            Effect.acquireUseRelease(
              hasBegun
                ? Effect.catch(acquire(work), ({ _tag }) => Effect.as(goesOn(work, _tag), unheld()))
                : acquire(work),
              (hold) => Effect.raceFirst(use((used) => void (hold.used = used)), renew(work, hold)),
              ({ ingress, used }) =>
                ingress === undefined ? Effect.void : Effect.ignore(Effect.try(() => {
                  const settled = encodeQuestion({ ask: "settle", task: work.task, used: used ?? null })
                  // published directly, so that it precedes the next question, which bypasses the outbox too
                  connection.publish(Subjects.admitSubject(workload, ingress), settled)
                }))
            )
        })
      })
    )
}
