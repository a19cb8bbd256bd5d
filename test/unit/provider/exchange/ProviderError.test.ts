/** How a provider's error is read, in any format. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ProviderRateLimited, ProviderRejected } from "../../../../shared/contract/JobError.ts"
import * as ProviderError from "../../../../shared/provider/exchange/ProviderError.ts"
import type { ResponseHeaders } from "../../../../shared/provider/transport/ResponseHeaders.ts"

describe("a request that is too long", () => {
  it.each(
    [
      [{ code: "context_length_exceeded" }, true],
      [{ type: "exceed_context_size_error" }, true],
      [{ message: "This model's maximum context length is 8192 tokens. However, you requested 9000" }, true],
      [{ message: "Prompt contains 40000 tokens, too large for model with 32768 maximum context length" }, true],
      [{ message: "prompt is too long: 210000 tokens > 200000 maximum" }, true],
      [{ message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." }, true],
      [{ message: "Input is too long for requested model." }, true],
      [{ message: "Range of input length should be [1, 30720]" }, true],
      [{ message: "too many tokens: total number of tokens in the prompt cannot exceed 4096" }, true],
      [{ message: "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000" }, true],
      [{ code: "content_policy_violation", message: "rejected by our safety system" }, false],
      [{ message: "max_tokens is too large: 100000" }, false],
      [{ message: "string too long. Expected a string with maximum length 64" }, false]
    ] as const
  )("is recognised in every format: %j", (error, isTooLong) => {
    const rejected = new ProviderRejected({ provider: "p", status: 400, message: "no", ...error })
    assert.strictEqual(ProviderError.exceedsContext(rejected), isTooLong)
  })
})

describe("a retry time", () => {
  const day = 86_400_000
  const cases: ReadonlyArray<readonly [headers: ResponseHeaders, milliseconds: number | null]> = [
    [{}, null],
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": " 2.5 " }, 2_500],
    [{ "retry-after": ["7", "60"] }, 7_000],
    [{ "retry-after-ms": ["150", "60000"] }, 150],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after-ms": "150", "retry-after": "1" }, 150],
    [{ "retry-after-ms": "soon", "retry-after": "1" }, 1_000],
    [{ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, 60_000],
    [{ "retry-after": "Wed, 31 Dec 1969 00:00:00 GMT" }, 0],
    [{ "retry-after": "Wed, 21 Oct 2099 07:28:00 GMT" }, day],
    [{ "retry-after": "99999999999999999999" }, day],
    [{ "retry-after": "9".repeat(400) }, day],
    [{ "retry-after": "Infinity" }, null],
    [{ "retry-after": "1e400" }, null],
    [{ "retry-after-ms": "Infinity" }, null],
    [{ "retry-after": "-5" }, null],
    [{ "retry-after": "" }, null],
    [{ "retry-after": "in a while" }, null]
  ]
  it.effect.each(cases)("of %j is %j", ([headers, milliseconds]) =>
    Effect.gen(function*() {
      yield* TestClock.setTime(0)
      const error = yield* ProviderError.fromAnswer("p", 429, headers, "", [])
      assert.deepInclude(error, { _tag: "ProviderRateLimited", retryAfterMs: milliseconds })
    }))

  it.effect("in Google's format is read, up to a day", () =>
    Effect.gen(function*() {
      const told = Effect.fnUntraced(function*(retryDelay: string) {
        const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }]
        return yield* ProviderError.fromAnswer("p", 429, {}, JSON.stringify({ error: { code: 429, details } }), [])
      })
      assert.deepInclude(yield* told("34.4s"), { retryAfterMs: 34_400 })
      assert.deepInclude(yield* told(`${"9".repeat(400)}s`), { retryAfterMs: day })
      assert.deepInclude(yield* told("s"), { retryAfterMs: null })
    }))
})

describe("a 429", () => {
  it.effect.each(
    [
      ["generate_content_free_tier_requests", { requestsLeft: 0 }],
      ["generate_content_free_tier_input_token_count", undefined]
    ] as const
  )("of Google's quota %s says what is left", ([metric, quota]) =>
    Effect.gen(function*() {
      const violations = [{ quotaMetric: `generativelanguage.googleapis.com/${metric}` }]
      const details = [{ "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations }]
      const error = yield* ProviderError.fromAnswer("p", 429, {}, JSON.stringify({ error: { code: 429, details } }), [])
      assert.deepStrictEqual(
        error,
        new ProviderRateLimited({
          provider: "p",
          retryAfterMs: null,
          ...(quota === undefined ? {} : { quota })
        })
      )
    }))

  it.effect.each([[{}, 7_000], [{ "retry-after": "2" }, 2_000]] as const)(
    "without a retry-after waits for the reset of what is used up: %j",
    ([headers, retryAfterMs]) =>
      Effect.gen(function*() {
        const told = {
          "anthropic-ratelimit-output-tokens-remaining": "0",
          "anthropic-ratelimit-output-tokens-reset": "1970-01-01T00:00:07Z"
        }
        const error = yield* ProviderError.fromAnswer("p", 429, { ...told, ...headers }, "", [])
        assert.deepInclude(error, { retryAfterMs, quota: { tokensLeft: 0 } })
      })
  )
})

it.effect("no part of an error reveals a secret", () =>
  Effect.gen(function*() {
    const texts = { message: "for s3cret", type: "of s3cret", param: "tools[0].s3cret", code: "no s3cret" }
    const error = yield* ProviderError.fromAnswer("p", 400, {}, JSON.stringify({ error: texts }), ["", "s3cret"])
    assert.deepInclude(error, {
      ...{ _tag: "ProviderRejected", message: "for [redacted]", type: "of [redacted]" },
      ...{ param: "tools[0].[redacted]", code: "no [redacted]" }
    })
  }))

describe("a list of errors in FastAPI's format", () => {
  const rejected = (body: object) => ProviderError.fromAnswer("p", 422, {}, JSON.stringify(body), ["s3cret"])

  it.effect("is reported by its first error", () =>
    Effect.gen(function*() {
      const missing = { type: "missing", loc: ["body", "documents", 0, "text"], msg: "Field required", input: {} }
      const cases: ReadonlyArray<readonly [detail: unknown, message: string, param: string | null]> = [
        [[missing, { ...missing, msg: "no" }], "documents[0].text: Field required", "documents[0].text"],
        [[{ ...missing, loc: ["body"] }], "The request: Field required", null],
        [[{ ...missing, loc: ["query", "key"] }], "The request: Field required", null],
        [[{ msg: "Not with s3cret" }], "The request: Not with [redacted]", null],
        ["top_n: too large", "top_n: too large", "top_n"],
        [[], "The provider 'p' rejected the request", null],
        [["no"], "The provider 'p' rejected the request", null]
      ]
      for (const [detail, message, param] of cases) {
        assert.deepInclude(yield* rejected({ detail }), { _tag: "ProviderRejected", status: 422, message, param })
      }
      assert.deepInclude(yield* rejected({ detail: ["no"], error: "top_n: too large" }), {
        message: "top_n: too large"
      })
    }))
})
