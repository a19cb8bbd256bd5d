/**
 * POST /v1/responses/compact: shortens a long conversation to the user's own messages and one encrypted item that
 * summarises the rest. The conversation consists of messages of chat completions, items of the responses format, or both.
 */
import { Schema } from "effect"
import { EpochSeconds, ModelName, optional } from "../Fields.ts"
import { hasContent, RefusalPart, TokenUsage, ToolCall } from "./ChatCompletions.ts"
import { CompactionItem } from "./CompactionItem.ts"
import type { Operation } from "../Operation.ts"

/** Any other `type`, which only the provider interprets. */
const other = (known: ReadonlyArray<string>) =>
  Schema.String.check(Schema.makeFilter((type) => !known.includes(type), { expected: "another type" }))

const TextPart = Schema.Struct({ type: Schema.Literals(["input_text", "output_text", "text"]), text: Schema.String })
/** A picture or a file, kept unchanged. */
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
}).check(hasContent)
export type MessageItem = typeof MessageItem.Type

const FunctionCallItem = Schema.Struct({
  type: Schema.Literal("function_call"),
  name: Schema.String,
  arguments: Schema.String.annotateKey({ description: "JSON text, as the model wrote it." })
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
  model: ModelName,
  input: optional(Schema.Union([Schema.String, Schema.Array(InputItem)]), "A string is a single user message."),
  instructions: optional(Schema.String, "What the summary should focus on."),
  previous_response_id: optional(Schema.String, "An earlier compaction, whose output precedes the input.")
})
export type CompactionRequest = typeof CompactionRequest.Type

/** Repeats the usage under the names of the responses format. */
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
  created_at: EpochSeconds,
  output: Schema.Array(Schema.Union([
    Schema.Struct({
      id: Schema.String,
      type: Schema.Literal("message"),
      role: Schema.Literal("user"),
      status: Schema.Literal("completed"),
      content: Schema.Array(Schema.Struct({ type: Schema.String }))
    }),
    CompactionItem
  ])).annotateKey({
    description: "Replaces the conversation in later requests: all user messages, then the encrypted item."
  }),
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
  streams: () => false,
  description: "The output replaces the conversation in later requests, including chat completions. " +
    "Only this gateway can decrypt the item, and only for the API key that created it.",
  examples: {
    messages: {
      summary: "A conversation of messages",
      model: "local-chat",
      body: {
        input: [
          { role: "user", content: "The lighthouse was built in 1871." },
          { role: "assistant", content: "Noted." }
        ]
      },
      answer: {
        id: "resp_d8405274ad0f4c72a5d45d1c02b375d5",
        object: "response.compaction",
        created_at: 1795301087,
        output: [
          {
            id: "msg_df7b44b75f0a43f9b703b97e6c4ab79c",
            type: "message",
            role: "user",
            status: "completed",
            content: [{ type: "input_text", text: "The lighthouse was built in 1871." }]
          },
          { id: "cmp_c15f4e7a2ad34909897191e26a81cd8d", type: "compaction", encrypted_content: "gwc1:36a38923:6VlRzhV" }
        ],
        usage: {
          prompt_tokens: 19,
          completion_tokens: 24,
          total_tokens: 43,
          input_tokens: 19,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 24,
          output_tokens_details: { reasoning_tokens: 0 }
        },
        error: null
      }
    },
    text: {
      summary: "One text",
      model: "local-chat",
      body: { input: "The lighthouse was built in 1871. Its keeper kept bees.", instructions: "Keep all years." }
    }
  }
} satisfies Operation
