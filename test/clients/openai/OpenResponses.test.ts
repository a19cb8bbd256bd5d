/**
 * The cases of the compliance suite of Open Responses (openresponses.org), with every kind of provider: a request gets a response
 * of the specified shape, as a whole and as a stream whose events build it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as OpenResponses from "../../fixture/client/OpenResponses.ts"
import { picture } from "../../fixture/client/Requests.ts"
import { apis, chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import type { Answer } from "../../fixture/provider/FakeProvider.ts"

const shared = sharedGateway(chatProviders())

const toResponse = Schema.decodeUnknownSync(OpenResponses.response)
const toCompaction = Schema.decodeUnknownSync(OpenResponses.compaction)

type Json = Readonly<Record<string, unknown>>

const post = (body: Json, path = "/v1/responses") =>
  fetch(`${shared().url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

/** The response to a request, which must succeed. */
const whole = async (body: Json) => {
  const answer = await post(body)
  const json = await answer.json()
  assert.strictEqual(answer.status, 200, JSON.stringify(json))
  return toResponse(json)
}

const stream = async (body: Json) => {
  const answer = await post({ ...body, stream: true })
  const text = await answer.text()
  assert.strictEqual(answer.status, 200, text)
  return OpenResponses.eventsOf(text)
}

const both: ReadonlyArray<(body: Json) => Promise<OpenResponses.Response>> = [
  whole,
  async (body) => OpenResponses.built(await stream(body))
]

const said = (role: string, content: unknown, more: Json = {}) => ({ type: "message", role, content, ...more })
const weather = {
  type: "function",
  name: "get_weather",
  description: "Get the current weather for a location",
  parameters: {
    type: "object",
    properties: { location: { type: "string", description: "The city and state, e.g. San Francisco, CA" } },
    required: ["location"]
  }
}
const question = said("user", "What's the weather like in San Francisco?")

const pdf = `data:application/pdf;base64,${Buffer.from("%PDF-1.1\n%%EOF").toString("base64")}`

interface Case {
  readonly request: Json
  /** What the provider says. Default: a text. */
  readonly answer?: Answer
  /** Default: a message. */
  readonly types?: ReadonlyArray<string>
  /** Default: completed. */
  readonly status?: string
  /** The reason of an incomplete response. */
  readonly reason?: string
}

const call = { name: "get_weather", arguments: "{\"location\":\"San Francisco, CA\"}" }

const cases: Readonly<Record<string, Case>> = {
  "a text": { request: { input: [said("user", "Say hello in exactly 3 words.")] } },
  "a system prompt": {
    request: {
      input: [said("system", "You are a pirate. Always respond in pirate speak."), said("user", "Say hello.")]
    }
  },
  "several turns": {
    request: {
      input: [
        said("user", "My name is Alice."),
        said("assistant", "Hello Alice! Nice to meet you. How can I help you today?"),
        said("user", "What is my name?")
      ]
    }
  },
  "phases of the assistant": {
    request: {
      input: [
        said("assistant", "I should answer with the saved number.", { phase: "commentary" }),
        said("assistant", "The number is four.", { phase: "final_answer" }),
        said("user", "Repeat only the number.")
      ]
    }
  },
  "a picture": {
    request: {
      input: [said("user", [
        { type: "input_text", text: "What do you see in this image? Answer in one sentence." },
        { type: "input_image", image_url: picture }
      ])]
    }
  },
  "a file": {
    request: {
      input: [said("user", [
        { type: "input_text", text: "Read the attached file and answer with its title only." },
        { type: "input_file", filename: "fixture.pdf", file_data: pdf }
      ])]
    }
  },
  "a function": {
    request: { input: [question], tools: [weather] },
    answer: { toolCalls: [call] },
    types: ["function_call"]
  },
  "a function's result": {
    request: {
      input: [
        question,
        { type: "function_call", call_id: "call_1", ...call },
        { type: "function_call_output", call_id: "call_1", output: "64 degrees and clear" }
      ],
      tools: [weather]
    }
  }
}

/** The built-in engine does not reason, and it decides itself what to say. */
const more: Readonly<Record<string, Case>> = {
  "reasoning, a text and two calls": {
    request: {
      input: [question],
      tools: [weather],
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"]
    },
    answer: { reasoning: "They ask twice.", text: "Let me see.", toolCalls: [call, call] },
    types: ["reasoning", "message", "function_call", "function_call"]
  },
  "a limit": {
    request: { input: "Count.", max_output_tokens: 16 },
    answer: { text: "one two three", finishReason: "length" },
    status: "incomplete",
    reason: "max_output_tokens"
  },
  "a filter": {
    request: { input: "Count." },
    answer: { text: "one two", finishReason: "content_filter" },
    status: "incomplete",
    reason: "content_filter"
  },
  "an answer by a schema": {
    request: {
      input: "Where?",
      text: { format: { type: "json_schema", name: "place", schema: weather.parameters, strict: true } },
      instructions: "Be brief.",
      temperature: 0.5,
      metadata: { a: "b" }
    },
    answer: { text: call.arguments }
  }
}

const check = async (model: string, { answer, reason, request, status = "completed", types = ["message"] }: Case) => {
  shared().provider.say(answer ?? { text: "Ahoy, \"Alice\" 🐝." })
  for (const ask of both) {
    const response = await ask({ model, ...request })
    assert.strictEqual(response.status, status)
    assert.strictEqual(response.incomplete_details?.reason, reason)
    // Gemini also signs what is no reasoning
    const shown = response.output.filter((item) => item.type !== "reasoning" || item.summary.length > 0)
    assert.deepStrictEqual(shown.map(({ type }) => type), types)
    assert.strictEqual(response.model, model)
    assert.isNull(response.error)
    assert(response.usage !== null && response.usage.total_tokens > 0)
  }
}

describe("Open Responses", () => {
  describe.each(["local", ...apis])("with a provider of %s", (provider) => {
    const model = provider === "local" ? "local-chat" : `on-${provider}`
    // Cohere's API takes no PDF
    const possible = Object.entries(cases).filter(([name]) => provider !== "cohere" || name !== "a file")
    it.each(possible)("answers %s", (_, each) => check(model, each))

    it("calls a function and reads the result", async () => {
      shared().provider.say({ toolCalls: [call] })
      const first = await whole({
        model,
        input: [question],
        tools: [weather],
        tool_choice: { type: "function", name: call.name }
      })
      const asked = first.output.find(({ type }) => type === "function_call")
      assert(asked?.type === "function_call")
      shared().provider.say({ text: "64 degrees" })
      const result = { type: "function_call_output", call_id: asked.call_id, output: "64 degrees and clear" }
      const second = await whole({ model, input: [question, ...first.output, result], tools: [weather] })
      assert.deepStrictEqual(second.output.map(({ type }) => type), ["message"])
    })

    it("compacts a conversation, and refuses to without a model", async () => {
      shared().provider.say({ text: "The launch is on Tuesday." })
      const input = [
        said("user", "We agreed to launch on Tuesday and notify support first."),
        said("assistant", "Understood. The launch is Tuesday, with support notified beforehand.")
      ]
      const path = "/v1/responses/compact"
      const answer = await post({ model, input, prompt_cache_key: "openresponses-compact-test" }, path)
      const compacted = toCompaction(await answer.json())
      assert.include(compacted.output.map(({ type }) => type), "compaction")
      assert.strictEqual((await post({ input }, path)).status, 400)
    })

    if (provider !== "local") it.each(Object.entries(more))("answers %s", (_, each) => check(model, each))
  })
})
