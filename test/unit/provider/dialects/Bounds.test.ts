/** Values that one dialect allows and another does not. */
import { assert, describe, it } from "@effect/vitest"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { cohereProvider } from "../../../../shared/provider/dialects/cohere/CohereProvider.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { generateContentProvider } from "../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { responsesProvider } from "../../../../shared/provider/dialects/responses/ResponsesProvider.ts"
import type { ClientDialect, ProviderDialect } from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import { standardBase64 } from "../../../../shared/provider/json/StandardBase64.ts"
import * as Json from "../../../../shared/provider/json/Json.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const said = [{ role: "user", content: "a" }]
const chat = { model: "alias", messages: said }
const ask = { model: "alias", max_tokens: 9, messages: said }

const send = <Request, Options>(
  client: ClientDialect<Request>,
  provider: ProviderDialect<Options>,
  body: object,
  options: Options,
  model?: string
) => {
  const { refusal, sent: [sent], warnings } = translate(client, provider, body, { options, ...model && { model } })
  return { sent: Json.fields(sent), warnings, refusal: refusal?.message }
}

/** As Claude Code 2.1 sends it. */
const claudeUser = JSON.stringify({ device_id: "d".repeat(64), account_uuid: "", session_id: "s".repeat(100) })

describe("an end user's id", () => {
  const userOf = (user: string, options: typeof chatCompletionsProvider.options.Type = {}) =>
    send(messages, chatCompletionsProvider, { ...ask, metadata: { user_id: user } }, options)

  it("that is longer than OpenAI's 64 characters becomes its hash, always the same", () => {
    const { sent, warnings } = userOf(claudeUser)
    assert.match(String(sent["user"]), /^[\w-]{43}$/)
    assert.deepStrictEqual(warnings, [])
    assert.strictEqual(userOf(claudeUser).sent["user"], sent["user"])
    assert.notStrictEqual(userOf(`${claudeUser} `).sent["user"], sent["user"])
  })

  it.each(["u", "u".repeat(64)])(
    "of up to 64 characters stays: %s",
    (user) => assert.strictEqual(userOf(user).sent["user"], user)
  )

  it("goes into the field that the server knows", () => {
    assert.strictEqual(userOf("u", { userField: "safety_identifier" }).sent["safety_identifier"], "u")
    const { sent, warnings } = userOf("u", { userField: "none" })
    assert.isUndefined(sent["user"])
    assert.deepStrictEqual(warnings, ["metadata.user_id is not carried over"])
  })

  it("is read from either field of OpenAI's clients", () => {
    const of = (body: object) => send(chatCompletions, messagesProvider, { ...chat, ...body }, {}).sent["metadata"]
    assert.deepStrictEqual(of({ safety_identifier: "s" }), { user_id: "s" })
    assert.deepStrictEqual(of({ user: "u", safety_identifier: "s" }), { user_id: "u" })
    assert.match(JSON.stringify(of({ user: "u".repeat(257) })), /^\{"user_id":"[\w-]{43}"\}$/)
  })
})

describe("a value beyond the bounds", () => {
  const call = (id: string) => [
    ...said,
    { role: "assistant", content: [{ type: "tool_use", id, name: "f", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "b" }] }
  ]

  it("is a call's id of more than OpenAI's 40 characters: call and result get the same shorter one", () => {
    const { sent } = send(messages, chatCompletionsProvider, { ...ask, messages: call("i".repeat(90)) }, {})
    const [, asked, answered] = Json.list(sent["messages"]).map(Json.fields)
    const id = Json.fields(Json.list(asked?.["tool_calls"])[0])["id"]
    assert.match(String(id), /^[\w-]{40}$/)
    assert.strictEqual(answered?.["tool_call_id"], id)
  })

  /** `^[a-zA-Z0-9_-]+$`, unique in a conversation: Anthropic's errors. Kimi's ids are `functions.NAME:0`. */
  it.each([
    [["a", "b-_1"], ["a", "b-_1"]],
    [["functions.f:0", "functions.f:1"], [/^functions_f_0_\w{8}$/, /^functions_f_1_\w{8}$/]],
    [["a.b", "a_b", "a:b"], [/^a_b_\w{8}$/, "a_b", /^a_b_\w{8}$/]],
    [["", "ü"], [/^_\w{8}$/, /^__\w{8}$/]],
    [["a\n"], [/^a__\w{8}$/]]
  ])("are ids of calls that Claude rejects: %j", (ids, right) => {
    const tool_calls = ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }))
    const results = ids.map((tool_call_id) => ({ role: "tool", tool_call_id, content: "b" }))
    const conversation = [...said, { role: "assistant", tool_calls }, ...results]
    const { sent } = send(chatCompletions, messagesProvider, { ...chat, messages: conversation }, {})
    const [, asked = {}, answered = {}] = Json.list(sent["messages"]).map(Json.fields)
    const of = ({ content }: Json.Fields, name: string) =>
      Json.list(content).map((block) => String(Json.fields(block)[name]))
    const got = of(asked, "id")
    assert.deepStrictEqual(of(answered, "tool_use_id"), got)
    assert.lengthOf([...new Set(got)], ids.length)
    got.forEach((id, index) => assert.match(id, new RegExp(right[index] ?? "never")))
  })

  it.each([[0, 0, 0], [500, 500, 0], [501, 500, 1]])("is a top_k of Cohere: %s", (top_k, right, warned) => {
    const { sent, warnings } = send(messages, cohereProvider, { ...ask, top_k }, {})
    assert.strictEqual(sent["k"], right)
    assert.lengthOf(warnings, warned)
  })

  it("is a limit below OpenAI's minimum for responses, which Claude Code sends to try a key", () => {
    const { sent, warnings } = send(messages, responsesProvider, { ...ask, max_tokens: 1 }, {})
    assert.strictEqual(sent["max_output_tokens"], 16)
    assert.deepStrictEqual(warnings, ["max_tokens was raised to 16"])
  })

  it("is a name of a schema that OpenAI rejects", () => {
    const format = { type: "json_schema", schema: { name: "My answer!", schema: { type: "object" } } }
    const { sent } = send(messages, chatCompletionsProvider, { ...ask, output_format: format }, {})
    const { json_schema: named } = Json.fields(sent["response_format"])
    assert.notMatch(String(Json.fields(named)["name"]), /[^\w-]/)
  })

  it("is a stop sequence of white space, which Claude rejects", () => {
    assert.include(
      send(chatCompletions, messagesProvider, { ...chat, stop: ["\n"] }, {}).refusal,
      "stop: must not have"
    )
    assert.isUndefined(send(chatCompletions, messagesProvider, { ...chat, stop: [""] }, {}).refusal)
  })

  it.each([[7, 7], [2 ** 31 + 5, 5], [-5, -5]])("is a seed of Gemini: %s", (seed, right) => {
    const { sent } = send(chatCompletions, generateContentProvider, { ...chat, seed }, {})
    assert.strictEqual(Json.fields(sent["generationConfig"])["seed"], right)
  })
})

/** The models' table of @ai-sdk/anthropic 4.0.105; "`temperature` and `top_p` cannot both be specified" since Opus 4.1. */
const sampling: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["claude-3-haiku-20240307", ["temperature", "top_p", "top_k"]],
  ["claude-sonnet-4-20250514", ["temperature", "top_p", "top_k"]],
  ["claude-opus-4-1-20250805", ["temperature", "top_k"]],
  ["claude-haiku-4-5", ["temperature", "top_k"]],
  ["us.anthropic.claude-sonnet-4-5-20250929-v1:0", ["temperature", "top_k"]],
  ["anthropic/claude-opus-4.6", ["temperature", "top_k"]],
  ["claude-opus-4-7", []],
  ["claude-opus-4-8", []],
  ["claude-sonnet-5", []],
  ["claude-fable-5-2", []],
  ["claude-haiku-5-5", []],
  ["claude-newer-7", []],
  ["deepseek-chat", ["temperature", "top_p", "top_k"]]
]

describe("sampling", () => {
  const settings = { temperature: 0.2, topP: 0.9, topK: 4 }
  const body = { contents: [{ role: "user", parts: [{ text: "a" }] }], generationConfig: settings }
  const names = ["temperature", "top_p", "top_k"]

  it.each(sampling)("%s accepts %s", (model, right) => {
    const { sent, warnings } = send(generateContent, messagesProvider, body, {}, model)
    assert.deepStrictEqual(names.filter((name) => sent[name] !== undefined), [...right])
    assert.strictEqual(warnings.length, 3 - right.length)
  })

  it("can be set for names that the gateway does not know", () => {
    const { sent } = send(generateContent, messagesProvider, body, { sampling: "one" }, "our-claude-alias")
    assert.deepStrictEqual(names.filter((name) => sent[name] !== undefined), ["temperature", "top_k"])
  })

  it("with the defaults loses nothing", () => {
    const { sent, warnings } = send(
      chatCompletions,
      messagesProvider,
      { ...chat, temperature: 1, top_p: 1 },
      {},
      "claude-opus-5"
    )
    assert.deepStrictEqual([sent["temperature"], warnings], [undefined, []])
  })
})

describe("a text that a provider rejects", () => {
  const turns = (...all: ReadonlyArray<readonly [string, unknown]>) => ({
    ...chat,
    messages: all.map(([role, content]) => ({ role, content }))
  })
  const part = (text: string) => ({ type: "text", text })

  /** Anthropic: "text content blocks must contain non-whitespace text", "final assistant content cannot end with trailing whitespace". */
  const texts: ReadonlyArray<readonly [string, object, right: unknown, warned: ReadonlyArray<string>]> = [
    ["is empty", turns(["user", "a"], ["assistant", ""], ["user", "b"]), ["user: a, b"], []],
    ["is white space", turns(["user", "a"], ["assistant", " \n"], ["user", "b"]), ["user: a, b"], [
      "messages[1].content"
    ]],
    ["is one of several", turns(["user", [part("a"), part("\t"), part("b")]]), ["user: a, b"], [
      "messages[0].content[1]"
    ]],
    ["ends in a space", turns(["user", "a"], ["assistant", "b \n"]), ["user: a", "assistant: b"], ["messages[1]"]],
    ["ends in a space elsewhere", turns(["user", "a "], ["assistant", "b "], ["user", "c"]), [
      "user: a ",
      "assistant: b ",
      "user: c"
    ], []],
    ["holds half a character", turns(["user", "a\ud83d"]), ["user: a\ufffd"], ["messages[0].content"]]
  ]

  it.each(texts)("of Claude %s", (_, body, right, warned) => {
    const { refusal, sent, warnings } = send(chatCompletions, messagesProvider, body, {})
    const said = Json.list(sent["messages"]).map(Json.fields).map(({ content, role }) =>
      `${String(role)}: ${Json.list(content).map((block) => Json.fields(block)["text"]).join(", ")}`
    )
    assert.isUndefined(refusal)
    assert.deepStrictEqual(said, right)
    assert.deepStrictEqual(warnings.map((warning) => warning.split(" ")[0]), [...warned])
  })

  it("of OpenAI is an answer without a text: its servers require one", () => {
    const thought = { role: "assistant", content: [{ type: "thinking", thinking: "t", signature: "s" }] }
    const { sent } = send(messages, chatCompletionsProvider, {
      ...ask,
      messages: [...said, thought, { role: "user", content: [] }, ...said]
    }, {})
    assert.deepStrictEqual(Json.list(sent["messages"])[1], { role: "assistant", content: "" })
  })
})

describe("base64", () => {
  it.each([
    ["_-8=", "/+8="],
    ["_-8", "/+8="],
    ["ab\r\ncd", "abcd"],
    ["abcd", "abcd"],
    ["YQ", "YQ=="],
    ["YQ==", "YQ=="]
  ])("%s is %s in the standard alphabet", (data, right) => {
    assert.strictEqual(standardBase64(data), right)
    assert.deepStrictEqual(Buffer.from(right, "base64"), Buffer.from(data, "base64"))
  })

  it("of Google's client for Python reaches other providers in the standard alphabet", () => {
    const body = { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "_-8=" } }] }] }
    assert.include(
      JSON.stringify(send(generateContent, chatCompletionsProvider, body, {}).sent),
      "data:image/png;base64,/+8="
    )
    assert.include(JSON.stringify(send(generateContent, messagesProvider, body, {}).sent), "\"data\":\"/+8=\"")
  })
})
