/** An operation of the OpenAPI document at one of its paths, with the parts that the page shows. */
import { document } from "../Document.ts"
import type { Parameter } from "../Route.ts"
import type { JsonSchema } from "./SchemaFields.ts"

interface Example {
  readonly summary?: string
  readonly value: unknown
}

interface Media {
  readonly schema: JsonSchema | Referenced
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, Example>>
}

export type Content = Readonly<Record<string, Media>>

export interface Referenced {
  readonly $ref: string
}

interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, Referenced>>
  readonly content?: Content
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: ReadonlyArray<string>
  readonly security: ReadonlyArray<object>
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Response>>
}

export interface Endpoint extends Operation {
  readonly method: string
  readonly path: string
}

/** All endpoints in the order of the document. */
export const endpoints: ReadonlyArray<Endpoint> = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ ...operation as unknown as Operation, method, path }))
)
