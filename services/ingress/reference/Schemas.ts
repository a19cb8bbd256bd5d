/** Converts the contract's schemas to the named schemas of an OpenAPI document. */
import type { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"

type JsonSchema = Readonly<Record<string, unknown>>

/** A reference to a schema of the document. */
export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** The content of a JSON body, with its examples. */
export const json = (schema: object, examples: object = {}) => ({ "application/json": { schema, ...examples } })

const bytes = { type: "string", contentEncoding: "binary" }

/** The content of a binary body of one of these media types. */
export const binary = (types: ReadonlyArray<string>) =>
  Object.fromEntries(types.map((type) => [type, { schema: bytes }]))

/** HttpApi turns the schemas of endpoints into components. These endpoints exist only for that. */
export const components = (named: Readonly<Record<string, Schema.Top>>): Readonly<Record<string, JsonSchema>> => {
  const endpoints = Object.entries(named).map(([name, schema]) =>
    HttpApiEndpoint.get(name, `/${name}`, { success: schema.annotate({ identifier: name }) })
  )
  const [first, ...rest] = endpoints
  if (first === undefined) return {}
  const { components } = OpenApi.fromApi(HttpApi.make("schemas").add(HttpApiGroup.make("schemas").add(first, ...rest)))
  const all: unknown = JSON.parse(JSON.stringify(components.schemas, asServed))
  return all as Readonly<Record<string, JsonSchema>>
}

/** A file in a form. JSON Schema has no type for it. */
const file = { type: "string", format: "binary" }

/**
 * Corrects HttpApi's schemas: objects stay open, because unknown fields pass in both directions, and descriptions move
 * from `allOf` into the field's schema, because many tools ignore `allOf`.
 */
const asServed = (key: string, value: unknown): unknown => {
  if (key === "additionalProperties" && value === false) return undefined
  if (key === "anyOf" && Array.isArray(value)) {
    return value.map((part) => isObject(part) && Object.keys(part).length === 0 ? file : part)
  }
  if (!isObject(value) || !Array.isArray(value["allOf"])) return value
  const { allOf, ...own } = value
  const descriptions = allOf.filter((part) =>
    isObject(part) && Object.keys(part).every((name) => name === "description")
  )
  const rest = allOf.filter((part) => !descriptions.includes(part))
  return Object.assign(own, ...descriptions, rest.length === 0 ? {} : { allOf: rest })
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
