/** Reads and writes the W3C `traceparent` header of requests, jobs and provider calls. */
import { Context, Effect, Option, Tracer } from "effect"

const wellFormed = /^00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/

/** Span options with this parent; empty if the header is missing or malformed. */
export const asParent = (traceparent = ""): { readonly parent?: Tracer.ExternalSpan } =>
  wellFormed.test(traceparent)
    ? {
      parent: Tracer.externalSpan({
        traceId: traceparent.slice(3, 35),
        spanId: traceparent.slice(36, 52),
        sampled: (Number.parseInt(traceparent.slice(53), 16) & 1) === 1
      })
    }
    : {}

export const format = (span: Tracer.AnySpan): string =>
  `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`

/** The header for the current span; `undefined` if there is none. */
export const current: Effect.Effect<string | undefined> = Effect.withFiber((fiber) =>
  // `Effect.currentSpan` would build an error with a stack trace if there is none
  Effect.succeed(Option.getOrUndefined(Option.map(Context.getOption(fiber.context, Tracer.ParentSpan), format)))
)

/** The trace id in a header; `undefined` if the header is missing or malformed. */
export const traceIdOf = (traceparent: string | undefined): string | undefined => asParent(traceparent).parent?.traceId

/** Links the current span to the span in a header, in whatever trace. */
export const link = (traceparent: string | undefined): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const span = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
    const { parent } = asParent(traceparent)
    if (span?._tag === "Span" && parent !== undefined) span.addLinks([{ span: parent, attributes: {} }])
    return Effect.void
  })
