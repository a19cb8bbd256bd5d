/**
 * Wakes the readers of a task when it has a new page or has ended. A hint may be lost, so readers also look from time to time.
 */
import { Effect, Latch, type Scope } from "effect"
import * as Subjects from "../../bus/protocol/Subjects.ts"
import type { Nats } from "../../nats/Nats.ts"

export interface TaskHints {
  readonly give: (recordKey: string) => void
  /** Returns an effect that waits for a hint that was given after the effect's previous run. */
  readonly follow: (recordKey: string) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
}

export const make = ({ outbox, subscribe }: Pick<Nats["Service"], "outbox" | "subscribe">): TaskHints => ({
  give: (recordKey) => outbox.publish(Subjects.taskHintSubject(recordKey)),
  follow: Effect.fnUntraced(function*(recordKey) {
    const hinted = Latch.makeUnsafe(false)
    yield* Effect.acquireRelease(
      Effect.sync(() => subscribe(Subjects.taskHintSubject(recordKey), () => hinted.openUnsafe())),
      (subscription) => Effect.sync(() => subscription.unsubscribe())
    )
    return Effect.andThen(hinted.await, Effect.sync(() => void hinted.closeUnsafe()))
  })
})
