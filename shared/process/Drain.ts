/**
 * Drains ingress after SIGTERM: it becomes unready, its responses ask clients to close their connections, and then the server stops
 * accepting connections and finishes running requests.
 */
import { Config, Context, Effect, Layer } from "effect"
import { atLeast } from "../contract/Fields.ts"

export class Drain extends Context.Service<Drain, {
  readonly isDraining: () => boolean
  readonly begin: Effect.Effect<void>
}>()("shared/process/Drain") {
  static readonly layer = Layer.sync(Drain, () => {
    let draining = false
    return Drain.of({
      isDraining: () => draining,
      begin: Effect.sync(() => {
        draining = true
      })
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
  yield* Effect.addFinalizer(() => Effect.andThen(drain.begin, Effect.sleep(delayMs)))
}))
