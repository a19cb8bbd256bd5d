/** Where a worker writes what became of its jobs. */
import { Clock, Context, Effect, Layer, Metric } from "effect"
import { openEvents } from "../nats/EventStream.ts"
import { EventWriter } from "../nats/EventWriter.ts"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { Nats } from "../nats/Nats.ts"
import { steady } from "../nats/Steady.ts"
import { events } from "../nats/Storage.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** How long a worker that ends waits until what it has written is stored, in milliseconds. */
const closeWithinMs = 5_000

/** Whom it is for, and what it has cost. */
const counted = ({ costUsd, key, model, usage }: UsageEvent): void => {
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
   * Takes an event and returns at once; it leaves behind whatever was published before it. `onStored` runs when it is
   * safe, or has not been for so long that nothing should wait for it.
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
      const lost = Effect.suspend(() => {
        const warning = hasWarned ? Effect.void : Effect.logError("usage is lost: NATS has not taken it for too long")
        hasWarned = true
        return Effect.andThen(warning, Metric.update(Metrics.usageLost(), 1))
      })
      yield* openEvents(events.usage).pipe(
        Effect.retry(whileJetStreamFails),
        Effect.tapError((error) => Effect.logError("usage is not written", error)),
        Effect.forkScoped
      )
      const writer = yield* Effect.acquireRelease(
        Effect.sync(() => new EventWriter({ nats, now: steady(clock), onLost: () => void run(lost) })),
        (writer) =>
          Effect.flatMap(
            Effect.promise(() => writer.close(closeWithinMs)),
            (left) =>
              left === 0 ? Effect.void : Effect.logError("usage is lost: NATS did not take it", { events: left })
          )
      )
      return UsageLog.of({
        write: (workload, event, onStored) => {
          counted(event)
          writer.write(`usage.${workload}`, event.id, Buffer.from(JSON.stringify(event)), onStored)
        }
      })
    })
  )
}
