/** What counts as the end of a stream, by the habits of servers: a whole answer is not an error, and a cut one is never passed off as whole. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { streamGenerateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { gemini } from "../../../../shared/provider/protocols/gemini/Gemini.ts"
import { openAi } from "../../../../shared/provider/protocols/openai/OpenAi.ts"
import * as OpenAiResponses from "../../../../shared/provider/protocols/openai/OpenAiResponses.ts"
import { dataIn, event, play, type Played, playWith, type Script, sse } from "../../../fixture/calls/ScriptedCall.ts"

const hello = [{ role: "user", content: "Hello" }]
const bodies = {
  chat: { operation: chatCompletions, body: { model: "m", messages: hello, stream: true } },
  messages: { operation: messages, body: { model: "m", max_tokens: 9, messages: hello, stream: true } },
  gemini: {
    operation: streamGenerateContent,
    body: { contents: [{ role: "user", parts: [{ text: "Hello" }] }] }
  },
  responses: { operation: responses, body: { model: "m", input: "Hello", stream: true } }
} as const
type Client = keyof typeof bodies

const providers: Readonly<Record<Client, (client: Client, script: Script) => Effect.Effect<Played>>> = {
  chat: (client, script) => play(openAi, bodies[client], script),
  messages: (client, script) => play(anthropic, bodies[client], script),
  gemini: (client, script) => play(gemini, bodies[client], script),
  responses: (client, script) =>
    playWith((tools) => OpenAiResponses.make(tools), { ...bodies[client], options: { apis: ["responses"] } }, script)
}

/** The reason that a client of the messages or the chat dialect reads. */
const reasonOf = (client: Client, { text }: Played): unknown =>
  dataIn(text).flatMap(({ candidates, choices, delta, response }) => {
    const [choice] = (choices ?? candidates ?? []) as ReadonlyArray<Record<string, unknown>>
    const { finishReason, finish_reason } = choice ?? {}
    const { status } = (response ?? {}) as Record<string, unknown>
    const { stop_reason } = (delta ?? {}) as Record<string, unknown>
    const said = { chat: finish_reason, messages: stop_reason, gemini: finishReason, responses: status }[client]
    return said === null || said === undefined || said === "" || said === "in_progress" ? [] : [said]
  }).at(-1)

const text = (content: string, finish_reason: string | null = null) =>
  sse({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason }] })
const end = (finish_reason: string | null, more: object = {}) =>
  sse({ id: "c", choices: [{ index: 0, delta: {}, finish_reason }], ...more })
const usage = sse({ id: "c", choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } })
const call = (json: string) =>
  sse({
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id: "c1", function: { name: "f", arguments: json } }] } }]
  })
const done = "data: [DONE]\n\n"
const empty = sse({ choices: [] })

const begun = event("message_start", { message: { usage: { input_tokens: 3, output_tokens: 1 } } }) +
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } })
const word = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Hi" } })
const closed = event("content_block_stop", { index: 0 })
const stopped = (stop_reason: string) => event("message_delta", { delta: { stop_reason }, usage: { output_tokens: 2 } })
const stop = event("message_stop", {})
const used = event("content_block_start", {
  index: 1,
  content_block: { type: "tool_use", id: "t", name: "f", input: {} }
})

const part = (finishReason?: string) =>
  sse({ candidates: [{ index: 0, content: { parts: [{ text: "Hi" }] }, finishReason }] })

const item = event("response.output_item.added", { output_index: 0, item: { type: "message", content: [] } }) +
  event("response.output_text.delta", { output_index: 0, content_index: 0, delta: "Hi" })
const completed = event("response.completed", { response: { id: "r", status: "completed", output: [] } })

/** The provider's dialect, its stream, and the reason for a client of its own dialect and one of another; "cut" for a failure. */
const rows: ReadonlyArray<readonly [string, Client, ReadonlyArray<string>, string, Client, string]> = [
  // OpenAI's reference: the last choice has a reason, then usage, then [DONE]
  ["as documented by OpenAI", "chat", [text("Hi"), end("stop"), usage, done], "stop", "messages", "end_turn"],
  // gateways written in Go have "" where there is no reason
  ["an empty reason in every piece, then a cut", "chat", [text("Hi", ""), text(" th", "")], "cut", "messages", "cut"],
  [
    "an empty reason in every piece, then an end",
    "chat",
    [text("Hi", ""), end("stop"), done],
    "stop",
    "messages",
    "end_turn"
  ],
  ["an empty reason within a call, then a cut", "chat", [call("{\"a\":"), text("", "")], "cut", "messages", "cut"],
  // DashScope: "null" as a text
  ["the reason \"null\", then a cut", "chat", [text("Hi", "null"), text(" th", "null")], "cut", "messages", "cut"],
  // servers without [DONE], such as several proxies of Ollama
  ["a reason and nothing after it", "chat", [text("Hi"), end("length")], "length", "messages", "max_tokens"],
  [
    "a reason, and many pieces after it",
    "chat",
    [
      text("Hi"),
      end("length"),
      ...Array.from({ length: 9 }, () => empty),
      usage
    ],
    "length",
    "messages",
    "max_tokens"
  ],
  // servers without a reason: old versions of TGI
  ["[DONE] without a reason", "chat", [text("Hi"), done], "none", "messages", "end_turn"],
  [
    "[DONE] in quotes, without a blank line",
    "chat",
    [text("Hi"), end("stop"), "data: \"[DONE]\""],
    "stop",
    "messages",
    "end_turn"
  ],
  // gateways send [DONE] even if the server behind them breaks off
  ["[DONE] within the arguments of a call", "chat", [call("{\"a\":"), done], "none", "messages", "cut"],
  ["[DONE] after whole arguments", "chat", [call("{\"a\":1}"), done], "none", "messages", "tool_use"],
  ["two reasons", "chat", [call("{}"), end("tool_calls"), end("stop"), done], "stop", "messages", "tool_use"],
  [
    "two reasons, of which the first says more",
    "chat",
    [text("Hi"), end("length"), end("stop"), done],
    "stop",
    "messages",
    "max_tokens"
  ],
  ["a reason in the last piece of text", "chat", [text("Hi", "stop"), usage], "stop", "messages", "end_turn"],
  // OpenRouter's, vLLM's and DeepSeek's reasons for an answer that broke off
  ["the reason error", "chat", [text("Hi"), end("error"), done], "cut", "messages", "cut"],
  ["the reason abort", "chat", [text("Hi"), end("abort"), done], "cut", "messages", "cut"],
  [
    "the reason insufficient_system_resource",
    "chat",
    [text("Hi"), end("insufficient_system_resource"), done],
    "cut",
    "messages",
    "cut"
  ],
  ["nothing", "chat", [": hello\n\n"], "cut", "messages", "cut"],
  // Anthropic's reference
  [
    "as documented by Anthropic",
    "messages",
    [begun, word, closed, stopped("end_turn"), stop],
    "end_turn",
    "chat",
    "stop"
  ],
  [
    "[DONE] after message_stop",
    "messages",
    [begun, word, closed, stopped("end_turn"), stop, done],
    "end_turn",
    "chat",
    "stop"
  ],
  [
    "[DONE] instead of message_stop, after a reason",
    "messages",
    [begun, word, closed, stopped("max_tokens"), done],
    "max_tokens",
    "chat",
    "length"
  ],
  ["[DONE] without a reason", "messages", [begun, word, done], "cut", "chat", "cut"],
  ["a reason without message_stop", "messages", [begun, word, closed, stopped("end_turn")], "end_turn", "chat", "stop"],
  ["an empty reason, then a cut", "messages", [begun, word, stopped("")], "cut", "chat", "cut"],
  ["a cut after the last block", "messages", [begun, word, closed], "cut", "chat", "cut"],
  // Bedrock's proxies and Kimi
  [
    "end_turn after a call",
    "messages",
    [begun, closed, used, stopped("end_turn"), stop],
    "end_turn",
    "chat",
    "tool_calls"
  ],
  // Google's reference: the last piece has a reason
  ["as documented by Google", "gemini", [part(), part("MAX_TOKENS")], "MAX_TOKENS", "chat", "length"],
  [
    "Google's unspecified reason, then a cut",
    "gemini",
    [part("FINISH_REASON_UNSPECIFIED"), part("")],
    "cut",
    "chat",
    "cut"
  ],
  ["[DONE] after the reason", "gemini", [part(), part("STOP"), done], "STOP", "chat", "stop"],
  ["[DONE] without a reason", "gemini", [part(), done], "cut", "chat", "cut"],
  // OpenAI's reference: a last event with the response
  ["as documented for responses", "responses", [item, completed], "completed", "chat", "stop"],
  ["[DONE] after the last event", "responses", [item, completed, done], "completed", "chat", "stop"],
  ["[DONE] without the last event", "responses", [item, done], "cut", "chat", "cut"]
]

describe("the end of a stream", () => {
  it.effect.each(rows)("%s, %s", ([, dialect, body, own, other, translated]) =>
    Effect.gen(function*() {
      // in one piece, and each frame in two
      for (const pieces of [[body.join("")], body.flatMap((frame) => [frame.slice(0, 9), frame.slice(9)])]) {
        for (const [client, expected] of [[dialect, own], [other, translated]] as const) {
          const played = yield* providers[dialect](client, { body: pieces })
          if (expected === "cut") {
            assert.strictEqual(played.error?._tag, "ProviderFailed", client)
            continue
          }
          assert.isUndefined(played.error, client)
          assert.strictEqual(reasonOf(client, played), expected === "none" ? undefined : expected, client)
          // Google's SDK and some of Anthropic's fail if they get it
          if (client !== "chat" && client !== "responses") assert.notInclude(played.text, "[DONE]")
          // without it, Anthropic's SDK has no message
          if (client === "messages") assert.lengthOf(played.text.match(/"message_stop"/g) ?? [], 1)
        }
      }
    }))
})
