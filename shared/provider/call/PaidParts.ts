/** Meters the parts of an answer that are paid for although the answer fails, such as the first of several calls to the provider. */
import { Effect } from "effect"
import type { Usage } from "../../contract/Usage.ts"
import * as UsageSum from "../../contract/UsageSum.ts"
import type { Call } from "./Protocol.ts"

/** The call or the work that makes the answer. */
type Metered = Pick<Call, "onCut">

/** Makes an answer. If that fails or is interrupted, `onCut` gets the sum of what `make` has reported with `paid`. */
export const metered = <A, E, R>(
  { onCut }: Metered,
  make: (paid: (usage: Usage | undefined) => void) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let spent: Usage | undefined
    const paid = (usage: Usage | undefined) => {
      if (usage !== undefined) spent = UsageSum.sum(spent, usage)
    }
    return Effect.onError(make(paid), () => Effect.sync(() => spent === undefined ? undefined : onCut?.(spent)))
  })

/** Makes the rest of an answer whose provider has finished its part, with this usage. */
export const after = <A, E, R>(
  to: Metered,
  usage: Usage | undefined,
  rest: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  metered(to, (paid) => {
    paid(usage)
    return rest
  })
