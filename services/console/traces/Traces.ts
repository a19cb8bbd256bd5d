/**
 * The latest traces, kept in memory where services send theirs to the console, as `npm start` has them do. Elsewhere they
 * send them to a collector, and nothing is kept here.
 */
import { Context, Effect, Layer, Option } from "effect"
import { SpanStore } from "../../../shared/telemetry/SpanStore.ts"
import { configured, type Token } from "../access/Token.ts"

export class Traces extends Context.Service<Traces, {
  /** None where the console takes no traces. */
  readonly kept: Option.Option<{ readonly store: SpanStore; readonly token: Token }>
}>()("services/console/Traces") {
  /** Reads `CONSOLE_OTLP_TOKEN`: what services have to send with their traces; without it none are taken. */
  static readonly layer = Layer.effect(
    Traces,
    Effect.map(
      configured("CONSOLE_OTLP_TOKEN"),
      (token) => Traces.of({ kept: Option.map(token, (token) => ({ store: new SpanStore(), token })) })
    )
  )
}
