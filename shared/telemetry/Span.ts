/** Spans around the work for a request. */
import { Effect, type Tracer } from "effect"

const untraced = { captureStackTrace: false }

export const around =
  (name: string, options: Tracer.SpanOptions) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> =>
    Effect.withSpan(effect, name, { ...options, ...untraced })
