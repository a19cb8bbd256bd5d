/**
 * Turns of the event loop for heavy steps: one step in each turn, whoever takes it, so that in between the process answers
 * everybody else. `Effect.yieldNow` does not do: fibers that yield at the same time go on together, within one turn.
 */
import { Context, Effect } from "effect"

class Queue {
  #waiting: Array<() => void> = []
  #isScheduled = false

  /** Returns in a turn that no other step has. */
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

/** Of this process, which has but one event loop. */
export const Turns = Context.Reference<{ readonly next: Effect.Effect<void> }>("shared/bounds/Turns", {
  defaultValue: () => new Queue()
})
