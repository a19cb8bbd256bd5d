/**
 * Fits JSON Schemas to the subset that a provider enforces. Keywords outside it become part of the description, as the vendors' own
 * clients do it, so that the model still reads them. The time is proportional to the size of the schema.
 */
import { Predicate } from "effect"
import type { Losses } from "../conversation/Losses.ts"

export interface SchemaRules {
  /** The keywords that stay. */
  readonly keywords: ReadonlySet<string>
  /** The formats of texts that stay, where `format` does. */
  readonly formats: ReadonlySet<string>
  /** Whether `minItems` may only be 0 or 1. */
  readonly hasSmallMinItems?: boolean
  /** Whether a constant must be an enumeration. */
  readonly hasNoConst?: boolean
  /** Whether all objects are closed. */
  readonly closes?: boolean
}

const structure = [
  ...["type", "enum", "title", "description", "properties", "required", "items", "anyOf", "additionalProperties"],
  ...["$ref", "$defs", "definitions"]
]
const numbers = ["minimum", "maximum"]
const times = ["date-time", "time", "date"]
const formats = [...times, "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]

/** `transformJSONSchema` of @anthropic-ai/sdk 1.14. */
export const anthropicRules: SchemaRules = {
  keywords: new Set([...structure, "const", "allOf", "format", "minItems"]),
  formats: new Set([...formats, "uri"]),
  hasSmallMinItems: true,
  closes: true
}

/** OpenAI's page about structured outputs: what strict schemas support. */
export const openAiRules: SchemaRules = {
  keywords: new Set([
    ...[...structure, ...numbers, "const", "pattern", "format", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"],
    ...["minItems", "maxItems"]
  ]),
  formats: new Set(formats)
}

/** `responseJsonSchema` in Google's reference of `GenerationConfig`. */
export const geminiRules: SchemaRules = {
  keywords: new Set([
    ...structure,
    ...numbers,
    "format",
    "prefixItems",
    "minItems",
    "maxItems",
    "$id",
    "$anchor",
    "propertyOrdering"
  ]),
  formats: new Set([...times, "enum", "int32", "int64", "float", "double"]),
  hasNoConst: true
}

/** Cohere's page about structured outputs, under its unsupported features. */
export const cohereRules: SchemaRules = {
  keywords: new Set([...structure, "const", "pattern", "format"]),
  formats: new Set([...times, "uuid"])
}

/** Annotations whose loss changes nothing. */
const silent: ReadonlySet<string> = new Set(["$schema", "$comment", "title", "description", "default", "examples"])

/** Whether the client allows an object any further fields, which no closed schema can. */
export const isOpen = (schema: unknown): boolean => {
  if (Array.isArray(schema)) return schema.some(isOpen)
  if (!Predicate.isReadonlyObject(schema)) return false
  const { additionalProperties: others } = schema
  return others === true || Predicate.isReadonlyObject(others) || Object.values(schema).some(isOpen)
}

type Fields = Readonly<Record<string, unknown>>

class Fitting {
  readonly #rules: SchemaRules
  /** Whether a keyword is no longer enforced. */
  isLoose = false

  constructor(rules: SchemaRules) {
    this.#rules = rules
  }

  fit(schema: unknown): unknown {
    if (!Predicate.isReadonlyObject(schema)) return schema
    const all = this.#rules.keywords.has("allOf") ? schema : withoutAllOf(schema)
    const { $ref: reference } = all
    const kept: Record<string, unknown> = {}
    const moved: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(all)) {
      const inner = this.#inner(name, value, all)
      // beside a reference only definitions are allowed
      const isAllowed = typeof reference !== "string" || name.startsWith("$") || name === "definitions"
      if (inner !== undefined && isAllowed) Object.assign(kept, inner)
      else if (name !== "$schema" && name !== "$comment") moved[name] = value
    }
    if (Object.keys(moved).some((name) => !silent.has(name))) this.isLoose = true
    if (this.#rules.closes === true && (kept["type"] === "object" || kept["properties"] !== undefined)) {
      kept["additionalProperties"] = false
    }
    return typeof reference === "string" ? kept : described(kept, moved)
  }

  /** The keyword as it stays, perhaps under another name; `undefined` if it does not. */
  #inner(name: string, value: unknown, schema: Fields): Fields | undefined {
    const { formats, hasNoConst, hasSmallMinItems, closes, keywords } = this.#rules
    if (name === "oneOf" && schema["anyOf"] === undefined && keywords.has("anyOf")) return { anyOf: this.#list(value) }
    if (name === "const" && hasNoConst === true && schema["enum"] === undefined) return { enum: [value] }
    if (!keywords.has(name)) return undefined
    switch (name) {
      case "properties":
      case "$defs":
      case "definitions":
        return { [name]: this.#named(value) }
      case "anyOf":
      case "allOf":
      case "prefixItems":
        return { [name]: this.#list(value) }
      case "items":
        return { items: Array.isArray(value) ? this.#list(value) : this.fit(value) }
      case "additionalProperties":
        return closes === true && value !== false ? undefined : { [name]: this.fit(value) }
      case "format":
        return typeof value === "string" && formats.has(value) ? { format: value } : undefined
      case "minItems":
        return hasSmallMinItems === true && value !== 0 && value !== 1 ? undefined : { minItems: value }
      default:
        return { [name]: value }
    }
  }

  #list(value: unknown): unknown {
    return Array.isArray(value) ? value.map((each) => this.fit(each)) : value
  }

  #named(value: unknown): unknown {
    if (!Predicate.isReadonlyObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.fit(each)]))
  }
}

/** A list of one schema adds nothing to it: pydantic writes `allOf` around a reference. */
const withoutAllOf = (schema: Fields): Fields => {
  const { allOf, ...rest } = schema
  const [only, ...others] = Array.isArray(allOf) ? allOf as ReadonlyArray<unknown> : []
  return Predicate.isReadonlyObject(only) && others.length === 0 && Object.keys(rest).every((name) => silent.has(name))
    ? { ...only, ...rest }
    : schema
}

/** The schema with keywords in its description. */
export const described = (schema: Fields, moved: Fields): Fields => {
  const entries = Object.entries(moved)
  if (entries.length === 0) return schema
  const { description } = schema
  const list = `{${entries.map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ")}}`
  return {
    ...schema,
    description: typeof description === "string" && description !== "" ? `${description}\n\n${list}` : list
  }
}

/** The schema as the provider accepts it. Warns at `path` if that is less than the client asked for. */
export const fit = (schema: unknown, rules: SchemaRules, path: string, losses: Losses): unknown => {
  const fitting = new Fitting(rules)
  const fitted = fitting.fit(schema)
  if (fitting.isLoose) {
    losses.warn(path, "has keywords that became descriptions, because this model does not enforce them")
  }
  return fitted
}
