/** POST /v1/responses: a model's response to items, in the responses format. The provider gets unknown fields unchanged. */
import { Schema } from "effect"
import {
  AnsweringModel,
  atLeast,
  between,
  constant,
  EndUser,
  EpochSeconds,
  field,
  JsonObject,
  ModelName,
  optional,
  Stream,
  tokens
} from "../Fields.ts"
import { CompactionItem } from "../CompactionItem.ts"
import { type Example, namedEventsOf, type Operation } from "../Operation.ts"
import { responsesOutline } from "../outlines/Outlines.ts"
import { sessionHeaders, translationHeader } from "../ChatHeaders.ts"
import { EstimatedTokens, InputTokensDetails, OutputTokensDetails } from "../TokenUsage.ts"

/** Any `type` other than the known ones, which only some providers know. */
const otherThan = (...known: ReadonlyArray<string>) =>
  Schema.NonEmptyString.check(
    Schema.makeFilter((type) => !known.includes(type), {
      expected: `a type other than ${known.join(", ")}`,
      toJsonSchema: () => ({ not: { enum: known } })
    })
  )

// Requests

const TextPart = Schema.Struct({
  type: field(Schema.Literals(["input_text", "output_text"]), "A text of the client, or of the model."),
  text: field(Schema.String, "The text.")
})
const RefusalPart = Schema.Struct({
  type: constant("refusal", "A refusal by the model."),
  refusal: field(Schema.String, "The refusal's text.")
})
const ImagePart = Schema.Struct({
  type: constant("input_image", "An image."),
  image_url: optional(Schema.NonEmptyString, "An http(s) URL, or a data URL."),
  file_id: optional(Schema.NonEmptyString, "Id of an image that was uploaded to the provider, instead of `image_url`."),
  detail: optional(Schema.String, "Resolution at which the model looks at the image, such as `low` or `high`.", "auto")
})
const FilePart = Schema.Struct({
  type: constant("input_file", "A document, such as a PDF."),
  filename: optional(Schema.String, "The model may see it."),
  file_data: optional(Schema.String, "Contents as a data URL with base64."),
  file_url: optional(Schema.NonEmptyString, "An http(s) URL, instead of `file_data`."),
  file_id: optional(Schema.NonEmptyString, "Id of a file that was uploaded to the provider, instead of `file_data`.")
})
const AudioPart = Schema.Struct({
  type: constant("input_audio", "A recording."),
  input_audio: field(
    Schema.Struct({
      data: field(Schema.NonEmptyString, "Base64."),
      format: field(Schema.Literals(["wav", "mp3"]), "Encoding of `data`.")
    }),
    "The recording and its encoding."
  )
})
const ContentPart = Schema.Union([TextPart, RefusalPart, ImagePart, FilePart, AudioPart])
export type ContentPart = typeof ContentPart.Type

const Content = Schema.Union([Schema.String, Schema.Array(ContentPart)])
export type Content = typeof Content.Type

const id = optional(Schema.String, "The item's id in the answer that it comes from.")
const status = optional(Schema.String, "Whether the item is whole. Has no effect in requests.")
const callId = field(Schema.String, "The output's `call_id` repeats it.")
const toolName = field(Schema.NonEmptyString, "One of the names in `tools`.")
const namespace = optional(Schema.NonEmptyString, "The namespace of the tool, if it has one.")
const forCall = field(Schema.String, "The `call_id` of the call.")

const FunctionCallItem = Schema.Struct({
  type: constant("function_call", "A function that the model called."),
  id,
  call_id: callId,
  name: toolName,
  namespace,
  arguments: field(Schema.String, "JSON as the model wrote it, not necessarily valid."),
  status
})
const FunctionCallOutputItem = Schema.Struct({
  type: constant("function_call_output", "A function's result."),
  id,
  call_id: forCall,
  output: field(Content, "A text, or parts."),
  status
})
const CustomToolCallItem = Schema.Struct({
  type: constant("custom_tool_call", "A custom tool that the model called."),
  id,
  call_id: callId,
  name: toolName,
  namespace,
  input: field(Schema.String, "Text as the model wrote it."),
  status
})
const CustomToolCallOutputItem = Schema.Struct({
  type: constant("custom_tool_call_output", "A custom tool's result."),
  id,
  call_id: forCall,
  output: field(Content, "A text, or parts.")
})
const Texts = Schema.Array(Schema.Struct({ text: field(Schema.String, "The text.") }))
const ReasoningItem = Schema.Struct({
  type: constant("reasoning", "The model's reasoning, as an answer returned it."),
  id,
  summary: optional(Texts, "Parts of the reasoning or of its summary."),
  content: optional(Texts, "Parts of the reasoning itself."),
  encrypted_content: optional(Schema.String, "Opaque. The provider that made it continues from it."),
  status
})
const ImageGenerationItem = Schema.Struct({
  type: constant("image_generation_call", "An image by the model, as an answer returned it."),
  id,
  result: optional(Schema.String, "The image as base64."),
  output_format: optional(Schema.String, "Its format.", "png")
})

const FunctionTool = Schema.Struct({
  type: constant("function", "A function of the client."),
  name: field(Schema.NonEmptyString, "The model's calls name the function by it."),
  description: optional(Schema.String, "Tells the model when and how to call the function."),
  parameters: optional(JsonObject, "JSON Schema of the arguments."),
  strict: optional(Schema.Boolean, "Follow the schema exactly.")
})
const CustomTool = Schema.Struct({
  type: constant("custom", "A tool of the client that takes text."),
  name: field(Schema.NonEmptyString, "The model's calls name the tool by it."),
  description: optional(Schema.String, "Tells the model when and how to call the tool."),
  format: optional(JsonObject, "The form of the text, such as a grammar. Default: any text.")
})
const NamespaceTool = Schema.Struct({
  type: constant("namespace", "A group of tools."),
  name: field(Schema.NonEmptyString, "The model's calls repeat it as `namespace`."),
  description: optional(Schema.String, "Describes the group to the model."),
  tools: field(Schema.Array(Schema.Union([FunctionTool, CustomTool])), "The tools of the group.")
})
const OtherTool = Schema.Struct({
  type: field(
    otherThan("function", "custom", "namespace"),
    "A tool that the provider runs, such as `web_search`. If it has none of that type, the tool is left out with a " +
      "warning, or the request is refused if `tool_choice` requires it."
  )
})
const Tool = Schema.Union([FunctionTool, CustomTool, NamespaceTool, OtherTool])
export type Tool = typeof Tool.Type
const Tools = Schema.Array(Tool)

const AdditionalToolsItem = Schema.Struct({
  type: constant("additional_tools", "Tools that are added in the course of the conversation."),
  id,
  tools: field(Tools, "The same as in the request's `tools`.")
})
const CompactionTrigger = Schema.Struct({
  type: constant("compaction_trigger", "As the last item: the answer is one `compaction` of all items before it."),
  id
})
const OtherItem = Schema.Struct({
  type: field(
    otherThan(
      "message",
      "function_call",
      "function_call_output",
      "custom_tool_call",
      "custom_tool_call_output",
      "reasoning",
      "compaction",
      "image_generation_call",
      "additional_tools",
      "compaction_trigger"
    ),
    "An item that only some providers know."
  )
})

/** Items with a type that no message has; see `CompactedItem` in `ChatCompletions.ts`. */
const TypedItem = Schema.Union([
  FunctionCallItem,
  FunctionCallOutputItem,
  CustomToolCallItem,
  CustomToolCallOutputItem,
  ReasoningItem,
  CompactionItem,
  ImageGenerationItem,
  AdditionalToolsItem,
  CompactionTrigger
])

const Message = Schema.Struct({
  type: optional(Schema.Literal("message"), "A message, which may lack its type."),
  id,
  role: field(
    Schema.Literals(["user", "assistant", "system", "developer"]),
    "Author. `system` and `developer` give instructions."
  ),
  content: field(Content, "A text, or parts such as texts and images."),
  status
})

const InputItem = Schema.Union([TypedItem, Message, OtherItem])
export type InputItem = typeof InputItem.Type

const NamedTool = Schema.Struct({
  type: field(Schema.Literals(["function", "custom"]), "Call this tool."),
  name: field(Schema.NonEmptyString, "One of the names in `tools`.")
})
const AllowedTools = Schema.Struct({
  type: constant("allowed_tools", "Call only some of the tools."),
  mode: field(Schema.Literals(["auto", "required"]), "Whether to call one of them."),
  tools: field(Schema.Array(JsonObject), "The allowed tools, by `type` and `name`.")
})
const OtherChoice = Schema.Struct({
  type: field(otherThan("function", "custom", "allowed_tools"), "Use the provider's tool of this type.")
})

const Format = Schema.Union([
  Schema.Struct({ type: constant("text", "Plain text: the default.") }),
  Schema.Struct({ type: constant("json_object", "Any JSON object.") }),
  Schema.Struct({
    type: constant("json_schema", "JSON that follows a schema."),
    name: field(Schema.NonEmptyString, "Tells the model what the JSON is."),
    schema: field(JsonObject, "JSON Schema of the answer."),
    description: optional(Schema.String, "Tells the model how to answer."),
    strict: optional(Schema.Boolean, "Follow the schema exactly.")
  })
])

export const ResponsesRequest = Schema.Struct({
  model: ModelName,
  input: optional(
    Schema.Union([Schema.NonEmptyString, Schema.Array(InputItem)]),
    "The conversation. A string is a single user message. The output of a compaction can replace its beginning."
  ),
  instructions: optional(Schema.String, "A system message before the input."),
  stream: Stream,
  stream_options: optional(JsonObject, "Settings of a streamed answer."),
  max_output_tokens: optional(atLeast(1), "Maximum number of tokens in the response, including reasoning."),
  temperature: optional(between(0, 2), "Randomness: at 0 the model always picks the most likely token.", 1),
  top_p: optional(between(0, 1), "Sample only from the most likely tokens whose probabilities add up to this.", 1),
  top_logprobs: optional(atLeast(0), "How many likely tokens to return at each position, with their probabilities.", 0),
  tools: optional(Tools, "Tools that the model may call, and tools of the provider."),
  tool_choice: optional(
    Schema.Union([Schema.Literals(["none", "auto", "required"]), NamedTool, AllowedTools, OtherChoice]),
    "Whether to call a tool, or which one.",
    "auto"
  ),
  parallel_tool_calls: optional(Schema.Boolean, "Whether one answer may contain several calls.", true),
  max_tool_calls: optional(atLeast(1), "Maximum number of calls of the provider's own tools."),
  reasoning: optional(
    Schema.Struct({
      effort: optional(
        Schema.NonEmptyString,
        "How much a reasoning model thinks: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, or another effort that it has."
      ),
      summary: optional(Schema.String, "Whether to return a summary of the reasoning, and how long it is.")
    }),
    "How to reason."
  ),
  text: optional(
    Schema.Struct({
      format: optional(Format, "Plain text, any JSON, or JSON that follows a schema."),
      verbosity: optional(Schema.String, "How long the answer is, such as `low`.")
    }),
    "The form of the answer."
  ),
  include: optional(
    Schema.Array(Schema.String),
    "What to add to the answer. Every provider has `reasoning.encrypted_content`, without which later requests lose the reasoning."
  ),
  truncation: optional(
    Schema.String,
    "`auto` drops items from the beginning if the input exceeds the context window.",
    "disabled"
  ),
  metadata: optional(JsonObject, "Repeated in the answer."),
  user: EndUser,
  safety_identifier: optional(Schema.String, "Identifies the end user to the provider, as `user` does."),
  prompt_cache_key: optional(Schema.String, "Names the conversation, so that requests of the same find its cache."),
  service_tier: optional(Schema.String, "The provider's quality of service."),
  store: optional(Schema.Boolean, "Whether the gateway stores the response, for later requests to continue.", true),
  previous_response_id: optional(Schema.String, "A stored response, whose conversation precedes `input`."),
  conversation: field(
    Schema.optionalKey(Schema.Null),
    "Not available: conversations are not kept. Send all items in `input`."
  ),
  background: optional(Schema.Boolean, "Answer immediately; with `stream`, send events that can be read again.", false)
})
export type ResponsesRequest = typeof ResponsesRequest.Type

// Answers

const itemId = field(Schema.String, "Unique per item.")
const itemStatus = field(Schema.String, "`completed`, or `incomplete` if the answer ended in the middle of it.")

const OutputItem = Schema.Union([
  Schema.Struct({
    id: itemId,
    type: constant("message", "A message of the model."),
    role: constant("assistant", "Always the assistant."),
    status: itemStatus,
    content: field(
      Schema.Array(Schema.Union([
        Schema.Struct({
          type: constant("output_text", "A text."),
          text: field(Schema.String, "The text."),
          annotations: field(Schema.Array(JsonObject), "Sources of the text, if the provider names any.")
        }),
        RefusalPart
      ])),
      "Texts, or a refusal."
    )
  }),
  Schema.Struct({
    id: itemId,
    type: constant("reasoning", "The model's reasoning. Send it back unchanged in the next request."),
    summary: field(
      Schema.Array(Schema.Struct({
        type: constant("summary_text", "A part of the reasoning or of its summary."),
        text: field(Schema.String, "The text.")
      })),
      "Readable reasoning; empty if the model hides it."
    ),
    encrypted_content: field(
      Schema.optionalKey(Schema.String),
      "Opaque, for the model to continue from. Only if `include` asks for it."
    )
  }),
  Schema.Struct({
    id: itemId,
    type: constant("function_call", "A function for the client to run."),
    status: itemStatus,
    call_id: callId,
    name: toolName,
    namespace: field(Schema.optionalKey(Schema.String), "The namespace of the function, if it has one."),
    arguments: field(Schema.String, "JSON as the model wrote it, not necessarily valid.")
  }),
  Schema.Struct({
    id: itemId,
    type: constant("custom_tool_call", "A custom tool for the client to run."),
    status: itemStatus,
    call_id: callId,
    name: toolName,
    namespace: field(Schema.optionalKey(Schema.String), "The namespace of the tool, if it has one."),
    input: field(Schema.String, "Text as the model wrote it.")
  }),
  Schema.Struct({
    id: itemId,
    type: constant("image_generation_call", "An image by the model."),
    status: itemStatus,
    result: field(Schema.String, "The image as base64."),
    output_format: field(Schema.String, "Its format, such as `png`.")
  }),
  CompactionItem
])
export type OutputItem = typeof OutputItem.Type

const ResponseUsage = Schema.Struct({
  input_tokens: tokens("Tokens of the request."),
  input_tokens_details: field(InputTokensDetails, "Parts of `input_tokens`."),
  output_tokens: tokens("Tokens of the answer, including reasoning."),
  output_tokens_details: field(OutputTokensDetails, "Parts of `output_tokens`."),
  total_tokens: tokens("`input_tokens` and `output_tokens` together."),
  estimated_tokens: EstimatedTokens
})

export const Response = Schema.Struct({
  id: field(Schema.String, "Unique per response, made by the gateway."),
  object: constant("response", "A response."),
  created_at: EpochSeconds,
  completed_at: field(Schema.NullOr(Schema.Int), "When it was complete: Unix time in seconds."),
  status: field(
    Schema.Literals(["in_progress", "completed", "incomplete", "failed"]),
    "`incomplete` at the token limit or by a content filter. Streams begin with `in_progress` and end with another."
  ),
  incomplete_details: field(
    Schema.NullOr(Schema.Struct({ reason: field(Schema.String, "`max_output_tokens` or `content_filter`.") })),
    "Why the response is incomplete."
  ),
  error: field(Schema.NullOr(JsonObject), "Why the response has failed, in a stream that had begun."),
  model: AnsweringModel,
  output: field(Schema.Array(OutputItem), "Can be appended to the `input` of the next request."),
  usage: field(Schema.NullOr(ResponseUsage), "Tokens that the request consumed; `null` until the response is complete.")
})
export type Response = typeof Response.Type

// The operation

const answer = {
  id: "resp_0d0bd8f1c1f64e2b8a8ac3bb6ff6ba05",
  object: "response",
  created_at: 1795301087,
  completed_at: null,
  status: "in_progress",
  incomplete_details: null,
  error: null,
  model: "local-chat",
  output: [],
  usage: null
}
const text = { type: "output_text", text: "The lighthouse was built in 1871.", annotations: [], logprobs: [] }
const messageItem = {
  id: "msg_df7b44b75f0a43f9b703b97e6c4ab79c",
  type: "message",
  role: "assistant",
  status: "completed",
  content: [text]
}
const completed = {
  ...answer,
  status: "completed",
  completed_at: 1795301088,
  output: [messageItem],
  usage: {
    input_tokens: 19,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 9,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 28
  }
}
const item = { output_index: 0, item_id: messageItem.id }
const part = { ...item, content_index: 0 }

const examples: Readonly<Record<string, Example>> = {
  text: {
    summary: "One text",
    model: "local-chat",
    body: { input: "Say: The lighthouse was built in 1871.", instructions: "Answer briefly.", store: false },
    answer: completed
  },
  streamed: {
    summary: "The answer in events",
    model: "local-chat",
    body: { input: "Say: The lighthouse was built in 1871.", stream: true, store: false },
    answer: namedEventsOf(...[
      { type: "response.created", response: answer },
      { type: "response.in_progress", response: answer },
      { type: "response.output_item.added", output_index: 0, item: { ...messageItem, content: [] } },
      { type: "response.content_part.added", ...part, part: { ...text, text: "" } },
      { type: "response.output_text.delta", ...part, delta: text.text, logprobs: [] },
      { type: "response.output_text.done", ...part, text: text.text, logprobs: [] },
      { type: "response.content_part.done", ...part, part: text },
      { type: "response.output_item.done", output_index: 0, item: messageItem },
      { type: "response.completed", response: completed }
    ].map((event, sequence_number) => ({ ...event, sequence_number })))
  },
  tools: {
    summary: "A function's result",
    model: "local-chat",
    body: {
      store: false,
      input: [
        { role: "user", content: [{ type: "input_text", text: "What is the weather in Cork?" }] },
        { type: "function_call", call_id: "call_1", name: "weather", arguments: "{\"place\":\"Cork\"}" },
        { type: "function_call_output", call_id: "call_1", output: "It rains in Cork." }
      ],
      tools: [{
        type: "function",
        name: "weather",
        parameters: { type: "object", properties: { place: { type: "string" } } }
      }]
    }
  }
}

export const responses = {
  name: "responses",
  summary: "Create a model response from items",
  paths: ["/v1/responses"],
  workloads: ["chat"],
  dialect: "responses",
  request: ResponsesRequest,
  outline: responsesOutline,
  response: Response,
  records: "writes",
  streams: (request) => request.stream === true,
  hasBackground: true,
  headers: [translationHeader, ...sessionHeaders],
  description: "The answer is JSON, or with `stream` named events, each with its `sequence_number`. " +
    "If the model's provider does not support a field, the request fails with the field's name, or " +
    "`x-translation-warnings` names the field.",
  examples
} satisfies Operation
