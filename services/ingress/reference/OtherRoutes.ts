/** The reference of the routes that are not operations: models, files and the reference itself. */
import { Schema } from "effect"
import { constant, field } from "../../../shared/contract/Fields.ts"
import { filesPath } from "../../../shared/files/SignedUrl.ts"
import * as Errors from "./Errors.ts"
import { parameter, type Route } from "./Route.ts"
import { binary, json, ref } from "./Schemas.ts"

const Model = Schema.Struct({
  id: field(Schema.String, "The model's name in requests."),
  object: constant("model", "A model."),
  created: field(Schema.Int, "Always 0: the gateway does not know when a model was made."),
  owned_by: field(Schema.String, "Always `model-gateway`: providers are not disclosed."),
  description: field(Schema.optionalKey(Schema.String), "What the catalogue says about the model.")
})

const ModelList = Schema.Struct({
  object: constant("list", "A list of models."),
  data: field(Schema.Array(Model), "In the order of the catalogue."),
  has_more: constant(false, "The list is always whole.")
})

export const schemas = { Model, ModelList }

const model = { id: "local-chat", object: "model", created: 0, owned_by: "model-gateway" }

const models = { method: "get", tag: "Catalogue", key: "anthropic", dialect: "openai" } as const
const service = { method: "get", tag: "Service", key: undefined, dialect: "openai", errors: [] } as const

export const routes: ReadonlyArray<Route> = [
  {
    ...models,
    path: "/v1/models",
    operationId: "models.list",
    summary: "List the models that the key may use",
    description: "Models of every kind, in one page.",
    responses: {
      200: {
        description: "The models",
        content: json(ref("ModelList"), { example: { object: "list", data: [model], has_more: false } })
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.all]
  },
  {
    ...models,
    path: "/v1/models/{model}",
    operationId: "models.get",
    summary: "Get a model that the key may use",
    description: "The model as in the list. A model that the key may not use is not found.",
    parameters: [{ ...parameter("path", "model", "The model's name. It may contain slashes."), example: model.id }],
    responses: { 200: { description: "The model", content: json(ref("Model"), { example: model }) } },
    errors: [...Errors.of.keys, ...Errors.of.models, ...Errors.of.all]
  },
  {
    ...models,
    key: undefined,
    path: `${filesPath}{id}`,
    operationId: "files.get",
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
