/** Signatures of reasoning before calls, for clients that send back only the parts that their vendor's API needs. */
import { assert, describe, it } from "@effect/vitest"
import type { ModelEvent } from "../../../../shared/provider/dialects/conversation/ModelEvent.ts"
import type { Signature } from "../../../../shared/provider/dialects/conversation/Signature.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { dataIn } from "../../../fixture/calls/ScriptedCall.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const identity = { id: "0".repeat(32), created: 1, model: "m", fingerprint: undefined }
const claude: Signature = { origin: "anthropic", value: "c2lnbmVk" }
const hidden: Signature = { ...claude, redacted: true }

const events = (text: string, signature: Signature, calls = 1): ReadonlyArray<ModelEvent> => [
  ...(text === "" ? [] : [{ type: "reasoning", choice: 0, delta: text } as const]),
  { type: "signature", choice: 0, signature },
  ...Array.from({ length: calls }, (_, call): ReadonlyArray<ModelEvent> => [
    { type: "toolCall", choice: 0, call, id: `call_${call}`, name: "f" },
    { type: "toolArguments", choice: 0, call, delta: "{}" }
  ]).flat(),
  { type: "finish", choice: 0, reason: "tool_calls" }
]

type Json = Record<string, unknown>

/** What a client of Gemini has of an answer, whole or streamed. */
const geminiParts = (given: ReadonlyArray<ModelEvent>, streams: boolean): ReadonlyArray<Json> => {
  const encoder = generateContent.encoder({ contents: [] }, identity)
  const answers = streams
    ? dataIn(given.map((event) => encoder.frames(event)).join("") + encoder.lastFrames())
    : [encoder.body(given) as Json]
  return answers.flatMap(({ candidates }) =>
    (candidates as ReadonlyArray<{ content: { parts: ReadonlyArray<Json> } }>)[0]!.content.parts
  )
}

/** The calls that a client of chat completions has. */
const chatCalls = (given: ReadonlyArray<ModelEvent>, streams: boolean): ReadonlyArray<Json> => {
  const encoder = chatCompletions.encoder({ model: "m", messages: [] } as never, identity)
  const answers = streams
    ? dataIn(given.map((event) => encoder.frames(event)).join(""))
    : [encoder.body(given) as Json]
  return answers.flatMap(({ choices }) => {
    const [{ delta, message }] = choices as [{ delta?: Json; message?: Json }]
    return ((delta ?? message)?.["tool_calls"] ?? []) as ReadonlyArray<Json>
  }).filter(({ id }) => id !== undefined)
}

/** What Anthropic gets before the calls of the assistant's turn. */
const sentTo = (translated: { readonly sent: ReadonlyArray<unknown> }): ReadonlyArray<Json> => {
  const [{ messages }] = translated.sent as [
    { messages: ReadonlyArray<{ role: string; content: ReadonlyArray<Json> }> }
  ]
  return messages.find(({ role }) => role === "assistant")!.content.filter(({ type }) => type !== "tool_use")
}

const options = {}
const thinking = { type: "thinking", thinking: "Bees.", signature: claude.value }
const redacted = { type: "redacted_thinking", data: claude.value }

/** The right value is Anthropic's own block: it rejects a changed one, and wants it once. */
const rows = [
  ["thinking", "Bees.", claude, 1, thinking],
  ["thinking before two calls", "Bees.", claude, 2, thinking],
  ["thinking whose text is omitted", "", claude, 1, { ...thinking, thinking: "" }],
  ["hidden thinking", "", hidden, 1, redacted],
  ["hidden thinking before two calls", "", hidden, 2, redacted]
] as const
const cases = rows.flatMap((row) => [true, false].map((streams) => [...row, streams] as const))

describe("Claude's signature at a client of Gemini", () => {
  it.each(cases)("%s, %s", (_, text, signature, calls, block, streams) => {
    const parts = geminiParts(events(text, signature, calls), streams)
    const kept = parts.filter((part) => "functionCall" in part)
    assert.deepStrictEqual(kept.map((part) => "thoughtSignature" in part), [true, false].slice(0, calls))
    // Gemini CLI keeps the calls; Google's SDK keeps all parts
    for (const sent of [kept, parts]) {
      const results = kept.map(({ functionCall }) => ({
        functionResponse: { id: (functionCall as Json)["id"], name: "f", response: {} }
      }))
      const contents = [
        { role: "user", parts: [{ text: "Hello" }] },
        { role: "model", parts: sent },
        { role: "user", parts: results }
      ]
      assert.deepStrictEqual(sentTo(translate(generateContent, messagesProvider, { contents }, { options })), [block])
    }
  })
})

describe("Claude's signature at a client of chat completions", () => {
  it.each(cases)("%s, %s", (_, text, signature, calls, block, streams) => {
    const kept = chatCalls(events(text, signature, calls), streams)
    assert.deepStrictEqual(kept.map((call) => "extra_content" in call), [true, false].slice(0, calls))
    const tool_calls = kept.map(({ extra_content, id }) => ({
      id,
      type: "function",
      function: { name: "f", arguments: "{}" },
      ...(extra_content === undefined ? {} : { extra_content })
    }))
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: null, tool_calls },
      ...tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "?" }))
    ]
    const body = { model: "m", messages }
    assert.deepStrictEqual(sentTo(translate(chatCompletions, messagesProvider, body, { options })), [block])
  })
})

/** The types of an answer's blocks for a client of messages. */
const blockTypes = (given: ReadonlyArray<ModelEvent>, streams: boolean): ReadonlyArray<unknown> => {
  const encoder = messages.encoder({ model: "m", max_tokens: 9, messages: [] } as never, identity)
  const frames = () => given.map((event) => encoder.frames(event)).join("") + encoder.lastFrames()
  const blocks = streams
    ? dataIn(frames()).flatMap(({ content_block }) => content_block === undefined ? [] : [content_block as Json])
    : (encoder.body(given) as Json)["content"] as ReadonlyArray<Json>
  return blocks.map(({ type }) => type)
}

const gemini: ModelEvent = { type: "signature", choice: 0, signature: { origin: "gemini", value: "c2lnbmVk" } }
const reasoning: ModelEvent = { type: "reasoning", choice: 0, delta: "Hm." }
const said: ModelEvent = { type: "text", choice: 0, delta: "Bees dance." }
const call = (events("", claude) as Array<ModelEvent>).slice(1, 3)
const stop: ModelEvent = { type: "finish", choice: 0, reason: "stop" }

/**
 * Google's page about thought signatures: that of a call must come back, that of a text may. Claude Code 2.1.332 takes an answer whose
 * last block is no text for an empty one.
 */
const texts: ReadonlyArray<readonly [string, ReadonlyArray<ModelEvent>, ReadonlyArray<string>]> = [
  ["of a text at the end is left out", [said, gemini, stop], ["text"]],
  ["of a text after reasoning is left out", [reasoning, gemini, said, gemini, stop], ["thinking", "text"]],
  ["twice at the end is left out", [said, gemini, gemini, stop], ["text"]],
  ["of a call stays before it", [said, gemini, ...call, stop], ["text", "thinking", "tool_use"]],
  ["of a text and of the call after it stay", [said, gemini, gemini, ...call, stop], [
    "text",
    "thinking",
    "thinking",
    "tool_use"
  ]],
  ["between two texts stays", [said, gemini, said, stop], ["text", "thinking", "text"]],
  ["behind a call is left out", [gemini, ...call, gemini, stop], ["thinking", "tool_use"]],
  ["of an answer of reasoning alone stays", [reasoning, gemini, stop], ["thinking"]],
  ["of nothing else stays", [gemini, stop], ["thinking"]]
]

describe("Gemini's signature at a client of messages", () => {
  it.each(texts.flatMap((row) => [true, false].map((streams) => [...row, streams] as const)))(
    "%s",
    (_, given, types, streams) => {
      assert.deepStrictEqual(blockTypes(given, streams), types)
    }
  )
})
