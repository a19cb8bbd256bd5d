/** POST /v1/messages: the request and the answer of a chat in the messages format. */
import { Schema } from "effect"
import { JsonObject, optional } from "./Fields.ts"
import type { Operation } from "./Operation.ts"
import { translationHeader } from "./Translation.ts"

/** Marks a block up to which a provider may cache; its shape is the provider's business. */
const cacheControl = { cache_control: optional(JsonObject) }

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, ...cacheControl })
const ImageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: Schema.Union([
    Schema.Struct({
      type: Schema.Literal("base64"),
      media_type: Schema.NonEmptyString,
      data: Schema.NonEmptyString
    }),
    Schema.Struct({ type: Schema.Literal("url"), url: Schema.NonEmptyString })
  ]),
  ...cacheControl
})
/** A document, as clients send PDFs and long texts. What it holds is the provider's business. */
const DocumentBlock = Schema.Struct({
  type: Schema.Literal("document"),
  source: JsonObject,
  title: optional(Schema.String),
  ...cacheControl
})
const ToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: Schema.NonEmptyString,
  name: Schema.NonEmptyString,
  input: JsonObject,
  ...cacheControl
})
const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_use_id: Schema.NonEmptyString,
  content: optional(Schema.Union([Schema.String, Schema.Array(Schema.Union([TextBlock, ImageBlock, DocumentBlock]))])),
  is_error: optional(Schema.Boolean),
  ...cacheControl
})
/** What the model thought, as clients must send it back with a conversation that uses tools. */
const ThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: optional(Schema.String)
})
const RedactedThinkingBlock = Schema.Struct({ type: Schema.Literal("redacted_thinking"), data: Schema.String })

/** What a provider's own tools have put into the conversation, which clients hand back to it. */
const ProviderBlock = Schema.Struct({
  type: Schema.Literals([
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "container_upload",
    "search_result",
    "compaction"
  ])
})

export const ContentBlock = Schema.Union([
  TextBlock,
  ImageBlock,
  DocumentBlock,
  ToolUseBlock,
  ToolResultBlock,
  ThinkingBlock,
  RedactedThinkingBlock,
  ProviderBlock
])
export type ContentBlock = typeof ContentBlock.Type

const Message = Schema.Struct({
  role: Schema.Literals(["user", "assistant"]),
  content: Schema.Union([Schema.String, Schema.Array(ContentBlock)])
})

/** A tool of the client's own. Tools that the provider brings have another `type` and no schema. */
const Tool = Schema.Struct({
  type: optional(Schema.String),
  name: Schema.NonEmptyString,
  description: optional(Schema.String),
  input_schema: Schema.optionalKey(JsonObject),
  /** Keep to the schema to the letter. */
  strict: optional(Schema.Boolean),
  ...cacheControl
})

/** At most one tool call in an answer. */
const oneAtATime = { disable_parallel_tool_use: optional(Schema.Boolean) }

export const MessagesRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  messages: Schema.Array(Message).check(Schema.isMinLength(1)),
  system: optional(Schema.Union([Schema.String, Schema.Array(TextBlock)])),
  cache_control: optional(JsonObject),
  inference_geo: optional(Schema.String),
  max_tokens: Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  temperature: optional(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  top_p: optional(Schema.Finite),
  top_k: optional(Schema.Int),
  stream: optional(Schema.Boolean),
  stop_sequences: optional(Schema.Array(Schema.String)),
  tools: optional(Schema.Array(Tool)),
  tool_choice: optional(Schema.Union([
    Schema.Struct({ type: Schema.Literal("auto"), ...oneAtATime }),
    Schema.Struct({ type: Schema.Literal("any"), ...oneAtATime }),
    Schema.Struct({ type: Schema.Literal("none") }),
    Schema.Struct({ type: Schema.Literal("tool"), name: Schema.NonEmptyString, ...oneAtATime })
  ])),
  thinking: optional(Schema.Union([
    Schema.Struct({ type: Schema.Literal("enabled"), budget_tokens: Schema.Int.check(Schema.isGreaterThan(0)) }),
    Schema.Struct({ type: Schema.Literal("disabled") }),
    Schema.Struct({ type: Schema.Literals(["adaptive", "between_tools"]) })
  ])),
  context_management: optional(JsonObject),
  output_config: optional(Schema.Struct({
    output_format: optional(JsonObject),
    format: optional(JsonObject),
    effort: optional(Schema.Literals(["low", "medium", "high", "xhigh", "max"]))
  })),
  container: optional(Schema.Union([Schema.String, JsonObject])),
  mcp_servers: optional(Schema.Array(JsonObject)),
  metadata: optional(Schema.Struct({ user_id: optional(Schema.String) })),
  speed: optional(Schema.Literals(["standard", "fast"])),
  service_tier: optional(Schema.Literals(["auto", "standard_only"]))
})
export type MessagesRequest = typeof MessagesRequest.Type

/** The last one is for an answer that was held back; clients of this format know it. */
export const stopReasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"] as const

export const MessageUsage = Schema.Struct({
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  cache_creation_input_tokens: Schema.Int,
  cache_read_input_tokens: Schema.Int,
  output_tokens_details: Schema.optionalKey(Schema.Struct({ thinking_tokens: Schema.Int }))
})

const AnswerBlock = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("thinking"), thinking: Schema.String, signature: Schema.String }),
  Schema.Struct({ type: Schema.Literal("redacted_thinking"), data: Schema.String }),
  /** A picture that the model has made. */
  Schema.Struct({
    type: Schema.Literal("image"),
    source: Schema.Struct({
      type: Schema.Literal("base64"),
      media_type: Schema.String,
      data: Schema.String
    })
  }),
  Schema.Struct({ type: Schema.Literal("tool_use"), id: Schema.String, name: Schema.String, input: JsonObject })
])
export type AnswerBlock = typeof AnswerBlock.Type

export const MessageAnswer = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message"),
  role: Schema.Literal("assistant"),
  model: Schema.String,
  content: Schema.Array(AnswerBlock),
  stop_reason: Schema.Literals(stopReasons),
  stop_sequence: Schema.NullOr(Schema.String),
  usage: MessageUsage
})
export type MessageAnswer = typeof MessageAnswer.Type

export const messages = {
  name: "messages",
  summary: "Create a model response in the messages format",
  paths: ["/v1/messages"],
  workloads: ["chat"],
  dialect: "anthropic",
  request: MessagesRequest,
  response: MessageAnswer,
  streams: (request) => request.stream === true,
  versionHeaders: ["vendor-version", "anthropic-version"],
  headers: ["anthropic-beta", translationHeader]
} satisfies Operation
