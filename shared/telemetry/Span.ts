/** Spans around the work for a request. */
import { Effect, Tracer } from "effect"

/** Not `Effect.withSpan`, which keeps a frame of the stack beside each span. */
export const around =
  (name: string, options: Tracer.SpanOptionsNoTrace) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> =>
    Effect.useSpan(name, options, (span) => Effect.provideService(effect, Tracer.ParentSpan, span))
