/** Keeps the queues of the catalogue's pools able to deliver. The console does this because it runs once per gateway. */
import { Effect, Layer } from "effect"
import { repairConsumer } from "../../shared/bus/provision/ConsumerRepair.ts"
import { versionsOf } from "../../shared/bus/protocol/Subjects.ts"
import { Catalogue } from "../../shared/catalogue/Catalogue.ts"
import { poolsOf } from "../../shared/catalogue/Model.ts"
import { Nats } from "../../shared/nats/Nats.ts"
import * as Metrics from "../../shared/telemetry/Metrics.ts"

/** The pause between two checks, in milliseconds. A single server hardly ever has defects, and the checks would be most of its work. */
const everyMs = { several: 5_000, one: 20_000 }

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const catalogue = yield* Catalogue
  const nats = yield* Nats
  const check = Effect.suspend(() =>
    Effect.forEach(poolsOf(catalogue.current()), ({ pool, workload }) => {
      Metrics.update(Metrics.consumersRecreated(workload, pool), 0)
      return Effect.forEach(versionsOf(workload), (version) =>
        // the next check comes soon
        Effect.ignore(repairConsumer(workload, pool, version)), { discard: true })
    }, { discard: true })
  )
  yield* check.pipe(
    Effect.when(Effect.sync(nats.isConnected)),
    Effect.andThen(Effect.suspend(() => Effect.sleep(nats.isAlone() ? everyMs.one : everyMs.several))),
    Effect.forever,
    // the frequent traces would hide those of requests
    Effect.withTracerEnabled(false),
    Effect.forkScoped
  )
}))
