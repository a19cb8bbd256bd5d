/**
 * Ingress's side of holds: takes units of keys' limits on behalf of workers that run tasks, since workers have no access to keys and
 * their limits.
 */
import { Effect, FiberMap, FiberSet, Option, type Scope } from "effect"
import type { LimitReached } from "../bounds/Limit.ts"
import * as Subjects from "../bus/protocol/Subjects.ts"
import type { JobError } from "../contract/JobError.ts"
import type { Consumed } from "../contract/Usage.ts"
import { Nats } from "../nats/Nats.ts"
import { type Answer, decodeQuestion, encodeAnswer, type Question, silentMs, type Work } from "./HoldMessage.ts"

/** Returns the units of work that has ended. */
export type SettleWork = (used: Consumed) => void

/** The retry time of a task while another one of its key waits for units, in milliseconds. */
const waitsMs = 1_000

/**
 * Answers workers until the scope closes. `take` takes the units that the work needs from the limits of its key, immediately or after a
 * short wait. At most one task of a key waits, since a waiting task occupies a worker's slot.
 */
export const serve = Effect.fnUntraced(function*(
  take: (work: Work) => Effect.Effect<SettleWork, LimitReached | JobError>
): Effect.fn.Return<void, never, Nats | Scope.Scope> {
  const nats = yield* Nats
  const run = yield* FiberSet.makeRuntime<never, void, never>()
  const expiries = yield* FiberMap.make<string>()
  const expire = yield* FiberMap.runtime(expiries)<never>()
  const held = new Map<string, SettleWork>()
  const waiting = new Set<string>()

  const settle = (task: string, used: Consumed): void => {
    held.get(task)?.(used)
    held.delete(task)
  }
  const renew = (task: string): void =>
    void expire(task, Effect.delay(Effect.sync(() => settle(task, undefined)), silentMs))

  const takeOnce = (work: Work): Effect.Effect<Answer> =>
    Effect.suspend(() => {
      const { key, task } = work
      if (held.has(task)) return Effect.succeed<Answer>({ answer: "held" })
      if (waiting.has(key)) return Effect.succeed<Answer>({ answer: "later", retryAfterMs: waitsMs })
      waiting.add(key)
      return take(work).pipe(
        Effect.map((settle): Answer => {
          held.set(task, settle)
          return { answer: "held" }
        }),
        Effect.catch((error) =>
          Effect.succeed<Answer>(
            error._tag === "LimitReached" || error._tag === "LimitsUnavailable" || error._tag === "Unavailable"
              ? { answer: "later", retryAfterMs: error.retryAfterMs }
              : { answer: "refused", error }
          )
        ),
        Effect.ensuring(Effect.sync(() => waiting.delete(key)))
      )
    }).pipe(Effect.tap(({ answer }) => Effect.sync(() => answer === "held" ? renew(work.task) : undefined)))

  const answerTo = (question: Question): Effect.Effect<Answer> => {
    switch (question.ask) {
      case "take":
        return takeOnce(question.work)
      case "renew":
        if (!held.has(question.task)) return Effect.succeed({ answer: "unknown" })
        renew(question.task)
        return Effect.succeed({ answer: "held" })
      case "settle":
        settle(question.task, question.used ?? undefined)
        return Effect.as(FiberMap.remove(expiries, question.task), { answer: "unknown" })
    }
  }

  const subscriptions = [
    nats.subscribe(Subjects.admittersSubjects, (message) => void message.respond(nats.id)),
    nats.subscribe(Subjects.admitInbox(nats.id), (message) => {
      const question = decodeQuestion(message.string())
      if (Option.isNone(question)) return
      run(Effect.map(answerTo(question.value), (answer) => void message.respond(encodeAnswer(answer))))
    })
  ]
  yield* Effect.addFinalizer(() => Effect.sync(() => subscriptions.forEach((one) => one.unsubscribe())))
})
