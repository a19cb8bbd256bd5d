/** What the reference says of the routes that are no operation: models, files, and this description. */
import { Schema } from "effect"
import { filesPath } from "../../../shared/files/SignedUrl.ts"
import * as Errors from "./Errors.ts"
import type { Parameter, Route } from "./Route.ts"
import { ref } from "./Schemas.ts"

const Model = Schema.Struct({
  id: Schema.String.annotateKey({ description: "What requests call it." }),
  object: Schema.Literal("model"),
  created: Schema.Int,
  owned_by: Schema.String
})

const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Model),
  has_more: Schema.Literal(false)
})

export const schemas = { Model, ModelList }

const model = { id: "local-chat", object: "model", created: 0, owned_by: "model-gateway" }

const required = (name: string, place: "path" | "query", description: string): Parameter => ({
  name,
  in: place,
  required: true,
  description,
  schema: { type: "string" }
})

const models = {
  method: "get",
  tag: "Catalogue",
  key: "anthropic",
  dialect: "openai"
} as const

const service = {
  method: "get",
  tag: "Service",
  key: undefined,
  dialect: "openai",
  errors: []
} as const

export const routes: ReadonlyArray<Route> = [
  {
    ...models,
    path: "/v1/models",
    operationId: "models.list",
    summary: "List the models that the key may use",
    responses: {
      200: {
        description: "The models",
        content: {
          "application/json": { schema: ref("ModelList"), example: { object: "list", data: [model], has_more: false } }
        }
      }
    },
    errors: [...Errors.ofKeys, ...Errors.ofAll]
  },
  {
    ...models,
    path: "/v1/models/{model}",
    operationId: "models.get",
    summary: "Ask whether the key may use a model",
    parameters: [{ ...required("model", "path", "Its name, which may hold slashes."), example: model.id }],
    responses: {
      200: { description: "The model", content: { "application/json": { schema: ref("Model"), example: model } } }
    },
    errors: [...Errors.ofKeys, ...Errors.ofModels, ...Errors.ofAll]
  },
  {
    method: "get",
    tag: "Catalogue",
    key: undefined,
    dialect: "openai",
    path: `${filesPath}{id}`,
    operationId: "files.get",
    summary: "Fetch a result",
    description: "At the signed address that an answer holds, until it expires. No key is asked for.",
    parameters: [
      required("id", "path", "The file."),
      required("expires", "query", "Until when the address is good, in seconds since the epoch."),
      required("signature", "query", "What says that the gateway gave this address out.")
    ],
    responses: {
      200: {
        description: "The file",
        content: Object.fromEntries(
          ["image/png", "image/jpeg", "image/webp", "video/mp4"].map((type) => [
            type,
            { schema: { type: "string", contentEncoding: "binary" } }
          ])
        )
      }
    },
    errors: [...Errors.ofFiles, ...Errors.ofAll]
  },
  {
    ...service,
    path: "/openapi.json",
    operationId: "openapi",
    summary: "Read this description",
    responses: {
      200: { description: "An OpenAPI document", content: { "application/json": { schema: { type: "object" } } } }
    }
  },
  {
    ...service,
    path: "/docs",
    operationId: "docs",
    summary: "Read this description as a page",
    responses: { 200: { description: "The page", content: { "text/html": { schema: { type: "string" } } } } }
  }
]
