/**
 * POST /v1/chat/completions: the request and the answer of a chat completion.
 *
 * The schemas say what is checked. Fields that are not named here are the provider's business and reach it as they came.
 * Clients send `null` for what they leave out, so every optional field takes it.
 */
import { Schema } from "effect"
import { atLeast, between, JsonObject, optional } from "./Fields.ts"
import { CompactionItem } from "./CompactionItem.ts"
import type { Operation } from "./Operation.ts"
import { translationHeader } from "./Translation.ts"

export const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
export const ImagePart = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({
    /** An http(s) URL, or a data URL. */
    url: Schema.NonEmptyString,
    detail: optional(Schema.Literals(["low", "high", "auto"]))
  })
})
export const AudioPart = Schema.Struct({
  type: Schema.Literal("input_audio"),
  input_audio: Schema.Struct({
    /** Base64. */
    data: Schema.NonEmptyString,
    format: Schema.Literals(["wav", "mp3"])
  })
})
export const FilePart = Schema.Struct({
  type: Schema.Literal("file"),
  file: Schema.Struct({
    filename: optional(Schema.String),
    file_data: optional(Schema.String),
    file_id: optional(Schema.String)
  })
})
export const VideoPart = Schema.Struct({
  type: Schema.Literal("video_url"),
  video_url: Schema.Struct({ url: Schema.NonEmptyString })
})
/** What an assistant refused with, as clients send it back in a conversation's history. */
export const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })

export const ContentPart = Schema.Union([TextPart, ImagePart, AudioPart, FilePart, VideoPart, RefusalPart])
export type ContentPart = typeof ContentPart.Type

export const ToolCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Schema.String,
    /** JSON text, as the model wrote it: not necessarily valid. */
    arguments: Schema.String
  })
})

export const Message = Schema.Struct({
  role: Schema.Literals(["system", "user", "assistant", "tool", "developer"]),
  content: optional(Schema.Union([Schema.String, Schema.Array(ContentPart)])),
  name: optional(Schema.String),
  tool_calls: optional(Schema.Array(ToolCall)),
  tool_call_id: optional(Schema.String),
  reasoning_content: optional(Schema.String),
  /** What was thought with its signatures, as answers of this gateway bring it; see `ReasoningDetail`. */
  reasoning_details: optional(Schema.Array(JsonObject)),
  /** What an assistant refused with. */
  refusal: optional(Schema.String)
}).check(
  Schema.makeFilter((message) =>
    message.role === "assistant" || (message.content !== undefined && message.content !== null)
      ? undefined
      : { path: ["content"], issue: `is required for a message of the role ${message.role}` }
  ),
  Schema.makeFilter((message) =>
    message.role !== "tool" || typeof message.tool_call_id === "string"
      ? undefined
      : { path: ["tool_call_id"], issue: "is required for a message of the role tool" }
  )
)
export type Message = typeof Message.Type

/** A message of the user as a compaction has kept it, in the words of the responses format. */
export const KeptMessage = Schema.Struct({
  type: Schema.Literal("message"),
  role: Schema.Literal("user"),
  content: Schema.Array(Schema.Union([
    ...ContentPart.members,
    Schema.Struct({ type: Schema.Literal("input_text"), text: Schema.String }),
    Schema.Struct({
      type: Schema.Literal("input_image"),
      /** An http(s) URL, or a data URL. */
      image_url: Schema.NonEmptyString,
      detail: optional(Schema.Literals(["low", "high", "auto"]))
    }),
    Schema.Struct({
      type: Schema.Literal("input_file"),
      filename: optional(Schema.String),
      file_data: optional(Schema.String),
      file_id: optional(Schema.String)
    })
  ]))
})
export type KeptMessage = typeof KeptMessage.Type

export const Tool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Schema.NonEmptyString,
    description: optional(Schema.String),
    /** JSON Schema. */
    parameters: optional(JsonObject),
    /** Keep to the schema to the letter. */
    strict: optional(Schema.Boolean)
  })
})

export const ChatCompletionRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  /** What a compaction has put out can stand in the place of what it was given. */
  messages: Schema.Array(Schema.Union([CompactionItem, Message, KeptMessage])).check(Schema.isMinLength(1)),
  temperature: optional(between(0, 2)),
  top_p: optional(between(0, 1)),
  n: optional(atLeast(1)),
  stream: optional(Schema.Boolean),
  stream_options: optional(Schema.Struct({ include_usage: optional(Schema.Boolean) })),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  max_tokens: optional(atLeast(1)),
  max_completion_tokens: optional(atLeast(1)),
  presence_penalty: optional(between(-2, 2)),
  frequency_penalty: optional(between(-2, 2)),
  logit_bias: optional(JsonObject),
  user: optional(Schema.String),
  tools: optional(Schema.Array(Tool)),
  tool_choice: optional(Schema.Union([
    Schema.Literals(["none", "auto", "required"]),
    Schema.Struct({
      type: Schema.Literal("function"),
      function: Schema.Struct({ name: Schema.NonEmptyString })
    })
  ])),
  parallel_tool_calls: optional(Schema.Boolean),
  response_format: optional(Schema.Union([
    Schema.Struct({ type: Schema.Literal("text") }),
    Schema.Struct({ type: Schema.Literal("json_object") }),
    Schema.Struct({ type: Schema.Literal("json_schema"), json_schema: JsonObject })
  ])),
  seed: optional(Schema.Int),
  reasoning_effort: optional(Schema.Literals(["low", "medium", "high"])),
  modalities: optional(Schema.Array(Schema.String)),
  audio: optional(Schema.Struct({ voice: optional(Schema.String), format: optional(Schema.String) }))
})
export type ChatCompletionRequest = typeof ChatCompletionRequest.Type

export const finishReasons = ["stop", "length", "tool_calls", "content_filter"] as const

/** Usage as the OpenAI dialect counts it (api of chat completions, completions and compaction). */
export const TokenUsage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int,
  prompt_tokens_details: Schema.optionalKey(Schema.Struct({
    cached_tokens: Schema.optionalKey(Schema.Int),
    cache_write_tokens: Schema.optionalKey(Schema.Int),
    text_tokens: Schema.optionalKey(Schema.Int),
    audio_tokens: Schema.optionalKey(Schema.Int),
    image_tokens: Schema.optionalKey(Schema.Int)
  })),
  completion_tokens_details: Schema.optionalKey(Schema.Struct({
    text_tokens: Schema.optionalKey(Schema.Int),
    audio_tokens: Schema.optionalKey(Schema.Int),
    reasoning_tokens: Schema.optionalKey(Schema.Int)
  }))
})

/**
 * A stretch of reasoning. Clients hand back what they were given, so that a provider which signs what it thought can go on
 * from there; the text is `reasoning_content` once more.
 */
const ReasoningDetail = Schema.Union([
  Schema.Struct({ type: Schema.Literal("reasoning.text"), text: Schema.String, signature: Schema.String }),
  /** Only the provider can read it. */
  Schema.Struct({ type: Schema.Literal("reasoning.encrypted"), data: Schema.String })
])
export type ReasoningDetail = typeof ReasoningDetail.Type

/** A picture that the model has made, as a data URL. */
const AnswerImage = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({ url: Schema.String })
})
export type AnswerImage = typeof AnswerImage.Type

export const ChatCompletion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  /** Seconds since the epoch. */
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(Schema.Struct({
    index: Schema.Int,
    message: Schema.Struct({
      role: Schema.Literal("assistant"),
      content: Schema.NullOr(Schema.String),
      refusal: Schema.NullOr(Schema.String),
      tool_calls: Schema.optionalKey(Schema.Array(ToolCall)),
      reasoning_content: Schema.optionalKey(Schema.String),
      reasoning_details: Schema.optionalKey(Schema.Array(ReasoningDetail)),
      images: Schema.optionalKey(Schema.Array(AnswerImage))
    }),
    logprobs: Schema.Null,
    finish_reason: Schema.Literals(finishReasons)
  })),
  usage: TokenUsage,
  system_fingerprint: Schema.optionalKey(Schema.String)
})
export type ChatCompletion = typeof ChatCompletion.Type

export const chatCompletions = {
  name: "chat.completions",
  summary: "Create a model response from a conversation",
  paths: ["/v1/chat/completions"],
  workloads: ["chat"],
  dialect: "openai",
  request: ChatCompletionRequest,
  response: ChatCompletion,
  streams: (request) => request.stream === true,
  headers: [translationHeader]
} satisfies Operation
