/**
 * Spans around the work for a request. A failure is told by its tag alone: the message of an error is for the client, and
 * may hold what a provider quoted of a prompt.
 */
import { Effect, type Tracer } from "effect"

/** What a span sees of an error. */
class Failed<E extends { readonly _tag: string }> extends Error {
  /** Private to the language, so that no exporter finds it. */
  readonly #error: E

  constructor(error: E) {
    super(error._tag)
    this.name = error._tag
    this.stack = error._tag
    this.#error = error
  }

  get error(): E {
    return this.#error
  }
}

export const around = (name: string, options: Tracer.SpanOptions) =>
<A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> =>
  effect.pipe(
    Effect.mapError((error) => new Failed(error)),
    Effect.withSpan(name, options, { captureStackTrace: false }),
    Effect.mapError((failed) => failed.error)
  )
