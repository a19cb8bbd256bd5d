/** What ingress accepts of requests that a provider may get unchanged: the provider judges everything that the gateway does not read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Headers } from "effect/http"
import * as IncomingBody from "../../../services/ingress/request/IncomingBody.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import { completions } from "../../../shared/contract/operations/Completions.ts"
import { embeddings, engineEmbeddings } from "../../../shared/contract/operations/embeddings/Embeddings.ts"
import { generateContent } from "../../../shared/contract/operations/GenerateContent.ts"
import { imageEdits } from "../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../shared/contract/operations/ImageGenerations.ts"
import { audioSpeech } from "../../../shared/contract/operations/audio/Speech.ts"
import { transcriptions, translations } from "../../../shared/contract/operations/audio/Transcriptions.ts"
import { embed } from "../../../shared/contract/operations/embeddings/Embed.ts"
import { batchEmbedContents, embedContent } from "../../../shared/contract/operations/embeddings/EmbedContent.ts"
import { moderations } from "../../../shared/contract/operations/Moderations.ts"
import { rerank } from "../../../shared/contract/operations/Rerank.ts"
import { messages } from "../../../shared/contract/operations/Messages.ts"
import { responses } from "../../../shared/contract/operations/Responses.ts"
import { countTokens, messagesCount } from "../../../shared/contract/operations/TokenCounts.ts"
import { tokenDemand } from "../../../shared/contract/TokenEstimate.ts"

const said = [{ role: "user", content: "a" }]
const contents = [{ role: "user", parts: [{ text: "a" }] }]
const bases = new Map<Operation, object>([
  [chatCompletions, { model: "m", messages: said }],
  [completions, { model: "m", prompt: "a" }],
  [messages, { model: "m", max_tokens: 9, messages: said }],
  [messagesCount, { model: "m", messages: said }],
  [responses, { model: "m", input: "a" }],
  [generateContent, { contents }],
  [countTokens, { contents }],
  [embeddings, { model: "m", input: "a" }],
  [engineEmbeddings, { input: "a" }],
  [imageGenerations, { model: "m", prompt: "a" }],
  [audioSpeech, { model: "m", input: "a", voice: "nova" }],
  [transcriptions, { model: "m", file: "UklGRg==" }],
  [translations, { model: "m", file: "UklGRg==" }],
  [moderations, { model: "m", input: "a" }],
  [rerank, { model: "m", query: "a", documents: ["b"] }],
  [embed, { model: "m", input_type: "search_query", texts: ["a"] }],
  [embedContent, { content: { parts: [{ text: "a" }] } }],
  [batchEmbedContents, { requests: [{ content: { parts: [{ text: "a" }] } }] }]
])

const decode = (operation: Operation, change: object) => {
  const body = JSON.stringify({ ...bases.get(operation), ...change })
  return Effect.map(
    Effect.result(IncomingBody.decode(operation, Headers.empty, new TextEncoder().encode(body))),
    (result) => ({ body: JSON.parse(body) as unknown, result })
  )
}

const block = (type: string) => ({ messages: [{ role: "assistant", content: [{ type, anything: 1 }] }] })

/** From the request types of @anthropic-ai/sdk 1.14, openai 7.55 and @google/genai 3.1, and what does not exist yet. */
const accepted: ReadonlyArray<readonly [Operation, object]> = [
  // cache warming
  [messages, { max_tokens: 0 }],
  [messages, { messages: [...said, { role: "system", content: "b", clear_at: "next_user_message" }] }],
  [messages, { messages: [{ role: "critic", content: 5 }] }],
  ...["fallback", "advisor_tool_result", "mcp_tool_listing", "tool_addition", "newer"].map((type) =>
    [messages, block(type)] as const
  ),
  [messages, { thinking: { type: "newer", depth: 3 } }],
  [messages, { tool_choice: { type: "newer" }, service_tier: "priority", speed: "faster" }],
  [messages, { tools: [{ type: "browser_toolset_20260801" }], temperature: 1.5 }],
  [messages, { thread: { type: "create" }, compaction: { type: "summarize" } }],
  [messagesCount, { messages: [...said, { role: "system", content: [{ type: "text", text: "b" }] }] }],
  [messagesCount, { speed: "fast", context_management: {} }],
  [chatCompletions, { messages: [{ role: "newer", content: [{ type: "newer" }] }] }],
  [chatCompletions, { response_format: { type: "grammar" }, stop: ["a", "b", "c", "d", "e"], n: 0, seed: 1.5 }],
  [completions, { prompt: [1, 2, 3], logprobs: true }],
  [completions, { prompt: [[1, 2], [3]] }],
  [responses, { input: [{ type: "message", role: "newer", content: 5 }], max_output_tokens: 0 }],
  [responses, { tools: [{ type: "function" }], tool_choice: "newer" }],
  [generateContent, { toolConfig: { functionCallingConfig: { mode: "NEWER" } } }],
  [generateContent, { generation_config: { thinking_config: { thinking_level: "NEWER" } } }],
  [countTokens, { generateContentRequest: { contents: "a" } }],
  [embeddings, { input: [1, 2, 3] }],
  [embeddings, { input: [[1, 2], [3]], encoding_format: "int8", dimensions: 9_000 }],
  [engineEmbeddings, { input: [[1]] }],
  // sizes and formats of gpt-image-1.5 and of servers such as LocalAI, prompts of Seedream: openai 7.55, https://docs.x.ai/docs/guides/image-generations
  [imageGenerations, { size: "4096x8192", quality: "high", background: "transparent", output_format: "avif" }],
  [imageGenerations, { size: "2K", prompt: ["a", "b"], aspect_ratio: "16:9", response_format: "bytes" }],
  [imageGenerations, { stream: true, partial_images: 3 }],
  [imageGenerations, { seed: -1, n: 0, prompt: "a".repeat(32_001), negative_prompt: ["b"] }],
  // Kokoro, Orpheus and ElevenLabs: https://github.com/remsky/Kokoro-FastAPI, voices as weights, long texts
  [audioSpeech, { input: "a".repeat(10_000), voice: undefined, speed: 8, response_format: "ogg_vorbis" }],
  [audioSpeech, { voice: { weights: [1, 2] }, instructions: "Whisper", stream_format: "sse" }],
  // https://platform.openai.com/docs/api-reference/audio, https://console.groq.com/docs/speech-to-text
  [transcriptions, {
    temperature: 1.5,
    timestamp_granularities: ["character"],
    known_speaker_names: ["a"],
    language: ""
  }],
  [translations, { temperature: [0, 0.2], response_format: "srt", language: "de" }],
  // https://docs.mistral.ai/api/#tag/classifiers, https://docs.llamastack.com: conversations
  [moderations, { input: [{ role: "user", content: "a" }] }],
  [moderations, { input: [[{ role: "user", content: "a" }]], metadata: {} }],
  // pictures: https://jina.ai/reranker, https://docs.cohere.com/reference/rerank, https://docs.voyageai.com/docs/reranker
  [rerank, { query: { image: "https://example.com/a.png" }, documents: [{ image: "aGk=" }, ["a"], {}] }],
  [rerank, { top_n: 0, rank_fields: [], max_tokens_per_doc: 9, return_documents: "yes" }],
  [embed, { texts: [], inputs: [{ content: [{ type: "newer" }] }], output_dimension: 99_999 }],
  [embedContent, { content: { parts: [{ newer: 1 }] }, outputDimensionality: 99_999, embedContentConfig: {} }],
  [batchEmbedContents, { requests: [{ newer: 1 }] }]
]

/** The fields that the gateway reads itself. A provider that accepts texts for numbers would bypass limits. */
const refused: ReadonlyArray<readonly [Operation, param: string, object]> = [
  [messages, "model", { model: "" }],
  [messages, "Model", { Model: "other" }],
  [messages, "stream", { stream: "yes" }],
  [messages, "max_tokens", { max_tokens: "100000" }],
  [messages, "thinking.budget_tokens", { thinking: { budget_tokens: "100000" } }],
  [messages, "messages", { messages: "a" }],
  [messages, "messages[0]", { messages: ["a"] }],
  [chatCompletions, "n", { n: "100" }],
  [chatCompletions, "max_completion_tokens", { max_completion_tokens: "100000" }],
  [completions, "best_of", { best_of: "20" }],
  [responses, "max_output_tokens", { max_output_tokens: "100000" }],
  [responses, "store", { store: "no" }],
  [responses, "input", { input: 5 }],
  [generateContent, "generationConfig.maxOutputTokens", { generationConfig: { maxOutputTokens: "100000" } }],
  [generateContent, "generationConfig.maxOutputTokens", { generation_config: { max_output_tokens: "100000" } }],
  [embeddings, "input", { input: null }],
  [imageGenerations, "n", { n: "100" }],
  [imageGenerations, "parameters.n", { parameters: { n: "100" } }],
  [imageGenerations, "stream", { stream: "yes" }],
  [audioSpeech, "input", { input: ["a"] }],
  [audioSpeech, "model", { model: 5 }],
  [transcriptions, "stream", { stream: 1 }],
  [moderations, "model", { model: "" }],
  [rerank, "query", { query: 5 }],
  [rerank, "documents", { documents: 5 }],
  [batchEmbedContents, "requests[0]", { requests: ["a"] }]
]

/** The same of forms. */
const forms: ReadonlyArray<readonly [Operation, fields: Readonly<Record<string, string>>, param: string | undefined]> =
  [
    [imageEdits, { quality: "newer", size: "3K", input_fidelity: "high" }, undefined],
    [imageEdits, { stream: "true", partial_images: "2" }, undefined],
    [imageEdits, { n: "many" }, "n"],
    [transcriptions, { temperature: "1.5", chunking_strategy: "newer", "timestamp_granularities[]": "x" }, undefined],
    [transcriptions, { stream: "maybe" }, "stream"],
    [translations, { temperature: "2", response_format: "newer" }, undefined],
    [imageEdits, { model: "" }, "model"]
  ]

const named = ([operation, change]: readonly [Operation, object]) =>
  [`${operation.name}: ${JSON.stringify(change)}`, operation, change] as const

describe("ingress", () => {
  it.effect.each(accepted.map(named))(
    "accepts for the provider to judge %s",
    ([, operation, change]) =>
      Effect.gen(function*() {
        const { body, result } = yield* decode(operation, change)
        assert.isTrue(Result.isSuccess(result), JSON.stringify(result))
        // limits read more fields than ingress checks
        assert.deepStrictEqual(Result.isSuccess(result) ? result.success : undefined, body)
      })
  )

  it.effect.each(refused)("refuses for %s a wrong %s", ([operation, param, change]) =>
    Effect.gen(function*() {
      const { result } = yield* decode(operation, change)
      assert.strictEqual(Result.isFailure(result) ? result.failure.param : "it was accepted", param)
    }))

  it.effect.each(forms)(
    "reads of a form for %s only what it needs: %j",
    ([operation, fields, param]) =>
      Effect.gen(function*() {
        const form = new FormData()
        const file = new File(["RIFF"], "a", { type: "audio/wav" })
        for (const [name, value] of Object.entries({ model: "m", file, image: file, prompt: "a", ...fields })) {
          form.set(name, value)
        }
        const sent = new Response(form)
        const headers = Headers.fromInput({ "content-type": sent.headers.get("content-type") ?? "" })
        const body = yield* Effect.promise(() => sent.bytes())
        const result = yield* Effect.result(IncomingBody.decode(operation, headers, body))
        assert.strictEqual(Result.isFailure(result) ? result.failure.param : undefined, param)
      })
  )

  it("counts the query of any form again with each document", () => {
    const tokens = (query: unknown) =>
      tokenDemand(rerank, 400, (name) => ({ query, documents: [1, 2, 3] } as Record<string, unknown>)[name]).tokens
    assert.isAbove(tokens({ image: "a".repeat(400) }), tokens("a") + 200)
  })

  it("counts the tokens of a prompt as one prompt", () => {
    const tokens = (prompt: unknown) =>
      tokenDemand(completions, 4, (name) => ({ prompt, max_tokens: 100 } as Record<string, unknown>)[name]).tokens
    assert.strictEqual(tokens([1, 2, 3]), tokens("a"))
    assert.isAbove(tokens([[1], [2], [3]]), tokens("a"))
  })
})
