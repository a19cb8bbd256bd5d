/** Writes a worker's usage events to the event stream, in pages. */
import { Clock, Context, Effect, Layer } from "effect"
import { openEvents } from "../nats/EventStream.ts"
import { EventWriter } from "../nats/EventWriter.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { Nats } from "../nats/Nats.ts"
import { monotonicMs } from "../bounds/MonotonicClock.ts"
import { events } from "../nats/Storage.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** How long a stopping worker waits for its events to be stored, in milliseconds. */
const closeWithinMs = 5_000

const updateMetrics = ({ costUsd, key, model, usage }: UsageEvent): void => {
  if (usage !== null) {
    Metrics.update(Metrics.keyTokens(key, "input"), usage.inputTokens)
    Metrics.update(Metrics.keyTokens(key, "output"), usage.outputTokens)
  }
  if (costUsd === null) return
  Metrics.update(Metrics.cost(model), costUsd)
  Metrics.update(Metrics.keyCost(key), costUsd)
}

export class UsageLog extends Context.Service<UsageLog, {
  /**
   * Queues an event and returns immediately. The event is sent after everything published before it. `onStored` runs when the
   * event is stored, or after a timeout.
   */
  readonly write: (workload: string, event: UsageEvent, onStored: () => void) => void
}>()("shared/usage/UsageLog") {
  static readonly layer = Layer.effect(
    UsageLog,
    Effect.gen(function*() {
      const nats = yield* Nats
      const clock = yield* Clock.Clock
      const run = Effect.runForkWith(yield* Effect.context<never>())
      Metrics.update(Metrics.usageLost(), 0)
      let hasWarned = false
      const onLost = () => {
        Metrics.update(Metrics.usageLost(), 1)
        if (!hasWarned) run(Effect.logError("usage events are lost because NATS did not store them in time"))
        hasWarned = true
      }
      yield* openEvents(events.usage).pipe(
        Effect.retry(whileJetStreamFails),
        Effect.tapError((error) => Effect.logError("usage events cannot be written", error)),
        Effect.forkScoped
      )
      const writer = yield* Effect.acquireRelease(
        Effect.sync(() => new EventWriter({ nats, now: monotonicMs(clock), onLost })),
        Effect.fnUntraced(function*(writer) {
          const left = yield* Effect.promise(() => writer.close(closeWithinMs))
          if (left > 0) yield* Effect.logError("usage events are lost: NATS did not store them", { events: left })
        })
      )
      return UsageLog.of({
        write: (workload, event, onStored) => {
          updateMetrics(event)
          writer.write(`usage.${workload}`, JSON.stringify(event), onStored)
        }
      })
    })
  )
}
