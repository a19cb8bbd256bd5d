/** The usage in a call's telemetry: each kind of tokens with a price of its own, by its name in OpenTelemetry's conventions. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { AnnotatedSink } from "../../../../shared/provider/routing/AnnotatedSink.ts"
import * as AttemptTelemetry from "../../../../shared/provider/routing/AttemptTelemetry.ts"

const discardingSink = { hasStarted: false, start: () => undefined, write: () => true, onDrain: () => undefined }

describe("a call", () => {
  it.effect("reports input read from the provider's cache, and input written to it", () =>
    Effect.gen(function*() {
      const endpoint = { name: "anthropic-here", model: "theirs", provider: { protocol: "anthropic" as const } }
      const usage = { inputTokens: 100, outputTokens: 9, cachedTokens: 60, cacheWriteTokens: 30, reasoningTokens: 4 }
      const answer = new AnnotatedSink(discardingSink, 0)
      const { attributes } = yield* Effect.useSpan("call", (span) =>
        Effect.as(AttemptTelemetry.record(endpoint, "ours", answer, span, Effect.succeed(usage)), span))
      assert.deepStrictEqual(Object.fromEntries(attributes), {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 30,
        "gen_ai.usage.reasoning.output_tokens": 4
      })
      const text = yield* PrometheusMetrics.format()
      const tokens = [...text.matchAll(/^gateway_tokens_total\{.*anthropic-here.*type="(\w+)"\} (\d+)$/gm)]
      assert.sameDeepMembers(tokens.map(([, type, count]) => [type, count]), [
        ["input", "100"],
        ["output", "9"],
        ["cached", "60"],
        ["cache_write", "30"],
        ["reasoning", "4"]
      ])
    }))
})
