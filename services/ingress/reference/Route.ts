/** What the reference says of one route, and how OpenAPI writes that. */
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { keyHeaders } from "../request/Authentication.ts"
import type { RequestError } from "../errors/IngressError.ts"
import * as Errors from "./Errors.ts"
import * as Headers from "./Headers.ts"

/** In the order in which readers find them. */
export const tags = [
  { name: "Chat", description: "Conversations, in the format of whichever client you have." },
  { name: "Pictures", description: "Made and changed." },
  { name: "Video", description: "Made as tasks that outlive the connection." },
  { name: "Speech", description: "Text read aloud." },
  { name: "Search", description: "Texts as vectors, and documents by relevance." },
  { name: "Catalogue", description: "The models, and files with results." },
  { name: "Service", description: "This description. No key is needed." }
] as const

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly description: string
  readonly required: boolean
  readonly schema: object
  /** Of an optional one only where requests usually have it. */
  readonly example?: unknown
  /** By the names of the examples of the body. */
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

export interface Response {
  readonly description: string
  readonly headers?: object
  readonly content?: object
}

export interface Route {
  readonly method: "get" | "post" | "delete"
  readonly path: string
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tag: typeof tags[number]["name"]
  /** In whose manner a key is sent, beside the usual one; `undefined` where none is needed. */
  readonly key: Dialect | undefined
  /** Whether it also does without. */
  readonly isKeyOptional?: boolean
  readonly parameters?: ReadonlyArray<Parameter>
  readonly body?: object
  /** What every answer carries that is not a refusal of the key. */
  readonly headers?: object
  readonly responses: Readonly<Record<number, Response>>
  /** In the dialect of the route. */
  readonly dialect: Dialect
  readonly errors: ReadonlyArray<RequestError>
}

/** Each of these is enough. */
const securityOf = ({ isKeyOptional = false, key }: Route) => {
  if (key === undefined) return []
  const schemes = ["bearer", keyHeaders[key]].flatMap((scheme) => scheme === undefined ? [] : [{ [scheme]: [] }])
  return isKeyOptional ? [...schemes, {}] : schemes
}

export const securitySchemes = {
  bearer: { type: "http", scheme: "bearer", description: "An API key of this gateway." },
  ...Object.fromEntries(
    Object.values(keyHeaders).map((name) => [
      name,
      { type: "apiKey", in: "header", name, description: "The same key, as clients of that format send it." }
    ])
  )
}

/** What a connection answers by itself, on whatever route. */
const unreadable = Errors.responses("openai", Errors.ofConnections, {})

export const toOperation = (route: Route) => {
  const { body, description, dialect, errors, headers, operationId, parameters = [], responses, summary, tag } = route
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag],
    security: securityOf(route),
    parameters: [...parameters, Headers.traceparent],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      ...Object.fromEntries(
        Object.entries(responses).map(([status, response]) => [
          status,
          { ...response, headers: { ...Headers.of.every, ...headers, ...response.headers } }
        ])
      ),
      ...Errors.responses(dialect, errors, headers),
      ...unreadable
    }
  }
}
