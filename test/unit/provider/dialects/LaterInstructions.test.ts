/** Instructions in the course of a conversation: where each provider gets them. */
import { assert, describe, it } from "@effect/vitest"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { InvalidRequest } from "../../../../shared/contract/JobError.ts"
import { messages as messagesOperation } from "../../../../shared/contract/operations/Messages.ts"
import type { Call } from "../../../../shared/provider/call/Protocol.ts"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"
import * as Json from "../../../../shared/provider/json/Json.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const text = (text: string) => [{ type: "text", text }]
const user = (said: string) => ({ role: "user", content: said })
const assistant = (said: string) => ({ role: "assistant", content: said })
const system = (content: unknown, more: object = {}) => ({ role: "system", content, ...more })
const call = { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "time", input: {} }] }
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "noon" }] }
const time = { name: "time", input_schema: { type: "object" } }
const tide = { name: "tide", input_schema: { type: "object" } }
const reference = (name: string) => ({ type: "tool_reference", name })

/** The roles and texts of the messages that OpenAI gets, `call` and `result` for those of tools, and the names of its tools. */
const toOpenAi = (body: object) => {
  const { refusal, sent: [sent], warnings } = translate(
    messages,
    chatCompletionsProvider,
    { model: "alias", max_tokens: 9, ...body },
    { options: {} }
  )
  const { messages: all, reasoning_effort: effort, tools } = Json.fields(sent)
  return {
    said: Json.list(all).map(Json.fields).map(({ content, role, tool_calls }) =>
      tool_calls !== undefined ? "call" : role === "tool" ? "result" : `${String(role)}: ${JSON.stringify(content)}`
    ),
    tools: Json.list(tools).map((tool) => Json.fields(Json.fields(tool)["function"])["name"]),
    effort,
    warnings,
    refusal: refusal?.message
  }
}

/** Claude Code's requests, and what Anthropic's types (SDK 1.14, BetaSystemMessageParam) say about them. */
const toOthers: ReadonlyArray<readonly [string, object, Partial<ReturnType<typeof toOpenAi>>]> = [
  ["stay in place", { messages: [user("a"), system("b")] }, { said: [`user: "a"`, `system: "b"`], warnings: [] }],
  ["may come first", { messages: [system("b"), user("a")] }, { said: [`system: "b"`, `user: "a"`] }],
  [
    "never come between a call and its result",
    { messages: [user("a"), call, system("b"), result], tools: [time] },
    { said: [`user: "a"`, "call", "result", `system: "b"`], warnings: [] }
  ],
  [
    "apply until the next message of the user",
    { messages: [user("a"), system("b", { clear_at: "next_user_message" }), assistant("c"), user("d")] },
    { said: [`user: "a"`, `assistant: "c"`, `user: "d"`], warnings: [] }
  ],
  [
    "apply while no message of the user follows",
    { messages: [user("a"), system("b", { clear_at: "next_user_message" })] },
    { said: [`user: "a"`, `system: "b"`] }
  ],
  [
    "add and remove tools",
    {
      messages: [
        user("a"),
        system([
          { type: "tool_removal", tool: reference("time") },
          { type: "tool_addition", tool: { type: "tool_definition", definition: tide } }
        ])
      ],
      tools: [time]
    },
    { said: [`user: "a"`], tools: ["tide"], warnings: [] }
  ],
  [
    "add a tool again",
    {
      messages: [
        user("a"),
        system([{ type: "tool_removal", tool: reference("time") }]),
        assistant("b"),
        user("c"),
        system([{ type: "tool_addition", tool: reference("time") }])
      ],
      tools: [time]
    },
    { tools: ["time"] }
  ],
  [
    "cannot add tools of MCP servers",
    {
      messages: [
        user("a"),
        system([{ type: "tool_addition", tool: { type: "mcp_toolset_reference", server_name: "s" } }])
      ]
    },
    { refusal: "messages[1].content[0].tool: is a tool that the provider of this model does not have" }
  ],
  [
    "set the effort",
    { messages: [user("a"), { role: "system", output_config: { effort: "low" } }], output_config: { effort: "high" } },
    { said: [`user: "a"`], effort: "low" }
  ]
]

describe("instructions of Anthropic's clients for another provider", () => {
  it.each(toOthers)("%s", (_, body, expected) => {
    const found = toOpenAi(body)
    for (const name of Object.keys(expected) as ReadonlyArray<keyof typeof expected>) {
      assert.deepStrictEqual(found[name], expected[name], name)
    }
    if (expected.refusal === undefined) assert.isUndefined(found.refusal)
  })

  it("of a tool that a search has found name it", () => {
    const found = {
      ...result,
      content: [{ ...result.content[0], content: [{ type: "tool_reference", tool_name: "tide" }] }]
    }
    const { refusal, said } = toOpenAi({ messages: [user("a"), call, found], tools: [time, tide] })
    assert.isUndefined(refusal)
    assert.deepStrictEqual(said, [`user: "a"`, "call", "result"])
  })
})

const toAnthropic = (
  model: string,
  said: ReadonlyArray<object>,
  options: typeof messagesProvider.options.Type = {}
) => {
  const { sent: [sent], warnings } = translate(
    chatCompletions,
    messagesProvider,
    { model: "alias", messages: [system("first"), ...said] },
    { options, model }
  )
  const { messages: all, system: front } = Json.fields(sent)
  return { front, all: Json.list(all).map((message) => Json.fields(message)["role"]), warnings }
}

/** Anthropic's rules: behind a message of the user, before one of the assistant or at the end, never twice in a row. */
const places: ReadonlyArray<readonly [string, ReadonlyArray<object>, ReadonlyArray<string>]> = [
  ["at the end", [user("a"), system("b")], ["user", "system"]],
  ["before the assistant", [user("a"), system("b"), assistant("c"), user("d")], [
    "user",
    "system",
    "assistant",
    "user"
  ]],
  ["behind the user's next message", [user("a"), assistant("b"), system("c"), user("d")], [
    "user",
    "assistant",
    "user",
    "system"
  ]],
  ["behind all messages of the user", [user("a"), system("b"), user("c")], ["user", "system"]],
  ["in one message", [user("a"), system("b"), system("c")], ["user", "system"]]
]

describe("instructions of OpenAI's clients for Claude", () => {
  it.each(places)("stay in the course of the conversation: %s", (_, said, roles) => {
    const { all, front, warnings } = toAnthropic("claude-opus-4-8", said)
    assert.deepStrictEqual(all, [...roles])
    assert.deepStrictEqual(front, text("first"))
    assert.deepStrictEqual(warnings, [])
  })

  it("move to the front where they have no legal place", () => {
    const { all, front, warnings } = toAnthropic("claude-opus-4-8", [user("a"), assistant("b"), system("c")])
    assert.deepStrictEqual(all, ["user", "assistant"])
    assert.deepStrictEqual(front, [...text("first"), ...text("c")])
    assert.deepStrictEqual(warnings, ["messages[3] was moved to the front"])
  })

  it.each([
    // before 4.8: `role 'system' is not supported on this model`
    ["claude-opus-4-7", false],
    ["claude-sonnet-4-5-20250929", false],
    ["claude-haiku-4-5@20251001", false],
    ["claude-3-5-sonnet-20241022", false],
    ["claude-sonnet-5", false],
    ["claude-sonnet-5-5", true],
    ["us.anthropic.claude-opus-4-8-v1:0", true],
    ["anthropic/claude-opus-4.8", true],
    ["claude-haiku-5-5", true],
    ["deepseek-chat", false]
  ])("%s accepts them in place: %s", (model, isInPlace) => {
    assert.strictEqual(toAnthropic(model, [user("a"), system("b")]).all.includes("system"), isInPlace)
    assert.strictEqual(
      toAnthropic(model, [user("a"), system("b")], { laterSystem: !isInPlace }).all.includes("system"),
      !isInPlace
    )
  })
})

const relayed = (model: string, body: object, options: object = {}) => {
  const call = {
    body: Buffer.from(JSON.stringify({ model, ...body })),
    endpoint: { model, provider: { options } },
    operation: messagesOperation
  }
  const { relays } = anthropic
  const request = relays.get(messagesOperation.name)!(call as unknown as Call)
  if (request instanceof InvalidRequest) throw request
  const { messages: all, system: front } = JSON.parse(Buffer.from(request.body!).toString()) as Json.Fields
  return { front, all: Json.list(all).map((message) => Json.fields(message)["role"]) }
}

/** Sources as above; what a provider is not known to refuse, it judges itself. */
const relays: ReadonlyArray<readonly [string, string, object, object, ReturnType<typeof relayed>]> = [
  ["stay for a model that takes them", "claude-opus-4-8", { messages: [user("a"), system("b")] }, {}, {
    front: undefined,
    all: ["user", "system"]
  }],
  ["stay for an unknown model", "kimi-k3", { messages: [user("a"), system("b")] }, {}, {
    front: undefined,
    all: ["user", "system"]
  }],
  ["move for a model that refuses them", "claude-sonnet-4-5", { messages: [user("a"), system("b")] }, {}, {
    front: text("b"),
    all: ["user"]
  }],
  ["move behind the instructions", "claude-haiku-4-5", { system: "a", messages: [system(text("b")), user("c")] }, {}, {
    front: [...text("a"), ...text("b")],
    all: ["user"]
  }],
  ["move if the catalogue says so", "kimi-k3", { messages: [user("a"), system("b")] }, { laterSystem: false }, {
    front: text("b"),
    all: ["user"]
  }],
  [
    "end where they say",
    "claude-opus-4-5",
    { messages: [user("a"), system("b", { clear_at: "next_user_message" }), assistant("c"), user("d")] },
    {},
    { front: undefined, all: ["user", "assistant", "user"] }
  ],
  [
    "stay if they change the tools",
    "claude-opus-4-5",
    { messages: [user("a"), system([{ type: "tool_removal", tool: reference("time") }])] },
    {},
    { front: undefined, all: ["user", "system"] }
  ]
]

describe("instructions of Anthropic's clients for Anthropic", () => {
  it.each(relays)("%s", (_, model, body, options, expected) => {
    assert.deepStrictEqual(relayed(model, body, options), expected)
  })
})
