/**
 * The way out: on SIGTERM readiness goes first, then answers ask clients to use another connection, then the server stops
 * accepting and what runs is finished.
 */
import { Config, Context, Effect, Layer } from "effect"
import { atLeast } from "../../../shared/contract/Fields.ts"

export class Drain extends Context.Service<Drain, {
  readonly isDraining: () => boolean
  readonly begin: Effect.Effect<void>
}>()("services/ingress/Drain") {
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
 * Begins to drain when the layer above the server is released, which is before the server itself is. Reads
 * `DRAIN_DELAY_MS`: how long load balancers need to notice that readiness is gone (default 0).
 */
export const onRelease = Layer.effectDiscard(Effect.gen(function*() {
  const drain = yield* Drain
  const delayMs = yield* Config.schema(atLeast(0), "DRAIN_DELAY_MS").pipe(Config.withDefault(0))
  yield* Effect.addFinalizer(() => Effect.andThen(drain.begin, Effect.sleep(delayMs)))
}))
