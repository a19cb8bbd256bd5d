/** Where servers of the OpenAI dialect put usage: it is read, not estimated, and clients find it where they look for it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import { openAi } from "../../../../shared/provider/protocols/openai/OpenAi.ts"
import { dataIn, play, sse } from "../../../fixture/calls/ScriptedCall.ts"

const hello = [{ role: "user", content: "Hello" }]
const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 }
const counted = { inputTokens: 7, outputTokens: 2 }
const word = { index: 0, delta: { content: "Hi" }, finish_reason: null }
const stop = { index: 0, delta: {}, finish_reason: "stop" }
const done = "data: [DONE]\n\n"

/** The last pieces of a stream after its text, by the servers' references or sources. */
const streams: ReadonlyArray<readonly [string, ReadonlyArray<object>, object]> = [
  ["OpenAI, vLLM, SGLang: a piece of its own", [{ choices: [stop] }, { choices: [], usage }], counted],
  ["Mistral, Together, Zhipu: with the reason", [{ choices: [stop], usage }], counted],
  ["Perplexity, vLLM's continuous usage: in every piece", [
    { choices: [word], usage: { prompt_tokens: 7, completion_tokens: 1 } },
    { choices: [stop], usage }
  ], counted],
  ["Groq: in x_groq", [{ choices: [stop], x_groq: { id: "r", usage } }], counted],
  ["Moonshot: in the choice", [{ choices: [{ ...stop, usage: { ...usage, cached_tokens: 4 } }] }], {
    ...counted,
    cachedTokens: 4
  }],
  ["DeepSeek: the cache beside the details", [
    { choices: [stop], usage: { ...usage, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 3 } }
  ], { ...counted, cachedTokens: 4 }],
  ["llama.cpp: as timings", [{ choices: [stop], timings: { cache_n: 4, prompt_n: 3, predicted_n: 2 } }], {
    ...counted,
    cachedTokens: 4
  }],
  ["Ollama: counts beside the answer", [{ choices: [stop], prompt_eval_count: 7, eval_count: 2 }], counted],
  ["Cloudflare: in result", [{ choices: [stop], result: { usage } }], counted],
  ["xAI: reasoning beside the output", [
    { choices: [stop] },
    {
      choices: [],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 2,
        total_tokens: 14,
        completion_tokens_details: { reasoning_tokens: 5 }
      }
    }
  ], { inputTokens: 7, outputTokens: 7, reasoningTokens: 5 }],
  ["OpenRouter: a piece with an empty delta and its cost", [
    { choices: [stop] },
    {
      choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }],
      usage: { ...usage, cost: 0.1 }
    }
  ], counted]
]

const frames = (last: ReadonlyArray<object>) => [...[{ choices: [word] }, ...last].map(sse), done]

/** The usage that the client of a stream gets last. */
const shown = (text: string) =>
  dataIn(text).flatMap(({ usage }) => typeof usage === "object" && usage !== null ? [usage] : []).at(-1)

describe("the usage of a stream", () => {
  it.effect.each(streams)("%s", ([, last, expected]) =>
    Effect.gen(function*() {
      const body = { model: "m", messages: hello, stream: true, stream_options: { include_usage: true } }
      const relayed = yield* play(openAi, { operation: chatCompletions, body }, { body: frames(last) })
      assert.deepInclude(relayed.usage, expected)
      assert.notProperty(relayed.usage, "estimatedTokens")
      assert.deepInclude(shown(relayed.text), { prompt_tokens: 7 })
      assert.isTrue(relayed.text.endsWith(done))
      const claude = { model: "m", max_tokens: 9, messages: hello, stream: true }
      const translated = yield* play(openAi, { operation: messages, body: claude }, { body: frames(last) })
      assert.deepInclude(translated.usage, expected)
      assert.notProperty(translated.usage, "estimatedTokens")
    }))

  it.effect("is not shown to a client that did not ask for it", () =>
    Effect.gen(function*() {
      const body = { model: "m", messages: hello, stream: true }
      const given = frames([{ choices: [stop], x_groq: { usage } }])
      const played = yield* play(openAi, { operation: chatCompletions, body }, { body: given })
      assert.strictEqual(played.text, given.join(""))
      assert.deepInclude(played.usage, counted)
    }))
})

const message = { index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }

describe("the usage of a whole answer", () => {
  it.effect.each([
    ["OpenAI", { choices: [message], usage }],
    ["Groq", { choices: [message], x_groq: { usage } }],
    ["Moonshot", { choices: [{ ...message, usage }] }],
    ["llama.cpp", { choices: [message], timings: { prompt_n: 7, predicted_n: 2 } }],
    ["Ollama", { choices: [message], prompt_eval_count: 7, eval_count: 2 }]
  ])("%s", ([, answer]) =>
    Effect.gen(function*() {
      const script = { contentType: "application/json", body: [JSON.stringify(answer)] }
      const played = yield* play(openAi, { operation: chatCompletions, body: { model: "m", messages: hello } }, script)
      assert.deepInclude(played.usage, counted)
      assert.deepInclude((JSON.parse(played.text) as { usage: object }).usage, {
        prompt_tokens: 7,
        completion_tokens: 2
      })
    }))
})
