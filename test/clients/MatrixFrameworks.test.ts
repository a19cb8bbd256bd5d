/**
 * The AI SDK, LangChain and OpenAI's Agents SDK with every kind of chat provider behind the gateway, streaming and not: text,
 * parallel tools, and an agent's turns with tools and reasoning.
 */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { HumanMessage, ToolMessage } from "@langchain/core/messages"
import { ChatOpenAI } from "@langchain/openai"
import { Agent, OpenAIProvider, Runner, tool as agentTool } from "@openai/agents"
import { assert, describe, it } from "@effect/vitest"
import { generateText, jsonSchema, type LanguageModel, streamText, tool, type ToolSet } from "ai"
import { apis, chatProviders } from "../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../fixture/gateway/SharedGateway.ts"

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
  ["openai chat", (model) => createOpenAI(at("/v1")).chat(model)],
  ["openai responses", (model) => createOpenAI(at("/v1"))(model)],
  ["anthropic", (model) => createAnthropic(at("/v1"))(model)],
  ["google", (model) => createGoogleGenerativeAI(at("/v1beta"))(model)]
]

const inputSchema = jsonSchema<{ readonly city: string }>(schema)
const tools: ToolSet = { get_weather: tool({ inputSchema }), get_time: tool({ inputSchema }) }

describe.each(apis)("with a provider of %s", (provider) => {
  describe.each(dialects)("AI SDK, %s", (_, make) => {
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

  describe.each([["chat", false], ["responses", true]] as const)("LangChain, %s", (_, useResponsesApi) => {
    const make = () =>
      new ChatOpenAI({
        model: `on-${provider}`,
        maxRetries: 0,
        apiKey: shared().key,
        useResponsesApi,
        zdrEnabled: true,
        configuration: { baseURL: `${shared().url}/v1` }
      })

    it("gets the text, as a whole and as a stream", async () => {
      shared().provider.say({ text: "Bees dance.", usage })
      assert.strictEqual((await make().invoke([new HumanMessage(prompt)])).text, "Bees dance.")
      let text = ""
      for await (const chunk of await make().stream([new HumanMessage(prompt)])) text += chunk.text
      assert.strictEqual(text, "Bees dance.")
    })

    it("gets two tool calls at once, and continues with their results", async () => {
      shared().provider.say({ reasoning: "Ask both.", toolCalls, usage })
      const functions = calls.map(({ name }) => ({ type: "function" as const, function: { name, parameters: schema } }))
      const model = make().bindTools(functions, { include: ["reasoning.encrypted_content"] })
      const answer = await model.invoke([new HumanMessage(prompt)])
      assert.deepStrictEqual((answer.tool_calls ?? []).map(({ args, name }) => ({ name, args })), calls)
      shared().provider.say({ text: "Rain at noon." })
      const results = (answer.tool_calls ?? []).map(({ id = "", name }) =>
        new ToolMessage({ tool_call_id: id, name, content: `the result of ${name}` })
      )
      const { received, result } = await receivedBy(
        shared(),
        () => model.invoke([new HumanMessage(prompt), answer, ...results])
      )
      assert.strictEqual((await result).text, "Rain at noon.")
      for (const { name } of calls) assert.include(JSON.stringify(received.json), `the result of ${name}`)
    })
  })

  describe("OpenAI Agents SDK", () => {
    // the providers whose reasoning can be sent back, and how their requests show it
    const signed = { anthropic: "signature", gemini: "thoughtSignature", responses: "encrypted_content" } as const

    it.each([false, true])("runs two turns of tools with reasoning, streaming: %s", async (streams) => {
      const answers = [
        { reasoning: "First the weather.", toolCalls: [{ name: "get_weather", arguments: "{\"city\":\"Oslo\"}" }] },
        { reasoning: "Then the time.", toolCalls: [{ name: "get_time", arguments: "{\"city\":\"Oslo\"}" }] },
        { text: "Rain at noon." }
      ]
      const from = shared().provider.requests.length
      shared().provider.say(() => answers[shared().provider.requests.length - from - 1] ?? { text: "too many turns" })
      const called: Array<unknown> = []
      const agent = new Agent({
        name: "Guide",
        instructions: "Be brief.",
        model: `on-${provider}`,
        modelSettings: {
          store: false,
          reasoning: { effort: "low", summary: "auto" },
          providerData: { include: ["reasoning.encrypted_content"] }
        },
        tools: calls.map(({ name }) =>
          agentTool({
            name,
            description: name,
            parameters: { ...schema, additionalProperties: false },
            strict: true,
            execute: (input) => {
              called.push([name, input])
              return `the result of ${name}`
            }
          })
        )
      })
      const runner = new Runner({ modelProvider: new OpenAIProvider(at("/v1")), tracingDisabled: true })
      if (streams) {
        const run = await runner.run(agent, prompt, { stream: true })
        let text = ""
        for await (const delta of run.toTextStream()) text += delta
        assert.strictEqual(text, "Rain at noon.")
      } else assert.strictEqual((await runner.run(agent, prompt)).finalOutput, "Rain at noon.")
      assert.deepStrictEqual(called, [["get_weather", { city: "Oslo" }], ["get_time", { city: "Oslo" }]])
      const requests = shared().provider.requests.slice(from)
      assert.lengthOf(requests, 3)
      const last = JSON.stringify(requests[2]?.json)
      for (const { name } of calls) assert.include(last, `the result of ${name}`)
      if (provider in signed) {
        assert.lengthOf(last.split(`"${signed[provider as keyof typeof signed]}":"`), 3)
      }
    })
  })
})
