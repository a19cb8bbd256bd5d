/** Fields without which an answer would mean something else are refused where the provider does not have them. */
import { assert, describe, it } from "@effect/vitest"
import * as ErrorForm from "../../../../shared/contract/http/ErrorForm.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { generateContentProvider } from "../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { responses } from "../../../../shared/provider/dialects/responses/Responses.ts"
import type { ClientDialect } from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const said = [{ role: "user", content: "a" }]
const bases = {
  messages: [messages, { model: "alias", max_tokens: 9, messages: said }],
  chat: [chatCompletions, { model: "alias", messages: said }],
  responses: [responses, { model: "alias", input: "a" }],
  gemini: [generateContent, { contents: [{ role: "user", parts: [{ text: "a" }] }] }]
} as const

const refusalOf = (name: keyof typeof bases, change: object) => {
  const [client, base] = bases[name] as readonly [ClientDialect<unknown>, object]
  const body = { ...base, ...change }
  return name === "gemini"
    ? translate(client, chatCompletionsProvider, body, { options: {} }).refusal
    : translate(client, generateContentProvider, body, { options: {} }).refusal
}

/** From the request types of @anthropic-ai/sdk 1.14, openai 7.55 and @google/genai 3.1. */
const table: ReadonlyArray<readonly [keyof typeof bases, param: string, object]> = [
  ["messages", "thread", { thread: { type: "create" } }],
  ["messages", "thread", { thread: { type: "continue", previous_message_id: "msg_1" } }],
  ["messages", "compaction", { compaction: { type: "summarize" } }],
  ["messages", "container", { container: "c" }],
  ["messages", "inference_geo", { inference_geo: "us" }],
  ["messages", "mcp_servers", { mcp_servers: [{ type: "url", name: "m", url: "https://m.test" }] }],
  ["chat", "audio", { modalities: ["audio"], audio: { voice: "a", format: "wav" } }],
  ["chat", "logit_bias", { logit_bias: { 5: -100 } }],
  ["chat", "web_search_options", { web_search_options: { search_context_size: "low" } }],
  ["chat", "functions", { functions: [{ name: "f" }] }],
  ["responses", "prompt", { prompt: { id: "p" } }],
  ["responses", "previous_response_id", { previous_response_id: "resp_1" }],
  ["responses", "moderation", { moderation: { model: "m" } }],
  ["gemini", "cachedContent", { cachedContent: "cachedContents/1" }],
  ["gemini", "tools[0].googleSearch", { tools: [{ googleSearch: { x: 1 } }] }]
]

describe("a field that changes the meaning", () => {
  it.each(table)("of %s is refused: %s", (name, param, change) => {
    const refused = refusalOf(name, change)
    assert.strictEqual(refused?.param, param === "audio" ? "modalities" : param)
  })

  it("is a thread: the error has the details after which official clients go on without one", () => {
    const refusal = refusalOf("messages", { thread: { type: "create" } })
    assert.isDefined(refusal)
    const description = ErrorForm.complete(ErrorForm.descriptionOf(refusal!))
    // core/error-classes.js and lib/internal/threads/ThreadState.js of @anthropic-ai/sdk 1.14
    assert.deepNestedInclude(ErrorForm.envelope("anthropic", description, refusal!.message, "req_1"), {
      "error.type": "invalid_request_error",
      "error.details": { error_code: "thread_unsupported_request", unsupported: ["thread"] }
    })
  })

  it.each([["thread", null], ["compaction", null], ["container", null]])("is accepted as absent: %s", (name, value) => {
    assert.isUndefined(refusalOf("messages", { [name]: value }))
  })
})
