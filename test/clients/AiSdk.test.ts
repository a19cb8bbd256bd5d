/** Chat through the whole gateway with the AI SDK and its provider for each dialect, given only base URL and key. */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { APICallError, generateText, jsonSchema, type LanguageModel, streamText, tool } from "ai"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()

const prompt = "The lighthouse was built in 1871. Its keeper kept bees. When was the lighthouse built?"

const providers: ReadonlyArray<readonly [string, (model: string) => LanguageModel]> = [
  ["openai-compatible", (model) => createOpenAICompatible({ name: "gateway", ...at("/v1") }).chatModel(model)],
  ["openai", (model) => createOpenAI(at("/v1")).chat(model)],
  ["anthropic", (model) => createAnthropic(at("/v1"))(model)],
  ["google", (model) => createGoogleGenerativeAI(at("/v1beta"))(model)]
]

const at = (path: string) => ({ baseURL: `${shared().url}${path}`, apiKey: shared().key })

describe.each(providers)("the AI SDK's provider %s", (_, model) => {
  it("generates text, with usage and the finish reason", async () => {
    const { finishReason, text, usage } = await generateText({ model: model("local-chat"), prompt })
    assert.include(text, "1871")
    assert.strictEqual(finishReason, "stop")
    assert.isAbove(usage.inputTokens ?? 0, 10)
    assert.isAbove(usage.outputTokens ?? 0, 3)
  })

  it("streams the same text", async () => {
    const { finishReason, text, textStream } = streamText({ model: model("local-chat"), prompt })
    let streamed = ""
    for await (const delta of textStream) streamed += delta
    assert.strictEqual(streamed, await text)
    assert.include(streamed, "1871")
    assert.strictEqual(await finishReason, "stop")
  })

  it("calls a tool with arguments that fit its schema", async () => {
    const { finishReason, toolCalls } = await generateText({
      model: model("local-chat"),
      prompt: "What is the weather in Oslo?",
      tools: {
        get_weather: tool({
          description: "The weather in a city",
          inputSchema: jsonSchema<{ readonly city: string }>({
            type: "object",
            properties: { city: { type: "string" } },
            required: ["city"],
            additionalProperties: false
          })
        })
      },
      toolChoice: "required"
    })
    const [call] = toolCalls
    assert.strictEqual(call?.toolName, "get_weather")
    assert.isString((call?.input as { readonly city?: unknown } | undefined)?.city)
    assert.strictEqual(finishReason, "tool-calls")
  })

  it("gets the gateway's own message for an error", async () => {
    const error = await generateText({ model: model("none"), prompt, maxRetries: 0 }).catch((error: unknown) => error)
    assert.isTrue(APICallError.isInstance(error))
    assert.deepInclude(error as APICallError, { statusCode: 404, isRetryable: false })
    assert.include((error as APICallError).message, "The model 'none' does not exist")
  })
})
