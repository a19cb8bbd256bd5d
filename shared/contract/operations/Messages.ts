/** POST /v1/messages: chat in the messages format. */
import { Schema } from "effect"
import {
  AnsweringModel,
  atLeast,
  between,
  cacheControl,
  constant,
  EndUser,
  field,
  JsonObject,
  ModelName,
  optional,
  Stream,
  tokens
} from "../Fields.ts"
import { namedEventsOf, type Operation } from "../Operation.ts"
import { messagesOutline } from "../outlines/Outlines.ts"
import { EstimatedTokens } from "../TokenUsage.ts"
import { sessionHeaders, translationHeader } from "../ChatHeaders.ts"

const TextBlock = Schema.Struct({
  type: constant("text", "A text."),
  text: field(Schema.String, "The text."),
  ...cacheControl
})
const ImageBlock = Schema.Struct({
  type: constant("image", "An image."),
  source: field(
    Schema.Union([
      Schema.Struct({
        type: constant("base64", "The image itself."),
        media_type: field(Schema.NonEmptyString, "Media type of the image, such as `image/png`."),
        data: field(Schema.NonEmptyString, "Base64.")
      }),
      Schema.Struct({
        type: constant("url", "An image on the web."),
        url: field(Schema.NonEmptyString, "An http(s) URL.")
      })
    ]),
    "The image, or where it is."
  ),
  ...cacheControl
})
/** A PDF or a long text. Only the provider interprets `source`. */
const DocumentBlock = Schema.Struct({
  type: constant("document", "A PDF or a long text."),
  source: field(JsonObject, "The document, or where it is. Only the provider interprets it."),
  title: optional(Schema.String, "The model may cite the document by it."),
  ...cacheControl
})
const ToolUseBlock = Schema.Struct({
  type: constant("tool_use", "A tool that the model called."),
  id: field(Schema.NonEmptyString, "The result's `tool_use_id` repeats it."),
  name: field(Schema.NonEmptyString, "One of the names in `tools`."),
  input: field(JsonObject, "Arguments by name."),
  ...cacheControl
})
/** Results that only the provider interprets: sources to cite, and tools that were found by a search. */
const ProviderResultBlock = Schema.Struct({
  type: field(
    Schema.Literals(["search_result", "tool_reference"]),
    "A source to cite, which only the provider interprets, or a tool that was searched for."
  ),
  tool_name: field(Schema.optionalKey(Schema.String), "The tool: one of the names in `tools`.")
})
const ResultBlock = Schema.Union([TextBlock, ImageBlock, DocumentBlock, ProviderResultBlock])
const ToolResultBlock = Schema.Struct({
  type: constant("tool_result", "A tool's result."),
  tool_use_id: field(Schema.NonEmptyString, "The `id` of the call."),
  content: optional(
    Schema.Union([Schema.String, Schema.Array(ResultBlock)]),
    "What the tool returned: a text, or blocks."
  ),
  is_error: optional(Schema.Boolean, "Whether the tool failed.", false),
  ...cacheControl
})
/** The model's reasoning, which clients must send back in a conversation that uses tools. */
const ThinkingBlock = Schema.Struct({
  type: constant("thinking", "The model's reasoning, as it returned it."),
  thinking: field(Schema.String, "The reasoning."),
  signature: optional(Schema.String, "The provider's signature of the reasoning.")
})
const RedactedThinkingBlock = Schema.Struct({
  type: constant("redacted_thinking", "Reasoning that only the provider can read."),
  data: field(Schema.String, "The encrypted reasoning.")
})

/** Blocks of the provider's own tools, which clients send back. */
const ProviderBlock = Schema.Struct({
  type: field(
    Schema.Literals([
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
      "compaction",
      "advisor_tool_result",
      "mcp_tool_listing",
      "fallback"
    ]),
    "A block of the provider's own tools, as it returned it. Only the provider interprets it."
  )
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

const AuthoredMessage = Schema.Struct({
  role: field(Schema.Literals(["user", "assistant"]), "Author. Results of tools are from the user."),
  content: field(
    Schema.Union([Schema.String, Schema.Array(ContentBlock)]),
    "A text, or blocks such as texts and images."
  )
})

const effort = optional(
  Schema.NonEmptyString,
  "How much work the model puts in: `low`, `medium`, `high`, `xhigh`, `max`, or another effort that it has."
)

const ToolChangeBlock = Schema.Struct({
  type: field(
    Schema.Literals(["tool_addition", "tool_removal"]),
    "From here on the model may, or may not, use a tool."
  ),
  tool: field(
    JsonObject,
    "A `tool_reference` with the tool's `name`, or for a new tool a `tool_definition` with its `definition`."
  ),
  ...cacheControl
})
export type ToolChangeBlock = typeof ToolChangeBlock.Type

/** Instructions in the course of the conversation, which keep the cache of everything before them. */
const SystemMessage = Schema.Struct({
  role: constant("system", "Instructions that apply from here on."),
  content: optional(
    Schema.Union([Schema.String, Schema.Array(Schema.Union([TextBlock, ToolChangeBlock]))]),
    "A text, or texts and changes of the tools."
  ),
  clear_at: optional(
    Schema.Literals(["next_user_message", "never"]),
    "Whether the text applies only until the next message of the user.",
    "never"
  ),
  output_config: optional(Schema.Struct({ effort }), "Effort from here on.")
})
export type SystemMessage = typeof SystemMessage.Type

const Message = Schema.Union([AuthoredMessage, SystemMessage])
export type Message = typeof Message.Type

/** A tool of the client. The provider's own tools have another `type` and no schema. */
const Tool = Schema.Struct({
  type: optional(
    Schema.String,
    "`custom` for a tool of the client; otherwise the name of a provider's own tool.",
    "custom"
  ),
  name: field(Schema.NonEmptyString, "The model's calls name the tool by it."),
  description: optional(Schema.String, "Tells the model when and how to use the tool."),
  input_schema: field(Schema.optionalKey(JsonObject), "JSON Schema of the arguments. A provider's own tool has none."),
  strict: optional(Schema.Boolean, "Follow the schema exactly.", false),
  ...cacheControl
})

const oneAtATime = { disable_parallel_tool_use: optional(Schema.Boolean, "At most one tool call in an answer.", false) }

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
  tool_choice: optional(
    Schema.Union([
      Schema.Struct({ type: constant("auto", "The model decides: the default."), ...oneAtATime }),
      Schema.Struct({ type: constant("any", "The model must use a tool."), ...oneAtATime }),
      Schema.Struct({ type: constant("none", "The model must not use tools.") }),
      Schema.Struct({
        type: constant("tool", "The model must use this tool."),
        name: field(Schema.NonEmptyString, "One of the names in `tools`."),
        ...oneAtATime
      })
    ]),
    "Whether to use a tool, or which one."
  ),
  thinking: optional(
    Schema.Union([
      Schema.Struct({
        type: constant("enabled", "Think, up to a number of tokens."),
        budget_tokens: field(atLeast(1), "Maximum number of reasoning tokens.")
      }),
      Schema.Struct({ type: constant("disabled", "Answer without thinking.") }),
      Schema.Struct({
        type: field(
          Schema.Literals(["adaptive", "between_tools"]),
          "The model decides how much it thinks, or thinks only between uses of tools."
        )
      })
    ]),
    "Whether and how much the model thinks before it answers."
  ),
  context_management: optional(JsonObject, "What the provider may drop from a long conversation."),
  output_config: optional(
    Schema.Struct({
      format: optional(
        JsonObject,
        "`json_schema` as `type` and the JSON Schema of the answer as `schema`; or the schema itself."
      ),
      effort
    }),
    "Format and effort of the answer."
  ),
  output_format: optional(JsonObject, "Older name of `output_config.format`."),
  thread: optional(
    JsonObject,
    "Server-held conversation. Only for models of providers that have it: others refuse it, and official clients then send the whole " +
      "conversation."
  ),
  compaction: optional(
    JsonObject,
    "Asks for a compaction of the conversation instead of an answer. Only some providers have it."
  ),
  container: optional(Schema.Union([Schema.String, JsonObject]), "Container in which the provider runs its own tools."),
  mcp_servers: optional(Schema.Array(JsonObject), "MCP servers whose tools the provider may call."),
  metadata: optional(Schema.Struct({ user_id: EndUser }), "About the request."),
  speed: optional(Schema.Literals(["standard", "fast"]), "`fast` if the provider offers it.", "standard"),
  service_tier: optional(
    Schema.Literals(["auto", "standard_only"]),
    "Whether to use capacity reserved for the provider's account (`auto`) or not.",
    "auto"
  )
})
export type MessagesRequest = typeof MessagesRequest.Type

/** `refusal`: the answer was withheld. */
export const stopReasons = ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"] as const

export const MessageUsage = Schema.Struct({
  input_tokens: tokens("Tokens of the request, without those written to or read from the cache."),
  output_tokens: tokens("Tokens of the answer, including reasoning."),
  cache_creation_input_tokens: tokens("Tokens of the request that the provider wrote to its cache."),
  cache_read_input_tokens: tokens("Tokens of the request that the provider read from its cache."),
  output_tokens_details: field(
    Schema.optionalKey(Schema.Struct({ thinking_tokens: tokens("Tokens of reasoning.") })),
    "Parts of `output_tokens`."
  ),
  estimated_tokens: EstimatedTokens
})

const AnswerBlock = Schema.Union([
  Schema.Struct({
    type: constant("text", "A text."),
    text: field(Schema.String, "The text."),
    citations: field(Schema.optionalKey(Schema.Array(JsonObject)), "Sources of the text, if the provider names any.")
  }),
  Schema.Struct({
    type: constant("thinking", "The model's reasoning: send it back unchanged."),
    thinking: field(Schema.String, "The reasoning."),
    signature: field(Schema.String, "The provider's signature of the reasoning; empty if it gives none.")
  }),
  RedactedThinkingBlock,
  Schema.Struct({
    type: constant("image", "An image by the model."),
    source: field(
      Schema.Struct({
        type: constant("base64", "The image itself."),
        media_type: field(Schema.String, "Media type of the image, such as `image/png`."),
        data: field(Schema.String, "Base64.")
      }),
      "The image."
    )
  }),
  Schema.Struct({
    type: constant("tool_use", "A tool for the client to run."),
    id: field(Schema.String, "The result's `tool_use_id` repeats it."),
    name: field(Schema.String, "One of the names in `tools`."),
    input: field(JsonObject, "Arguments by name.")
  })
])
export type AnswerBlock = typeof AnswerBlock.Type

export const MessageAnswer = Schema.Struct({
  id: field(Schema.String, "Unique per answer."),
  type: constant("message", "An answer."),
  role: constant("assistant", "Always the assistant."),
  model: AnsweringModel,
  content: field(Schema.Array(AnswerBlock), "Can be appended to the request's `messages` as the assistant's."),
  stop_reason: field(
    Schema.Literals(stopReasons),
    "Why the answer ended: at its end, at the token limit, at a stop sequence, for tool calls, or refused."
  ),
  stop_sequence: field(Schema.NullOr(Schema.String), "The stop sequence that ended the answer; otherwise `null`."),
  usage: field(MessageUsage, "Tokens that the request consumed.")
})
export type MessageAnswer = typeof MessageAnswer.Type

export const messages = {
  name: "messages",
  summary: "Create a model response in the messages format",
  paths: ["/v1/messages"],
  workloads: ["chat"],
  dialect: "anthropic",
  request: MessagesRequest,
  outline: messagesOutline,
  response: MessageAnswer,
  streams: (request) => request.stream === true,
  versionHeaders: ["vendor-version", "anthropic-version"],
  headers: ["anthropic-beta", translationHeader, ...sessionHeaders],
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
