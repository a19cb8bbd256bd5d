/** The number of tokens reserved for a request of a key with a token limit: at least as many as the request states. */
import { assert, describe, it } from "@effect/vitest"
import { operationNamed } from "../../../shared/contract/operations/operations.ts"
import { largestUsage, tokenDemand, tokenEstimate } from "../../../shared/contract/TokenEstimate.ts"

const of = (name: string, body: Readonly<Record<string, unknown>>, bytes = JSON.stringify(body).length) => {
  const operation = operationNamed(name)!
  const field = (name: string): unknown => body[name]
  const { stated, tokens } = tokenDemand(operation, bytes, field)
  return { answers: tokens - Math.ceil(bytes / 4), stated, tokens, likely: tokenEstimate(operation, bytes, field) }
}

describe("the token estimate", () => {
  const rows = [
    ["chat.completions", { max_tokens: 100 }, 100, ["max_tokens"]],
    ["chat.completions", { max_tokens: 100, n: 5 }, 500, ["max_tokens", "n"]],
    ["chat.completions", { max_tokens: 100_000 }, 100_000, ["max_tokens"]],
    ["chat.completions", { max_tokens: 5, max_completion_tokens: 900, n: 3 }, 2_700, ["max_completion_tokens", "n"]],
    ["chat.completions", { max_completion_tokens: 5, max_tokens: 900 }, 900, ["max_tokens"]],
    ["completions", { prompt: "one", max_tokens: 10, n: 2, best_of: 8 }, 80, ["max_tokens", "best_of"]],
    ["completions", { prompt: ["a", "b", "c"], max_tokens: 10, n: 2 }, 60, ["max_tokens", "n", "prompt"]],
    ["completions", { prompt: ["a"], max_tokens: 10, n: 1 }, 10, ["max_tokens"]],
    ["messages", { max_tokens: 4_096 }, 4_096, ["max_tokens"]],
    ["responses.compact", { max_output_tokens: 700 }, 700, ["max_output_tokens"]],
    [
      "generateContent",
      { generationConfig: { maxOutputTokens: 50, candidateCount: 8 } },
      400,
      ["generationConfig.maxOutputTokens", "generationConfig.candidateCount"]
    ],
    [
      "generateContent",
      { generation_config: { max_output_tokens: 50, candidateCount: 8 } },
      400,
      ["generationConfig.maxOutputTokens", "generationConfig.candidateCount"]
    ]
  ] as const
  it.each(rows)("of %s includes every multiplier: %j", (name, body, answers, fields) => {
    const demand = of(name, body)
    assert.strictEqual(demand.answers, answers)
    assert.deepStrictEqual(demand.stated, { tokens: answers, fields: [...fields] })
  })

  it("multiplies the default for unstated limits too", () => {
    for (
      const [body, answers] of [
        [{}, 500],
        [{ n: 4 }, 2_000],
        [{ prompt: ["a", "b"], best_of: 3 }, 3_000]
      ] as const
    ) assert.deepInclude(of("completions", body), { answers, stated: undefined })
  })

  it("adds reasoning tokens to the answer, and to the stated tokens if they are stated", () => {
    const thinking = { type: "enabled", budget_tokens: 1_500 }
    assert.deepInclude(of("messages", { max_tokens: 2_000, thinking }), {
      answers: 3_500,
      stated: { tokens: 2_000, fields: ["max_tokens"] }
    })
    const config = { thinkingConfig: { thinkingBudget: 300 }, maxOutputTokens: 100, candidateCount: 2 }
    assert.deepInclude(of("generateContent", { generationConfig: config }), {
      answers: 800,
      stated: {
        tokens: 600,
        fields: ["generationConfig.thinkingConfig.thinkingBudget", "generationConfig.candidateCount"]
      }
    })
    // -1 leaves the budget to the model
    assert.strictEqual(
      of("generateContent", { generationConfig: { thinkingConfig: { thinkingBudget: -1 } } }).answers,
      500
    )
  })

  it("is finite for any values in a request", () => {
    const huge = of("messages", { max_tokens: 9e15, n: Number.POSITIVE_INFINITY, prompt: Array.from({ length: 100 }) })
    assert.isTrue(Number.isFinite(huge.stated?.tokens))
    assert.deepInclude(of("chat.completions", { n: "5", max_tokens: null, best_of: -3 }), { answers: 500 })
  })

  it("covers images, and the query once per reranked document", () => {
    assert.strictEqual(of("images.generations", { prompt: "x", n: 3 }).answers, 3_000)
    assert.strictEqual(of("images.generations", { prompt: "x", parameters: { n: 2 } }).answers, 2_000)
    assert.strictEqual(of("rerank", { query: "q".repeat(400), documents: ["a", "b", "c"] }).answers, 200)
  })
})

describe("the token estimate of a long request", () => {
  const text = "a lighthouse by the sea ".repeat(40_000)
  const picture = `data:image/png;base64,${"iVBORw0KGgo".repeat(80_000)}`

  it("counts text in full", () => {
    for (
      const [name, body] of [
        ["embeddings", { input: [text] }],
        ["rerank", { query: "sea", documents: [text] }],
        ["chat.completions", { messages: [{ role: "user", content: text }] }],
        ["generateContent", { contents: [{ parts: [{ text }] }] }]
      ] as const
    ) assert.isAtLeast(of(name, body).tokens, text.length / 4)
  })

  it("counts files in part, but text beside them in full", () => {
    const url = { type: "image_url", image_url: { url: picture } }
    const files = of("chat.completions", { messages: [{ role: "user", content: [url, url] }] })
    assert.closeTo(files.tokens, 50_500, 100)
    const both = of("chat.completions", { messages: [{ role: "user", content: [url, { type: "text", text }] }] })
    assert.closeTo(both.tokens, 50_500 + text.length / 4, 100)
  })
})

it("reserves less of a provider's limit than of a key's, because most answers are short", () => {
  assert.deepInclude(of("chat.completions", { max_tokens: 64_000 }), { answers: 64_000, likely: 4_005 })
  assert.strictEqual(of("chat.completions", { max_tokens: 64_000, n: 3 }).likely, 12_007)
})

describe("the largest usage", () => {
  const largest = (name: string, body: Readonly<Record<string, unknown>>, most?: number) =>
    largestUsage(operationNamed(name)!, 400, (field) => body[field], most)
  const rows = [
    ["chat.completions", { max_tokens: 100, n: 3 }, undefined, { inputTokens: 100, outputTokens: 300 }],
    // without a limit as much as the model can answer, or what is likely
    ["chat.completions", {}, 32_000, { inputTokens: 100, outputTokens: 32_000 }],
    ["chat.completions", {}, undefined, { inputTokens: 100, outputTokens: 4_000 }],
    // a model answers no more than it can
    ["messages", { max_tokens: 100_000 }, 8_000, { inputTokens: 100, outputTokens: 8_000 }],
    ["images.generations", { n: 4 }, undefined, { inputTokens: 100, outputTokens: 4_000, images: 4 }],
    ["video.generations", { n: 2, duration: 5 }, undefined, { inputTokens: 100, outputTokens: 0, seconds: 10 }],
    ["embeddings", { input: "a" }, undefined, { inputTokens: 100, outputTokens: 0, searchUnits: 0 }],
    ["audio.speech", {}, undefined, { inputTokens: 100, outputTokens: 100, characters: 400, seconds: 0.1 }]
  ] as const
  it.each(rows)("of %s: %j", (name, body, most, usage) => {
    assert.deepStrictEqual(largest(name, body, most), { ...usage })
  })
})
