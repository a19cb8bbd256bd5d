/** Admits the work of tasks for workers, by the validity, budget and limits of their keys. */
import { Effect, Layer, Option } from "effect"
import { Models } from "../../../shared/catalogue/Models.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as HoldDesk from "../../../shared/limits/HoldDesk.ts"
import { Admission } from "./Admission.ts"
import { jobErrorOf } from "./Authentication.ts"

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const keys = yield* KeyRing
  const admission = yield* Admission
  // without a catalogue there are no prices, and so no costs
  const models = Option.getOrUndefined(yield* Effect.serviceOption(Models))
  yield* HoldDesk.serve(Effect.fnUntraced(function*({ key: id, model, ...work }) {
    const check = keys.find(id).pipe(
      Effect.mapError(jobErrorOf),
      Effect.tap((key) => admission.check(key, model))
    )
    const highestPrice = models?.current().models.get(model)?.highestPrice
    const settle = yield* admission.admitWork(yield* check, { ...work, highestPrice })
    // the key may have changed during the wait
    yield* Effect.tapError(check, () => Effect.sync(() => settle?.("nothing")))
    return (used) => settle?.(used)
  }))
}))
