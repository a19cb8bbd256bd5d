/**
 * Drains ingress after SIGTERM: it becomes unready, its responses ask clients to close their connections, and then the server stops
 * accepting connections and finishes running requests.
 */
import { Config, Context, Effect, Layer } from "effect"
import { atLeast } from "../contract/Fields.ts"

export class Drain extends Context.Service<Drain, {
  readonly isDraining: () => boolean
  readonly begin: Effect.Effect<void>
  /** Ends the time for load balancers: calls all listeners of `onStop`. */
  readonly stop: Effect.Effect<void>
  /**
   * Calls the listener when the server is about to stop accepting connections, or immediately if it already is. The server then waits
   * for all of its connections, also for upgraded ones, which it cannot close itself. Returns a function that removes the listener.
   */
  readonly onStop: (listener: () => void) => () => void
}>()("shared/process/Drain") {
  static readonly layer = Layer.sync(Drain, () => {
    let isDraining = false
    let isStopping = false
    const listeners = new Set<() => void>()
    return Drain.of({
      isDraining: () => isDraining,
      begin: Effect.sync(() => {
        isDraining = true
      }),
      stop: Effect.sync(() => {
        isStopping = true
        for (const listener of listeners) listener()
      }),
      onStop: (listener) => {
        listeners.add(listener)
        if (isStopping) listener()
        return () => listeners.delete(listener)
      }
    })
  })
}

/**
 * Starts draining when the layer above the server is released, before the server itself. Reads `DRAIN_DELAY_MS`: how long
 * load balancers need to notice that ingress is unready (default 0).
 */
export const onRelease = Layer.effectDiscard(Effect.gen(function*() {
  const drain = yield* Drain
  const delayMs = yield* Config.schema(atLeast(0), "DRAIN_DELAY_MS").pipe(Config.withDefault(0))
  yield* Effect.addFinalizer(() => drain.begin.pipe(Effect.andThen(Effect.sleep(delayMs)), Effect.andThen(drain.stop)))
}))
