/** From the schemas of the contract to those of an OpenAPI document, each under a name of its own. */
import type { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"

type JsonSchema = Readonly<Record<string, unknown>>

/** A reference to a schema of the document. */
export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** HttpApi turns the schemas of endpoints into components. The endpoints are stand-ins, which nobody serves. */
export const components = (named: Readonly<Record<string, Schema.Top>>): Readonly<Record<string, JsonSchema>> => {
  const endpoints = Object.entries(named).map(([name, schema]) =>
    HttpApiEndpoint.get(name, `/${name}`, { success: schema.annotate({ identifier: name }) })
  )
  const [first, ...rest] = endpoints
  if (first === undefined) return {}
  const { components } = OpenApi.fromApi(
    HttpApi.make("schemas").add(HttpApiGroup.make("schemas").add(first, ...rest))
  )
  const all: unknown = JSON.parse(JSON.stringify(components.schemas, asServed))
  return all as Readonly<Record<string, JsonSchema>>
}

/** A file of a form, which has no place in JSON. */
const file = { type: "string", format: "binary" }

/**
 * Unknown fields pass in both directions, where HttpApi describes every object as closed. What it says of a field beside
 * its schema belongs into it, for readers that do not look into `allOf`.
 */
const asServed = (key: string, value: unknown): unknown => {
  if (key === "additionalProperties" && value === false) return undefined
  if (key === "anyOf" && Array.isArray(value)) {
    return value.map((part) => isObject(part) && Object.keys(part).length === 0 ? file : part)
  }
  if (!isObject(value) || !Array.isArray(value["allOf"])) return value
  const { allOf, ...own } = value
  const said = allOf.filter((part) => isObject(part) && Object.keys(part).every((name) => name === "description"))
  const rest = allOf.filter((part) => !said.includes(part))
  return Object.assign(own, ...said, rest.length === 0 ? {} : { allOf: rest })
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
