/** The `local` protocol: the engine built into the worker answers. Each worker service brings those of its workload. */
import { Context, Effect } from "effect"
import { ProviderTimeout } from "../contract/JobError.ts"
import * as Endpoint from "./Endpoint.ts"
import { notSupported, type Perform } from "./Protocol.ts"

export class LocalEngines extends Context.Service<LocalEngines, {
  /** How each operation that this worker's engine serves is performed, by the operation's name. */
  readonly performs: ReadonlyMap<string, Perform>
}>()("shared/provider/Local/LocalEngines") {}

export const make = (engines: LocalEngines["Service"]): Perform => (call, sink) => {
  const perform = engines.performs.get(call.operation.name)
  if (perform === undefined) return notSupported(call)
  return perform(call, sink).pipe(
    Effect.timeoutOrElse({
      duration: Endpoint.timeoutsOf(call.endpoint).totalMs,
      orElse: () => Effect.fail(new ProviderTimeout({ provider: call.endpoint.name, phase: "total" }))
    })
  )
}
