/** The reference of the routes that are not operations: models, results behind URLs, and the reference itself. */
import { Schema } from "effect"
import { constant, field } from "../../../shared/contract/Fields.ts"
import { resultsPath } from "../../../shared/files/SignedUrl.ts"
import * as Errors from "./Errors.ts"
import { type Parameter, parameter, type Route } from "./Route.ts"
import { binary, json, ref } from "./Schemas.ts"

const text = Schema.optionalKey(Schema.String)
const count = Schema.optionalKey(Schema.Int)
const texts = Schema.optionalKey(Schema.Array(Schema.String))
const flag = Schema.optionalKey(Schema.Boolean)

const limits = {
  window: "The most tokens of a request and its answer. Absent if unknown, like all that the catalogue does not know.",
  output: "The most tokens of an answer."
}

const created = "Unix time in seconds of the date in its name, such as `-2024-08-06`; 1677610602 if its name has none."

const description = field(text, "What the catalogue says about the model.")
const pricing = field(
  Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  "Dollars per unit, as decimal numbers. `prompt`, `completion`, `input_cache_read`, `input_cache_write` and " +
    "`input_cache_write_1h` are per token, the others per `image`, `request`, `search_unit`, `second` and `character`."
)
const modalities = {
  input: field(texts, "What requests can contain: text, image, file, audio, video."),
  output: field(texts, "What answers can contain.")
}

const architecture = field(
  Schema.optionalKey(Schema.Struct({
    modality: field(Schema.String, "Both, such as `text+image->text`."),
    input_modalities: field(Schema.Array(Schema.String), "What requests can contain."),
    output_modalities: field(Schema.Array(Schema.String), "What answers can contain, also `embeddings` and `rerank`.")
  })),
  "What the model turns into what, in the form of OpenRouter's API. If the catalogue knows no modalities, those that are usual for its type."
)

/** Facts for which a vendor's own form has no field. */
const facts = {
  description,
  architecture,
  input_modalities: modalities.input,
  output_modalities: modalities.output,
  supported_features: field(texts, "`tools` if it calls tools, `reasoning` if it reasons before it answers."),
  pricing
}

const Model = Schema.Struct({
  id: field(Schema.String, "The model's name in requests."),
  object: constant("model", "A model."),
  created: field(Schema.Int, created),
  owned_by: field(Schema.String, "Always `model-gateway`: providers are not disclosed."),
  type: field(Schema.String, "What it is for: `chat`, `image`, `video`, `embedding`, `rerank` or `audio`."),
  context_length: field(count, limits.window),
  max_output_length: field(count, limits.output),
  ...facts
})

const ModelList = Schema.Struct({
  object: constant("list", "A list of models."),
  data: field(Schema.Array(Model), "In the order of the catalogue."),
  has_more: constant(false, "The list is always whole."),
  models: field(
    Schema.optionalKey(Schema.Array(Schema.Record(Schema.String, Schema.Unknown))),
    "With `client_version`: Codex's own descriptions, of which the gateway has none."
  )
})

const AnthropicModel = Schema.Struct({
  id: field(Schema.String, "The model's name in requests."),
  type: constant("model", "A model."),
  display_name: field(Schema.String, "The same name."),
  created_at: field(
    Schema.String,
    "The date in its name, such as `-20250929`; 2023-02-28T18:56:42Z if its name has none."
  ),
  lifecycle: constant("active", "Every model of the catalogue can be used."),
  line: field(Schema.Null, "Always `null`."),
  deprecated_at: field(Schema.Null, "Always `null`."),
  retires_at: field(Schema.Null, "Always `null`."),
  capabilities: field(Schema.Null, "Always `null`: `input_modalities` and `supported_features` say what is known."),
  max_input_tokens: field(Schema.NullOr(Schema.Int), limits.window),
  max_tokens: field(Schema.NullOr(Schema.Int), limits.output),
  ...facts
})

const AnthropicModelList = Schema.Struct({
  data: field(Schema.Array(AnthropicModel), "A page of the catalogue, in its order."),
  has_more: field(Schema.Boolean, "Whether there are more in the direction of the page."),
  first_id: field(Schema.NullOr(Schema.String), "The first model of the page."),
  last_id: field(Schema.NullOr(Schema.String), "The last model of the page.")
})

const GeminiModel = Schema.Struct({
  name: field(Schema.String, "`models/` and the model's name in requests."),
  displayName: field(Schema.String, "The model's name in requests."),
  description,
  inputTokenLimit: field(count, limits.window),
  outputTokenLimit: field(count, limits.output),
  supportedGenerationMethods: field(Schema.Array(Schema.String), "The operations of this format that it serves."),
  thinking: field(flag, "Whether it reasons before it answers."),
  inputModalities: modalities.input,
  outputModalities: modalities.output,
  tools: field(flag, "Whether it calls tools."),
  pricing
})

const GeminiModelList = Schema.Struct({
  models: field(Schema.Array(GeminiModel), "A page of the catalogue, in its order."),
  nextPageToken: field(text, "The `pageToken` of the next page; absent on the last.")
})

export const schemas = { Model, ModelList, AnthropicModel, AnthropicModelList, GeminiModel, GeminiModelList }

const model = {
  id: "gpt-5",
  object: "model",
  created: 1_677_610_602,
  owned_by: "model-gateway",
  type: "chat",
  context_length: 272_000,
  max_output_length: 128_000,
  architecture: {
    modality: "text+image+file->text",
    input_modalities: ["text", "image", "file"],
    output_modalities: ["text"]
  },
  input_modalities: ["text", "image", "file"],
  output_modalities: ["text"],
  supported_features: ["tools", "reasoning"],
  pricing: { prompt: "0.00000125", completion: "0.00001", input_cache_read: "0.000000125" }
}

const geminiModel = {
  name: "models/gemini-2.5-pro",
  displayName: "gemini-2.5-pro",
  inputTokenLimit: 1_048_576,
  outputTokenLimit: 65_536,
  supportedGenerationMethods: ["generateContent", "streamGenerateContent"],
  thinking: true
}

/** An optional parameter of a list. */
const asked = (name: string, description: string, schema: object = { type: "string" }): Parameter => ({
  name,
  in: "query",
  description,
  required: false,
  schema
})

const size = { type: "integer", minimum: 1 }
const slashes = "The model's name. It may contain slashes."
const forms =
  "With the header `anthropic-version` it has the form of Anthropic's API, with `x-goog-api-key` that of Google's, " +
  "and so have errors."

const models = { method: "get", tag: "Catalogue", key: "anthropic", dialect: "openai" } as const
const geminiModels = { ...models, key: "gemini", dialect: "gemini" } as const
const service = { method: "get", tag: "Service", key: undefined, dialect: "openai", errors: [] } as const

export const routes: ReadonlyArray<Route> = [
  {
    ...models,
    path: "/v1/models",
    operationId: "models.list",
    summary: "List the models that the key may use",
    description: `Models of every kind, with what the catalogue knows about them. ${forms}`,
    parameters: [
      asked("limit", "In Anthropic's form: the size of a page, at most 1,000. Default: 20.", size),
      asked("after_id", "In Anthropic's form: the model before the page."),
      asked("before_id", "In Anthropic's form: the model after the page."),
      asked("client_version", "Sent by Codex, which expects `models` in the answer.")
    ],
    responses: {
      200: {
        description: "The models",
        content: json(
          { anyOf: ["ModelList", "AnthropicModelList", "GeminiModelList"].map(ref) },
          { example: { object: "list", data: [model], has_more: false } }
        )
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.pages, ...Errors.of.all]
  },
  {
    ...models,
    path: "/v1/models/{model}",
    operationId: "models.get",
    summary: "Get a model that the key may use",
    description: `The model as in the list. A model that the key may not use is not found. ${forms}`,
    parameters: [{ ...parameter("path", "model", slashes), example: model.id }],
    responses: {
      200: {
        description: "The model",
        content: json({ anyOf: ["Model", "AnthropicModel", "GeminiModel"].map(ref) }, { example: model })
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.models, ...Errors.of.all]
  },
  {
    ...geminiModels,
    path: "/v1beta/models",
    operationId: "models.list.gemini",
    summary: "List the models that the key may use, in Google's form",
    description: "Models of every kind, with what the catalogue knows about them.",
    parameters: [
      asked("pageSize", "The size of a page, at most 1,000. Default: 50.", size),
      asked("pageToken", "The `nextPageToken` of the page before.")
    ],
    responses: {
      200: { description: "The models", content: json(ref("GeminiModelList"), { example: { models: [geminiModel] } }) }
    },
    errors: [...Errors.of.keys, ...Errors.of.pages, ...Errors.of.all]
  },
  {
    ...geminiModels,
    path: "/v1beta/models/{model}",
    operationId: "models.get.gemini",
    summary: "Get a model that the key may use, in Google's form",
    description: "The model as in the list. A model that the key may not use is not found.",
    parameters: [{ ...parameter("path", "model", slashes), example: "gemini-2.5-pro" }],
    responses: { 200: { description: "The model", content: json(ref("GeminiModel"), { example: geminiModel }) } },
    errors: [...Errors.of.keys, ...Errors.of.models, ...Errors.of.all]
  },
  {
    ...models,
    key: undefined,
    path: `${resultsPath}{id}`,
    operationId: "results.get",
    summary: "Download a result",
    description: "Downloads a file by the signed URL from a response, until the URL expires. Needs no API key.",
    parameters: [
      parameter("path", "id", "The id of the file."),
      parameter("query", "expires", "When the URL expires, in seconds since the epoch."),
      parameter("query", "signature", "The gateway's signature of the URL.")
    ],
    responses: {
      200: { description: "The file", content: binary(["image/png", "image/jpeg", "image/webp", "video/mp4"]) }
    },
    errors: [...Errors.of.files, ...Errors.of.all]
  },
  {
    ...models,
    tag: "Chat",
    dialect: "responses",
    path: "/v1/responses",
    operationId: "responses.connect",
    summary: "Open a WebSocket for responses",
    description:
      "Each text message `{\"type\": \"response.create\", …}` has the fields of the body of `POST /v1/responses`; each " +
      "event of the answer is a text message. Messages with the same `stream_id`, which their events repeat, are answered one " +
      "after the other: up to 32 of them, 16 at the same time. With `generate: false` the model is not called, and the answer " +
      "has only an id for `previous_response_id`. The latest response of each `stream_id` can be continued even if it is not " +
      "stored. Errors are messages with the type `error`, a `status` and an `error`; the connection stays open. It is closed " +
      "after 60 minutes.",
    responses: { 101: { description: "The WebSocket" } },
    errors: [...Errors.of.keys, ...Errors.of.sockets, ...Errors.of.all]
  },
  {
    ...service,
    path: "/openapi.json",
    operationId: "openapi",
    summary: "Get the API reference as an OpenAPI document",
    description: "OpenAPI 3.1, for generators of clients and tests.",
    responses: { 200: { description: "An OpenAPI document", content: json({ type: "object" }) } }
  },
  {
    ...service,
    path: "/docs",
    operationId: "docs",
    summary: "Get the API reference as a web page",
    description: "The same reference for people: one page without scripts.",
    responses: { 200: { description: "The page", content: { "text/html": { schema: { type: "string" } } } } }
  }
]
