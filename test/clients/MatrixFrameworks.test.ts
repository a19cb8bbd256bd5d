/**
 * The AI SDK and LangChain with every kind of chat provider behind the gateway, streaming and not: text and parallel tools.
 */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { HumanMessage } from "@langchain/core/messages"
import { ChatOpenAI } from "@langchain/openai"
import { assert, describe, it } from "@effect/vitest"
import { generateText, jsonSchema, type LanguageModel, streamText, tool, type ToolSet } from "ai"
import { chatProviders, providers } from "../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

const prompt = "And now?"
const schema = { type: "object" as const, properties: { city: { type: "string" as const } }, required: ["city"] }
const calls = [
  { name: "get_weather", args: { city: "Oslo" } },
  { name: "get_time", args: { city: "Lima, Perú" } }
]
const toolCalls = calls.map(({ args, name }) => ({ name, arguments: JSON.stringify(args) }))
const usage = { input: 120, output: 34 }

const at = (path: string) => ({ baseURL: `${shared().url}${path}`, apiKey: shared().key })

const dialects: ReadonlyArray<readonly [string, (model: string) => LanguageModel]> = [
  ["openai-compatible", (model) => createOpenAICompatible({ name: "gateway", ...at("/v1") }).chatModel(model)],
  ["openai", (model) => createOpenAI(at("/v1")).chat(model)],
  ["anthropic", (model) => createAnthropic(at("/v1"))(model)],
  ["google", (model) => createGoogleGenerativeAI(at("/v1beta"))(model)]
]

const inputSchema = jsonSchema<{ readonly city: string }>(schema)
const tools: ToolSet = { get_weather: tool({ inputSchema }), get_time: tool({ inputSchema }) }

describe.each(providers)("with a provider of %s", (provider) => {
  describe.each(dialects)("the AI SDK's provider %s", (_, make) => {
    const model = () => make(`on-${provider}`)

    it("gets the text, as a whole and as a stream", async () => {
      shared().provider.say({ text: "Bees dance 🐝, they \"point\".", usage })
      const whole = await generateText({ model: model(), prompt, maxRetries: 0 })
      assert.strictEqual(whole.text, "Bees dance 🐝, they \"point\".")
      assert.strictEqual(whole.finishReason, "stop")
      assert.deepStrictEqual([whole.usage.inputTokens, whole.usage.outputTokens], [120, 34])
      const streamed = streamText({ model: model(), prompt, maxRetries: 0 })
      let text = ""
      for await (const delta of streamed.textStream) text += delta
      assert.strictEqual(text, whole.text)
      assert.strictEqual(await streamed.finishReason, "stop")
    })

    it("gets two tool calls at once, as a whole and as a stream", async () => {
      shared().provider.say({ toolCalls, usage })
      const whole = await generateText({ model: model(), prompt, tools, maxRetries: 0 })
      assert.deepStrictEqual(whole.toolCalls.map(({ input, toolName }) => ({ name: toolName, args: input })), calls)
      assert.strictEqual(whole.finishReason, "tool-calls")
      const streamed = await streamText({ model: model(), prompt, tools, maxRetries: 0 }).toolCalls
      assert.deepStrictEqual(streamed.map(({ input, toolName }) => ({ name: toolName, args: input })), calls)
    })
  })

  describe("LangChain", () => {
    const make = () =>
      new ChatOpenAI({
        model: `on-${provider}`,
        maxRetries: 0,
        apiKey: shared().key,
        configuration: { baseURL: `${shared().url}/v1` }
      })

    it("gets the text, as a whole and as a stream", async () => {
      shared().provider.say({ text: "Bees dance.", usage })
      assert.strictEqual((await make().invoke([new HumanMessage(prompt)])).content, "Bees dance.")
      let text = ""
      for await (const chunk of await make().stream([new HumanMessage(prompt)])) text += String(chunk.content)
      assert.strictEqual(text, "Bees dance.")
    })

    it("gets two tool calls at once", async () => {
      shared().provider.say({ toolCalls, usage })
      const functions = calls.map(({ name }) => ({ type: "function" as const, function: { name, parameters: schema } }))
      const answer = await make().bindTools(functions).invoke([new HumanMessage(prompt)])
      assert.deepStrictEqual((answer.tool_calls ?? []).map(({ args, name }) => ({ name, args })), calls)
    })
  })
})
