/** The `local` protocol: answers by the engine built into the worker. Each worker service supplies its workload's engine. */
import { Context, Effect } from "effect"
import { ProviderTimeout } from "../../../contract/JobError.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import { type Perform, performByName } from "../../call/Protocol.ts"

export class LocalEngines extends Context.Service<LocalEngines, {
  /** The operations that this worker's engine serves, by name. */
  readonly performs: ReadonlyMap<string, Perform>
  /** Runs before the worker pulls its first job: work that would otherwise delay other jobs during the first call. */
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
