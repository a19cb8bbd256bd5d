/** Names of tools that a provider rejects, on their way to it and back; calls without results; and summaries of reasoning. */
import { assert, describe, it } from "@effect/vitest"
import type { Conversation, Turn } from "../../../../shared/provider/dialects/conversation/Conversation.ts"
import { textTurn } from "../../../../shared/provider/dialects/conversation/Conversation.ts"
import { Losses } from "../../../../shared/provider/dialects/conversation/Losses.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { generateContentProvider } from "../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import * as CallPairs from "../../../../shared/provider/dialects/fitting/CallPairs.ts"
import * as ToolNames from "../../../../shared/provider/dialects/fitting/ToolNames.ts"

const conversation = (more: Partial<Conversation>): Conversation => ({
  turns: [textTurn("user", "Hi")],
  tools: [],
  toolChoice: { type: "auto" },
  format: { type: "text" },
  stop: [],
  maxTokens: undefined,
  choices: 1,
  ...more
})
const toolsOf = (...names: ReadonlyArray<string>) =>
  names.map((name) => ({ name, description: undefined, parameters: {} }))

const rules = {
  openai: [ToolNames.openAiNames, /^[\w-]{1,64}$/],
  anthropic: [ToolNames.anthropicNames, /^[\w-]{1,128}$/],
  gemini: [ToolNames.geminiNames, /^[A-Za-z_][\w:.-]{0,63}$/],
  cohere: [ToolNames.cohereNames, /^[A-Za-z_]\w{0,63}$/]
} as const

// names of MCP servers and agents, and what no provider accepts; the patterns are those of the providers' references, see `ToolNames.ts`
const names = [
  "get_weather",
  "mcp__github__create-issue",
  "github.create_issue",
  "7zip",
  "-dash",
  "search/web",
  "süße_tools",
  "天気",
  "a".repeat(65),
  "a".repeat(129),
  "a b",
  "a.b",
  "a_b"
]

describe.each(Object.entries(rules))("the names of tools for %s", (_, [rule, pattern]) => {
  const { conversation: fitted, originals } = ToolNames.fit(
    conversation({ tools: toolsOf(...names), toolChoice: { type: "tool", name: "天気" } }),
    rule
  )

  it.each(names.map((name, index) => [name, index] as const))("accept %j and restore it", (name, index) => {
    const sent = fitted.tools[index]?.name ?? ""
    assert.match(sent, pattern)
    const call = { type: "toolCall", choice: 0, call: 0, id: "1", name: sent } as const
    assert.deepInclude(ToolNames.restored(call, originals), { name })
    // the same in any other request
    assert.strictEqual(ToolNames.fit(conversation({ tools: toolsOf(name) }), rule).conversation.tools[0]?.name, sent)
    if (pattern.test(name)) assert.strictEqual(sent, name)
  })

  it("stay apart, and are the same in the choice and in earlier calls", () => {
    assert.strictEqual(new Set(fitted.tools.map(({ name }) => name)).size, names.length)
    const index = names.indexOf("天気")
    assert.deepStrictEqual(fitted.toolChoice, { type: "tool", name: fitted.tools[index]?.name ?? "" })
    const turns: ReadonlyArray<Turn> = [
      { role: "assistant", content: [], toolCalls: [{ id: "1", name: "天気", arguments: "{}" }] }
    ]
    const earlier = ToolNames.fit(conversation({ turns }), rule).conversation
    assert.strictEqual(earlier.turns[0]?.toolCalls[0]?.name, fitted.tools[index]?.name)
  })
})

describe("calls and results", () => {
  const call = (...ids: ReadonlyArray<string>): Turn => ({
    role: "assistant",
    content: [],
    toolCalls: ids.map((id) => ({ id, name: "f", arguments: "{}", path: `call ${id}` })),
    path: "assistant"
  })
  const result = (toolCallId: string): Turn => ({ ...textTurn("tool", "1", `result ${toolCallId}`), toolCallId })
  const user = textTurn("user", "Hi", "user")
  // what Anthropic, Gemini and OpenAI's responses reject with 400, as their references of tool use say
  const table: ReadonlyArray<readonly [what: string, turns: ReadonlyArray<Turn>, path: string | undefined]> = [
    ["a pair", [user, call("1"), result("1"), user], undefined],
    ["two in any order", [call("1", "2"), result("2"), result("1")], undefined],
    ["instructions in between", [call("1"), textTurn("system", "a"), result("1")], undefined],
    ["a call at the end", [user, call("1")], undefined],
    ["a result without a call", [user, result("1")], "result 1"],
    ["a result of another call", [call("1"), result("2"), result("1")], "result 2"],
    ["a second result", [call("1"), result("1"), result("1")], "result 1"],
    ["a result after the user's words", [call("1"), user, result("1")], "call 1"],
    ["a call without a result", [call("1", "2"), result("1"), user], "call 2"]
  ]
  it.each(table)("%s", (_, turns, path) => {
    const refusing = new Losses("ordinary", {})
    CallPairs.record(conversation({ turns }), true, refusing)
    assert.strictEqual(refusing.refusal?.param, path)
    const warning = new Losses("ordinary", {})
    CallPairs.record(conversation({ turns }), false, warning)
    assert.isUndefined(warning.refusal)
    assert.strictEqual(warning.warnings[0]?.startsWith(path ?? "none"), path === undefined ? undefined : true)
  })
})

describe("a summary of reasoning", () => {
  const summary = { kind: "auto", path: "reasoning.summary" }
  const effort = { type: "effort", effort: "high" } as const
  // https://docs.claude.com/en/docs/build-with-claude/extended-thinking: `display` belongs to thinking that is on
  const table: ReadonlyArray<readonly [Partial<Conversation>, thinking: object | undefined, warnings: number]> = [
    [{ summary, reasoning: effort }, { type: "adaptive", display: "summarized" }, 0],
    [{ summary, reasoning: { type: "auto" } }, { type: "adaptive", display: "summarized" }, 0],
    [{ reasoning: effort }, { type: "adaptive" }, 0],
    [{ summary }, undefined, 1],
    [{ summary, reasoning: { type: "off" } }, { type: "disabled" }, 1]
  ]
  it.each(table)("%j is %j at Anthropic", (more, thinking, warnings) => {
    const losses = new Losses("ordinary", {})
    const target = { model: "claude-opus-4-6", streams: false, losses }
    const request = messagesProvider.toRequest(conversation(more), target, {})
    assert.deepStrictEqual((request as { readonly thinking?: object }).thinking, thinking)
    assert.lengthOf(losses.warnings, warnings)
  })

  it("is always there at Gemini, with reasoning", () => {
    const losses = new Losses("ordinary", {})
    generateContentProvider.toRequest(conversation({ summary, reasoning: effort }), {
      model: "g",
      streams: false,
      losses
    }, {})
    assert.deepStrictEqual(losses.warnings, [])
  })
})
