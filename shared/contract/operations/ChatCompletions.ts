/** POST /v1/chat/completions. The provider gets unknown fields unchanged. */
import { Schema } from "effect"
import {
  atLeast,
  between,
  EndUser,
  EpochSeconds,
  JsonObject,
  ModelName,
  optional,
  requiredIf,
  Stream
} from "../Fields.ts"
import { CompactionItem } from "./CompactionItem.ts"
import { eventsOf, type Operation } from "../Operation.ts"
import { translationHeader } from "../Translation.ts"

const url = Schema.NonEmptyString.annotateKey({ description: "An http(s) URL, or a data URL." })
const detail = optional(Schema.Literals(["low", "high", "auto"]))
const fileFields = {
  filename: optional(Schema.String),
  file_data: optional(Schema.String),
  file_id: optional(Schema.String)
}

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
const ImagePart = Schema.Struct({ type: Schema.Literal("image_url"), image_url: Schema.Struct({ url, detail }) })
const AudioPart = Schema.Struct({
  type: Schema.Literal("input_audio"),
  input_audio: Schema.Struct({
    data: Schema.NonEmptyString.annotateKey({ description: "Base64." }),
    format: Schema.Literals(["wav", "mp3"])
  })
})
export const FilePart = Schema.Struct({ type: Schema.Literal("file"), file: Schema.Struct(fileFields) })
const VideoPart = Schema.Struct({
  type: Schema.Literal("video_url"),
  video_url: Schema.Struct({ url: Schema.NonEmptyString })
})
/** A refusal by the assistant, as clients send it back in the history. */
export const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })

export const ContentPart = Schema.Union([TextPart, ImagePart, AudioPart, FilePart, VideoPart, RefusalPart])
export type ContentPart = typeof ContentPart.Type

export const ToolCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Schema.String,
    arguments: Schema.String.annotateKey({ description: "JSON as the model wrote it, not necessarily valid." })
  })
})

/** Every message needs content, except those of the assistant. */
export const hasContent = Schema.makeFilter(
  ({ content, role }: { readonly role: string; readonly content?: unknown }) =>
    role === "assistant" || (content !== undefined && content !== null)
      ? undefined
      : { path: ["content"], issue: `is required in messages with the role ${role}` },
  { toJsonSchema: () => requiredIf({ properties: { role: { not: { enum: ["assistant"] } } } }, "content") }
)

export const Message = Schema.Struct({
  role: Schema.Literals(["system", "user", "assistant", "tool", "developer"]),
  content: optional(Schema.Union([Schema.String, Schema.Array(ContentPart)])),
  name: optional(Schema.String, "Name of the author, if several share the role."),
  tool_calls: optional(Schema.Array(ToolCall), "Functions that the assistant called."),
  tool_call_id: optional(Schema.String, "The call that a message of the role `tool` answers."),
  reasoning_content: optional(Schema.String, "The assistant's reasoning."),
  reasoning_details: optional(Schema.Array(JsonObject), "Reasoning with its signatures, as this gateway returned it."),
  refusal: optional(Schema.String, "The assistant's refusal.")
}).check(
  hasContent,
  Schema.makeFilter((message) =>
    message.role !== "tool" || typeof message.tool_call_id === "string"
      ? undefined
      : { path: ["tool_call_id"], issue: "is required in messages with the role tool" }, {
    toJsonSchema: () => requiredIf({ properties: { role: { enum: ["tool"] } } }, "tool_call_id")
  })
)
export type Message = typeof Message.Type

/** A user message kept by a compaction, in the responses format. */
export const KeptMessage = Schema.Struct({
  type: Schema.Literal("message"),
  role: Schema.Literal("user"),
  content: Schema.Array(Schema.Union([
    ...ContentPart.members,
    Schema.Struct({ type: Schema.Literal("input_text"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("input_image"), image_url: url, detail }),
    Schema.Struct({ type: Schema.Literal("input_file"), ...fileFields })
  ]))
})
export type KeptMessage = typeof KeptMessage.Type

export const Tool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Schema.NonEmptyString,
    description: optional(Schema.String),
    parameters: optional(JsonObject, "JSON Schema."),
    strict: optional(Schema.Boolean, "Follow the schema exactly.")
  })
})

/** Fields of both chat completions and completions. */
export const generationFields = {
  temperature: optional(between(0, 2), "Randomness: at 0 the model always picks the most likely token. Default 1."),
  top_p: optional(between(0, 1)).annotateKey({
    description: "Sample only from the most likely tokens whose probabilities add up to this. Default 1."
  }),
  stream: Stream,
  stream_options: optional(Schema.Struct({
    include_usage: optional(Schema.Boolean, "Send the usage as the last event.")
  })),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])).annotateKey({
    description: "Stop sequences: the answer ends before any of these."
  }),
  seed: optional(Schema.Int, "The same seed and request give the same answer, if the model supports it."),
  presence_penalty: optional(between(-2, 2)).annotateKey({
    description: "Above 0: makes tokens that have already occurred less likely. Default 0."
  }),
  frequency_penalty: optional(between(-2, 2)).annotateKey({
    description: "Above 0: makes tokens less likely the more often they have occurred. Default 0."
  }),
  user: EndUser
}

export const ChatCompletionRequest = Schema.Struct({
  model: ModelName,
  messages: Schema.Array(Schema.Union([CompactionItem, Message, KeptMessage])).check(Schema.isMinLength(1)).annotateKey(
    { description: "The conversation. The output of a compaction can replace its beginning." }
  ),
  ...generationFields,
  n: optional(atLeast(1), "Number of answers. Default 1."),
  max_tokens: optional(atLeast(1), "Older name of `max_completion_tokens`."),
  max_completion_tokens: optional(atLeast(1), "Maximum number of tokens in the response, including reasoning."),
  logit_bias: optional(JsonObject, "By token: from -100 (never) to 100 (always)."),
  tools: optional(Schema.Array(Tool), "Functions that the model may call."),
  tool_choice: optional(
    Schema.Union([
      Schema.Literals(["none", "auto", "required"]),
      Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.NonEmptyString }) })
    ]),
    "Whether to call a function, or which one. Default `auto` if there are tools."
  ),
  parallel_tool_calls: optional(Schema.Boolean, "Whether one answer may contain several calls."),
  response_format: optional(
    Schema.Union([
      Schema.Struct({ type: Schema.Literal("text") }),
      Schema.Struct({ type: Schema.Literal("json_object") }),
      Schema.Struct({ type: Schema.Literal("json_schema"), json_schema: JsonObject })
    ]),
    "Format of the answer: plain text, any JSON, or JSON that follows a schema."
  ),
  reasoning_effort: optional(Schema.Literals(["low", "medium", "high"]), "How much a reasoning model thinks."),
  modalities: optional(Schema.Array(Schema.String), "Kinds of output: `text`, `image` or `audio`."),
  audio: optional(Schema.Struct({ voice: optional(Schema.String), format: optional(Schema.String) })).annotateKey({
    description: "Voice and format of audio output."
  })
})
export type ChatCompletionRequest = typeof ChatCompletionRequest.Type

export const finishReasons = ["stop", "length", "tool_calls", "content_filter"] as const

/** Usage in answers of chat completions, completions and compaction. */
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
 * A piece of reasoning, with the signature that a provider may require to continue from it: clients send it back unchanged.
 * `text` repeats `reasoning_content`.
 */
const ReasoningDetail = Schema.Union([
  Schema.Struct({ type: Schema.Literal("reasoning.text"), text: Schema.String, signature: Schema.String }),
  Schema.Struct({ type: Schema.Literal("reasoning.encrypted"), data: Schema.String })
])
export type ReasoningDetail = typeof ReasoningDetail.Type

/** A picture by the model, as a data URL. */
const AnswerImage = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({ url: Schema.String })
})
export type AnswerImage = typeof AnswerImage.Type

export const ChatCompletion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  created: EpochSeconds,
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
    finish_reason: Schema.Literals(finishReasons).annotateKey({ description: "Why the answer ended." })
  })),
  usage: TokenUsage,
  system_fingerprint: Schema.optionalKey(Schema.String)
})
export type ChatCompletion = typeof ChatCompletion.Type

const events = (...chunks: ReadonlyArray<object>): string =>
  eventsOf(...chunks.map((chunk) => ({ ...chunkHead, ...chunk }))) + "data: [DONE]\n\n"

const chunkHead = {
  id: "chatcmpl-c6532a9f8bf4426f8e9a5f01d28480e4",
  object: "chat.completion.chunk",
  created: 1795301087,
  model: "local-chat"
}

export const chatCompletions = {
  name: "chat.completions",
  summary: "Create a model response from a conversation",
  paths: ["/v1/chat/completions"],
  workloads: ["chat"],
  dialect: "openai",
  request: ChatCompletionRequest,
  response: ChatCompletion,
  streams: (request) => request.stream === true,
  headers: [translationHeader],
  description: "The answer is JSON, or with `stream` server-sent events that end with `data: [DONE]`. " +
    "If the model's provider does not support a field, the request fails with the field's name, or " +
    "`x-translation-warnings` names the field.",
  examples: {
    whole: {
      summary: "One answer in JSON",
      model: "local-chat",
      body: {
        messages: [
          { role: "system", content: "Answer briefly." },
          { role: "user", content: "Say: The lighthouse was built in 1871." }
        ]
      },
      answer: {
        id: "chatcmpl-c6532a9f8bf4426f8e9a5f01d28480e4",
        object: "chat.completion",
        created: 1795301087,
        model: "local-chat",
        choices: [{
          index: 0,
          message: { role: "assistant", content: "The lighthouse was built in 1871.", refusal: null },
          logprobs: null,
          finish_reason: "stop"
        }],
        usage: { prompt_tokens: 19, completion_tokens: 9, total_tokens: 28 },
        system_fingerprint: "local-echo"
      }
    },
    streamed: {
      summary: "The answer in events, with the usage at the end",
      model: "local-chat",
      body: {
        messages: [{ role: "user", content: "Say: The lighthouse was built in 1871." }],
        stream: true,
        stream_options: { include_usage: true }
      },
      answer: events(
        { choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }], usage: null },
        { choices: [{ index: 0, delta: { content: "The lighthouse" }, finish_reason: null }], usage: null },
        { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: null },
        { choices: [], usage: { prompt_tokens: 19, completion_tokens: 9, total_tokens: 28 } }
      )
    },
    picture: {
      summary: "A question about an image",
      model: "local-chat",
      body: {
        messages: [{
          role: "user",
          content: [
            { type: "text", text: "What is in this image?" },
            { type: "image_url", image_url: { url: "https://pictures.example/lighthouse.png", detail: "low" } }
          ]
        }]
      }
    },
    tools: {
      summary: "With a function that the model may call",
      model: "local-chat",
      body: {
        messages: [{ role: "user", content: "What is the weather in Cork?" }],
        tools: [{
          type: "function",
          function: {
            name: "weather",
            description: "The weather at a place",
            parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] }
          }
        }],
        tool_choice: "auto"
      }
    }
  }
} satisfies Operation
