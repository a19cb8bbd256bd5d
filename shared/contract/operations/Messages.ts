/** POST /v1/messages: chat in the messages format. */
import { Schema } from "effect"
import { atLeast, between, EndUser, JsonObject, ModelName, optional, Stream } from "../Fields.ts"
import { eventsOf, type Operation } from "../Operation.ts"
import { translationHeader } from "../Translation.ts"

/** Marks the end of a prefix that the provider may cache. Only the provider interprets it. */
const cacheControl = { cache_control: optional(JsonObject) }

const TextBlock = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String, ...cacheControl })
const ImageBlock = Schema.Struct({
  type: Schema.Literal("image"),
  source: Schema.Union([
    Schema.Struct({ type: Schema.Literal("base64"), media_type: Schema.NonEmptyString, data: Schema.NonEmptyString }),
    Schema.Struct({ type: Schema.Literal("url"), url: Schema.NonEmptyString })
  ]),
  ...cacheControl
})
/** A PDF or a long text. Only the provider interprets `source`. */
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
/** Results that only the provider understands: sources to cite, and tools that were searched for. */
const ProviderResultBlock = Schema.Struct({ type: Schema.Literals(["search_result", "tool_reference"]) })
const ResultBlock = Schema.Union([TextBlock, ImageBlock, DocumentBlock, ProviderResultBlock])
const ToolResultBlock = Schema.Struct({
  type: Schema.Literal("tool_result"),
  tool_use_id: Schema.NonEmptyString,
  content: optional(Schema.Union([Schema.String, Schema.Array(ResultBlock)])),
  is_error: optional(Schema.Boolean),
  ...cacheControl
})
/** The model's reasoning, which clients must send back in a conversation that uses tools. */
const ThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: optional(Schema.String)
})
const RedactedThinkingBlock = Schema.Struct({ type: Schema.Literal("redacted_thinking"), data: Schema.String })

/** Blocks of the provider's own tools, which clients send back. */
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
export type ResultBlock = typeof ResultBlock.Type

const Message = Schema.Struct({
  role: Schema.Literals(["user", "assistant"]),
  content: Schema.Union([Schema.String, Schema.Array(ContentBlock)])
})

/** A tool of the client. The provider's own tools have another `type` and no schema. */
const Tool = Schema.Struct({
  type: optional(Schema.String),
  name: Schema.NonEmptyString,
  description: optional(Schema.String),
  input_schema: Schema.optionalKey(JsonObject),
  strict: optional(Schema.Boolean, "Follow the schema exactly."),
  ...cacheControl
})

const oneAtATime = { disable_parallel_tool_use: optional(Schema.Boolean, "At most one tool call in an answer.") }

export const MessagesRequest = Schema.Struct({
  model: ModelName,
  messages: Schema.Array(Message).check(Schema.isMinLength(1)).annotateKey({ description: "The conversation." }),
  system: optional(Schema.Union([Schema.String, Schema.Array(TextBlock)]), "Instructions for the whole conversation."),
  cache_control: optional(JsonObject, "What the provider may cache."),
  inference_geo: optional(Schema.String, "Where the model may run."),
  max_tokens: atLeast(1).annotateKey({ description: "Maximum number of tokens in the response." }),
  temperature: optional(between(0, 1), "Randomness: at 0 the model always picks the most likely token."),
  top_p: optional(Schema.Finite, "Sample only from the most likely tokens whose probabilities add up to this."),
  top_k: optional(Schema.Int, "Sample only from this many of the most likely tokens."),
  stream: Stream,
  stop_sequences: optional(Schema.Array(Schema.String), "The answer ends before any of these."),
  tools: optional(Schema.Array(Tool), "Tools that the model may use."),
  tool_choice: optional(Schema.Union([
    Schema.Struct({ type: Schema.Literal("auto"), ...oneAtATime }),
    Schema.Struct({ type: Schema.Literal("any"), ...oneAtATime }),
    Schema.Struct({ type: Schema.Literal("none") }),
    Schema.Struct({ type: Schema.Literal("tool"), name: Schema.NonEmptyString, ...oneAtATime })
  ])),
  thinking: optional(Schema.Union([
    Schema.Struct({
      type: Schema.Literal("enabled"),
      budget_tokens: atLeast(1).annotateKey({ description: "Maximum number of reasoning tokens." })
    }),
    Schema.Struct({ type: Schema.Literal("disabled") }),
    Schema.Struct({ type: Schema.Literals(["adaptive", "between_tools"]) })
  ])),
  context_management: optional(JsonObject, "What the provider may drop from a long conversation."),
  output_config: optional(Schema.Struct({
    output_format: optional(JsonObject),
    format: optional(JsonObject),
    effort: optional(Schema.Literals(["low", "medium", "high", "xhigh", "max"]))
  })),
  container: optional(Schema.Union([Schema.String, JsonObject]), "Container in which the provider runs its own tools."),
  mcp_servers: optional(Schema.Array(JsonObject), "MCP servers whose tools the provider may call."),
  metadata: optional(Schema.Struct({ user_id: EndUser })),
  speed: optional(Schema.Literals(["standard", "fast"]), "`fast` if the provider offers it."),
  service_tier: optional(Schema.Literals(["auto", "standard_only"])).annotateKey({
    description: "Whether to use capacity reserved for the account."
  })
})
export type MessagesRequest = typeof MessagesRequest.Type

/** `refusal`: the answer was withheld. */
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
  Schema.Struct({
    type: Schema.Literal("image"),
    source: Schema.Struct({ type: Schema.Literal("base64"), media_type: Schema.String, data: Schema.String })
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
  stop_reason: Schema.Literals(stopReasons).annotateKey({ description: "Why the answer ended." }),
  stop_sequence: Schema.NullOr(Schema.String),
  usage: MessageUsage
})
export type MessageAnswer = typeof MessageAnswer.Type

/** The form of the header with the version of the format. */
export const versionPattern = /^\d{4}-\d{2}-\d{2}$/

const namedEventsOf = (
  ...events: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): string => events.map((event) => `event: ${event.type}\n${eventsOf(event)}`).join("")

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
  headers: ["anthropic-beta", translationHeader],
  description: "The answer is JSON, or with `stream` server-sent events that each name their type. " +
    "`vendor-version` or `anthropic-version` states the version of the format.",
  examples: {
    whole: {
      summary: "One answer in JSON",
      model: "local-chat",
      body: {
        max_tokens: 100,
        system: "Answer briefly.",
        messages: [{ role: "user", content: "Say: The lighthouse was built in 1871." }]
      },
      answer: {
        id: "msg_d83bce09252c4b2cb8d337f9545c8275",
        type: "message",
        role: "assistant",
        model: "local-chat",
        content: [{ type: "text", text: "The lighthouse was built in 1871." }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 22, output_tokens: 9, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
      }
    },
    blocks: {
      summary: "A conversation in blocks, with a tool",
      model: "local-chat",
      body: {
        max_tokens: 100,
        messages: [
          { role: "user", content: [{ type: "text", text: "What is the weather in Cork?" }] },
          {
            role: "assistant",
            content: [{ type: "tool_use", id: "call_1", name: "weather", input: { place: "Cork" } }]
          },
          { role: "user", content: [{ type: "tool_result", tool_use_id: "call_1", content: "It rains in Cork." }] }
        ],
        tools: [{ name: "weather", input_schema: { type: "object", properties: { place: { type: "string" } } } }]
      }
    },
    streamed: {
      summary: "The answer in events",
      model: "local-chat",
      body: { max_tokens: 100, messages: [{ role: "user", content: "Hello" }], stream: true },
      answer: namedEventsOf(
        {
          type: "message_start",
          message: {
            id: "msg_63bf",
            type: "message",
            role: "assistant",
            model: "local-chat",
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { input_tokens: 0, output_tokens: 0 }
          }
        },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello." } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 3 } },
        { type: "message_stop" }
      )
    }
  }
} satisfies Operation
