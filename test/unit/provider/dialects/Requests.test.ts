/** The exact request that a provider gets for a client of another dialect. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { completions } from "../../../../shared/provider/dialects/openai/Completions.ts"
import { cohereProvider } from "../../../../shared/provider/dialects/cohere/CohereProvider.ts"
import type { ClientDialect, ProviderDialect } from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { generateContentProvider } from "../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { Losses } from "../../../../shared/provider/dialects/conversation/Losses.ts"
import * as Signature from "../../../../shared/provider/dialects/conversation/Signature.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

/** The provider's request for a conversation with one prompt. */
const ask = <Request, Options>(
  client: ClientDialect<Request>,
  provider: ProviderDialect<Options>,
  body: object,
  options: Options,
  streams = false
) => {
  const { refusal, sent: [sent], warnings } = translate(client, provider, body, { options, streams })
  return { sent, warnings, refusal }
}

const png = "iVBORw0KGgo="
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const signed = (origin: Signature.Origin, dialect: Signature.Origin, value = "c2lnbmVk") =>
  Signature.toClient({ origin, value }, dialect)

describe("a chat completions request", () => {
  const call = (id: string, city: string) => ({
    id,
    type: "function",
    function: { name: "get_weather", arguments: JSON.stringify({ city }) }
  })
  const body = {
    model: "alias",
    messages: [
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Where is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }
        ]
      },
      {
        role: "assistant",
        content: "Let me see.",
        reasoning_details: [{
          type: "reasoning.text",
          text: "A harbour.",
          signature: signed("anthropic", "openai")
        }],
        tool_calls: [call("call:1", "Oslo"), call("call:2", "Lima")]
      },
      { role: "tool", tool_call_id: "call:1", content: "{\"degrees\":7}" },
      { role: "tool", tool_call_id: "call:2", content: "hot" },
      { role: "user", content: "And now?" }
    ],
    tools: [{ type: "function", function: { name: "get_weather", description: "The weather", parameters } }],
    tool_choice: "auto",
    parallel_tool_calls: true,
    temperature: 0.5,
    top_p: 0.9,
    max_completion_tokens: 300,
    stop: "END",
    user: "ada"
  }

  it("is translated to Anthropic", () => {
    const { refusal, sent, warnings } = ask(chatCompletions, messagesProvider, body, {})
    assert.deepStrictEqual(sent, {
      model: "upstream",
      max_tokens: 300,
      system: [{ type: "text", text: "Be brief." }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Where is this?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "A harbour.", signature: "c2lnbmVk" },
            { type: "text", text: "Let me see." },
            { type: "tool_use", id: "call_1_0af63155", name: "get_weather", input: { city: "Oslo" } },
            { type: "tool_use", id: "call_2_33331b62", name: "get_weather", input: { city: "Lima" } }
          ]
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "call_1_0af63155",
              content: [{ type: "text", text: "{\"degrees\":7}" }]
            },
            { type: "tool_result", tool_use_id: "call_2_33331b62", content: [{ type: "text", text: "hot" }] },
            { type: "text", text: "And now?" }
          ]
        }
      ],
      tools: [{ name: "get_weather", description: "The weather", input_schema: parameters }],
      stop_sequences: ["END"],
      temperature: 0.5,
      top_p: 0.9,
      metadata: { user_id: "ada" }
    })
    assert.deepStrictEqual(warnings, [])
    assert.isUndefined(refusal)
  })

  it("is translated to Gemini", () => {
    const { refusal, sent, warnings } = ask(chatCompletions, generateContentProvider, body, {})
    assert.deepStrictEqual(sent, {
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [
        { role: "user", parts: [{ text: "Where is this?" }, { inlineData: { mimeType: "image/png", data: png } }] },
        {
          role: "model",
          parts: [
            { text: "Let me see." },
            {
              functionCall: { id: "call:1", name: "get_weather", args: { city: "Oslo" } },
              thoughtSignature: "skip_thought_signature_validator"
            },
            { functionCall: { id: "call:2", name: "get_weather", args: { city: "Lima" } } }
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "call:1", name: "get_weather", response: { degrees: 7 } } },
            { functionResponse: { id: "call:2", name: "get_weather", response: { output: "hot" } } },
            { text: "And now?" }
          ]
        }
      ],
      tools: [{
        functionDeclarations: [{
          name: "get_weather",
          description: "The weather",
          parametersJsonSchema: parameters
        }]
      }],
      generationConfig: { temperature: 0.5, topP: 0.9, stopSequences: ["END"], maxOutputTokens: 300 }
    })
    assert.deepStrictEqual(warnings, [
      "user is not carried over",
      "messages[2].reasoning_details[0] comes from another provider"
    ])
    assert.isUndefined(refusal)
  })

  it("is translated to Cohere", () => {
    const own = [{ type: "reasoning.text", text: "A harbour.", signature: signed("cohere", "openai", "") }]
    const messages = body.messages.map((message) =>
      "tool_calls" in message ? { ...message, reasoning_details: own } : message
    )
    const { refusal, sent, warnings } = ask(chatCompletions, cohereProvider, { ...body, messages }, {})
    assert.deepStrictEqual(sent, {
      model: "upstream",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Where is this?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }
          ]
        },
        {
          role: "assistant",
          content: [{ type: "thinking", thinking: "A harbour." }],
          tool_plan: "Let me see.",
          tool_calls: [call("call:1", "Oslo"), call("call:2", "Lima")]
        },
        { role: "tool", tool_call_id: "call:1", content: "{\"degrees\":7}" },
        { role: "tool", tool_call_id: "call:2", content: "hot" },
        { role: "user", content: "And now?" }
      ],
      tools: body.tools,
      stop_sequences: ["END"],
      max_tokens: 300,
      temperature: 0.5,
      p: 0.9
    })
    assert.deepStrictEqual(warnings, ["user is not carried over"])
    assert.isUndefined(refusal)
  })

  it("has values that Cohere takes", () => {
    const hello = { model: "alias", messages: [{ role: "user", content: "Hello" }] }
    const sent = (more: object) => ask(chatCompletions, cohereProvider, { ...hello, ...more }, {})
    const sampled = sent({ top_p: 1, presence_penalty: -2, frequency_penalty: 2 })
    assert.deepInclude(sampled.sent, { p: 0.99, presence_penalty: 0, frequency_penalty: 1 })
    assert.deepStrictEqual(sampled.warnings, [
      "top_p was lowered to 0.99",
      "presence_penalty was raised to 0",
      "frequency_penalty was lowered to 1"
    ])
    const tool = (name: string, more: object = {}) => ({ type: "function", function: { name, parameters, ...more } })
    const strict = { strict: true }
    const chosen = sent({
      tools: [tool("one", strict), tool("two")],
      tool_choice: { type: "function", function: { name: "one" } }
    })
    assert.deepInclude(chosen.sent, {
      tools: [{ type: "function", function: { name: "one", parameters } }],
      strict_tools: true,
      tool_choice: "REQUIRED"
    })
    assert.deepStrictEqual(chosen.warnings, [])
    assert.deepStrictEqual(sent({ tools: [tool("one", strict), tool("two")] }).warnings, [
      "tools[0] is not enforced strictly"
    ])
    assert.deepInclude(sent({ tools: [tool("one")], tool_choice: "none" }).sent, { tool_choice: "NONE" })
    const format = { type: "json_schema", json_schema: { name: "a", schema: parameters } }
    assert.deepInclude(sent({ response_format: format }).sent, {
      response_format: { type: "json_object", json_schema: parameters }
    })
    assert.deepInclude(sent({ reasoning_effort: "none" }).sent, { thinking: { type: "disabled" } })
    assert.deepInclude(sent({ reasoning_effort: "low" }).sent, { thinking: { type: "enabled", token_budget: 1_024 } })
  })

  it("returns Gemini's own signature to Gemini on the first call", () => {
    const { sent } = ask(chatCompletions, generateContentProvider, {
      model: "alias",
      messages: [
        { role: "user", content: "Go on" },
        {
          role: "assistant",
          content: null,
          reasoning_details: [{ type: "reasoning.text", text: "", signature: signed("gemini", "openai") }],
          tool_calls: [call("a", "Oslo"), call("b", "Lima")]
        },
        { role: "tool", tool_call_id: "a", content: "cold" },
        { role: "tool", tool_call_id: "b", content: "hot" }
      ]
    }, {})
    assert.deepNestedPropertyVal(sent, "contents[1].parts[0].thoughtSignature", "c2lnbmVk")
    assert.notNestedProperty(sent, "contents[1].parts[1].thoughtSignature")
    assert.lengthOf((sent as { readonly contents: ReadonlyArray<unknown> }).contents, 3)
  })

  it("to Gemini marks each first call that Gemini has not signed, for models that require signatures", () => {
    const partsOf = (options: typeof generateContentProvider.options.Type, model = "gemini-3-pro-preview") => {
      const { sent: [sent] } = translate(chatCompletions, generateContentProvider, {
        model: "alias",
        messages: [
          { role: "user", content: "Go on" },
          { role: "assistant", content: "", tool_calls: [call("a", "Oslo"), call("b", "Lima")] },
          { role: "tool", tool_call_id: "a", content: "cold" },
          { role: "tool", tool_call_id: "b", content: "hot" }
        ]
      }, { options, model })
      return (sent as { readonly contents: ReadonlyArray<{ readonly parts: unknown }> }).contents[1]?.parts
    }
    const functionCall = (id: string, city: string) => ({ functionCall: { id, name: "get_weather", args: { city } } })
    const [first, second] = [functionCall("a", "Oslo"), functionCall("b", "Lima")]
    assert.deepStrictEqual(partsOf({}), [
      { ...first, thoughtSignature: "skip_thought_signature_validator" },
      second
    ])
    assert.deepStrictEqual(partsOf({ thinking: "budget" }), [first, second])
    assert.deepStrictEqual(partsOf({}, "models/gemini-2.5-flash"), [first, second])
  })

  it("corrects a common wrong media type of a picture, which providers reject", () => {
    const asked = {
      model: "alias",
      messages: [{
        role: "user",
        content: [{ type: "image_url", image_url: { url: `data:image/jpg;base64,${png}` } }]
      }]
    }
    assert.deepNestedPropertyVal(ask(chatCompletions, messagesProvider, asked, {}).sent, "messages[0].content[0]", {
      type: "image",
      source: { type: "base64", media_type: "image/jpeg", data: png }
    })
    assert.deepNestedPropertyVal(
      ask(chatCompletions, generateContentProvider, asked, {}).sent,
      "contents[0].parts[0]",
      {
        inlineData: { mimeType: "image/jpeg", data: png }
      }
    )
  })

  it("to Gemini has no empty texts, which Gemini rejects", () => {
    const { sent } = ask(chatCompletions, generateContentProvider, {
      model: "alias",
      messages: [
        { role: "system", content: "" },
        { role: "user", content: [{ type: "text", text: "" }, { type: "text", text: "Hello" }] },
        { role: "assistant", content: "" },
        { role: "user", content: "Are you there?" }
      ]
    }, {})
    assert.deepStrictEqual(sent, {
      contents: [{ role: "user", parts: [{ text: "Hello" }, { text: "Are you there?" }] }],
      generationConfig: {}
    })
  })

  it("to Gemini is rejected if it answers an unknown call, because Gemini requires the function's name", () => {
    const { refusal } = ask(chatCompletions, generateContentProvider, {
      model: "alias",
      messages: [{ role: "user", content: "Go on" }, { role: "tool", tool_call_id: "x", content: "cold" }]
    }, {})
    assert.strictEqual(refusal?.param, "messages[1]")
  })

  const schema = { type: "object", properties: { a: { type: "string" } } }

  it("with a schema is translated", () => {
    const format = {
      model: "alias",
      messages: [{ role: "user", content: "Hello" }],
      response_format: { type: "json_schema", json_schema: { name: "a", schema, strict: true } }
    }
    assert.deepInclude(ask(chatCompletions, messagesProvider, format, {}).sent, {
      output_config: { format: { type: "json_schema", schema: { ...schema, additionalProperties: false } } }
    })
    assert.deepInclude(ask(chatCompletions, generateContentProvider, format, {}).sent, {
      generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema }
    })
  })

  it("with a bare schema, or one beside the type, is translated as if it were wrapped", () => {
    const sent = (response_format: object) =>
      ask(chatCompletions, generateContentProvider, {
        model: "alias",
        messages: [{ role: "user", content: "Hello" }],
        response_format
      }, {})
    for (
      const format of [
        { type: "json_schema", json_schema: schema },
        { type: "json_schema", json_schema: { ...schema, strict: true } },
        { type: "json_schema", schema },
        { type: "json_object", schema }
      ]
    ) {
      const { refusal, sent: request, warnings } = sent(format)
      assert.deepInclude(request, {
        generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema }
      })
      assert.deepStrictEqual([refusal, warnings], [undefined, []])
    }
    assert.throws(() => sent({ type: "json_schema" }), /json_schema/)
  })

  it("with an effort of another model reaches providers that have it, and is refused by others", () => {
    const sent = (reasoning_effort: string) =>
      ask(chatCompletions, messagesProvider, {
        model: "alias",
        messages: [{ role: "user", content: "Hello" }],
        reasoning_effort
      }, {})
    assert.deepInclude(sent("none").sent, { thinking: { type: "disabled" } })
    assert.deepInclude(sent("xhigh").sent, { output_config: { effort: "xhigh" } })
    const minimal = sent("minimal")
    assert.deepInclude(minimal.sent, { output_config: { effort: "low" } })
    assert.deepStrictEqual(minimal.warnings, ["reasoning_effort was raised to low"])
    assert.strictEqual(sent("huge").refusal?.param, "reasoning_effort")
  })

  it("with a tool of the provider is refused by the path of the tool or its choice", () => {
    const refused = (more: object) =>
      ask(chatCompletions, messagesProvider, {
        model: "alias",
        messages: [{ role: "user", content: "Hello" }],
        ...more
      }, {}).refusal?.param
    const hosted = { type: "web_search" }
    assert.strictEqual(refused({ tools: [hosted] }), "tools[0]")
    assert.strictEqual(refused({ tools: body.tools, tool_choice: hosted }), "tool_choice")
    // the built-in engine ignores most losses, but not this one
    const losses = new Losses("lenient", chatCompletions.settings)
    const request = { model: "local", messages: [{ role: "user" as const, content: "Hello" }], tools: [hosted] }
    chatCompletions.toConversation(request, losses)
    const { message } = Effect.runSync(Effect.flip(losses.failIfRefused))
    assert.strictEqual(message, "tools[0]: is a tool that the provider of this model does not have")
  })

  it("with an open schema gets closed objects for Anthropic, which requires them", () => {
    const schemaOf = (schema: object) => {
      const { sent } = ask(chatCompletions, messagesProvider, {
        model: "alias",
        messages: [{ role: "user", content: "Hello" }],
        response_format: { type: "json_schema", json_schema: { name: "a", schema } }
      }, {})
      return (sent as { readonly output_config: { readonly format: { readonly schema: unknown } } }).output_config
        .format.schema
    }
    const leaf = { type: "object", properties: { type: { type: "string", enum: ["object"] } } }
    const additionalProperties = false
    assert.deepStrictEqual(
      schemaOf({
        type: "object",
        properties: {
          list: { type: "array", items: leaf },
          either: { anyOf: [leaf, { type: "null" }] },
          properties: { $ref: "#/$defs/leaf" },
          fixed: { const: { type: "object" } },
          any: { type: "object" },
          open: { type: "object", properties: {}, additionalProperties: { type: "string" } }
        },
        $defs: { leaf }
      }),
      {
        type: "object",
        properties: {
          list: { type: "array", items: { ...leaf, additionalProperties } },
          either: {
            anyOf: [{ ...leaf, additionalProperties }, { type: "null" }]
          },
          properties: { $ref: "#/$defs/leaf" },
          fixed: { const: { type: "object" } },
          any: { type: "object", additionalProperties },
          open: {
            type: "object",
            properties: {},
            description: "{additionalProperties: {\"type\":\"string\"}}",
            additionalProperties
          }
        },
        $defs: { leaf: { ...leaf, additionalProperties } },
        additionalProperties
      }
    )
  })

  it("for JSON without a schema gives Anthropic an instruction", () => {
    const { sent, warnings } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [{ role: "user", content: "Hello" }],
      response_format: { type: "json_object" }
    }, { maxTokens: 500 })
    assert.deepInclude(sent, {
      max_tokens: 500,
      system: [{ type: "text", text: "Answer with one JSON object and with nothing else." }]
    })
    assert.deepStrictEqual(warnings, ["response_format was turned into an instruction"])
  })

  const thinking = (more: object, options: typeof messagesProvider.options.Type = {}) =>
    ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [{ role: "user", content: "Hello" }],
      ...more
    }, options)

  it("with an effort gets adaptive thinking or a budget below the limit, by model", () => {
    const adaptive = thinking({ reasoning_effort: "high", temperature: 0.5 })
    assert.deepInclude(adaptive.sent, { thinking: { type: "adaptive" }, output_config: { effort: "high" } })
    assert.notProperty(adaptive.sent, "temperature")
    assert.deepStrictEqual(adaptive.warnings, ["temperature gives way to reasoning"])
    const budget = { thinking: "budget" } as const
    assert.deepInclude(thinking({ reasoning_effort: "low", max_tokens: 4_000 }, budget).sent, {
      max_tokens: 4_000,
      thinking: { type: "enabled", budget_tokens: 1_024 }
    })
    const tight = thinking({ reasoning_effort: "high", max_tokens: 4_000 }, budget)
    assert.deepInclude(tight.sent, { thinking: { type: "enabled", budget_tokens: 3_999 } })
    assert.deepStrictEqual(tight.warnings, ["reasoning_effort was set to 3999 tokens"])
    const none = thinking({ reasoning_effort: "high", max_tokens: 1_000 }, budget)
    assert.notProperty(none.sent, "thinking")
    assert.deepStrictEqual(none.warnings, ["reasoning_effort is not carried over"])
  })

  it("with an effort and no limit leaves room for the text beside the budget", () => {
    const limits = (reasoning_effort: string, maxTokens?: number) => {
      const options = { thinking: "budget", ...(maxTokens === undefined ? {} : { maxTokens }) } as const
      const { sent, warnings } = thinking({ reasoning_effort }, options)
      const { max_tokens: limit, thinking: { budget_tokens: budget } } = sent as {
        readonly max_tokens: number
        readonly thinking: { readonly budget_tokens: number }
      }
      return { limit, budget, warnings }
    }
    assert.deepStrictEqual(limits("medium"), { limit: 16_384, budget: 8_192, warnings: [] })
    assert.deepStrictEqual(limits("medium", 1_000), { limit: 9_192, budget: 8_192, warnings: [] })
    // Claude Opus 4 rejects a higher limit
    const warnings = ["reasoning_effort was set to 23808 tokens"]
    assert.deepStrictEqual(limits("high"), { limit: 32_000, budget: 23_808, warnings })
    // a limit that the catalogue knows to be possible
    assert.deepStrictEqual(limits("high", 64_000), { limit: 64_000, budget: 24_576, warnings: [] })
  })

  it("with an effort and a required tool drops the effort", () => {
    const { sent, warnings } = thinking({
      reasoning_effort: "low",
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: "required"
    })
    assert.notProperty(sent, "thinking")
    assert.deepInclude(sent, {
      tools: [{ name: "f", input_schema: { type: "object" } }],
      tool_choice: { type: "any" }
    })
    assert.deepStrictEqual(warnings, ["reasoning_effort gives way to the tool that must be called"])
  })

  it("with an effort to Gemini gets a level or a budget, by model", () => {
    const asked = { model: "alias", messages: [{ role: "user", content: "Hello" }], reasoning_effort: "medium" }
    assert.deepNestedPropertyVal(
      ask(chatCompletions, generateContentProvider, asked, {}).sent,
      "generationConfig.thinkingConfig",
      { includeThoughts: true, thinkingLevel: "MEDIUM" }
    )
    assert.deepNestedPropertyVal(
      ask(chatCompletions, generateContentProvider, asked, { thinking: "budget" }).sent,
      "generationConfig.thinkingConfig",
      { includeThoughts: true, thinkingBudget: 8_192 }
    )
  })

  it("with instructions in the middle moves them to the front, with a warning", () => {
    const { sent, warnings } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [
        { role: "user", content: "Hello" },
        { role: "system", content: "Be brief." },
        { role: "user", content: "World" }
      ]
    }, {})
    assert.deepInclude(sent, {
      system: [{ type: "text", text: "Be brief." }],
      messages: [{ role: "user", content: [{ type: "text", text: "Hello" }, { type: "text", text: "World" }] }]
    })
    assert.deepStrictEqual(warnings, ["messages[1] was moved to the front"])
  })

  it("wraps tool arguments that are not an object in one", () => {
    const { sent } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [
        { role: "user", content: "Go" },
        {
          role: "assistant",
          tool_calls: ["{\"city\":", "[1]", ""].map((json, index) => ({
            id: `c${index}`,
            type: "function",
            function: { name: "f", arguments: json }
          }))
        }
      ]
    }, {})
    const { messages: [, { content }] } = sent as {
      readonly messages: [unknown, { readonly content: ReadonlyArray<{ readonly input: unknown }> }]
    }
    assert.deepStrictEqual(content.map(({ input }) => input), [{ invalid_json: "{\"city\":" }, { value: [1] }, {}])
  })
})

describe("a chat completion's marks for a cache", () => {
  const mark = { cache_control: { type: "ephemeral" } }
  const turns = [{ role: "system", content: "Be brief." }, { role: "user", content: "Hello" }]
  const tool = { type: "function", function: { name: "look", parameters } }

  it("go to Anthropic from parts, messages and tools", () => {
    const { sent } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      prompt_cache_key: "session",
      messages: [
        { role: "system", content: "Be brief.", ...mark },
        { role: "user", content: [{ type: "text", text: "Hello", ...mark }, { type: "text", text: "Where?" }] }
      ],
      tools: [{ ...tool, ...mark }]
    }, {})
    const { messages, system, tools } = sent as Record<string, unknown>
    assert.deepStrictEqual(system, [{ type: "text", text: "Be brief.", ...mark }])
    assert.deepStrictEqual(messages, [{
      role: "user",
      content: [{ type: "text", text: "Hello", ...mark }, { type: "text", text: "Where?" }]
    }])
    assert.deepStrictEqual(tools, [{ name: "look", input_schema: parameters, ...mark }])
  })

  const callsOf = (...ids: ReadonlyArray<string>) =>
    ids.map((id) => ({ id, type: "function", function: { name: "look", arguments: "{}" } }))

  it("go to Anthropic from a message to its last tool call", () => {
    const { sent, warnings } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [
        { role: "user", content: "Hello" },
        { role: "assistant", content: null, tool_calls: callsOf("a", "b"), ...mark },
        { role: "assistant", content: "", tool_calls: callsOf("c"), ...mark }
      ]
    }, {})
    const use = (id: string) => ({ type: "tool_use", id, name: "look", input: {} })
    assert.deepNestedPropertyVal(sent, "messages[1].content", [use("a"), { ...use("b"), ...mark }, {
      ...use("c"),
      ...mark
    }])
    assert.deepStrictEqual(warnings, [])
  })

  it("go to Anthropic from a message to its last part that is sent, and are named if there is none", () => {
    const details = [{ type: "reasoning.text", text: "Hm", signature: signed("anthropic", "openai") }]
    const empty = { type: "text", text: "" }
    const { sent, warnings } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [
        { role: "system", content: "", ...mark },
        { role: "user", content: [{ type: "text", text: "Hello" }, empty], ...mark },
        { role: "assistant", content: null, reasoning_details: details, ...mark },
        { role: "user", content: [{ type: "text", text: "Where?" }, { ...empty, ...mark }] }
      ]
    }, {})
    assert.notProperty(sent, "system")
    assert.deepNestedPropertyVal(sent, "messages", [
      { role: "user", content: [{ type: "text", text: "Hello", ...mark }] },
      { role: "assistant", content: [{ type: "thinking", thinking: "Hm", signature: "c2lnbmVk" }] },
      { role: "user", content: [{ type: "text", text: "Where?" }] }
    ])
    assert.deepStrictEqual(warnings, [
      "messages[0].cache_control is not carried over",
      "messages[2].cache_control is not carried over",
      "messages[3].content[1].cache_control is not carried over"
    ])
  })

  it("reach a server that knows them on tool calls, sounds and videos, too", () => {
    const url = "data:video/mp4;base64,AAAA"
    const { sent, warnings } = ask(chatCompletions, chatCompletionsProvider, {
      model: "alias",
      messages: [
        {
          role: "user",
          content: [
            { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" }, ...mark },
            { type: "video_url", video_url: { url }, ...mark }
          ]
        },
        { role: "assistant", content: null, tool_calls: callsOf("a"), ...mark }
      ]
    }, { cacheControl: true })
    assert.deepNestedPropertyVal(sent, "messages", [
      {
        role: "user",
        content: [
          { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" }, ...mark },
          { type: "video_url", video_url: { url }, ...mark }
        ]
      },
      { role: "assistant", content: null, tool_calls: [{ ...callsOf("a")[0], ...mark }] }
    ])
    assert.deepStrictEqual(warnings, [])
  })

  it("are put after the instructions and the last message if it only has a key", () => {
    const { sent, warnings } = ask(
      chatCompletions,
      messagesProvider,
      { model: "alias", prompt_cache_key: "session", messages: turns },
      {}
    )
    const { messages, system } = sent as Record<string, unknown>
    assert.deepStrictEqual(system, [{ type: "text", text: "Be brief.", ...mark }])
    assert.deepStrictEqual(messages, [{ role: "user", content: [{ type: "text", text: "Hello", ...mark }] }])
    assert.deepStrictEqual(warnings, [])
  })

  it("are named at a provider that knows none", () => {
    const { warnings } = ask(chatCompletions, generateContentProvider, {
      model: "alias",
      prompt_cache_key: "session",
      messages: turns.map((turn) => ({ ...turn, ...mark }))
    }, {})
    assert.deepStrictEqual(warnings, [
      "messages[0].content.cache_control is not carried over",
      "messages[1].content.cache_control is not carried over",
      "prompt_cache_key is not carried over"
    ])
  })
})

describe("a messages request", () => {
  const body = {
    model: "alias",
    max_tokens: 300,
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }, {
      type: "text",
      text: "Be kind."
    }],
    messages: [
      {
        role: "user",
        content: [
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          {
            type: "document",
            title: "a.pdf",
            source: { type: "base64", media_type: "application/pdf", data: "JVBERg==" }
          },
          { type: "text", text: "Where is this?" }
        ]
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: signed("openai", "anthropic", "") },
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "toolu_1", name: "look", input: {} },
          { type: "tool_use", id: "toolu_2", name: "look", input: { city: "Lima" } }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", is_error: true, content: "no such place" },
          {
            type: "tool_result",
            tool_use_id: "toolu_2",
            content: [
              { type: "text", text: "here" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
            ]
          },
          { type: "text", text: "And now?" }
        ]
      }
    ],
    tools: [{ name: "look", input_schema: parameters }],
    tool_choice: { type: "tool", name: "look" },
    stop_sequences: ["END"],
    top_k: 40,
    metadata: { user_id: "ada" }
  }

  it("is translated to OpenAI", () => {
    const { sent, warnings } = ask(messages, chatCompletionsProvider, body, {}, true)
    assert.deepStrictEqual(sent, {
      model: "upstream",
      messages: [
        { role: "system", content: "Be brief.\n\nBe kind." },
        {
          role: "user",
          content: [
            { type: "image_url", image_url: { url: "https://example.com/a.png" } },
            { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERg==" } },
            { type: "text", text: "Where is this?" }
          ]
        },
        {
          role: "assistant",
          content: "Let me see.",
          reasoning_content: "Hm.",
          tool_calls: [
            { id: "toolu_1", type: "function", function: { name: "look", arguments: "{}" } },
            { id: "toolu_2", type: "function", function: { name: "look", arguments: "{\"city\":\"Lima\"}" } }
          ]
        },
        { role: "tool", tool_call_id: "toolu_1", content: "Error: no such place" },
        { role: "tool", tool_call_id: "toolu_2", content: "here" },
        {
          role: "user",
          content: [
            { type: "text", text: "From the result of toolu_2:" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }
          ]
        },
        { role: "user", content: "And now?" }
      ],
      stream: true,
      stream_options: { include_usage: true },
      tools: [{ type: "function", function: { name: "look", parameters } }],
      tool_choice: { type: "function", function: { name: "look" } },
      stop: ["END"],
      max_completion_tokens: 300,
      user: "ada"
    })
    assert.deepStrictEqual(warnings, [
      "system[0].cache_control is not carried over",
      "top_k is not carried over"
    ])
  })

  it("keeps its marks for a cache at a server that knows them", () => {
    const mark = { cache_control: { type: "ephemeral", ttl: "1h" } }
    const { sent, warnings } = ask(messages, chatCompletionsProvider, {
      ...body,
      ...mark,
      top_k: null,
      system: [{ type: "text", text: "Be brief." }, { type: "text", text: "Be kind.", ...mark }],
      messages: [
        { role: "user", content: [{ type: "text", text: "Hello", ...mark }] },
        { role: "assistant", content: [{ type: "tool_use", id: "t", name: "look", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "here", ...mark }] }
      ],
      tools: [{ name: "look", input_schema: parameters, ...mark }]
    }, { cacheControl: true })
    assert.deepInclude(sent, {
      ...mark,
      messages: [
        { role: "system", content: [{ type: "text", text: "Be brief." }, { type: "text", text: "Be kind.", ...mark }] },
        { role: "user", content: [{ type: "text", text: "Hello", ...mark }] },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "t", type: "function", function: { name: "look", arguments: "{}" } }]
        },
        { role: "tool", tool_call_id: "t", content: "here", ...mark }
      ],
      tools: [{ type: "function", function: { name: "look", parameters }, ...mark }]
    })
    assert.deepStrictEqual(warnings, [])
  })

  it("uses the older name of the limit for a server that knows only that", () => {
    const { sent } = ask(messages, chatCompletionsProvider, body, { maxTokensField: "max_tokens" })
    assert.deepInclude(sent, { max_tokens: 300 })
    assert.notProperty(sent, "max_completion_tokens")
  })

  it("is translated to Gemini", () => {
    const { sent } = ask(messages, generateContentProvider, body, {})
    assert.deepInclude(sent, {
      systemInstruction: { parts: [{ text: "Be brief." }, { text: "Be kind." }] },
      contents: [
        {
          role: "user",
          parts: [
            { fileData: { fileUri: "https://example.com/a.png" } },
            { inlineData: { mimeType: "application/pdf", data: "JVBERg==" } },
            { text: "Where is this?" }
          ]
        },
        {
          role: "model",
          parts: [
            { text: "Let me see." },
            {
              functionCall: { id: "toolu_1", name: "look", args: {} },
              thoughtSignature: "skip_thought_signature_validator"
            },
            { functionCall: { id: "toolu_2", name: "look", args: { city: "Lima" } } }
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "toolu_1", name: "look", response: { error: "no such place" } } },
            { functionResponse: { id: "toolu_2", name: "look", response: { output: "here" } } },
            { inlineData: { mimeType: "image/png", data: png } },
            { text: "And now?" }
          ]
        }
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["look"] } },
      generationConfig: { topK: 40, stopSequences: ["END"], maxOutputTokens: 300 }
    })
  })

  it("with a bare schema is translated as if it were wrapped", () => {
    const closed = { ...parameters, additionalProperties: false }
    for (
      const more of [
        { output_config: { format: closed } },
        { output_config: { format: { type: "json_schema", json_schema: { schema: closed } } } }
      ]
    ) {
      const { sent } = ask(messages, chatCompletionsProvider, {
        model: "alias",
        max_tokens: 10,
        messages: [{ role: "user", content: "Hello" }],
        ...more
      }, {})
      const json_schema = { name: "answer", schema: closed, strict: true }
      assert.deepInclude(sent, { response_format: { type: "json_schema", json_schema } })
    }
  })

  it("may have the older name of the format, which gives way to the newer", () => {
    const schema = { ...parameters, additionalProperties: false }
    const translated = (more: object) => {
      const { sent, warnings } = ask(messages, chatCompletionsProvider, {
        model: "alias",
        max_tokens: 10,
        messages: [{ role: "user", content: "Hello" }],
        output_format: { type: "json_schema", schema },
        ...more
      }, {})
      return { format: (sent as { readonly response_format: object }).response_format, warnings }
    }
    const formatOf = (schema: object) => ({
      type: "json_schema",
      json_schema: { name: "answer", schema, strict: true }
    })
    assert.deepStrictEqual(translated({}), { format: formatOf(schema), warnings: [] })
    const other = { ...schema, description: "A city" }
    assert.deepStrictEqual(translated({ output_config: { format: { type: "json_schema", schema: other } } }), {
      format: formatOf(other),
      warnings: ["output_format gives way to output_config.format"]
    })
  })

  it("sets strict for OpenAI only with a schema that OpenAI can enforce", () => {
    const format = (schema: object) => {
      const { sent } = ask(messages, chatCompletionsProvider, {
        model: "alias",
        max_tokens: 10,
        messages: [{ role: "user", content: "Hello" }],
        output_config: { format: { type: "json_schema", schema } }
      }, {})
      return (sent as { readonly response_format: { readonly json_schema: object } }).response_format.json_schema
    }
    const closed = { ...parameters, additionalProperties: false }
    assert.deepStrictEqual(format(closed), { name: "answer", schema: closed, strict: true })
    assert.deepStrictEqual(format(parameters), { name: "answer", schema: parameters })
    const optional = { ...closed, required: [] }
    assert.deepStrictEqual(format(optional), { name: "answer", schema: optional })
  })
})

describe("a generateContent request", () => {
  const body = {
    systemInstruction: { parts: [{ text: "Be brief." }] },
    contents: [
      { role: "user", parts: [{ text: "Where?" }, { inlineData: { mimeType: "image/png", data: png } }] },
      {
        role: "model",
        parts: [
          { text: "Let me see." },
          { functionCall: { name: "look", args: { city: "Oslo" } } },
          { functionCall: { name: "look", args: { city: "Lima" } } }
        ]
      },
      {
        role: "user",
        parts: [
          { functionResponse: { name: "look", response: { degrees: 7 } } },
          { functionResponse: { name: "look", response: { error: "too hot" } } }
        ]
      }
    ],
    tools: [{
      functionDeclarations: [
        {
          name: "look",
          parameters: {
            type: "OBJECT",
            properties: { city: { type: "STRING", nullable: true }, nullable: { type: "BOOLEAN", nullable: false } }
          }
        },
        { name: "other" }
      ]
    }],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["look"] } },
    generationConfig: { temperature: 1.5, topK: 40, candidateCount: 1, maxOutputTokens: 300 }
  }

  it("is translated to OpenAI: calls get ids, and responses the ids of their calls", () => {
    const { sent } = ask(generateContent, chatCompletionsProvider, body, {})
    assert.deepStrictEqual(sent, {
      model: "upstream",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Where?" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }
          ]
        },
        {
          role: "assistant",
          content: "Let me see.",
          tool_calls: [
            { id: "call_look_0", type: "function", function: { name: "look", arguments: "{\"city\":\"Oslo\"}" } },
            { id: "call_look_1", type: "function", function: { name: "look", arguments: "{\"city\":\"Lima\"}" } }
          ]
        },
        { role: "tool", tool_call_id: "call_look_0", content: "{\"degrees\":7}" },
        { role: "tool", tool_call_id: "call_look_1", content: "Error: too hot" }
      ],
      tools: [{
        type: "function",
        function: {
          name: "look",
          parameters: {
            type: "object",
            properties: { city: { type: ["string", "null"] }, nullable: { type: "boolean" } }
          }
        }
      }],
      tool_choice: { type: "function", function: { name: "look" } },
      max_completion_tokens: 300,
      temperature: 1.5
    })
  })

  it("in snake_case means the same, but the client's own names stay as they are", () => {
    const own = { city_name: { type: "STRING" } }
    const functions = [{ name: "look", parameters: { type: "OBJECT", properties: own } }]
    const translated = (request: object) => ask(generateContent, messagesProvider, request, {})
    const inCamelCase = translated({
      systemInstruction: { parts: [{ text: "Be brief." }] },
      contents: [
        {
          role: "user",
          parts: [
            { inlineData: { mimeType: "image/png", data: png } },
            { fileData: { mimeType: "image/png", fileUri: "https://pictures.test/a.png" } }
          ]
        },
        { role: "model", parts: [{ functionCall: { name: "look", args: { city_name: { file_data: 1 } } } }] },
        { role: "user", parts: [{ functionResponse: { name: "look", response: { file_data: { mime_type: 1 } } } }] }
      ],
      tools: [{ functionDeclarations: functions }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["look"] } },
      generationConfig: { topK: 40, maxOutputTokens: 300, responseSchema: { type: "OBJECT", properties: own } }
    })
    const inSnakeCase = translated({
      system_instruction: { parts: [{ text: "Be brief." }] },
      contents: [
        {
          role: "user",
          parts: [
            { inline_data: { mime_type: "image/png", data: png } },
            { file_data: { mime_type: "image/png", file_uri: "https://pictures.test/a.png" } }
          ]
        },
        { role: "model", parts: [{ function_call: { name: "look", args: { city_name: { file_data: 1 } } } }] },
        { role: "user", parts: [{ function_response: { name: "look", response: { file_data: { mime_type: 1 } } } }] }
      ],
      tools: [{ function_declarations: functions }],
      tool_config: { function_calling_config: { mode: "ANY", allowed_function_names: ["look"] } },
      generation_config: { top_k: 40, max_output_tokens: 300, response_schema: { type: "OBJECT", properties: own } }
    })
    assert.deepStrictEqual(inSnakeCase, inCamelCase)
    assert.deepNestedPropertyVal(inSnakeCase.sent, "messages[1].content[0].input", { city_name: { file_data: 1 } })
    assert.deepNestedPropertyVal(inSnakeCase.sent, "tools[0].input_schema.properties", {
      city_name: { type: "string" }
    })
    assert.deepStrictEqual(inSnakeCase.warnings, [])
  })

  it("in snake_case is refused and warned of like one in camelCase, by the client's names", () => {
    const { refusal, warnings } = ask(generateContent, messagesProvider, {
      contents: [{ parts: [{ text: "Hello" }] }],
      tools: [{ google_search: { a: 1 } }],
      safety_settings: [{ category: "HARM" }],
      made_up: 1
    }, {})
    assert.strictEqual(refusal?.param, "tools[0].google_search")
    assert.deepStrictEqual(warnings, ["safety_settings is not carried over", "made_up is not carried over"])
  })

  it("with a Gemini schema gets numbers instead of numeric strings, and explicit null types", () => {
    const { sent } = ask(generateContent, messagesProvider, {
      contents: body.contents,
      tools: [{
        functionDeclarations: [{
          name: "look",
          parameters: {
            type: "OBJECT",
            properties: {
              cities: { type: "ARRAY", minItems: "1", maxItems: "20", items: { type: "STRING", maxLength: "80" } },
              size: { nullable: true, anyOf: [{ type: "STRING", enum: ["1"] }, { type: "NUMBER", minimum: 0.5 }] },
              unit: { type: "STRING", nullable: true, enum: ["m", "km"] }
            },
            maxProperties: 2
          }
        }]
      }]
    }, {})
    assert.deepNestedPropertyVal(sent, "tools[0].input_schema", {
      type: "object",
      properties: {
        cities: { type: "array", minItems: 1, maxItems: 20, items: { type: "string", maxLength: 80 } },
        size: { anyOf: [{ type: "string", enum: ["1"] }, { type: "number", minimum: 0.5 }, { type: "null" }] },
        unit: { type: ["string", "null"], enum: ["m", "km", null] }
      },
      maxProperties: 2
    })
  })

  it("with a function without parameters has none for OpenAI, and an empty object for Anthropic", () => {
    const { sent } = ask(generateContent, chatCompletionsProvider, {
      ...body,
      tools: [{ functionDeclarations: [{ name: "look" }] }]
    }, {})
    assert.deepNestedPropertyVal(sent, "tools[0].function", { name: "look" })
  })

  it("with validated calls enforces their schemas at each provider that can", () => {
    const asked = {
      ...body,
      tools: [{ functionDeclarations: [{ name: "look", parametersJsonSchema: parameters }] }],
      toolConfig: { functionCallingConfig: { mode: "VALIDATED" } }
    }
    const anthropic = ask(generateContent, messagesProvider, asked, {})
    const closed = { ...parameters, additionalProperties: false }
    assert.deepNestedPropertyVal(anthropic.sent, "tools[0]", { name: "look", input_schema: closed, strict: true })
    const openAi = ask(generateContent, chatCompletionsProvider, asked, {})
    assert.deepNestedPropertyVal(openAi.sent, "tools[0].function", { name: "look", parameters })
    assert.deepStrictEqual(openAi.warnings, [
      "generationConfig.topK is not carried over",
      "tools[0].functionDeclarations[0] is not enforced: its schema is open"
    ])
  })

  it("is translated to Anthropic", () => {
    const { sent, warnings } = ask(generateContent, messagesProvider, body, {})
    assert.deepInclude(sent, {
      max_tokens: 300,
      temperature: 1,
      top_k: 40,
      tool_choice: { type: "tool", name: "look" },
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Where?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Let me see." },
            { type: "tool_use", id: "call_look_0", name: "look", input: { city: "Oslo" } },
            { type: "tool_use", id: "call_look_1", name: "look", input: { city: "Lima" } }
          ]
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "call_look_0",
              content: [{ type: "text", text: "{\"degrees\":7}" }]
            },
            {
              type: "tool_result",
              tool_use_id: "call_look_1",
              content: [{ type: "text", text: "too hot" }],
              is_error: true
            }
          ]
        }
      ]
    })
    assert.deepStrictEqual(warnings, ["generationConfig.temperature was lowered to 1"])
  })
})

describe("a streamed answer that a Gemini client sends back in pieces", () => {
  it("is joined into one answer", () => {
    const { sent } = ask(generateContent, messagesProvider, {
      contents: [
        { role: "user", parts: [{ text: "Hello" }] },
        {
          role: "model",
          parts: [
            { text: "H", thought: true },
            { text: "m.", thought: true },
            { text: "", thought: true, thoughtSignature: signed("anthropic", "gemini") },
            { text: "They " },
            { text: "dance." }
          ]
        },
        { role: "user", parts: [{ text: "Go on" }] }
      ]
    }, {})
    assert.deepNestedPropertyVal(sent, "messages[1].content", [
      { type: "thinking", thinking: "Hm.", signature: "c2lnbmVk" },
      { type: "text", text: "They dance." }
    ])
  })
})

describe("a completions request", () => {
  it("is translated to Anthropic, whose answers are text only", () => {
    const { sent } = ask(completions, messagesProvider, { model: "alias", prompt: "Once upon", suffix: "The end." }, {})
    assert.deepStrictEqual(sent, {
      model: "upstream",
      max_tokens: 8_192,
      system: [{
        type: "text",
        text: "Answer only with the text that belongs between the user's text and this: \"The end.\""
      }],
      messages: [{ role: "user", content: [{ type: "text", text: "Once upon" }] }]
    })
  })

  it("to Gemini requests text only, because Gemini can answer with pictures", () => {
    const { sent } = ask(completions, generateContentProvider, { model: "alias", prompt: "Once upon" }, {})
    assert.deepNestedPropertyVal(sent, "generationConfig.responseModalities", ["TEXT"])
  })
})

describe("an unknown field of a request", () => {
  it("is named in a warning by its path, without characters that could split a header", () => {
    const { warnings } = ask(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [{ role: "user", content: [{ type: "text", text: "Hello", "x\r\ny": 1 }], own: true }],
      "ключ": 1,
      store: true,
      nothing: null,
      empty: {}
    }, {})
    assert.sameMembers([...warnings], [
      "messages[0].content[0].(a field) is not carried over",
      "messages[0].own is not carried over",
      "(a field) is not carried over",
      "store is not carried over"
    ])
  })
})
