/** The W3C `traceparent` header, as it travels with requests, jobs and provider calls. */
import { Context, Effect, Option, Tracer } from "effect"
import { Headers, HttpTraceContext } from "effect/http"

/** Span options that make a span the child of the one named; none where the header is absent or not well formed. */
export const asParent = (traceparent: string | undefined): { readonly parent?: Tracer.ExternalSpan } => {
  if (traceparent === undefined) return {}
  const parent = HttpTraceContext.w3c(Headers.fromRecordUnsafe({ traceparent }))
  return Option.isSome(parent) ? { parent: parent.value } : {}
}

export const format = (span: Tracer.AnySpan): string =>
  `00-${span.traceId}-${span.spanId}-${span.sampled ? "01" : "00"}`

/** The span around the running effect; `undefined` outside of any. */
export const current: Effect.Effect<string | undefined> = Effect.withFiber((fiber) =>
  // not `Effect.currentSpan`, which builds an error with its stack where there is none
  Effect.succeed(formatted(Context.getOrUndefined(fiber.context, Tracer.ParentSpan)))
)

const formatted = (span: Tracer.AnySpan | undefined): string | undefined =>
  span === undefined ? undefined : format(span)

const wellFormed = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/

/** What a client sent, where it is one. */
const accepted = (traceparent: string | undefined): string | undefined =>
  traceparent !== undefined && wellFormed.test(traceparent) ? traceparent : undefined

/** The id of the trace that it is of; `undefined` where it is absent or not well formed. */
export const traceIdOf = (traceparent: string | undefined): string | undefined =>
  accepted(traceparent)?.slice("00-".length, "00-".length + 32)

/** Links the span around the running effect to the one named, in whichever trace that is. */
export const link = (traceparent: string | undefined): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const span = Context.getOrUndefined(fiber.context, Tracer.ParentSpan)
    const { parent } = asParent(traceparent)
    if (span?._tag === "Span" && parent !== undefined) span.addLinks([{ span: parent, attributes: {} }])
    return Effect.void
  })
