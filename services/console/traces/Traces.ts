/**
 * The latest traces, in memory, if the services send them to the console, as under `npm start`. In other deployments they
 * go to a collector.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SpanStore } from "./SpanStore.ts"
import { configured, type Token } from "../access/Token.ts"
import { TraceInbox } from "./TraceInbox.ts"

export class Traces extends Context.Service<Traces, {
  /** None if the console keeps no traces. */
  readonly kept: Option.Option<{ readonly inbox: TraceInbox; readonly token: Token }>
}>()("services/console/traces/Traces") {
  /** Reads `CONSOLE_OTLP_TOKEN`, which services must send with their traces. Without it, the console keeps none. */
  static readonly layer = Layer.effect(
    Traces,
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const inbox = new TraceInbox(new SpanStore(), () => clock.currentTimeMillisUnsafe())
      const token = yield* configured("CONSOLE_OTLP_TOKEN")
      return Traces.of({ kept: Option.map(token, (token) => ({ inbox, token })) })
    })
  )
}
