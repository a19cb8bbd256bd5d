/** Text completions through the whole gateway, with OpenAI's client and with the AI SDK. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { generateText, streamText } from "ai"
import { openais } from "../../fixture/ClientMajors.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()

const model = "local-chat"
const lighthouse = "Say The lighthouse was built in 1871."
const built = "The lighthouse was built in 1871."

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 }).completions

  it("continues a prompt", async () => {
    const answer = await make().create({ model, prompt: lighthouse })
    assert.match(answer.id, /^cmpl-[0-9a-f]{32}$/)
    assert.deepInclude(answer, { object: "text_completion", model })
    assert.deepStrictEqual(answer.choices, [{ text: built, index: 0, logprobs: null, finish_reason: "stop" }])
    const { completion_tokens = 0, prompt_tokens = 0, total_tokens } = answer.usage ?? {}
    assert.isTrue(prompt_tokens > 8 && completion_tokens > 5)
    assert.strictEqual(total_tokens, prompt_tokens + completion_tokens)
  })

  it("continues several prompts, each as often as requested, in order", async () => {
    const prompt = ["Say one", "Say two", lighthouse]
    const answer = await make().create({ model, prompt, n: 2 })
    assert.deepStrictEqual(answer.choices.map(({ index }) => index), [0, 1, 2, 3, 4, 5])
    const texts = answer.choices.map(({ text }) => text)
    assert.deepStrictEqual([texts[0], texts[2], texts[4]], ["one", "two", built])
    assert.include(texts[1], "one")
    assert.include(texts[3], "two")
    assert.notStrictEqual(texts[0], texts[1])
    const alone = await make().create({ model, prompt: "Say one", n: 2 })
    assert.isAbove(answer.usage?.total_tokens ?? 0, 2 * (alone.usage?.total_tokens ?? 0))
  })

  it("echoes each choice's prompt", async () => {
    const { choices } = await make().create({ model, prompt: ["Say one", "Say two"], n: 2, echo: true })
    assert.deepStrictEqual(choices.map(({ text }) => text.slice(0, 7)), ["Say one", "Say one", "Say two", "Say two"])
    assert.strictEqual(choices[0]?.text, "Say oneone")
    const [nothing] = (await make().create({ model, prompt: "Say one", echo: true, max_tokens: 0 })).choices
    assert.deepInclude(nothing, { text: "Say one", finish_reason: "length" })
  })

  it("fills in between prompt and suffix, without repeating either", async () => {
    const { choices: [choice] } = await make().create({ model, prompt: lighthouse, suffix: "So it is old." })
    assert.strictEqual(choice?.text, built)
  })

  it("stops at stop sequences and at the token limit", async () => {
    const stopped = await make().create({ model, prompt: lighthouse, stop: [" in", "never"] })
    assert.deepInclude(stopped.choices[0], { text: "The lighthouse was built", finish_reason: "stop" })
    const cut = await make().create({ model, prompt: lighthouse, max_tokens: 2 })
    assert.deepInclude(cut.choices[0], { text: "The lighthouse", finish_reason: "length" })
    assert.strictEqual(cut.usage?.completion_tokens, 2)
  })

  it("streams the same text as the whole answer, for every choice", async () => {
    for (const more of [{}, { echo: true }, { max_tokens: 3 }, { stop: " was" }]) {
      const request = { model, prompt: ["Say one two three", lighthouse], n: 2, ...more }
      const whole = await make().create(request)
      const stream = await make().create({ ...request, stream: true, stream_options: { include_usage: true } })
      const chunks = await Array.fromAsync(stream)
      const choices = whole.choices.map(({ index }) => {
        const pieces = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index))
        assert.isTrue(pieces.slice(0, -1).every(({ finish_reason }) => finish_reason === null))
        return {
          text: pieces.map(({ text }) => text).join(""),
          index,
          logprobs: null,
          finish_reason: pieces.at(-1)?.finish_reason
        }
      })
      assert.deepStrictEqual(choices as unknown, whole.choices)
      assert.deepStrictEqual(chunks.at(-1)?.usage, whole.usage)
      assert.deepStrictEqual(chunks.at(-1)?.choices, [])
      assert.isTrue(chunks.slice(0, -1).every(({ usage }) => usage === null))
      assert.deepStrictEqual(new Set(chunks.map(({ id }) => id)).size, 1)
    }
  })

  it("reports no usage in a stream unless requested", async () => {
    const chunks = await Array.fromAsync(await make().create({ model, prompt: "Say one", stream: true }))
    assert.isTrue(chunks.length > 1 && chunks.every((chunk) => !("usage" in chunk) && chunk.choices.length === 1))
  })

  it("gets the name of a wrong field", async () => {
    const wrong = [
      [{ prompt: [] }, "prompt"],
      [{ prompt: ["a", ""] }, "prompt[1]"],
      [{ prompt: [1, 2] }, "prompt[0]"],
      [{ prompt: Array(2_000).fill("a"), n: 2 }, "n"]
    ] as const
    for (const [body, param] of wrong) {
      const error = await make().create({ model, ...body } as never).catch((error: unknown) => error)
      assert.instanceOf(error, OpenAI.BadRequestError)
      assert.deepInclude(error, { status: 400, param, code: "invalid_value" })
    }
  })
})

describe("the AI SDK", () => {
  const completionModel = () =>
    createOpenAICompatible({ name: "gateway", baseURL: `${shared().url}/v1`, apiKey: shared().key })
      .completionModel(model)

  it("generates text", async () => {
    const { finishReason, text, usage } = await generateText({ model: completionModel(), prompt: lighthouse })
    assert.match(text, /so it goes on, .*not a model/u)
    assert.strictEqual(finishReason, "stop")
    assert.isAbove(usage.inputTokens ?? 0, 10)
  })

  it("streams the same text", async () => {
    const whole = await generateText({ model: completionModel(), prompt: lighthouse })
    const { finishReason, text } = streamText({ model: completionModel(), prompt: lighthouse })
    assert.strictEqual(await text, whole.text)
    assert.strictEqual(await finishReason, "stop")
  })
})
