/**
 * POST /v1/responses/compact: a long conversation, and what is kept of it: the user's own messages and one sealed item with
 * a summary of the rest.
 *
 * A conversation is written as messages of chat completions or as items of the responses format, or as both.
 */
import { Schema } from "effect"
import { optional } from "./Fields.ts"
import { TokenUsage, ToolCall } from "./ChatCompletions.ts"
import { CompactionItem } from "./CompactionItem.ts"
import type { Operation } from "./Operation.ts"

/** The type of anything that says what it is, but is none of these. It is the provider's business. */
const other = (known: ReadonlyArray<string>) =>
  Schema.String.check(Schema.makeFilter((type) => !known.includes(type), { expected: "another type" }))

const TextPart = Schema.Struct({ type: Schema.Literals(["input_text", "output_text", "text"]), text: Schema.String })
const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })
/** A picture or a file, kept whole. */
const OtherPart = Schema.StructWithRest(
  Schema.Struct({ type: other(["input_text", "output_text", "text", "refusal"]) }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
const Content = Schema.Union([Schema.String, Schema.Array(Schema.Union([TextPart, RefusalPart, OtherPart]))])
export type Content = typeof Content.Type

const MessageItem = Schema.Struct({
  type: optional(Schema.Literal("message")),
  id: optional(Schema.String),
  role: Schema.Literals(["user", "assistant", "system", "developer", "tool"]),
  content: optional(Content),
  tool_calls: optional(Schema.Array(ToolCall))
}).check(
  Schema.makeFilter((message) =>
    message.role === "assistant" || (message.content !== undefined && message.content !== null)
      ? undefined
      : { path: ["content"], issue: `is required for a message of the role ${message.role}` }
  )
)
export type MessageItem = typeof MessageItem.Type

const FunctionCallItem = Schema.Struct({
  type: Schema.Literal("function_call"),
  name: Schema.String,
  /** JSON text, as the model wrote it. */
  arguments: Schema.String
})
export type FunctionCallItem = typeof FunctionCallItem.Type

const FunctionCallOutputItem = Schema.Struct({ type: Schema.Literal("function_call_output"), output: Content })
export type FunctionCallOutputItem = typeof FunctionCallOutputItem.Type

const OtherItem = Schema.Struct({ type: other(["message", "function_call", "function_call_output", "compaction"]) })

export const InputItem = Schema.Union([
  CompactionItem,
  FunctionCallItem,
  FunctionCallOutputItem,
  MessageItem,
  OtherItem
])
export type InputItem = typeof InputItem.Type

export const CompactionRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  /** A string is one message of the user. */
  input: optional(Schema.Union([Schema.String, Schema.Array(InputItem)])),
  /** What the summary is to pay attention to. */
  instructions: optional(Schema.String),
  /** An earlier compaction, whose output comes before the input. */
  previous_response_id: optional(Schema.String)
})
export type CompactionRequest = typeof CompactionRequest.Type

/** Usage under the names of the responses format as well. */
const CompactionUsage = Schema.Struct({
  ...TokenUsage.fields,
  input_tokens: Schema.Int,
  input_tokens_details: Schema.Struct({ cached_tokens: Schema.Int }),
  output_tokens: Schema.Int,
  output_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int })
})

export const CompactedResponse = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response.compaction"),
  /** Seconds since the epoch. */
  created_at: Schema.Int,
  /** What takes the place of the conversation in requests to come: all messages of the user, then the sealed item. */
  output: Schema.Array(Schema.Union([
    Schema.Struct({
      id: Schema.String,
      type: Schema.Literal("message"),
      role: Schema.Literal("user"),
      status: Schema.Literal("completed"),
      content: Schema.Array(Schema.Struct({ type: Schema.String }))
    }),
    CompactionItem
  ])),
  usage: CompactionUsage,
  error: Schema.Null
})
export type CompactedResponse = typeof CompactedResponse.Type

export const compaction = {
  name: "responses.compact",
  summary: "Compact a long conversation",
  paths: ["/v1/responses/compact"],
  workloads: ["chat"],
  dialect: "openai",
  request: CompactionRequest,
  response: CompactedResponse,
  streams: () => false
} satisfies Operation
