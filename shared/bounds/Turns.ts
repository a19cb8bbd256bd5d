/**
 * Spreads heavy steps over turns of the event loop: one step per turn in the whole process, so that other requests are served between
 * steps. `Effect.yieldNow` is not enough, because fibers that yield at the same time resume together in one turn.
 */
import { Context, Effect } from "effect"

class Queue {
  #waiting: Array<() => void> = []
  #isScheduled = false

  /** Waits for a turn of its own. */
  readonly next: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const go = () => resume(Effect.void)
    this.#waiting.push(go)
    this.#schedule()
    return Effect.sync(() => {
      this.#waiting = this.#waiting.filter((other) => other !== go)
    })
  })

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const go = this.#waiting.shift()
      this.#schedule()
      go?.()
    })
  }
}

interface TurnQueue {
  readonly next: Effect.Effect<void>
}

/** The queue of one event loop. */
export const makeUnsafe = (): TurnQueue => new Queue()

/** Steps with at most this many bytes need no turn of their own. */
export const smallBytes = 128 * 1024

/** One queue per process, because a process has one event loop. */
export const Turns = Context.Reference<TurnQueue>("shared/bounds/Turns", { defaultValue: makeUnsafe })

/** Waits for a turn before a step with this many bytes, unless they are few (`smallBytes`). */
export const turnFor = (bytes: number): Effect.Effect<void> =>
  bytes <= smallBytes ? Effect.void : Effect.flatMap(Turns, ({ next }) => next)
