/** Records metrics and span attributes of one call to a provider: outcome, duration, time to first token and usage. */
import { Cause, type Effect, Exit, Option, type Tracer } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import type { JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Outcome from "../../telemetry/Outcome.ts"
import type { AnnotatedSink } from "./AnnotatedSink.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

const countTokens = (provider: string, model: string, usage: Usage): void => {
  const { cacheWriteTokens, cachedTokens, estimatedTokens, reasoningTokens } = usage
  Metrics.update(Metrics.tokens(provider, model, "input"), usage.inputTokens)
  Metrics.update(Metrics.tokens(provider, model, "output"), usage.outputTokens)
  if (cachedTokens !== undefined) Metrics.update(Metrics.tokens(provider, model, "cached"), cachedTokens)
  if (cacheWriteTokens !== undefined) Metrics.update(Metrics.tokens(provider, model, "cache_write"), cacheWriteTokens)
  if (reasoningTokens !== undefined) Metrics.update(Metrics.tokens(provider, model, "reasoning"), reasoningTokens)
  if (estimatedTokens !== undefined) Metrics.update(Metrics.tokens(provider, model, "estimated"), estimatedTokens)
}

/** Records a call to an endpoint. `span`: the span of the call. `model`: the model's name for clients. */
export const record = (
  { model: theirs, name }: Endpoint,
  model: string,
  answer: AnnotatedSink,
  span: Tracer.Span,
  call: Effect.Effect<Usage | undefined, JobError>
): Effect.Effect<Usage | undefined, JobError> =>
  Fiberless.suspend(({ clock }) => {
    const startedAt = clock.currentTimeNanosUnsafe()
    let first: bigint | undefined
    answer.onFirstChunk(() => {
      first = clock.currentTimeNanosUnsafe()
      span.event("first chunk", first)
    })
    return Fiberless.onExit(call, (exit) => {
      answer.onFirstChunk(undefined)
      const endedAt = clock.currentTimeNanosUnsafe()
      Metrics.update(Metrics.attempts(name, Outcome.ofExit(exit)), 1)
      Metrics.update(Metrics.attemptDuration(name, theirs), secondsOf(endedAt - startedAt))
      if (first !== undefined) {
        const firstSeconds = secondsOf(first - startedAt)
        Metrics.update(Metrics.timeToFirstToken(name, theirs), firstSeconds)
        span.attribute(Attributes.name.isStream, true)
        span.attribute(Attributes.name.firstChunk, firstSeconds)
      }
      if (Exit.isFailure(exit)) {
        const error = Cause.findErrorOption(exit.cause)
        if (Option.isSome(error)) Attributes.failure(error.value)(span)
        return
      }
      const usage = exit.value
      if (usage === undefined) return
      Attributes.usage(usage)(span)
      countTokens(name, model, usage)
      if (first !== undefined && usage.outputTokens > 1) {
        const seconds = secondsOf(endedAt - first) / (usage.outputTokens - 1)
        Metrics.update(Metrics.timePerOutputToken(name, theirs), seconds)
      }
    })
  })

const secondsOf = (nanos: bigint): number => Number(nanos) / 1e9
