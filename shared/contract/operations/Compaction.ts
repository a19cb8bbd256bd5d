/**
 * POST /v1/responses/compact: shortens a long conversation to the user's own messages and one encrypted item that
 * summarises the rest. The conversation consists of messages of chat completions, items of the responses format, or both.
 */
import { Schema } from "effect"
import { constant, EpochSeconds, field, ModelName, optional, tokens } from "../Fields.ts"
import { hasContent, RefusalPart } from "./ChatCompletions.ts"
import { ToolCall } from "./chat/ChatTools.ts"
import { CompactionItem } from "../CompactionItem.ts"
import type { Operation } from "../Operation.ts"
import { InputTokensDetails, OutputTokensDetails, TokenUsage } from "../TokenUsage.ts"

/** Any `type` other than the known ones, which only the provider interprets. */
const other = (known: ReadonlyArray<string>) =>
  Schema.String.check(Schema.makeFilter((type) => !known.includes(type), { expected: "another type" }))

const TextPart = Schema.Struct({
  type: field(Schema.Literals(["input_text", "output_text", "text"]), "A text of the user or of the model."),
  text: field(Schema.String, "The text.")
})
/** A picture or a file, kept unchanged. */
const OtherPart = Schema.StructWithRest(
  Schema.Struct({
    type: field(other(["input_text", "output_text", "text", "refusal"]), "An image or a file, kept unchanged.")
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)
const Content = Schema.Union([Schema.String, Schema.Array(Schema.Union([TextPart, RefusalPart, OtherPart]))])
export type Content = typeof Content.Type

const MessageItem = Schema.Struct({
  type: optional(Schema.Literal("message"), "A message. Messages of chat completions lack it."),
  id: optional(Schema.String, "Has no effect."),
  role: field(
    Schema.Literals(["user", "assistant", "system", "developer", "tool"]),
    "Author. The user's messages are kept, all others summarised."
  ),
  content: optional(Content, "A text, or parts. Only the assistant's messages can lack it."),
  tool_calls: optional(Schema.Array(ToolCall), "Functions that the assistant called.")
}).check(hasContent)
export type MessageItem = typeof MessageItem.Type

const FunctionCallItem = Schema.Struct({
  type: constant("function_call", "A function that the assistant called."),
  name: field(Schema.String, "The function."),
  arguments: field(Schema.String, "JSON text, as the model wrote it.")
})
export type FunctionCallItem = typeof FunctionCallItem.Type

const FunctionCallOutputItem = Schema.Struct({
  type: constant("function_call_output", "A function's result."),
  output: field(Content, "A text, or parts.")
})
export type FunctionCallOutputItem = typeof FunctionCallOutputItem.Type

const OtherItem = Schema.Struct({
  type: field(
    other(["message", "function_call", "function_call_output", "compaction"]),
    "An item that only the provider interprets."
  )
})

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
  input: optional(
    Schema.Union([Schema.String, Schema.Array(InputItem)]),
    "The conversation. A string is a single user message."
  ),
  instructions: optional(Schema.String, "What the summary should focus on."),
  previous_response_id: optional(Schema.String, "An earlier compaction, whose output precedes the input.")
})
export type CompactionRequest = typeof CompactionRequest.Type

/** Repeats the usage under the names of the responses format. */
const CompactionUsage = Schema.Struct({
  ...TokenUsage.fields,
  input_tokens: tokens("The same as `prompt_tokens`."),
  input_tokens_details: field(InputTokensDetails, "Parts of `input_tokens`."),
  output_tokens: tokens("The same as `completion_tokens`."),
  output_tokens_details: field(OutputTokensDetails, "Parts of `output_tokens`.")
})

export const CompactedResponse = Schema.Struct({
  id: field(Schema.String, "A later compaction can continue from it: `previous_response_id`."),
  object: constant("response.compaction", "A compaction."),
  created_at: EpochSeconds,
  output: field(
    Schema.Array(Schema.Union([
      Schema.Struct({
        id: field(Schema.String, "Unique per message."),
        type: constant("message", "A message of the user."),
        role: constant("user", "Always the user: all other messages are summarised."),
        status: constant("completed", "The message is whole."),
        content: field(
          Schema.Array(
            Schema.Struct({ type: field(Schema.String, "`input_text`, or the kind that the request had.") })
          ),
          "The request's parts; a text becomes one `input_text` part."
        )
      }),
      CompactionItem
    ])),
    "Replaces the conversation in later requests: all user messages, then the encrypted item."
  ),
  usage: field(CompactionUsage, "Tokens that the summary consumed."),
  error: field(Schema.Null, "Always `null`: an error is the response instead.")
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
  records: "writes",
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
