/** Reads the reasons why answers end. Servers disagree on what they send before the end, and on the reasons' names. */
import type { FinishReason } from "../conversation/ModelEvent.ts"

/**
 * What servers send as the reason of pieces that do not end an answer: an empty text (gateways written in Go), `null` as a text (DashScope),
 * and the default value of Google's enumerations.
 */
const none = /^\s*(?:null|none|(?:finish|block)_reason_unspecified)?\s*$/i

/** The reason in a piece of an answer; `undefined` if the piece does not end the answer. */
export const reasonIn = (value: unknown): string | undefined =>
  typeof value === "string" && !none.test(value) ? value : undefined

/**
 * The reasons for which servers of the chat completions dialect break an answer off: OpenRouter and Mistral, vLLM and SGLang, DeepSeek,
 * Zhipu. What has arrived is no answer.
 */
const failures: ReadonlySet<string> = new Set([
  "error",
  "abort",
  "aborted",
  "cancelled",
  "insufficient_system_resource",
  "network_error"
])

/** Whether a reason says that the server has broken the answer off. */
export const isFailure = (value: unknown): boolean => typeof value === "string" && failures.has(value.toLowerCase())

/** The names in chat completions and in messages, which servers also mix. Every other reason, such as `eos_token`, is a stop. */
const names: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  // the context is full: Mistral, Anthropic
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_calls", "tool_calls"],
  ["tool_call", "tool_calls"],
  ["tool_use", "tool_calls"],
  ["function_call", "tool_calls"],
  ["content_filter", "content_filter"],
  ["refusal", "content_filter"],
  ["safety", "content_filter"],
  // Zhipu
  ["sensitive", "content_filter"]
])

export const toFinish = (reason: string): FinishReason => names.get(reason.toLowerCase()) ?? "stop"

/** The reason of a choice with two: some servers send a `stop` after a reason that says more. */
export const laterOf = (before: FinishReason | undefined, after: FinishReason): FinishReason =>
  before === undefined || after !== "stop" ? after : before
