/** Requests with `thread` in the Messages API: which providers get them, and how the others' are refused. */
import { assert, describe, it } from "@effect/vitest"
import { InvalidRequest } from "../../../../shared/contract/JobError.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import { messagesCount } from "../../../../shared/contract/operations/TokenCounts.ts"
import type { Call } from "../../../../shared/provider/call/Protocol.ts"
import * as Json from "../../../../shared/provider/json/Json.ts"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"

const create = { type: "create" }
const proceed = { type: "continue", previous_message_id: "msg_1" }

const own = "https://api.anthropic.com"
const other = "http://127.0.0.1:8000"

/**
 * BetaThreadCreateParams and BetaThreadContinueParams of @anthropic-ai/sdk 1.14. A server that does not know the field answers by the
 * messages of this request alone, as vLLM's: its AnthropicMessagesRequest ignores what it does not name.
 */
const table: ReadonlyArray<readonly [string, body: object, baseUrl: string, options: object, isRelayed: boolean]> = [
  ["Anthropic gets the first", { thread: create }, own, {}, true],
  ["Anthropic gets the next", { thread: proceed }, `${own}/`, {}, true],
  ["another server's first is refused", { thread: create }, other, {}, false],
  ["another server's next is refused", { thread: proceed }, other, {}, false],
  ["a host with a similar name is another server", { thread: create }, "https://api.anthropic.com.test", {}, false],
  ["a server that keeps threads gets it", { thread: proceed }, other, { threads: true }, true],
  ["Anthropic without threads gets none", { thread: create }, own, { threads: false }, false],
  ["null is no thread", { thread: null }, other, {}, true],
  ["a text about threads is no thread", { system: "Say \"thread\"." }, other, {}, true],
  ["a nested member is no thread", { metadata: { thread: create } }, other, {}, true]
]

describe.each([messages, messagesCount])("$name", (operation) => {
  it.each(table)("%s", (_, body, baseUrl, options, isRelayed) => {
    const request = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }], ...body }
    const bytes = Buffer.from(JSON.stringify(request))
    const call = { body: bytes, endpoint: { model: "m", provider: { baseUrl, options } }, operation }
    const relayed = anthropic.relays.get(operation.name)?.(call as unknown as Call)
    if (isRelayed) {
      assert.notInstanceOf(relayed, InvalidRequest)
      return
    }
    assert.instanceOf(relayed, InvalidRequest)
    // lib/internal/threads/ThreadState.js of the SDK goes on without a thread after this code
    const details = { error_code: "thread_unsupported_request", unsupported: ["thread"] }
    assert.deepInclude(Json.fields(relayed), { param: "thread", details })
  })
})
