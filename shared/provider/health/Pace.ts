/**
 * Delays calls to targets that have answered 429, as `TargetPace.ts` decides; those that wait take turns by owner. Each worker learns its
 * own pace.
 */
import { Clock, Effect, type Fiber, type Scope } from "effect"
import { monotonicMs } from "../../bounds/MonotonicClock.ts"
import type { ProviderRateLimited } from "../../contract/JobError.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import type { TargetDelay } from "./Delays.ts"
import { Skipped } from "./Skipped.ts"
import type { Target } from "./Target.ts"
import { type Caller, type Refusal, TargetPace, type Turn } from "./TargetPace.ts"
import type { WaitingCall } from "./WaitingCalls.ts"

export interface Pace {
  /** Takes a turn now; `undefined` if the call has to `wait`. */
  readonly tryTake: (target: Target, caller: Caller) => Turn | undefined
  /** Waits for a turn, if that comes before `until` (of the monotonic clock, in milliseconds). */
  readonly wait: (target: Target, caller: Caller, until: number) => Effect.Effect<Turn, Skipped>
  /** The call of a turn was not sent. */
  readonly giveBack: (target: Target, turn: Turn) => void
  /** Whether the outcome of a call matters as soon as it is known. */
  readonly isWatched: (target: Target) => boolean
  /** The provider has accepted the call of a turn. */
  readonly accepted: (target: Target, turn: Turn) => void
  /** The provider has answered 429. */
  readonly refused: (target: Target, turn: Turn, caller: Caller, error: ProviderRateLimited) => Refusal
  readonly delays: () => ReadonlyArray<TargetDelay>
}

/** The longest wait for a candidate's limits while there are other candidates, in milliseconds. */
export const momentMs = 100

interface Waiting extends WaitingCall, Caller {
  readonly start: (turn: Turn) => void
}

interface Paced {
  readonly target: Target
  readonly pace: TargetPace<Waiting>
  /** Whether it has gauges. */
  isReported: boolean
  /** Wakes the next waiting call. */
  timer: { readonly at: number; readonly fiber: Fiber.Fiber<void> } | undefined
}

/** Reports what a target's pace delays. Returns functions that end this. */
const report = (
  { pace, target: { endpoint: { model, name } } }: Paced,
  now: () => number
): ReadonlyArray<() => void> => {
  const left = (unit: "requests" | "tokens") => pace.quota?.[`${unit}Left`] ?? -1
  return [
    Metrics.observeUnsafe(
      Metrics.delayedKeys(name, model),
      () => pace.delays(now()).filter(({ owner }) => owner).length
    ),
    Metrics.observeUnsafe(
      Metrics.delayed(name, model),
      () => Number(pace.delays(now()).some(({ owner }) => owner === null))
    ),
    Metrics.observeUnsafe(Metrics.delayedRequests(name, model), () => pace.waiting.size),
    Metrics.observeUnsafe(Metrics.quotaLeft(name, model, "requests"), () => left("requests")),
    Metrics.observeUnsafe(Metrics.quotaLeft(name, model, "tokens"), () => left("tokens"))
  ]
}

export const make: Effect.Effect<Pace, never, Scope.Scope> = Effect.gen(function*() {
  const now = monotonicMs(yield* Clock.Clock)
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const targets = new Map<string, Paced>()
  const gauges: Array<() => void> = []
  yield* Effect.addFinalizer(() => Effect.sync(() => gauges.forEach((forget) => forget())))

  const of = (target: Target): Paced => {
    let paced = targets.get(target.key)
    if (paced === undefined) {
      targets.set(
        target.key,
        paced = { target, pace: new TargetPace<Waiting>(now()), isReported: false, timer: undefined }
      )
    }
    return paced
  }

  /** Starts the calls whose turn has come, and sets the timer for the next one. */
  const start = (paced: Paced): void => {
    for (;;) {
      const next = paced.pace.next(now())
      if (typeof next === "number") return wakeAt(paced, next)
      next.call.start(next.turn)
    }
  }

  const wakeAt = (paced: Paced, at: number): void => {
    if (paced.timer !== undefined && paced.timer.at <= at) return
    paced.timer?.fiber.interruptUnsafe()
    paced.timer = undefined
    if (at === Number.POSITIVE_INFINITY) return
    const wake = Effect.sync(() => {
      paced.timer = undefined
      start(paced)
    })
    // rounded up, because timers count whole milliseconds
    paced.timer = { at, fiber: fork(Effect.delay(wake, Math.max(1, Math.ceil(at - now())))) }
  }

  const busy = (dueAt: number, from: number): Skipped =>
    new Skipped({ reason: "busy", retryAfterMs: Math.max(1, Math.ceil(dueAt - from)) })

  /** Waits in line. */
  const queue = (paced: Paced, caller: Caller, until: number): Effect.Effect<Turn, Skipped> =>
    Effect.callback<Turn, Skipped>((resume) => {
      const { pace } = paced
      const call: Waiting = {
        ...caller,
        isLarge: pace.isLarge(caller, now()),
        start: (turn) => {
          deadline.interruptUnsafe()
          resume(Effect.succeed(turn))
        }
      }
      const tooLate = Effect.sync(() => {
        const at = now()
        pace.waiting.delete(call)
        resume(Effect.fail(busy(pace.dueAt(caller, at), at)))
        start(paced)
      })
      const deadline = fork(Effect.delay(tooLate, Math.max(1, Math.ceil(until - now()))))
      pace.waiting.add(call)
      start(paced)
      return Effect.sync(() => {
        pace.waiting.delete(call)
        deadline.interruptUnsafe()
        start(paced)
      })
    })

  return {
    tryTake: (target, caller) => of(target).pace.tryTake(caller, now()),
    wait: (target, caller, until) =>
      Effect.suspend(() => {
        const paced = of(target)
        const at = now()
        const turn = paced.pace.tryTake(caller, at)
        if (turn !== undefined) return Effect.succeed(turn)
        const dueAt = paced.pace.dueAt(caller, at)
        return dueAt > until ? Effect.fail(busy(dueAt, at)) : queue(paced, caller, until)
      }),
    giveBack: (target, turn) => {
      const paced = of(target)
      paced.pace.giveBack(turn, now())
      start(paced)
    },
    isWatched: (target) => {
      const pace = targets.get(target.key)?.pace
      return pace?.isQuiet === false && pace.isWatched(now())
    },
    accepted: (target, turn) => {
      const paced = of(target)
      paced.pace.accepted(turn, now())
      if (paced.pace.waiting.size > 0) start(paced)
    },
    refused: (target, turn, caller, { quota, retryAfterMs }) => {
      const paced = of(target)
      if (!paced.isReported) gauges.push(...report(paced, now))
      paced.isReported = true
      return paced.pace.refused(turn, caller, now(), retryAfterMs, quota)
    },
    delays: () => {
      const at = now()
      return [...targets.values()].flatMap(({ pace, target: { endpoint: { model, name: provider } } }) =>
        pace.delays(at).map((delay) => ({ provider, model, ...delay }))
      )
    }
  }
})
