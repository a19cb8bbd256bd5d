/** The words by which Claude Code knows that it must compact a conversation, whatever the provider's are. */
import { assert, describe, it } from "@effect/vitest"
import { ProviderFailed, ProviderRejected } from "../../../shared/contract/JobError.ts"
import * as ErrorForm from "../../../shared/contract/http/ErrorForm.ts"

const envelope = (error: Parameters<typeof ErrorForm.descriptionOf>[0], dialect: "anthropic" | "openai") =>
  ErrorForm.envelope(dialect, ErrorForm.complete(ErrorForm.descriptionOf(error)), error.message, "r") as {
    readonly error: { readonly type: string; readonly message: string }
  }

/** The provider's message, from its reference or source, and the message for clients of messages. */
const rows = [
  ["prompt is too long: 210000 tokens > 200000 maximum", "prompt is too long: 210000 tokens > 200000 maximum"],
  [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.",
    "prompt is too long: 10000 tokens > 8192 maximum"
  ],
  [
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).",
    "prompt is too long: 5000 tokens > 4096 maximum"
  ],
  [
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "prompt is too long: 1200000 tokens > 1048576 maximum"
  ],
  [
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
    "prompt is too long: 5000 tokens > 4096 maximum"
  ],
  [
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "prompt is too long: 9000 tokens > 8192 maximum"
  ],
  [
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`",
    "prompt is too long: 5000 tokens > 4096 maximum"
  ],
  ["Input is too long for requested model.", "prompt is too long: Input is too long for requested model."]
] as const

describe("a prompt beyond the context", () => {
  it.each(rows)("%s", (message, expected) => {
    const error = new ProviderRejected({ provider: "p", status: 400, message, code: "context_length_exceeded" })
    assert.strictEqual(envelope(error, "anthropic").error.message, expected)
    assert.strictEqual(envelope(error, "openai").error.message, message)
  })
})

describe("a failure within an answer", () => {
  // Anthropic's reference lists the types of errors with their statuses
  it.each([
    [529, "overloaded_error"],
    [503, "overloaded_error"],
    [504, "timeout_error"],
    [500, "upstream_error"],
    [null, "upstream_error"]
  ])("with the status %s keeps its kind: %s", (status, type) => {
    const error = new ProviderFailed({ provider: "p", reason: "error", status })
    assert.strictEqual(envelope(error, "anthropic").error.type, type)
  })
})
