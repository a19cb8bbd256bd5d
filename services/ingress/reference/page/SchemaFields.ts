/** The fields of a JSON schema as HTML: nested lists, whose inner levels open on demand. */
import { details, type Html, html, inline } from "./Html.ts"

/** The keywords that the document's schemas use. */
export interface JsonSchema {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

const code = (value: unknown): Html => html`<code>${JSON.stringify(value)}</code>`

const joined = (parts: ReadonlyArray<Html>, separator: string): ReadonlyArray<Html> =>
  parts.flatMap((part, index) => index === 0 ? [part] : [html`${separator}`, part])

/** `, 1 to 10 items`; empty without bounds. JavaScript's bounds of integers do not count. */
const extentOf = (least = 0, most = Number.MAX_SAFE_INTEGER, unit = ""): string => {
  const [low, high] = [least, most].map((bound) => bound.toLocaleString("en"))
  if (Math.abs(least) === Number.MAX_SAFE_INTEGER) return most === -least ? "" : `, at most ${high}${unit}`
  if (most !== Number.MAX_SAFE_INTEGER) return `, ${low} to ${high}${unit}`
  if (least === 1 && unit !== "") return ", not empty"
  return least === 0 ? "" : `, at least ${low}${unit}`
}

const boundsOf = ({ maximum, maxItems, maxLength, minimum, minItems, minLength }: JsonSchema): string =>
  extentOf(minimum, maximum) + extentOf(minLength, maxLength, " characters") + extentOf(minItems, maxItems, " items")

/** `array of string or object, 1 to 10 items` */
const typeOf = (schema: JsonSchema): Html => {
  const { anyOf, enum: values, format, items, type } = schema
  if (values !== undefined) return html`${joined(values.map(code), " | ")}`
  if (anyOf !== undefined) {
    const parts = new Map(anyOf.map(typeOf).map((part) => [part.text, part]))
    return html`${joined([...parts.values()], " or ")}`
  }
  const name = type === undefined ? "any value" : format === "binary" ? "file" : type
  return html`${name}${items === undefined ? undefined : html` of ${typeOf(items)}`}${boundsOf(schema)}`
}

/** The objects that a value can be or contain. */
const objectsIn = ({ anyOf = [], items, properties, ...schema }: JsonSchema): ReadonlyArray<JsonSchema> => [
  ...(properties === undefined ? [] : [{ ...schema, properties }]),
  ...anyOf.flatMap(objectsIn),
  ...(items === undefined ? [] : objectsIn(items))
]

/** The title of an object. One of several objects is named by the values of its `type`. */
const titleOf = ({ properties = {} }: JsonSchema, isOnly: boolean): Html => {
  const types = properties["type"]?.enum
  return isOnly || types === undefined
    ? html`${Object.keys(properties).length === 1 ? "1 field" : `${Object.keys(properties).length} fields`}`
    : html`${joined(types.map(code), " | ")}`
}

/** Removes the alternative `null`, which every optional field has. */
const withoutNull = ({ anyOf, ...schema }: JsonSchema): JsonSchema =>
  anyOf === undefined ? schema : { ...schema, anyOf: anyOf.filter(({ type }) => type !== "null") }

const fieldOf = (name: string, schema: JsonSchema, isRequired: boolean): Html => {
  const objects = objectsIn(schema)
  const type = typeOf(isRequired ? schema : withoutNull(schema))
  return html`<li><code>${name}</code> <small>${type}${isRequired ? html` <b>required</b>` : undefined}${
    schema.default === undefined ? undefined : html`, default ${code(schema.default)}`
  }</small> ${schema.description === undefined ? undefined : inline(schema.description)}${
    objects.map((object) => details(titleOf(object, objects.length === 1), fieldsOf(object)))
  }</li>`
}

/** The fields of an object. */
export const fieldsOf = ({ properties = {}, required = [] }: JsonSchema): Html =>
  html`<ul>${Object.entries(properties).map(([name, schema]) => fieldOf(name, schema, required.includes(name)))}</ul>`
