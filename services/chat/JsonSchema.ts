/**
 * Reads JSON Schema the way clients write it (drafts 4 to 2020-12, OpenAPI's `nullable`, Gemini's capital type names), and
 * tells whether a value fits.
 *
 * A client's pattern is a program that can run for ever, so none is run: a string never fits one. The same goes for
 * keywords that are not known here. The work is bounded.
 */
import { JsonPointer, Predicate } from "effect"

/** The keywords of a schema in one form, those of its references and `allOf` merged in. */
export interface Keywords extends Readonly<Record<string, unknown>> {
  /** `undefined` allows every type. */
  readonly type?: ReadonlyArray<string> | undefined
  readonly enum?: ReadonlyArray<unknown>
  readonly properties?: Readonly<Record<string, unknown>>
  readonly required?: ReadonlyArray<string>
  readonly prefixItems?: ReadonlyArray<unknown>
  /** `anyOf` and `oneOf`, each as a schema of its own. */
  readonly unions?: ReadonlyArray<
    { readonly anyOf: ReadonlyArray<unknown> } | { readonly oneOf: ReadonlyArray<unknown> }
  >
}

/** Why a schema cannot be followed. */
export class Refusal {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** Schemas that are read for one document: references may multiply without end. A few milliseconds' worth. */
const maxReads = 20_000

const lower = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"]
const upper = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"]
const unknown = [
  "if",
  "contains",
  "patternProperties",
  "propertyNames",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "unevaluatedProperties",
  "unevaluatedItems"
]

/** What strings of a format look like. One of another format fits nothing. */
export const formats: Readonly<Record<string, RegExp>> = {
  "date": /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/u,
  "time": /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/u,
  "date-time": /^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/u,
  "email": /^[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}$/u,
  "uri": /^https?:\/\/[A-Za-z0-9.-]{1,253}(?::\d{1,5})?(?:\/[\w/~.%?&=#+-]{0,2000})?$/u,
  "uuid": /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu,
  "ipv4": /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/u
}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const intersect = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const held = new Set(b.map((value) => canonical(value)))
  return a.filter((value) => held.has(canonical(value)))
}

export class SchemaDocument {
  readonly #root: unknown
  #reads = 0

  constructor(root: unknown) {
    this.#root = root
  }

  /** Throws a `Refusal` if nothing fits. Adds the references that it follows to `references`. */
  keywords(schema: unknown, references: Set<string>): Keywords {
    if (this.#reads++ > maxReads) throw new Refusal("is too large for this engine")
    if (schema === true || schema === undefined) return {}
    if (!Predicate.isReadonlyObject(schema)) throw new Refusal("allows no value")
    let keywords = normalised(schema)
    if (typeof schema["$ref"] === "string") {
      const reference = schema["$ref"]
      if (references.has(reference)) throw new Refusal("contains itself")
      references.add(reference)
      keywords = merge(keywords, this.keywords(this.#target(reference), references))
    }
    for (const part of list(schema["allOf"])) keywords = merge(keywords, this.keywords(part, references))
    return keywords
  }

  #target(reference: string): unknown {
    let target = this.#root
    for (const key of JsonPointer.parseUriFragment(reference) ?? [""]) {
      target = Predicate.isObjectOrArray(target) && Object.hasOwn(target, key)
        ? (target as Readonly<Record<string, unknown>>)[key]
        : undefined
    }
    if (target === undefined) throw new Refusal(`refers to ${reference}, which is not there`)
    return target
  }

  fits(schema: unknown, value: unknown): boolean {
    if (this.#reads++ > maxReads) throw new Refusal("is too large for this engine")
    if (!Predicate.isReadonlyObject(schema)) return schema === true || schema === undefined
    if (typeof schema["$ref"] === "string" && !this.fits(this.#target(schema["$ref"]), value)) return false
    if (!list(schema["allOf"]).every((part) => this.fits(part, value))) return false
    if (schema["not"] !== undefined && this.fits(schema["not"], value)) return false
    const some = list(schema["anyOf"])
    if (some.length > 0 && !some.some((option) => this.fits(option, value))) return false
    const one = list(schema["oneOf"])
    if (one.length > 0 && one.filter((option) => this.fits(option, value)).length !== 1) return false
    if (unknown.some((keyword) => schema[keyword] !== undefined)) return false
    return this.#fitsKeywords(normalised(schema), value)
  }

  #fitsKeywords(keywords: Keywords, value: unknown): boolean {
    const { additionalProperties, enum: values, format, items, pattern, prefixItems = [], properties = {}, type } =
      keywords
    if (type !== undefined && !typesOf(value).some((name) => type.includes(name))) return false
    if (values !== undefined && intersect(values, [value]).length === 0) return false
    const between = (size: number, noun: string): boolean =>
      size >= Number(keywords[`min${noun}`] ?? 0) && size <= Number(keywords[`max${noun}`] ?? Infinity)
    if (typeof value === "string") {
      const known = typeof format === "string" ? formats[format] : undefined
      return pattern === undefined && between([...value].length, "Length") &&
        (format === undefined || known?.test(value) === true)
    }
    if (typeof value === "number") {
      const { exclusiveMaximum, exclusiveMinimum, maximum, minimum, multipleOf } = keywords
      const times = typeof multipleOf === "number" ? value / multipleOf : 0
      return value >= Number(minimum ?? -Infinity) && value <= Number(maximum ?? Infinity) &&
        value > Number(exclusiveMinimum ?? -Infinity) && value < Number(exclusiveMaximum ?? Infinity) &&
        Math.abs(times - Math.round(times)) < 1e-9
    }
    if (Array.isArray(value)) {
      const isUnique = keywords["uniqueItems"] !== true || new Set(value.map(canonical)).size === value.length
      return isUnique && between(value.length, "Items") &&
        value.every((item, at) => this.fits(at < prefixItems.length ? prefixItems[at] : items, item))
    }
    if (!Predicate.isReadonlyObject(value)) return true
    return between(Object.keys(value).length, "Properties") &&
      (keywords.required ?? []).every((name) => Object.hasOwn(value, name)) &&
      Object.entries(value).every(([name, inner]) =>
        this.fits(Object.hasOwn(properties, name) ? properties[name] : additionalProperties, inner)
      )
  }
}

/** The keywords that a schema has itself, but for `$ref` and `allOf`, in the form of the latest draft. */
const normalised = (schema: Readonly<Record<string, unknown>>): Keywords => {
  const { $ref: _reference, allOf: _all, anyOf, const: constant, nullable, oneOf, ...own } = schema
  const types = list(Array.isArray(own["type"]) ? own["type"] : [own["type"]])
    .flatMap((name) => typeof name === "string" && name !== "TYPE_UNSPECIFIED" ? [name.toLowerCase()] : [])
  const keywords: Record<string, unknown> = { ...own, type: types.length === 0 ? undefined : types }
  if (types.length > 0 && nullable === true) keywords["type"] = [...types, "null"]
  // Gemini writes some numbers as strings
  for (const bound of [...lower, ...upper]) {
    if (typeof own[bound] === "string") keywords[bound] = Number(own[bound])
  }
  for (const [exclusive, plain] of [["exclusiveMinimum", "minimum"], ["exclusiveMaximum", "maximum"]] as const) {
    if (own[exclusive] === true) [keywords[exclusive], keywords[plain]] = [keywords[plain], undefined]
    else if (own[exclusive] === false) keywords[exclusive] = undefined
  }
  if (Array.isArray(own["items"])) {
    keywords["prefixItems"] = own["items"]
    keywords["items"] = own["additionalItems"]
  }
  if ("const" in schema) keywords["enum"] = [constant]
  if (!Predicate.isReadonlyObject(own["properties"])) keywords["properties"] = {}
  keywords["required"] = list(own["required"]).filter(Predicate.isString)
  keywords["unions"] = [
    ...list(anyOf).length > 0 ? [{ anyOf: list(anyOf) }] : [],
    ...list(oneOf).length > 0 ? [{ oneOf: list(oneOf) }] : []
  ]
  return keywords as Keywords
}

/** What two schemas demand together. Of what cannot be merged, the first counts: the value is checked in the end. */
export const merge = (a: Keywords, b: Keywords): Keywords => {
  const both: Record<string, unknown> = { ...b, ...a }
  const of = (keyword: string) => [a[keyword], b[keyword]].filter((value) => value !== undefined)
  for (const keyword of Object.keys(both)) {
    const values = of(keyword)
    both[keyword] = values.length < 2 ? values[0] : lower.includes(keyword)
      ? Math.max(...values.map(Number))
      : upper.includes(keyword)
      ? Math.min(...values.map(Number))
      : keyword === "items" || keyword === "additionalProperties"
      ? { allOf: values }
      : a[keyword]
  }
  const properties: Record<string, unknown> = Object.assign(Object.create(null), b.properties)
  for (const [name, schema] of Object.entries(a.properties ?? {})) {
    properties[name] = name in properties ? { allOf: [schema, properties[name]] } : schema
  }
  return {
    ...both,
    properties,
    type: a.type === undefined || b.type === undefined ? a.type ?? b.type : common(a.type, b.type),
    ...(a.enum === undefined || b.enum === undefined ? {} : { enum: intersect(a.enum, b.enum) }),
    required: [...new Set([...a.required ?? [], ...b.required ?? []])],
    unions: [...a.unions ?? [], ...b.unions ?? []]
  }
}

/** Every integer is a number. */
const common = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...a.filter((type) => b.includes(type) || (type === "integer" && b.includes("number"))),
  ...b.filter((type) => type === "integer" && a.includes("number") && !a.includes("integer"))
]

export const canonical = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, inner: unknown) =>
    Predicate.isObject(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => a < b ? -1 : 1))
      : inner)

const typesOf = (value: unknown): ReadonlyArray<string> =>
  value === null
    ? ["null"]
    : Array.isArray(value)
    ? ["array"]
    : Number.isInteger(value)
    ? ["integer", "number"]
    : [typeof value]
