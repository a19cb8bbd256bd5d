/** Custom tools of chat completions, which take text, at providers that have functions only. */
import { assert, describe, it } from "@effect/vitest"
import type { ModelEvent } from "../../../../shared/provider/dialects/conversation/ModelEvent.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { dataIn } from "../../../fixture/calls/ScriptedCall.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const run = { type: "custom", custom: { name: "run", description: "Runs code" } }
const weather = { type: "function", function: { name: "weather", parameters: { type: "object" } } }
const hello = { role: "user", content: "Hello" }
const text = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false
}
const definition = "start: \"a\""
const grammar = `Runs code\n\nThe input must match this lark grammar:\n${definition}`
const formatted = (format: object) => ({ ...run, custom: { ...run.custom, format } })
const allowed = (mode: string, ...tools: ReadonlyArray<object>) => ({
  type: "allowed_tools",
  allowed_tools: { mode, tools }
})
const tool = (description: string) => ({ name: "run", description, input_schema: text })

// the shapes are those of OpenAI's SDK 7.59: ChatCompletionCustomTool, ...NamedToolChoiceCustom, ...AllowedToolChoice
const requests: ReadonlyArray<readonly [string, object, object]> = [
  ["a tool", { tools: [run] }, { tools: [tool("Runs code")] }],
  ["a form that is any text", { tools: [formatted({ type: "text" })] }, { tools: [tool("Runs code")] }],
  [
    "a grammar",
    { tools: [formatted({ type: "grammar", grammar: { syntax: "lark", definition } })] },
    { tools: [tool(grammar)] }
  ],
  [
    "its choice",
    { tools: [run, weather], tool_choice: { type: "custom", custom: { name: "run" } } },
    { tool_choice: { type: "tool", name: "run" } }
  ],
  [
    "allowed tools, one of which must be called",
    { tools: [run, weather], tool_choice: allowed("required", { type: "custom", custom: { name: "run" } }) },
    { tools: [tool("Runs code")], tool_choice: { type: "any" } }
  ],
  [
    "allowed functions",
    { tools: [run, weather], tool_choice: allowed("auto", { type: "function", function: { name: "weather" } }) },
    { tools: [{ name: "weather", input_schema: { type: "object" } }] }
  ],
  [
    "a call and its result",
    {
      messages: [
        hello,
        { role: "assistant", tool_calls: [{ id: "c", type: "custom", custom: { name: "run", input: "1 + \"1\"" } }] },
        { role: "tool", tool_call_id: "c", content: "11" }
      ],
      tools: [run]
    },
    {
      messages: [
        { role: "user", content: [{ type: "text", text: "Hello" }] },
        { role: "assistant", content: [{ type: "tool_use", id: "c", name: "run", input: { input: "1 + \"1\"" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "11" }] }] }
      ]
    }
  ]
]

describe("a request with custom tools", () => {
  it.each(requests)("of %s", (_, body, expected) => {
    const { refusal, sent: [sent], warnings } = translate(
      chatCompletions,
      messagesProvider,
      { model: "alias", messages: [hello], ...body },
      { options: {} }
    )
    assert.isUndefined(refusal)
    assert.deepStrictEqual(warnings, [])
    const found = sent as Readonly<Record<string, unknown>>
    for (const [name, value] of Object.entries(expected)) assert.deepStrictEqual(found[name], value, name)
  })

  it("that allows none of its tools is refused", () => {
    const choice = allowed("auto", { type: "custom", custom: { name: "walk" } })
    const body = { model: "alias", messages: [hello], tools: [run], tool_choice: choice }
    const { refusal } = translate(chatCompletions, messagesProvider, body, { options: {} })
    assert.strictEqual(refusal?.message, "tool_choice.allowed_tools.tools[0]: is none of `tools`")
  })
})

const identity = { id: "0".repeat(32), created: 1, model: "m", fingerprint: undefined }

/** An answer with calls of these tools, whose arguments arrive in turns, a character each. */
const answer = (...calls: ReadonlyArray<readonly [name: string, json: string]>): ReadonlyArray<ModelEvent> => {
  const longest = Math.max(...calls.map(([, json]) => json.length))
  return [
    ...calls.map(([name], call): ModelEvent => ({ type: "toolCall", choice: 0, call, id: `c${call}`, name })),
    ...Array.from(
      { length: longest },
      (_, at) =>
        calls.flatMap(([, json], call): ReadonlyArray<ModelEvent> =>
          at < json.length ? [{ type: "toolArguments", choice: 0, call, delta: json[at]! }] : []
        )
    ).flat(),
    { type: "finish", choice: 0, reason: "tool_calls" }
  ]
}

interface Call {
  readonly id: string
  readonly type: string
  readonly custom?: { name: string; input: string }
  readonly function?: { name: string; arguments: string }
}

/** The calls of an answer, as OpenAI's SDK accumulates those of a stream. */
const callsOf = (events: ReadonlyArray<ModelEvent>, streams: boolean): ReadonlyArray<Call> => {
  const encoder = chatCompletions.encoder({ model: "m", messages: [], tools: [run, weather] } as never, identity)
  if (!streams) {
    const { choices: [{ message }] } = encoder.body(events) as {
      choices: [{ message: { tool_calls: ReadonlyArray<Call> } }]
    }
    return message.tool_calls
  }
  const calls: Array<Call> = []
  for (const { choices } of dataIn(events.map((event) => encoder.frames(event)).join(""))) {
    const [{ delta }] = choices as [{ delta: { tool_calls?: ReadonlyArray<Call & { index: number }> } }]
    for (const { index, ...piece } of delta.tool_calls ?? []) {
      const call = calls[index]
      if (call === undefined) calls[index] = piece
      if (call?.custom !== undefined) call.custom.input += piece.custom?.input ?? ""
      if (call?.function !== undefined) call.function.arguments += piece.function?.arguments ?? ""
    }
  }
  return calls
}

const custom = (id: string, input: string) => ({ id, type: "custom", custom: { name: "run", input } })
const called = (id: string, json: string) => ({ id, type: "function", function: { name: "weather", arguments: json } })

const answers: ReadonlyArray<
  readonly [string, ReadonlyArray<readonly [name: string, json: string]>, ReadonlyArray<object>]
> = [
  ["a text", [["run", `{"input":"1 + \\"1\\""}`]], [custom("c0", `1 + "1"`)]],
  ["an empty text", [["run", `{"input":""}`]], [custom("c0", "")]],
  ["a text without the object around it", [["run", `"ls"`]], [custom("c0", "ls")]],
  ["a text that is no JSON", [["run", "ls -l"]], [custom("c0", "ls -l")]],
  ["two texts at once", [["run", `{"input":"a"}`], ["run", `{"input":"bcd"}`]], [
    custom("c0", "a"),
    custom("c1", "bcd")
  ]],
  ["a text beside a function", [["weather", `{"at":"Oslo"}`], ["run", `{"input":"a"}`]], [
    called("c0", `{"at":"Oslo"}`),
    custom("c1", "a")
  ]]
]

describe("an answer that calls custom tools", () => {
  it.each(answers.flatMap((row) => [true, false].map((streams) => [...row, streams] as const)))(
    "with %s",
    (_, calls, expected, streams) => {
      assert.deepStrictEqual<unknown>(callsOf(answer(...calls), streams), expected)
    }
  )
})
