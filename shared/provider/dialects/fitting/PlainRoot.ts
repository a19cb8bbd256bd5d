/** Fits the parameters of tools to providers that refuse alternatives at their root: OpenAI and Anthropic, whether strict or not. */
import { Predicate } from "effect"
import * as Json from "../../json/Json.ts"
import type { Losses } from "../conversation/Losses.ts"
import { described } from "./SchemaSubset.ts"

/**
 * OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level". Anthropic: "input_schema does
 * not support oneOf, allOf, or anyOf at the top level".
 */
const refused = ["anyOf", "oneOf", "allOf", "not", "enum"] as const

/**
 * The parameters as one object with the fields of all alternatives, of which those are required that every alternative requires. The model
 * reads the alternatives in the description.
 */
export const withPlainRoot = (schema: unknown, path: string, losses: Losses): unknown => {
  if (!Predicate.isReadonlyObject(schema)) return schema
  const present = refused.filter((name) => schema[name] !== undefined)
  if (present.length === 0) return schema
  const { allOf, anyOf, enum: _values, not: _not, oneOf, ...rest } = schema
  const all = [rest, ...partsOf(allOf, schema)]
  const alternatives = [partsOf(anyOf, schema), partsOf(oneOf, schema)]
  const required = [
    ...all.flatMap(requiredIn),
    ...alternatives.flatMap(([first = {}, ...others]) => {
      const common = others.map((other) => new Set(requiredIn(other)))
      return requiredIn(first).filter((name) => common.every((names) => names.has(name)))
    })
  ]
  losses.warn(path, "has alternatives at its root that became a description, because this model does not accept them")
  return described({
    ...rest,
    type: "object",
    properties: joined([...all, ...alternatives.flat()]),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] })
  }, Object.fromEntries(present.map((name) => [name, schema[name]])))
}

/** The schemas of a list, with those that it refers to. */
const partsOf = (list: unknown, root: Json.Fields): ReadonlyArray<Json.Fields> =>
  Json.list(list).map((part) => {
    const fields = Json.fields(part)
    const [, group = "", name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(Json.string(fields["$ref"]) ?? "") ?? []
    return name === "" ? fields : Json.fields(Json.fields(root[group])[name])
  })

const requiredIn = ({ required }: Json.Fields): ReadonlyArray<unknown> => Json.list(required)

/** The fields of all parts. A field that they define differently, such as the one that tells them apart, may be any of its definitions. */
const joined = (parts: ReadonlyArray<Json.Fields>): object => {
  const definitions = new Map<string, Map<string, unknown>>()
  for (const { properties } of parts) {
    for (const [name, definition] of Object.entries(Json.fields(properties))) {
      const known = definitions.get(name) ?? new Map<string, unknown>()
      definitions.set(name, known.set(JSON.stringify(definition), definition))
    }
  }
  return Object.fromEntries(
    [...definitions].map(([name, known]) => {
      const [only, ...others] = known.values()
      return [name, others.length === 0 ? only : { anyOf: [only, ...others] }]
    })
  )
}
