/** POST /v1/chat/completions. The provider gets unknown fields unchanged. */
import { Schema } from "effect"
import {
  AnsweringModel,
  atLeast,
  between,
  cacheControl,
  constant,
  EndUser,
  EpochSeconds,
  field,
  isPresent,
  JsonObject,
  ModelName,
  optional,
  requiredIf,
  Seed,
  Stream
} from "../Fields.ts"
import { CompactionItem } from "../CompactionItem.ts"
import { eventsOf, type Operation } from "../Operation.ts"
import { chatOutline, responsesOutline } from "../outlines/Outlines.ts"
import { TokenUsage } from "../TokenUsage.ts"
import { MessageCall, Tool, ToolChoice } from "./chat/ChatTools.ts"
import { ResponsesRequest } from "./Responses.ts"
import { sessionHeaders, translationHeader } from "../ChatHeaders.ts"

const url = field(Schema.NonEmptyString, "An http(s) URL, or a data URL.")
const detail = optional(
  Schema.Literals(["low", "high", "auto"]),
  "Resolution at which the model looks at the image: `low` takes fewer tokens.",
  "auto"
)
const fileFields = {
  filename: optional(Schema.String, "The model may see it."),
  file_data: optional(Schema.String, "Contents as a data URL with base64."),
  file_id: optional(Schema.String, "Id of a file that was uploaded to the provider, instead of `file_data`.")
}

const TextPart = Schema.Struct({
  type: constant("text", "A text."),
  text: field(Schema.String, "The text."),
  ...cacheControl
})
const ImagePart = Schema.Struct({
  type: constant("image_url", "An image."),
  image_url: field(Schema.Struct({ url, detail }), "Where the image is, and how closely to look at it."),
  ...cacheControl
})
const AudioPart = Schema.Struct({
  type: constant("input_audio", "A recording."),
  input_audio: field(
    Schema.Struct({
      data: field(Schema.NonEmptyString, "Base64."),
      format: field(Schema.Literals(["wav", "mp3"]), "Encoding of `data`.")
    }),
    "The recording and its encoding."
  ),
  ...cacheControl
})
export const FilePart = Schema.Struct({
  type: constant("file", "A document, such as a PDF."),
  file: field(Schema.Struct(fileFields), "The document's contents or id."),
  ...cacheControl
})
const VideoPart = Schema.Struct({
  type: constant("video_url", "A video."),
  video_url: field(Schema.Struct({ url }), "Where the video is."),
  ...cacheControl
})
/** A refusal by the assistant, as clients send it back in the history. */
export const RefusalPart = Schema.Struct({
  type: constant("refusal", "A refusal by the assistant, in the history."),
  refusal: field(Schema.String, "The refusal's text.")
})

export const ContentPart = Schema.Union([TextPart, ImagePart, AudioPart, FilePart, VideoPart, RefusalPart])
export type ContentPart = typeof ContentPart.Type

/** Every message needs content, except those of the assistant. */
export const hasContent = Schema.makeFilter(
  ({ content, role }: { readonly role: string; readonly content?: unknown }) =>
    role === "assistant" || (content !== undefined && content !== null)
      ? undefined
      : { path: ["content"], issue: `is required in messages with the role ${role}` },
  { toJsonSchema: () => requiredIf({ properties: { role: { not: { enum: ["assistant"] } } } }, "content") }
)

export const Message = Schema.Struct({
  role: field(
    Schema.Literals(["system", "user", "assistant", "tool", "developer"]),
    "Author. `system` and `developer` give instructions, `tool` a function's result."
  ),
  content: optional(
    Schema.Union([Schema.String, Schema.Array(ContentPart)]),
    "A text, or parts such as texts and images. Only the assistant's messages can lack it."
  ),
  name: optional(Schema.String, "Name of the author, if several share the role."),
  tool_calls: optional(Schema.Array(MessageCall), "Functions that the assistant called."),
  tool_call_id: optional(Schema.String, "The call that a message of the role `tool` answers."),
  reasoning_content: optional(Schema.String, "The assistant's reasoning."),
  reasoning_details: optional(Schema.Array(JsonObject), "Reasoning with its signatures, as this gateway returned it."),
  refusal: optional(Schema.String, "The assistant's refusal."),
  ...cacheControl
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

/** Not `constant`: a union tells its members apart by all fields with a single value, which is faster if there is only one. */
const userRole = Schema.String.check(
  Schema.makeFilter((role) => role === "user", {
    expected: "\"user\"",
    toJsonSchema: () => ({ const: "user" })
  })
)

/** A user message kept by a compaction, in the responses format. */
export const KeptMessage = Schema.Struct({
  type: constant("message", "A message from a compaction's output."),
  role: field(userRole, "Compactions keep only the user's messages."),
  content: field(
    Schema.Array(Schema.Union([
      ...ContentPart.members,
      Schema.Struct({ type: constant("input_text", "A text."), text: field(Schema.String, "The text.") }),
      Schema.Struct({ type: constant("input_image", "An image."), image_url: url, detail }),
      Schema.Struct({ type: constant("input_file", "A document, such as a PDF."), ...fileFields })
    ])),
    "Parts as in the compaction's output."
  )
})
export type KeptMessage = typeof KeptMessage.Type

/**
 * An item in the output of a compaction. This is a separate union because its members have a `type`, so the decoder can tell immediately
 * that an ordinary message is none of them. In one union with messages, decoding a message would take ten times as long.
 */
const CompactedItem = Schema.Union([CompactionItem, KeptMessage])

const schemaFields = {
  json_schema: optional(
    JsonObject,
    "The schema in `schema`, with its `name`, `description` and `strict`; or the schema itself."
  ),
  schema: optional(JsonObject, "The schema, as some clients send it instead of `json_schema`.")
}

const hasSchema = Schema.makeFilter(
  ({ json_schema: named, schema }: { readonly json_schema?: unknown; readonly schema?: unknown }) =>
    named || schema ? undefined : { path: ["json_schema"], issue: "is required with the type json_schema" },
  { toJsonSchema: () => ({ anyOf: [isPresent("json_schema"), isPresent("schema")] }) }
)

/** Fields of both chat completions and completions. */
export const generationFields = {
  temperature: optional(between(0, 2), "Randomness: at 0 the model always picks the most likely token.", 1),
  top_p: optional(
    between(0, 1),
    "Sample only from the most likely tokens whose probabilities add up to this.",
    1
  ),
  stream: Stream,
  stream_options: optional(
    Schema.Struct({ include_usage: optional(Schema.Boolean, "Send the usage as the last event.", false) }),
    "Settings of a streamed answer."
  ),
  stop: optional(
    Schema.Union([Schema.String, Schema.Array(Schema.String)]),
    "Stop sequences: the answer ends before any of these."
  ),
  seed: optional(Seed, "The same seed and request give the same answer, if the model supports it."),
  presence_penalty: optional(between(-2, 2), "Above 0: makes tokens that have already occurred less likely.", 0),
  frequency_penalty: optional(
    between(-2, 2),
    "Above 0: makes tokens less likely the more often they have occurred.",
    0
  ),
  user: EndUser
}

export const ChatCompletionRequest = Schema.Struct({
  model: ModelName,
  messages: Schema.Array(Schema.Union([CompactedItem, Message])).check(Schema.isMinLength(1)).annotateKey(
    { description: "The conversation. The output of a compaction can replace its beginning." }
  ),
  ...generationFields,
  prompt_cache_key: optional(
    Schema.String,
    "Requests with the same key begin alike: they go to the same provider, whose cache is used if it can be."
  ),
  safety_identifier: optional(Schema.String, "Newer name of `user`."),
  n: optional(atLeast(1), "Number of answers.", 1),
  max_tokens: optional(atLeast(1), "Older name of `max_completion_tokens`."),
  max_completion_tokens: optional(atLeast(1), "Maximum number of tokens in the response, including reasoning."),
  logit_bias: optional(JsonObject, "By token: from -100 (never) to 100 (always)."),
  tools: optional(Schema.Array(Tool), "Functions, and other tools, that the model may call."),
  tool_choice: optional(
    ToolChoice,
    "Whether to call a tool, or which one. Default `auto` if there are tools, otherwise `none`."
  ),
  parallel_tool_calls: optional(Schema.Boolean, "Whether one answer may contain several calls.", true),
  response_format: optional(
    Schema.Union([
      Schema.Struct({ type: constant("text", "Plain text: the default.") }),
      Schema.Struct({ type: constant("json_object", "Any JSON object."), schema: schemaFields.schema }),
      Schema.Struct({ type: constant("json_schema", "JSON that follows a schema."), ...schemaFields }).check(hasSchema)
    ]),
    "Format of the answer: plain text, any JSON, or JSON that follows a schema."
  ),
  reasoning_effort: optional(
    Schema.NonEmptyString,
    "How much a reasoning model thinks: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, or another effort that it has."
  ),
  modalities: optional(Schema.Array(Schema.String), "Kinds of output: `text`, `image` or `audio`."),
  audio: optional(
    Schema.Struct({
      voice: optional(Schema.String, "One of the model's voices."),
      format: optional(Schema.String, "Encoding, such as `mp3` or `wav`.")
    }),
    "Voice and format of audio output."
  )
})
export type ChatCompletionRequest = typeof ChatCompletionRequest.Type

export const finishReasons = ["stop", "length", "tool_calls", "content_filter"] as const

/**
 * A piece of reasoning, with the signature that a provider may require to continue from it: clients send it back unchanged.
 * `text` repeats `reasoning_content`.
 */
const ReasoningDetail = Schema.Union([
  Schema.Struct({
    type: constant("reasoning.text", "Readable reasoning."),
    text: field(Schema.String, "The reasoning."),
    signature: field(Schema.String, "The provider's signature of the text.")
  }),
  Schema.Struct({
    type: constant("reasoning.encrypted", "Reasoning that only the provider can read."),
    data: field(Schema.String, "The encrypted reasoning.")
  })
])
export type ReasoningDetail = typeof ReasoningDetail.Type

/** A source that the text cites. */
const AnswerAnnotation = Schema.Struct({
  type: constant("url_citation", "A page on the web."),
  url_citation: field(
    Schema.Struct({
      start_index: field(Schema.Int, "Where the supported part of `content` begins, in characters."),
      end_index: field(Schema.Int, "Where it ends."),
      title: field(Schema.String, "The page's title; empty if unknown."),
      url: field(Schema.String, "The page's address.")
    }),
    "The page, and the part of the text that it supports."
  )
})
export type AnswerAnnotation = typeof AnswerAnnotation.Type

/** A picture by the model, as a data URL. */
const AnswerImage = Schema.Struct({
  type: constant("image_url", "An image."),
  image_url: field(Schema.Struct({ url: field(Schema.String, "A data URL.") }), "The image.")
})
export type AnswerImage = typeof AnswerImage.Type

export const ChatCompletion = Schema.Struct({
  id: field(Schema.String, "Unique per answer."),
  object: constant("chat.completion", "A whole answer. Events of a stream have `chat.completion.chunk`."),
  created: EpochSeconds,
  model: AnsweringModel,
  choices: field(
    Schema.Array(Schema.Struct({
      index: field(Schema.Int, "0 to `n` - 1."),
      message: field(
        Schema.Struct({
          role: constant("assistant", "Always the assistant."),
          content: field(Schema.NullOr(Schema.String), "The text; `null` if there is none, such as beside tool calls."),
          refusal: field(Schema.NullOr(Schema.String), "Why the model refused; `null` if it did not."),
          tool_calls: field(Schema.optionalKey(Schema.Array(MessageCall)), "Functions for the client to run."),
          reasoning_content: field(Schema.optionalKey(Schema.String), "The model's reasoning."),
          reasoning_details: field(
            Schema.optionalKey(Schema.Array(ReasoningDetail)),
            "The reasoning with signatures: send it back unchanged in the next request."
          ),
          annotations: field(
            Schema.optionalKey(Schema.Array(AnswerAnnotation)),
            "Sources of the text, if the provider names any."
          ),
          images: field(Schema.optionalKey(Schema.Array(AnswerImage)), "Images by the model.")
        }),
        "Can be appended to the request's `messages`."
      ),
      logprobs: field(Schema.Null, "`null`, unless a provider adds log probabilities."),
      finish_reason: field(
        Schema.Literals(finishReasons),
        "Why the answer ended: at its end or a stop sequence, at the token limit, for tool calls, or by a content filter."
      )
    })),
    "The `n` answers."
  ),
  usage: field(TokenUsage, "Tokens that the request consumed."),
  system_fingerprint: field(Schema.optionalKey(Schema.String), "The provider's version of the model and its setup.")
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
  outline: chatOutline,
  alternative: { has: "input", lacks: "messages", request: ResponsesRequest, outline: responsesOutline },
  response: ChatCompletion,
  records: "reads",
  streams: (request) => request.stream === true,
  headers: [translationHeader, ...sessionHeaders],
  description: "The answer is JSON, or with `stream` server-sent events that end with `data: [DONE]`. " +
    "If the model's provider does not support a field, the request fails with the field's name, or " +
    "`x-translation-warnings` names the field.\n\n" +
    "A body with `input` instead of `messages` is read as a request of `/v1/responses`, as Cursor sends them here. Its answer is a " +
    "chat completion, too: a call of a custom tool comes as a `function` whose `arguments` are the text for the tool. It is not " +
    "stored, and cannot name a `previous_response_id`.",
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
