/**
 * The helpers of the official clients, which run tools, parse answers and keep conversations, with every kind of provider behind the
 * gateway. They are where clients use what is newest in their protocol.
 */
import { createAnthropic } from "@ai-sdk/anthropic"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import Anthropic from "@anthropic-ai/sdk"
import { betaJSONSchemaOutputFormat, betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema"
import { jsonSchemaOutputFormat } from "@anthropic-ai/sdk/helpers/json-schema"
import { assert, beforeEach, describe, it } from "@effect/vitest"
import { type CallableTool, GoogleGenAI } from "@google/genai"
import { jsonSchema, type LanguageModel, Output, tool, ToolLoopAgent } from "ai"
import OpenAI from "openai"
import { ResponsesToolRunner } from "openai/helpers/responses-tool-runner"
import { apis, chatProviders } from "../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"
import type { Answer, Question } from "../fixture/provider/answers/Answer.ts"

const shared = sharedGateway(chatProviders())

const prompt = "And now?"
const names = ["get_weather", "get_time"]
const parameters = {
  type: "object" as const,
  properties: { city: { type: "string" as const } },
  required: ["city"],
  additionalProperties: false
}

/** Calls one tool after the other, each after reasoning, and then says how many results it got. */
const agent = ({ messages }: Question): Answer => {
  const results = messages.filter(({ role }) => role === "tool")
  const name = names[results.length]
  // Gemini's results are objects
  const said = results.map(({ text }) => /rain|noon/.exec(text)?.[0] ?? text)
  if (name === undefined) return { text: `It got ${said.join(" and ")}.` }
  return { reasoning: `Ask ${name}.`, toolCalls: [{ name, arguments: "{\"city\":\"Oslo\"}" }] }
}
const result = (name: string): string => name === "get_weather" ? "rain" : "noon"
const conclusion = "It got rain and noon."

/** Answers with what the user said so far. */
const memory = ({ messages }: Question): Answer => ({
  text: messages.filter(({ role }) => role === "user").map(({ text }) => text).join(" ")
})

const at = (path: string) => ({ baseURL: `${shared().url}${path}`, apiKey: shared().key })

/** The AI SDK's provider for each dialect. Only some say that the server follows schemas. */
const dialects: ReadonlyArray<readonly [string, (model: string) => LanguageModel]> = [
  [
    "openai-compatible",
    (model) =>
      createOpenAICompatible({ name: "gateway", supportsStructuredOutputs: true, ...at("/v1") }).chatModel(model)
  ],
  ["openai chat", (model) => createOpenAI(at("/v1")).chat(model)],
  ["openai responses", (model) => createOpenAI(at("/v1"))(model)],
  ["anthropic", (model) => createAnthropic(at("/v1"))(model)],
  ["google", (model) => createGoogleGenerativeAI(at("/v1beta"))(model)]
]

describe.each(apis)("with a provider of %s", (provider) => {
  const model = `on-${provider}`
  /** The arguments of the tools that ran. */
  const ran: Array<unknown> = []
  const run = (name: string) => (args: unknown): string => {
    ran.push([name, args])
    return result(name)
  }
  beforeEach(() => {
    ran.length = 0
    shared().provider.say(agent)
  })
  const assertRan = (text: string | null) => {
    assert.deepStrictEqual(ran, names.map((name) => [name, { city: "Oslo" }]))
    assert.strictEqual(text, conclusion)
  }

  describe("openai 7, helpers", () => {
    const make = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
    const format = { type: "json_schema", name: "place", schema: parameters, strict: true } as const

    describe.each([false, true])("streaming: %s", (streams) => {
      it("runTools of chat completions", async () => {
        const tools = names.map((name) => ({
          type: "function" as const,
          function: {
            name,
            description: name,
            parameters,
            parse: (text: string) => JSON.parse(text) as { readonly city: string },
            function: (args: { readonly city: string }) => run(name)(args)
          }
        }))
        const request = { model, messages: [{ role: "user" as const, content: prompt }], tools }
        const { completions } = make().chat
        const runner = streams ? completions.runTools({ ...request, stream: true }) : completions.runTools(request)
        assertRan(await runner.finalContent())
      })

      it("the tool runner of responses", async () => {
        const functions = names.map((name) => ({
          tool: { type: "function" as const, name, parameters, strict: true },
          execute: run(name)
        }))
        const runner = new ResponsesToolRunner({ functions })
        const { output_text } = await runner.run(make(), { model, input: prompt }, { stream: streams })
        assertRan(output_text)
      })
    })

    it("parse and stream of chat completions, with a schema", async () => {
      shared().provider.say({ text: "{\"city\":\"Oslo\"}" })
      const request = {
        model,
        messages: [{ role: "user" as const, content: prompt }],
        response_format: { type: "json_schema" as const, json_schema: format }
      }
      const { completions } = make().chat
      for (
        const answer of [await completions.parse(request), await completions.stream(request).finalChatCompletion()]
      ) {
        assert.deepStrictEqual(answer.choices[0]?.message.parsed as unknown, { city: "Oslo" })
      }
    })

    it("stream of responses, with a schema", async () => {
      shared().provider.say({ text: "{\"city\":\"Oslo\"}" })
      const stream = make().responses.stream({ model, input: prompt, text: { format } })
      let text = ""
      stream.on("response.output_text.delta", ({ delta }) => void (text += delta))
      assert.deepStrictEqual((await stream.finalResponse()).output_parsed as unknown, { city: "Oslo" })
      assert.strictEqual(text, "{\"city\":\"Oslo\"}")
    })
  })

  describe("anthropic 1, helpers", () => {
    const make = () => new Anthropic({ baseURL: shared().url, apiKey: shared().key, maxRetries: 0 })
    const asked = { model, max_tokens: 4_096, messages: [{ role: "user" as const, content: prompt }] }

    it.each([false, true])("toolRunner, streaming: %s", async (stream) => {
      const tools = names.map((name) => betaTool({ name, description: name, inputSchema: parameters, run: run(name) }))
      const { content } = await make().beta.messages.toolRunner({ ...asked, tools, stream }).runUntilDone()
      assertRan(content.map((block) => block.type === "text" ? block.text : "").join(""))
    })

    it("a thread, which goes on without the server's", async () => {
      shared().provider.say(memory)
      const thread = make().beta.messages.thread({
        model,
        max_tokens: 4_096,
        unsupportedRequestBehavior: "continue_unthreaded"
      })
      await thread.send({ role: "user", content: "one" })
      const text = await thread.stream({ role: "user", content: "two" }).finalText()
      assert.strictEqual(text, "one two")
      assert.lengthOf(thread.messages, 4)
    })

    it("parse, with a schema", async () => {
      shared().provider.say({ text: "{\"city\":\"Oslo\"}" })
      const { beta, messages } = make()
      const format = jsonSchemaOutputFormat(parameters)
      const betaFormat = betaJSONSchemaOutputFormat(parameters)
      const answers = [
        await messages.parse({ ...asked, output_config: { format } }),
        await messages.stream({ ...asked, output_config: { format } }).finalMessage(),
        await beta.messages.parse({ ...asked, output_config: { format: betaFormat } })
      ]
      for (const { parsed_output } of answers) assert.deepStrictEqual(parsed_output, { city: "Oslo" })
    })

    it("the events of a stream", async () => {
      shared().provider.say({ reasoning: "Hm.", text: "Bees dance." })
      const heard: Array<string> = []
      const thinking = { type: "enabled" as const, budget_tokens: 1_024 }
      const stream = make().messages.stream({ ...asked, thinking })
        .on("thinking", (delta) => void heard.push(delta))
        .on("text", (delta) => void heard.push(delta))
      assert.strictEqual(await stream.finalText(), "Bees dance.")
      assert.strictEqual(heard.join(""), "Hm.Bees dance.")
    })
  })

  describe("google genai 3, helpers", () => {
    const make = () =>
      new GoogleGenAI({ apiKey: shared().key, vertexai: false, httpOptions: { baseUrl: shared().url } })
    const callable: CallableTool = {
      tool: () =>
        Promise.resolve({
          functionDeclarations: names.map((name) => ({ name, description: name, parametersJsonSchema: parameters }))
        }),
      callTool: (calls) =>
        Promise.resolve(calls.map(({ args, id, name = "" }) => ({
          functionResponse: { ...(id === undefined ? {} : { id }), name, response: { output: run(name)(args) } }
        })))
    }

    it.each([false, true])("functions that it calls by itself, streaming: %s", async (streams) => {
      const request = { model, contents: prompt, config: { tools: [callable] } }
      const { models } = make()
      const answers = streams
        ? await Array.fromAsync(await models.generateContentStream(request))
        : [await models.generateContent(request)]
      const parts = answers.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
      assertRan(parts.map(({ text = "", thought = false }) => thought ? "" : text).join(""))
    })

    it("a chat, whose messages follow each other", async () => {
      shared().provider.say(memory)
      const chat = make().chats.create({ model })
      assert.strictEqual((await chat.sendMessage({ message: "one" })).text, "one")
      const chunks = await Array.fromAsync(await chat.sendMessageStream({ message: "two" }))
      assert.strictEqual(chunks.map(({ text = "" }) => text).join(""), "one two")
      assert.deepStrictEqual(chat.getHistory(true).slice(0, 2).map(({ role }) => role), ["user", "model"])
    })
  })

  describe.each(dialects)("AI SDK, %s, helpers", (_, make) => {
    const settings = { maxRetries: 0, maxOutputTokens: 1_000 }
    const inputSchema = jsonSchema<{ readonly city: string }>(parameters)

    it("an agent's loop of tools, as a whole and as a stream", async () => {
      const tools = Object.fromEntries(
        names.map((name) => [name, tool({ description: name, inputSchema, execute: run(name) })])
      )
      const agent = new ToolLoopAgent({ model: make(model), tools, ...settings })
      assertRan((await agent.generate({ prompt })).text)
      ran.length = 0
      assertRan(await (await agent.stream({ prompt })).text)
    })

    it("an agent's answer with a schema", async () => {
      shared().provider.say({ text: "{\"city\":\"Oslo\"}" })
      const agent = new ToolLoopAgent({
        model: make(model),
        output: Output.object({ schema: inputSchema }),
        ...settings
      })
      assert.deepStrictEqual((await agent.generate({ prompt })).output, { city: "Oslo" })
    })
  })
})
