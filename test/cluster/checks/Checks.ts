/** Checks with their outcomes, printed as they end. A failed check does not end the run. */
import { Cause, Clock, Console, Context, Effect, Layer, Ref } from "effect"

export interface Outcome {
  readonly step: string
  readonly what: string
  /** What was seen, or why it failed. */
  readonly seen: string
  readonly holds: boolean
  readonly ms: number
}

/** The outcomes so far. */
export class Outcomes
  extends Context.Service<Outcomes, Ref.Ref<ReadonlyArray<Outcome>>>()("test/cluster/checks/Outcomes")
{
  static readonly layer = Layer.effect(Outcomes, Ref.make<ReadonlyArray<Outcome>>([]))
}

/** The step to which checks belong. */
export const Step = Context.Reference<string>("test/cluster/checks/Step", { defaultValue: () => "" })

const messageOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** Runs a check, which returns what it saw and fails if its claim does not hold. Returns whether it holds. */
export const check = Effect.fn("check")(function*<E, R>(what: string, look: Effect.Effect<string, E, R>) {
  const begun = yield* Clock.currentTimeMillis
  const { holds, seen } = yield* Effect.matchCause(look, {
    onFailure: (cause) => ({ holds: false, seen: messageOf(cause) }),
    onSuccess: (seen) => ({ holds: true, seen })
  })
  const ms = (yield* Clock.currentTimeMillis) - begun
  const step = yield* Step
  yield* Console.log(`${holds ? "✓" : "✗"} ${what}: ${seen} (${(ms / 1_000).toFixed(1)} s)`)
  const outcomes = yield* Outcomes
  yield* Ref.update(outcomes, (all) => [...all, { step, what, seen, holds, ms }])
  return holds
})
