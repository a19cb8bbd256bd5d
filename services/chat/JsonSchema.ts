/**
 * Reads JSON Schema the way clients write it: drafts 4 to 2020-12, OpenAPI's `nullable`, Gemini's capital type names.
 *
 * Patterns and formats are not checked here: a pattern is a client's code and can run for ever.
 */
import { JsonPointer, Predicate } from "effect"

/** What must hold of a value, gathered from all schemas that apply to it. */
export interface Constraints {
  /** `undefined` allows every type, the empty set none. */
  readonly types: ReadonlySet<string> | undefined
  readonly values: ReadonlyArray<unknown> | undefined
  readonly unions: ReadonlyArray<Union>
  readonly refused: ReadonlyArray<unknown>
  readonly properties: ReadonlyMap<string, unknown>
  readonly required: ReadonlySet<string>
  readonly additional: unknown
  readonly prefix: ReadonlyArray<unknown>
  readonly items: unknown
  readonly unique: boolean
  /** The largest lower and the smallest upper bound of each kind. */
  readonly least: Readonly<Record<Bound, number>>
  readonly most: Readonly<Record<Bound, number>>
  readonly aboveLeast: boolean
  readonly belowMost: boolean
  readonly multipleOf: number | undefined
  readonly format: string | undefined
  readonly pattern: string | undefined
  readonly description: string
  /** The default value, then the examples. */
  readonly samples: ReadonlyArray<unknown>
  /** The referenced schemas that were read, to see recursion by. */
  readonly references: ReadonlySet<unknown>
}

export interface Union {
  readonly exactlyOne: boolean
  readonly options: ReadonlyArray<unknown>
}

type Bound = "value" | "length" | "items" | "properties"
type Keywords = Readonly<Record<string, unknown>>

const bounds: ReadonlyArray<readonly [Bound, least: string, most: string]> = [
  ["value", "minimum", "maximum"],
  ["length", "minLength", "maxLength"],
  ["items", "minItems", "maxItems"],
  ["properties", "minProperties", "maxProperties"]
]
const unbounded = { value: Infinity, length: Infinity, items: Infinity, properties: Infinity }

const anything: Constraints = {
  types: undefined,
  values: undefined,
  unions: [],
  refused: [],
  properties: new Map(),
  required: new Set(),
  additional: undefined,
  prefix: [],
  items: undefined,
  unique: false,
  least: { value: -Infinity, length: 0, items: 0, properties: 0 },
  most: unbounded,
  aboveLeast: false,
  belowMost: false,
  multipleOf: undefined,
  format: undefined,
  pattern: undefined,
  description: "",
  samples: [],
  references: new Set()
}

const nothing: Constraints = { ...anything, types: new Set() }

/** Schemas that are read for one document: references may multiply without end. A few milliseconds' worth. */
const maxReads = 5_000

/** Nested deeper than this, a value is taken for valid. */
const maxDepth = 64

/** A schema document. `schema` is where its references point into. */
export class SchemaDocument {
  readonly schema: unknown
  readonly #read = new Map<unknown, Constraints>()
  #reads = 0
  #circles = 0

  constructor(schema: unknown) {
    this.schema = schema
  }

  /**
   * What a schema of this document demands, with its references and `allOf` resolved. References out of the document,
   * and all that is read beyond the bound on the work, demand nothing.
   */
  constraints(schema: unknown): Constraints {
    return this.#resolve(schema, new Set())
  }

  #resolve(schema: unknown, path: ReadonlySet<unknown>): Constraints {
    if (schema === false) return nothing
    if (!Predicate.isObject(schema)) return anything
    const known = this.#read.get(schema)
    if (known !== undefined) return known
    if (path.has(schema)) {
      this.#circles++
      return anything
    }
    if (this.#reads++ > maxReads) return anything
    const circles = this.#circles
    const inside = new Set(path).add(schema)
    let constraints = own(schema)
    if (typeof schema.$ref === "string") {
      const target = resolve(schema.$ref, this.schema)
      const references = new Set([target])
      constraints = combine(constraints, combine(this.#resolve(target, inside), { ...anything, references }))
    }
    for (const part of list(schema.allOf)) constraints = combine(constraints, this.#resolve(part, inside))
    // What was cut short by a circle holds only for this way into it.
    if (path.size === 0 || this.#circles === circles) this.#read.set(schema, constraints)
    return constraints
  }

  /** Whether a value obeys the constraints, formats and patterns aside. */
  obeys(constraints: Constraints, value: unknown, depth = 0): boolean {
    if (depth > maxDepth || this.#reads++ > maxReads) return true
    const { least, most, types } = constraints
    const type = typeOf(value)
    if (types !== undefined && !types.has(type) && !(type === "integer" && types.has("number"))) return false
    if (constraints.values !== undefined && !keysOf(constraints.values).has(keyOf(value))) return false
    const fits = (schema: unknown, inner: unknown): boolean =>
      schema === undefined || this.obeys(this.constraints(schema), inner, depth + 1)
    const within = (bound: Bound, size: number): boolean => size >= least[bound] && size <= most[bound]

    if (typeof value === "number") {
      if (!within("value", value)) return false
      if ((constraints.aboveLeast && value === least.value) || (constraints.belowMost && value === most.value)) {
        return false
      }
      if (constraints.multipleOf !== undefined) {
        const times = value / constraints.multipleOf
        if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times))) return false
      }
    } else if (typeof value === "string") {
      if (!within("length", [...value].length)) return false
    } else if (Array.isArray(value)) {
      if (!within("items", value.length)) return false
      if (constraints.unique && new Set(value.map(canonical)).size < value.length) return false
      const { items, prefix } = constraints
      if (!value.every((item, i) => fits(i < prefix.length ? prefix[i] : items, item))) return false
    } else if (Predicate.isObject(value)) {
      const names = Object.keys(value)
      if (!within("properties", names.length)) return false
      for (const name of constraints.required) if (!Object.hasOwn(value, name)) return false
      const { additional, properties } = constraints
      const schemaOf = (name: string): unknown => properties.has(name) ? properties.get(name) : additional
      if (!names.every((name) => fits(schemaOf(name), value[name]))) return false
    }
    if (constraints.refused.some((schema) => fits(schema, value))) return false
    return constraints.unions.every(({ exactlyOne, options }) => {
      const held = options.filter((option) => fits(option, value)).length
      return exactlyOne ? held === 1 : held > 0
    })
  }
}

const resolve = (reference: string, root: unknown): unknown => {
  let target = root
  for (const token of JsonPointer.parseUriFragment(reference) ?? []) {
    target = Predicate.isObjectOrArray(target) && Object.hasOwn(target, token) ? (target as Keywords)[token] : undefined
  }
  return target
}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []
const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined
const map = (value: unknown): ReadonlyArray<readonly [string, unknown]> =>
  Predicate.isObject(value) ? Object.entries(value) : []

const own = (schema: Keywords): Constraints => {
  const least = { ...anything.least }
  const most = { ...unbounded }
  for (const [bound, lower, upper] of bounds) {
    // Gemini writes these as strings.
    const [low, high] = [schema[lower], schema[upper]].map((limit) => typeof limit === "string" ? Number(limit) : limit)
    if (Number.isFinite(low)) least[bound] = low as number
    if (Number.isFinite(high)) most[bound] = high as number
  }
  const { exclusiveMaximum, exclusiveMinimum } = schema
  const above = typeof exclusiveMinimum === "number" && exclusiveMinimum >= least.value
  if (above) least.value = exclusiveMinimum
  const below = typeof exclusiveMaximum === "number" && exclusiveMaximum <= most.value
  if (below) most.value = exclusiveMaximum

  const unions: Array<Union> = []
  if (Array.isArray(schema.anyOf)) unions.push({ exactlyOne: false, options: schema.anyOf })
  if (Array.isArray(schema.oneOf)) unions.push({ exactlyOne: true, options: schema.oneOf })
  const tuple = Array.isArray(schema.items)
  return {
    ...anything,
    types: readTypes(schema),
    values: Object.hasOwn(schema, "const") ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : undefined,
    unions,
    refused: Object.hasOwn(schema, "not") ? [schema.not] : [],
    properties: new Map(map(schema.properties)),
    required: new Set(list(schema.required).filter((name) => typeof name === "string")),
    additional: schema.additionalProperties,
    prefix: tuple ? list(schema.items) : list(schema.prefixItems),
    items: tuple ? schema.additionalItems : schema.items,
    unique: schema.uniqueItems === true,
    least,
    most,
    aboveLeast: above || exclusiveMinimum === true,
    belowMost: below || exclusiveMaximum === true,
    multipleOf: typeof schema.multipleOf === "number" && schema.multipleOf > 0 ? schema.multipleOf : undefined,
    format: text(schema.format),
    pattern: text(schema.pattern),
    description: `${text(schema.title) ?? ""} ${text(schema.description) ?? ""}`.trim(),
    samples: [...Object.hasOwn(schema, "default") ? [schema.default] : [], ...list(schema.examples)]
  }
}

const readTypes = (schema: Keywords): ReadonlySet<string> | undefined => {
  const named = (Array.isArray(schema.type) ? schema.type : [schema.type]).flatMap((type) =>
    typeof type === "string" && type !== "TYPE_UNSPECIFIED" ? [type.toLowerCase()] : []
  )
  if (named.length === 0) return undefined
  return new Set(schema.nullable === true ? [...named, "null"] : named)
}

/** What two schemas demand together. */
export const combine = (a: Constraints, b: Constraints): Constraints => {
  const properties = new Map(a.properties)
  for (const [name, schema] of b.properties) {
    properties.set(name, properties.has(name) ? { allOf: [properties.get(name), schema] } : schema)
  }
  const least = { ...a.least }
  const most = { ...a.most }
  for (const [bound] of bounds) {
    least[bound] = Math.max(a.least[bound], b.least[bound])
    most[bound] = Math.min(a.most[bound], b.most[bound])
  }
  return {
    types: commonTypes(a.types, b.types),
    values: a.values === undefined || b.values === undefined
      ? a.values ?? b.values
      : common(a.values, b.values),
    unions: [...a.unions, ...b.unions],
    refused: [...a.refused, ...b.refused],
    properties,
    required: new Set([...a.required, ...b.required]),
    additional: meet(a.additional, b.additional),
    prefix: Array.from(
      { length: Math.max(a.prefix.length, b.prefix.length) },
      (_, i) => meet(a.prefix[i], b.prefix[i])
    ),
    items: meet(a.items, b.items),
    unique: a.unique || b.unique,
    least,
    most,
    aboveLeast: (a.aboveLeast && a.least.value === least.value) || (b.aboveLeast && b.least.value === least.value),
    belowMost: (a.belowMost && a.most.value === most.value) || (b.belowMost && b.most.value === most.value),
    // Of several patterns and formats the first is obeyed.
    multipleOf: a.multipleOf === undefined || b.multipleOf === undefined
      ? a.multipleOf ?? b.multipleOf
      : leastCommonMultiple(a.multipleOf, b.multipleOf),
    format: a.format ?? b.format,
    pattern: a.pattern ?? b.pattern,
    description: `${a.description} ${b.description}`.trim(),
    samples: [...a.samples, ...b.samples],
    references: new Set([...a.references, ...b.references])
  }
}

const common = (a: ReadonlyArray<unknown>, b: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const held = keysOf(b)
  return a.filter((value) => held.has(keyOf(value)))
}

const meet = (a: unknown, b: unknown): unknown => a === undefined ? b : b === undefined ? a : { allOf: [a, b] }

const commonTypes = (
  a: ReadonlySet<string> | undefined,
  b: ReadonlySet<string> | undefined
): ReadonlySet<string> | undefined => {
  if (a === undefined || b === undefined) return a ?? b
  const common = new Set([...a].filter((type) => b.has(type)))
  // Every integer is a number.
  if ((a.has("integer") && b.has("number")) || (a.has("number") && b.has("integer"))) common.add("integer")
  return common
}

const leastCommonMultiple = (a: number, b: number): number => {
  let [high, low] = [Math.max(a, b), Math.min(a, b)]
  // Sixty steps are more than whole numbers need; with fractions, rounding could go on for ever.
  for (let step = 0; step < 60 && low > 1e-9; step++) [high, low] = [low, high % low]
  return a * b / high
}

/** Values that are the same in JSON have the same key. */
export const keyOf = (value: unknown): unknown =>
  Predicate.isObjectOrArray(value) ? `json ${canonical(value)}` : typeof value === "string" ? `text ${value}` : value

const keys = new WeakMap<ReadonlyArray<unknown>, ReadonlySet<unknown>>()

/** The keys of values, made once for each list of them. */
export const keysOf = (values: ReadonlyArray<unknown>): ReadonlySet<unknown> => {
  let known = keys.get(values)
  if (known === undefined) {
    known = new Set(values.map(keyOf))
    keys.set(values, known)
  }
  return known
}

const canonical = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, inner: unknown) =>
    Predicate.isObject(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => a < b ? -1 : 1))
      : inner)

export const typeOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value
}
