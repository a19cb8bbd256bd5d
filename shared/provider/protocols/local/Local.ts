/** The `local` protocol: the engine built into the worker answers. Each worker service brings those of its workload. */
import { Context, Effect } from "effect"
import { ProviderTimeout } from "../../../contract/JobError.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import { type Perform, performByName } from "../../call/Protocol.ts"

export class LocalEngines extends Context.Service<LocalEngines, {
  /** How each operation that this worker's engine serves is performed, by the operation's name. */
  readonly performs: ReadonlyMap<string, Perform>
  /** What would keep the worker's other jobs waiting at the first call. Done before the first job is pulled. */
  readonly warmUp?: Effect.Effect<void>
}>()("shared/provider/Local/LocalEngines") {}

export const make = (engines: LocalEngines["Service"]): Perform => {
  const perform = performByName(engines.performs)
  return (call, sink) =>
    perform(call, sink).pipe(
      Effect.timeoutOrElse({
        duration: Endpoint.timeoutsOf(call.endpoint).totalMs,
        orElse: () => Effect.fail(new ProviderTimeout({ provider: call.endpoint.name, phase: "total" }))
      })
    )
}
