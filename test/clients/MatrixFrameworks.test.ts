/**
 * The AI SDK, LangChain and OpenAI's Agents SDK with every kind of chat provider behind the gateway, streaming and not: text,
 * parallel tools, and an agent's turns with tools and reasoning.
 */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages"
import { ChatOpenAI } from "@langchain/openai"
import { Agent, OpenAIProvider, Runner, tool as agentTool } from "@openai/agents"
import { assert, describe, it } from "@effect/vitest"
import { generateText, jsonSchema, type LanguageModel, streamText, tool, type ToolSet } from "ai"
import { type Api, apis, chatProviders } from "../fixture/gateway/ChatProviders.ts"
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
  ["openai chat", (model) => createOpenAI(at("/v1")).chat(model)],
  ["openai responses", (model) => createOpenAI(at("/v1"))(model)],
  ["anthropic", (model) => createAnthropic(at("/v1"))(model)],
  ["google", (model) => createGoogleGenerativeAI(at("/v1beta"))(model)]
]

const inputSchema = jsonSchema<{ readonly city: string }>(schema)
const tools: ToolSet = { get_weather: tool({ inputSchema }), get_time: tool({ inputSchema }) }

/** Precedes reasoning that is sent back to its provider. */
const reasoningIn: { readonly [A in Api]: string } = {
  openai: `"reasoning_content":"`,
  responses: `"encrypted_content":"`,
  anthropic: `"signature":"`,
  gemini: `"thoughtSignature":"`,
  cohere: `"thinking":"`
}

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
    const make = (stores = false) =>
      new ChatOpenAI({
        model: `on-${provider}`,
        maxRetries: 0,
        apiKey: shared().key,
        useResponsesApi,
        zdrEnabled: !stores,
        configuration: { baseURL: `${shared().url}/v1` }
      })

    it("gets the text, as a whole and as a stream", async () => {
      shared().provider.say({ text: "Bees dance.", usage })
      assert.strictEqual((await make().invoke([new HumanMessage(prompt)])).text, "Bees dance.")
      let text = ""
      for await (const chunk of await make().stream([new HumanMessage(prompt)])) text += chunk.text
      assert.strictEqual(text, "Bees dance.")
    })

    it.each([false, true])("runs two turns of tools with reasoning, stored: %s", async (stores) => {
      const functions = calls.map(({ name }) => ({ type: "function" as const, function: { name, parameters: schema } }))
      // what is stored need not be sent back
      const model = make(stores).bindTools(functions, stores ? {} : { include: ["reasoning.encrypted_content"] })
      const messages: Array<BaseMessage> = [new HumanMessage(prompt)]
      const from = shared().provider.requests.length
      for (const turn of ["first", "second"]) {
        shared().provider.say({ reasoning: "Ask both.", text: `The ${turn} time.`, toolCalls, usage })
        const answer = await model.invoke(messages)
        assert.deepStrictEqual((answer.tool_calls ?? []).map(({ args, name }) => ({ name, args })), calls)
        messages.push(
          answer,
          ...(answer.tool_calls ?? []).map(({ id = "", name }) =>
            new ToolMessage({ tool_call_id: id, name, content: `the ${turn} result of ${name}` })
          )
        )
      }
      shared().provider.say({ text: "Rain at noon." })
      assert.strictEqual((await model.invoke(messages)).text, "Rain at noon.")
      const requests = shared().provider.requests.slice(from)
      assert.lengthOf(requests, 3)
      const last = JSON.stringify(requests[2]?.json)
      for (const { name } of calls) {
        for (const turn of ["first", "second"]) assert.include(last, `the ${turn} result of ${name}`)
      }
      if (useResponsesApi) assert.lengthOf(last.split(reasoningIn[provider]), 3)
    })
  })

  describe("OpenAI Agents SDK", () => {
    it.each([
      [false, false],
      [false, true],
      [true, false],
      [true, true]
    ])("runs two turns of tools with reasoning, streaming: %s, stored: %s", async (streams, store) => {
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
          store,
          reasoning: { effort: "low", summary: "auto" },
          // what is stored need not be sent back
          ...(store ? {} : { providerData: { include: ["reasoning.encrypted_content"] } })
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
      assert.lengthOf(last.split(reasoningIn[provider]), 3)
    })
  })
})
