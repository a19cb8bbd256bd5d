/** Usage has the kinds of tokens that a provider reports, in the names of every dialect. */
import { assert, describe, it } from "@effect/vitest"
import * as AnthropicUsage from "../../../../shared/provider/dialects/anthropic/AnthropicUsage.ts"
import * as GeminiUsage from "../../../../shared/provider/dialects/gemini/GeminiUsage.ts"
import * as OpenAiUsage from "../../../../shared/provider/dialects/openai/OpenAiUsage.ts"
import * as TextUsage from "../../../../shared/provider/dialects/conversation/TextUsage.ts"
import * as UsageSum from "../../../../shared/contract/UsageSum.ts"

const kinds = {
  inputTextTokens: 5,
  inputAudioTokens: 3,
  inputImageTokens: 2,
  outputTextTokens: 4,
  outputAudioTokens: 1,
  outputImageTokens: 6
}
const usage = { inputTokens: 10, outputTokens: 13, cachedTokens: 1, reasoningTokens: 2, ...kinds }

const details = {
  input: { cached_tokens: 1, text_tokens: 5, audio_tokens: 3, image_tokens: 2 },
  output: { reasoning_tokens: 2, text_tokens: 4, audio_tokens: 1, image_tokens: 6 }
}
const chat = {
  prompt_tokens: 10,
  completion_tokens: 13,
  total_tokens: 23,
  prompt_tokens_details: details.input,
  completion_tokens_details: details.output
}
const response = {
  input_tokens: 10,
  input_tokens_details: details.input,
  output_tokens: 13,
  output_tokens_details: details.output
}

describe("the OpenAI dialect", () => {
  it.each([["chat", chat], ["responses and pictures", response]])("has them as %s report them", (_, reported) => {
    assert.deepStrictEqual(OpenAiUsage.usageOf(reported), usage)
  })

  it("reports them under both names", () => {
    assert.deepStrictEqual(OpenAiUsage.toTokenUsage(usage), chat)
    const input_tokens_details = { ...details.input, cache_write_tokens: 0 }
    assert.deepStrictEqual(OpenAiUsage.toCompactionUsage(usage), { ...chat, ...response, input_tokens_details })
  })

  it("leaves out what is unknown, and knows the others if all is text", () => {
    const plain = { inputTokens: 10, outputTokens: 13, reasoningTokens: 2 }
    const encoded = OpenAiUsage.toTokenUsage(plain)
    assert.deepStrictEqual(encoded.prompt_tokens_details, { cached_tokens: 0 })
    assert.deepStrictEqual(encoded.completion_tokens_details, { reasoning_tokens: 2 })
    const text = OpenAiUsage.toTokenUsage(TextUsage.complete(plain, true, true))
    assert.deepStrictEqual(text.prompt_tokens_details, {
      cached_tokens: 0,
      text_tokens: 10,
      audio_tokens: 0,
      image_tokens: 0
    })
    assert.deepStrictEqual(text.completion_tokens_details, {
      reasoning_tokens: 2,
      text_tokens: 11,
      audio_tokens: 0,
      image_tokens: 0
    })
  })

  it("ignores invalid counts", () => {
    const prompt_tokens_details = { text_tokens: -1, audio_tokens: "3", image_tokens: 1.5, cached_tokens: null }
    const reported = { prompt_tokens: 10, completion_tokens: 13, prompt_tokens_details }
    assert.deepStrictEqual(OpenAiUsage.usageOf(reported), { inputTokens: 10, outputTokens: 13 })
  })
})

describe("the Gemini dialect", () => {
  const modalities = (tokens: Readonly<Record<string, number>>) =>
    Object.entries(tokens).map(([modality, tokenCount]) => ({ modality, tokenCount }))
  const reported = {
    promptTokenCount: 10,
    candidatesTokenCount: 11,
    totalTokenCount: 23,
    cachedContentTokenCount: 1,
    thoughtsTokenCount: 2,
    promptTokensDetails: modalities({ TEXT: 5, AUDIO: 3, IMAGE: 2 }),
    candidatesTokensDetails: modalities({ TEXT: 4, AUDIO: 1, IMAGE: 6 })
  }

  it("has them, and reports them", () => {
    assert.deepStrictEqual(GeminiUsage.usageOf(reported), usage)
    assert.deepStrictEqual(GeminiUsage.toUsageMetadata(usage), reported)
  })

  it("adds up those of the provider's tools, and ignores others and malformed ones", () => {
    const odd = {
      promptTokenCount: 10,
      toolUsePromptTokenCount: 4,
      promptTokensDetails: [...modalities({ TEXT: 5, VIDEO: 5 }), null, { modality: "AUDIO" }],
      toolUsePromptTokensDetails: modalities({ TEXT: 4 }),
      candidatesTokensDetails: "none"
    }
    assert.deepStrictEqual(GeminiUsage.usageOf(odd), {
      inputTokens: 14,
      outputTokens: 0,
      inputTextTokens: 9,
      inputAudioTokens: 0
    })
  })
})

describe("text", () => {
  it("is assumed only where nothing else was said or reported", () => {
    const audio = { inputTokens: 10, outputTokens: 13, inputAudioTokens: 3, outputAudioTokens: 0 }
    assert.deepStrictEqual(TextUsage.complete(audio, true, false), audio)
    assert.deepStrictEqual(TextUsage.complete(audio, false, true), { ...audio, outputTextTokens: 13 })
  })
})

it("a sum has every count that one of its parts has", () => {
  const twice = UsageSum.sum(usage, { ...usage, estimatedTokens: 3 })
  assert.deepInclude(twice, { inputTokens: 20, outputImageTokens: 12, estimatedTokens: 3 })
  assert.notProperty(twice, "characters")
})

describe("the messages dialect", () => {
  it("reads what was written to the cache, and what of that for an hour, in both reports of a stream", () => {
    const first = AnthropicUsage.usageOf({
      input_tokens: 10,
      output_tokens: 1,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 50,
      cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 }
    })
    assert.deepStrictEqual(AnthropicUsage.usageOf({ output_tokens: 7 }, first), {
      inputTokens: 160,
      outputTokens: 7,
      cachedTokens: 100,
      cacheWriteTokens: 50,
      cacheWriteHourTokens: 30
    })
  })
})
