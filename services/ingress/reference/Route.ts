/** One route of the reference, and its OpenAPI operation. */
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { keyHeaders, keyParameters } from "../request/Authentication.ts"
import type { RequestError } from "../errors/IngressError.ts"
import * as Errors from "./Errors.ts"
import * as Headers from "./Headers.ts"

/** Tags in the order of the reference. */
export const tags = [
  { name: "Chat", description: "Conversations, in the format of each official client." },
  { name: "Images", description: "Image generation and editing." },
  { name: "Video", description: "Generating videos, as tasks that outlive the connection." },
  { name: "Speech", description: "Text to speech." },
  { name: "Search", description: "Embeddings, and ranking documents by relevance." },
  { name: "Tasks", description: "Requests whose answers outlive the connection." },
  { name: "Batches", description: "Many requests that are performed when there is capacity." },
  { name: "Files", description: "What batches read and write." },
  { name: "Catalogue", description: "Models and result files." },
  { name: "Service", description: "This description. Needs no API key." }
] as const

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly description: string
  readonly required: boolean
  readonly schema: object
  /** An optional parameter has an example only if requests usually have it. */
  readonly example?: unknown
  /** Examples by the name of the body's example. */
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

/** A required parameter. */
export const parameter = (place: "path" | "query", name: string, description: string): Parameter => ({
  name,
  in: place,
  description,
  required: true,
  schema: { type: "string" }
})

export const optionalQuery = (name: string, description: string): Parameter => ({
  ...parameter("query", name, description),
  required: false
})

export interface Response {
  readonly description: string
  readonly headers?: object
  readonly content?: object
}

export interface Route {
  readonly method: "get" | "post" | "delete"
  readonly path: string
  readonly operationId: string
  /** Unique: a page of the reference lists the operations by it. */
  readonly summary: string
  /** CommonMark. */
  readonly description: string
  readonly tag: typeof tags[number]["name"]
  /** The dialect whose header may carry the key besides `Authorization`; `undefined` if the route needs no key. */
  readonly key: Dialect | undefined
  /** Whether the route also works without a key. */
  readonly isKeyOptional?: boolean
  readonly parameters?: ReadonlyArray<Parameter>
  readonly body?: object
  /** The headers of every response except 401. */
  readonly headers?: object
  readonly responses: Readonly<Record<number, Response>>
  /** The format of the errors. */
  readonly dialect: Dialect
  readonly errors: ReadonlyArray<RequestError>
}

/** The alternative ways to authenticate. */
const securityOf = ({ isKeyOptional = false, key }: Route) => {
  if (key === undefined) return []
  const schemes = ["bearer", keyHeaders[key], keyParameters[key]].flatMap((scheme) =>
    scheme === undefined ? [] : [{ [scheme]: [] }]
  )
  return isKeyOptional ? [...schemes, {}] : schemes
}

export const securitySchemes = {
  bearer: { type: "http", scheme: "bearer", description: "An API key of this gateway." },
  ...Object.fromEntries(
    Object.values(keyHeaders).map((name) => [name, {
      type: "apiKey",
      in: "header",
      name,
      description: "The same API key, in the header of that format's official client."
    }])
  ),
  ...Object.fromEntries(
    Object.values(keyParameters).map((name) => [name, {
      type: "apiKey",
      in: "query",
      name,
      description: "The same API key in the URL. Prefer a header: proxies log URLs."
    }])
  )
}

/** Errors that the HTTP server returns on every route. */
const unreadable = Errors.responses("openai", Errors.of.connections)

export const toOperation = (route: Route) => {
  const { body, description, dialect, errors, headers, operationId, parameters = [], responses, summary, tag } = route
  return {
    operationId,
    summary,
    description,
    tags: [tag],
    security: securityOf(route),
    parameters: [...parameters, Headers.request("traceparent")],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [status, {
          ...response,
          headers: { ...Headers.of.every, ...headers, ...response.headers }
        }])
      ),
      ...Errors.responses(dialect, errors, headers),
      ...unreadable
    }
  }
}
