/** Converts the contract's schemas to the named schemas of an OpenAPI document. */
import type { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"

type JsonSchema = Readonly<Record<string, unknown>>

/** A reference to a schema of the document. */
export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** The content of a JSON body, with its examples. */
export const json = (schema: object, examples: object = {}) => ({ "application/json": { schema, ...examples } })

export const eventStream = "text/event-stream"

/** The content of a stream of events. */
export const events = {
  [eventStream]: {
    schema: { type: "string", description: "Server-sent events. An error after the first event is sent as an event." }
  }
}

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

/** Keywords that describe a field but do not restrict its value. */
const notes = ["description", "default"]

const isNote = (part: unknown): part is JsonSchema =>
  isObject(part) && Object.keys(part).every((keyword) => notes.includes(keyword))

/**
 * Corrects HttpApi's schemas: objects stay open, because unknown fields pass in both directions, and the notes of a field
 * move into its schema from `allOf` and from the value that may also be `null`, where many tools do not find them.
 */
const asServed = (key: string, value: unknown): unknown => {
  if (key === "additionalProperties" && value === false) return undefined
  if (key === "anyOf" && Array.isArray(value)) {
    return value.map((part) => isObject(part) && Object.keys(part).length === 0 ? file : part)
  }
  if (!isObject(value)) return value
  const { allOf, ...own } = value
  const parts: ReadonlyArray<unknown> = Array.isArray(allOf) ? allOf : []
  const rest = parts.filter((part) => !isNote(part))
  return Object.assign(fromNullable(own), ...parts.filter(isNote), rest.length === 0 ? {} : { allOf: rest })
}

/** The schema with the notes of its value, if it is that value's schema or `null`. */
const fromNullable = (schema: JsonSchema): JsonSchema => {
  const [value, absent, ...more] = Array.isArray(schema["anyOf"]) ? schema["anyOf"] as ReadonlyArray<unknown> : []
  if (!isObject(value) || !isObject(absent) || absent["type"] !== "null" || more.length > 0) return schema
  const [kept, moved] = [false, true].map((isMoved) =>
    Object.fromEntries(Object.entries(value).filter(([keyword]) => notes.includes(keyword) === isMoved))
  )
  return { ...schema, anyOf: [kept, absent], ...moved }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
