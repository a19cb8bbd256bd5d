/** Providers that stream although they were not asked to, or answer with JSON although they were: clients get the form that they asked for. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { completions } from "../../../../shared/contract/operations/Completions.ts"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import { generateContent, streamGenerateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { gemini } from "../../../../shared/provider/protocols/gemini/Gemini.ts"
import { openAi } from "../../../../shared/provider/protocols/openai/OpenAi.ts"
import * as OpenAiResponses from "../../../../shared/provider/protocols/openai/OpenAiResponses.ts"
import { event, play, type Played, playWith, type Script, sse } from "../../../fixture/calls/ScriptedCall.ts"

const hello = [{ role: "user", content: "Hello" }]
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const output = [{ type: "message", id: "i", role: "assistant", content: [{ type: "output_text", text: "Hi you" }] }]

interface Dialect {
  /** The operations as JSON and as a stream, with their bodies. */
  readonly asked: readonly [readonly [Operation, object], readonly [Operation, object]]
  readonly whole: object
  readonly stream: string
  readonly call: (operation: Operation, body: object, script: Script) => Effect.Effect<Played>
}

const both = (
  operation: Operation,
  body: object
): Dialect["asked"] => [[operation, body], [operation, { ...body, stream: true }]]

const dialects: Readonly<Record<string, Dialect>> = {
  chat: {
    asked: both(chatCompletions, { model: "m", messages: hello }),
    whole: {
      id: "c",
      choices: [{ index: 0, message: { role: "assistant", content: "Hi you" }, finish_reason: "stop" }],
      usage
    },
    stream: sse({ choices: [{ index: 0, delta: { role: "assistant", content: "Hi" }, finish_reason: null }] }) +
      sse({ choices: [{ index: 0, delta: { content: " you" }, finish_reason: "stop" }] }) +
      sse({ choices: [], usage }) +
      "data: [DONE]\n\n",
    call: (operation, body, script) => play(openAi, { operation, body }, script)
  },
  completions: {
    asked: both(completions, { model: "m", prompt: "Hello" }),
    whole: { id: "c", choices: [{ index: 0, text: "Hi you", finish_reason: "stop" }], usage },
    stream: sse({ choices: [{ index: 0, text: "Hi" }] }) +
      sse({ choices: [{ index: 0, text: " you", finish_reason: "stop" }] }) +
      sse({ choices: [], usage }) + "data: [DONE]\n\n",
    call: (operation, body, script) => play(openAi, { operation, body }, script)
  },
  messages: {
    asked: both(messages, { model: "m", max_tokens: 9, messages: hello }),
    whole: {
      type: "message",
      content: [{ type: "text", text: "Hi you" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 3, output_tokens: 2 }
    },
    stream: event("message_start", { message: { usage: { input_tokens: 3, output_tokens: 1 } } }) +
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "Hi" } }) +
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text: " you" } }) +
      event("content_block_stop", { index: 0 }) +
      event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }) +
      event("message_stop", {}),
    call: (operation, body, script) => play(anthropic, { operation, body }, script)
  },
  gemini: {
    asked: [
      [generateContent, { contents: [{ role: "user", parts: [{ text: "Hello" }] }] }],
      [streamGenerateContent, { contents: [{ role: "user", parts: [{ text: "Hello" }] }] }]
    ],
    whole: {
      candidates: [{ index: 0, content: { role: "model", parts: [{ text: "Hi you" }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 }
    },
    stream: sse({ candidates: [{ content: { parts: [{ text: "Hi" }] } }] }) +
      sse({
        candidates: [{ content: { parts: [{ text: " you" }] }, finishReason: "STOP" }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 }
      }),
    call: (operation, body, script) => play(gemini, { operation, body }, script)
  },
  responses: {
    asked: both(responses, { model: "m", input: "Hello" }),
    whole: { id: "r", status: "completed", output, usage: { input_tokens: 3, output_tokens: 2 } },
    stream: event("response.output_item.added", { output_index: 0, item: { type: "message" } }) +
      event("response.output_text.delta", { output_index: 0, content_index: 0, delta: "Hi" }) +
      event("response.output_text.delta", { output_index: 0, content_index: 0, delta: " you" }) +
      event("response.completed", {
        response: { id: "r", status: "completed", output, usage: { input_tokens: 3, output_tokens: 2 } }
      }),
    call: (operation, body, script) =>
      playWith((tools) => OpenAiResponses.make(tools), { operation, body, options: { apis: ["responses"] } }, script)
  }
}

const json = "application/json"
const events = "text/event-stream"

/** The request's form, the content type of the answer, and what the answer is. */
const forms: ReadonlyArray<readonly [string, "json" | "stream", string, "json" | "stream"]> = [
  ["a stream for JSON", "json", events, "stream"],
  ["JSON for a stream", "stream", json, "json"],
  ["a stream for JSON, labelled as JSON", "json", json, "stream"],
  ["JSON for a stream, labelled as a stream", "stream", events, "json"],
  ["a stream labelled as text", "stream", "text/plain", "stream"],
  ["JSON labelled as a stream", "json", events, "json"]
]
const rows = Object.keys(dialects).flatMap((dialect) => forms.map((form) => [dialect, ...form] as const))

describe("the form of an answer", () => {
  it.effect.each(rows)("%s: %s", ([dialect, , asked, contentType, given]) =>
    Effect.gen(function*() {
      const { asked: requests, call, stream, whole } = dialects[dialect]!
      const [operation, body] = requests[asked === "json" ? 0 : 1]
      const text = given === "json" ? `\n\n${JSON.stringify(whole)}` : `: wait\n\n${stream}`
      for (const pieces of [[text], [...text]]) {
        const played = yield* call(operation, body, { contentType, body: pieces })
        assert.isUndefined(played.error)
        assert.strictEqual(played.head?.contentType, asked === "json" ? json : events)
        assert.deepInclude(played.usage, { inputTokens: 3, outputTokens: 2 })
        if (asked === "json") assert.include(JSON.stringify(JSON.parse(played.text)), "\"Hi you\"")
        else assert.match(played.text, /^(?:: wait\n\n)?(?:event: [\w.]+\n)?data: \{/)
        assert.match(played.text, /"(?:stop|end_turn|STOP|completed)"/)
      }
    }))

  // some servers wrap a whole answer in a stream
  it.effect.each(["messages", "gemini"])(
    "of chat completions as the only event of a stream, for a client of %s",
    (dialect) =>
      Effect.gen(function*() {
        const [operation, body] = dialects[dialect]!.asked[1]
        const played = yield* play(openAi, { operation, body }, {
          body: [sse(dialects["chat"]!.whole), "data: [DONE]\n\n"]
        })
        assert.isUndefined(played.error)
        assert.include(played.text, "Hi you")
      })
  )

  it.effect("of an operation without streams is an error if it is a stream", () =>
    Effect.gen(function*() {
      const request = { operation: embeddings, body: { model: "m", input: "a" } }
      const played = yield* play(openAi, request, { body: [sse({ data: [] })] })
      assert.deepInclude(played.error, { _tag: "ProviderFailed", reason: "malformed" })
    }))
})
