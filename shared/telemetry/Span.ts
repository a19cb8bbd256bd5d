/** Spans around the work for a request. */
import { Effect, Tracer } from "effect"
import type { Description } from "./Attributes.ts"

/** Like `Effect.withSpan`, but without capturing a stack frame for each span. */
export const around =
  (name: string, options: Tracer.SpanOptionsNoTrace, describe?: Description) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> =>
    Effect.useSpan(name, options, (span) => {
      describe?.(span)
      return Effect.provideService(effect, Tracer.ParentSpan, span)
    })
