/** `/openapi.json`: the description of the HTTP API, derived from the list of operations. */
import { Schema } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import type { Operation } from "../../shared/contract/Operation.ts"
import { operations } from "../../shared/contract/operations.ts"
import { keyHeaders } from "./Authentication.ts"

const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    /** The path of the field that is wrong, as in `messages[0].content`. */
    param: Schema.NullOr(Schema.String),
    code: Schema.NullOr(Schema.String)
  })
}).annotate({ identifier: "Error" })

/** What an operation may answer instead of its result. */
const errorStatuses = [400, 401, 403, 404, 413, 415, 429, 502, 503, 504]

/** The described path is a stand-in: HttpApi's paths cannot hold `{model}:generateContent`. */
const endpoint = (operation: Operation) =>
  HttpApiEndpoint.post(operation.name, `/${operation.name}`, {
    payload: operation.request,
    success: operation.response,
    error: errorStatuses.map((status) => ErrorBody.pipe(HttpApiSchema.status(status)))
  }).annotate(OpenApi.Summary, operation.summary)

const tasks = operations.flatMap(({ task, ...operation }) => task === undefined ? [] : [{ operation, task }])

/** What can be asked about the tasks that an operation makes; a stand-in as well. */
const taskEndpoint = ({ operation, task }: typeof tasks[number]) =>
  HttpApiEndpoint.get(`${operation.name}.get`, `/${operation.name}.get`, {
    success: task,
    error: taskErrorStatuses.map((status) => ErrorBody.pipe(HttpApiSchema.status(status)))
  })

const taskErrorStatuses = [401, 403, 404, 503]

const api = HttpApi.make("gateway")
  .add(HttpApiGroup.make("operations").add(...operations.map(endpoint) as [ReturnType<typeof endpoint>]))
  .add(HttpApiGroup.make("tasks").add(...tasks.map(taskEndpoint) as [ReturnType<typeof taskEndpoint>]))
  .annotate(OpenApi.Title, "Model Gateway")
  .annotate(OpenApi.Version, "1")

const described = OpenApi.fromApi(api)

const modelParameter = { name: "model", in: "path", required: true, schema: { type: "string" } }

const headerParameter = (name: string, schema: object) => ({ name, in: "header", required: false, schema })

/** Each of these is enough. */
const securityOf = ({ dialect }: Operation) =>
  ["bearer", keyHeaders[dialect]].flatMap((scheme) => scheme === undefined ? [] : [{ [scheme]: [] }])

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer" },
  ...Object.fromEntries(Object.values(keyHeaders).map((name) => [name, { type: "apiKey", in: "header", name }]))
}

/** Everything that an operation's description says, under each of its real paths. */
const pathsOf = (operation: Operation) =>
  operation.paths.map((path, index) => {
    const post = described.paths[`/${operation.name}`]?.post
    const operationId = index === 0 ? operation.name : `${operation.name}.${index + 1}`
    const parameters = [
      ...path.includes("{model}") ? [modelParameter] : [],
      ...(operation.versionHeaders ?? []).map((name) => headerParameter(name, { type: "string", format: "date" })),
      ...(operation.headers ?? []).map((name) => headerParameter(name, { type: "string" }))
    ]
    const { responseType } = operation
    const responses = responseType === undefined ? post?.responses : {
      ...post?.responses,
      200: { description: "Success", content: { [responseType]: { schema: { type: "string", format: "binary" } } } }
    }
    return [path, { post: { ...post, operationId, parameters, responses, security: securityOf(operation) } }] as const
  })

const taskParameter = { name: "task_id", in: "path", required: true, schema: { type: "string" } }

const binary = { schema: { type: "string", format: "binary" } }

/** The paths below an operation's own, where its tasks are asked for, cancelled and fetched. */
const taskPathsOf = ({ operation }: typeof tasks[number]) => {
  const { name, paths: [path] } = operation
  const shown = described.paths[`/${name}.get`]?.get
  const common = { ...shown, parameters: [taskParameter], security: securityOf(operation) }
  const file = {
    ...shown?.responses,
    200: { description: "The whole file", content: { "video/mp4": binary } },
    206: { description: "The part named by the Range header", content: { "video/mp4": binary } },
    400: { ...shown?.responses[404], description: "The task has no result" },
    416: { ...shown?.responses[404], description: "The range lies outside of the file" }
  }
  return [
    [`${path}/{task_id}`, {
      get: { ...common, operationId: `${name}.get`, summary: "Ask how far a task is" },
      delete: { ...common, operationId: `${name}.cancel`, summary: "Cancel a task" }
    }],
    [`${path}/{task_id}/content`, {
      get: { ...common, operationId: `${name}.content`, summary: "Fetch what a task has made", responses: file }
    }]
  ] as const
}

const document = {
  ...described,
  paths: Object.fromEntries([...operations.flatMap(pathsOf), ...tasks.flatMap(taskPathsOf)]),
  components: { ...described.components, securitySchemes }
}

/** Unknown fields pass in both directions, where HttpApi describes every object as closed. */
const opened: unknown = JSON.parse(
  JSON.stringify(document),
  (key, value) => key === "additionalProperties" && value === false ? undefined : value
)

export const layer = HttpRouter.add("GET", "/openapi.json", HttpServerResponse.jsonUnsafe(opened))
