/** Keeps the queues of the catalogue's pools able to deliver. The console does this because it runs once per gateway. */
import { Effect, Exit, Latch, Layer } from "effect"
import { repairConsumer } from "../../shared/bus/provision/ConsumerRepair.ts"
import { queuesIn, versionsOf } from "../../shared/bus/protocol/Subjects.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { poolsOf } from "../../shared/catalogue/Model.ts"
import { Nats } from "../../shared/nats/Nats.ts"
import * as Metrics from "../../shared/telemetry/Metrics.ts"

/**
 * The pause between two checks, in milliseconds, with several servers or one. On a single server, queues rarely break unless it
 * restarts, and frequent checks would be most of its work.
 */
const everyMs = { several: 5_000, one: 20_000 }

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const catalogue = yield* Catalogue
  const nats = yield* Nats
  const check = Effect.suspend(() =>
    Effect.forEach(
      queuesIn(poolsOf(catalogue.current())),
      ({ pool, queue }) => {
        Metrics.update(Metrics.consumersRecreated(queue, pool), 0)
        return Effect.forEach(
          versionsOf(queue),
          (version) => Effect.exit(Effect.when(repairConsumer(queue, pool, version), Effect.sync(nats.isConnected)))
        )
      }
    )
  )
  // the server may have restarted
  const reconnected = Latch.makeUnsafe(false)
  yield* Effect.acquireRelease(
    Effect.sync(() => nats.onReconnect(() => void reconnected.openUnsafe())),
    (forget) => Effect.sync(forget)
  )
  yield* reconnected.close.pipe(
    Effect.andThen(check),
    Effect.map((exits) => nats.isAlone() && exits.flat().every(Exit.isSuccess) ? everyMs.one : everyMs.several),
    Effect.flatMap((pauseMs) => Effect.timeoutOption(reconnected.await, pauseMs)),
    Effect.forever,
    // the frequent traces would hide those of requests
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )
}))
