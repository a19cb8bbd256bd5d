/** The route template of a request, for telemetry. Paths themselves contain ids, so their number is unbounded. */
import { operations } from "../../../shared/contract/operations/operations.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { resultsPath } from "../../../shared/files/SignedUrl.ts"
import { RouteNotFound } from "../errors/IngressError.ts"
import * as PathTemplate from "./PathTemplate.ts"

/** The lists of models. */
export const modelPaths = ["/v1/models", "/v1beta/models"] as const

/** Stored responses. */
export const responsesPath = "/v1/responses"

/** Files of clients. */
export const clientFilesPath = "/v1/files"

/** Batches of requests, and those of messages in Anthropic's form. */
export const batchesPath = "/v1/batches"
export const messageBatchesPath = "/v1/messages/batches"

/** Requests whose answers outlive the connection. */
export const tasksPath = "/v1/tasks"

const exact = new Map(
  [
    ...[
      ...[...modelPaths, responsesPath, tasksPath, clientFilesPath, batchesPath, messageBatchesPath],
      ...["/openapi.json", "/docs"]
    ].map((path) => `GET ${path}`),
    ...[clientFilesPath, batchesPath, messageBatchesPath].map((path) => `POST ${path}`)
  ].map((asked) => [asked, asked.slice(asked.indexOf("/"))])
)

const matchOperation = PathTemplate.matcher(operations)

/** Routes by the start of their path, with the template for the rest of the path. */
const byPrefix: Array<readonly [start: string, template: (rest: string) => string | undefined]> = [
  ...modelPaths.map((path) => [`GET ${path}/`, () => `${path}/{model}`] as const),
  [`GET ${resultsPath}`, () => `${resultsPath}{id}`],
  ...["GET", "DELETE"].map((method) =>
    [
      `${method} ${responsesPath}/`,
      (rest: string) => `${responsesPath}/{response_id}${rest.endsWith("/input_items") ? "/input_items" : ""}`
    ] as const
  ),
  ...["GET", "DELETE"].map((method) =>
    [
      `${method} ${clientFilesPath}/`,
      (rest: string) => `${clientFilesPath}/{file_id}${rest.endsWith("/content") ? "/content" : ""}`
    ] as const
  ),
  ...["GET", "DELETE"].map((method) =>
    [
      `${method} ${tasksPath}/`,
      (rest: string) => `${tasksPath}/{task_id}${["/content", "/events"].find((end) => rest.endsWith(end)) ?? ""}`
    ] as const
  ),
  [`GET ${batchesPath}/`, () => `${batchesPath}/{batch_id}`],
  ...["GET", "DELETE"].map((method) =>
    [
      `${method} ${messageBatchesPath}/`,
      (rest: string) => `${messageBatchesPath}/{message_batch_id}${rest.endsWith("/results") ? "/results" : ""}`
    ] as const
  ),
  ...[
    `${responsesPath}/{response_id}`,
    `${tasksPath}/{task_id}`,
    `${batchesPath}/{batch_id}`,
    `${messageBatchesPath}/{message_batch_id}`
  ].map((path) => {
    const start = path.slice(0, path.indexOf("{"))
    return [`POST ${start}`, (rest: string) => rest.endsWith("/cancel") ? `${path}/cancel` : undefined] as const
  })
]

for (const { kind, paths: [path] } of operations) {
  if (kind !== "task") continue
  for (const method of ["GET", "DELETE"]) {
    byPrefix.push([
      `${method} ${path}/`,
      (rest) => rest.endsWith("/content") ? `${path}/{task_id}/content` : `${path}/{task_id}`
    ])
  }
}

/** The methods of all routes. */
const methods = ["POST", "GET", "DELETE"]

/**
 * The error of a path without a route. Suggests the path with `/v1`, which clients often leave out of their base URL, or the path's
 * own method.
 */
export const notFound = (method: string, url: string): RouteNotFound => {
  const path = pathOf(url)
  const versioned = `/v1${path}`
  if (of(method, versioned) !== undefined) return new RouteNotFound({ method, path, suggestion: versioned })
  const other = methods.find((other) => of(other, path) !== undefined)
  return new RouteNotFound({ method, path, suggestion: other === undefined ? undefined : `${other} ${path}` })
}

/** The path of a request's target, which proxies may send as a whole URL. */
export const pathOf = (target: string): string => {
  const path = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*/i, "")
  const end = path.indexOf("?")
  return end === -1 ? path : path.slice(0, end)
}

/** The dialect of the errors for a path, whatever the method. */
export const dialectOf = (url: string): Dialect => matchOperation(pathOf(url))?.operation.dialect ?? "openai"

/** The template of a request's route; `undefined` if no route matches. */
export const of = (method: string, url: string): string | undefined => {
  const path = pathOf(url)
  if (method === "POST") {
    const operation = matchOperation(path)
    if (operation !== undefined) return operation.template
  }
  // the router serves `HEAD` wherever it serves `GET`
  const asked = `${method === "HEAD" ? "GET" : method} ${path}`
  const found = exact.get(asked)
  if (found !== undefined) return found
  for (const [start, template] of byPrefix) {
    if (asked.startsWith(start)) return template(asked.slice(start.length))
  }
  return undefined
}
