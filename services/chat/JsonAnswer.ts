/**
 * Makes a value that is valid for a JSON Schema, filled from text where the text has something for a field.
 *
 * The work is bounded: a schema that asks for more than 2,000 values, strings of more than 10,000 characters or of
 * 50,000 together, values nested deeper than 32 or patterns that cannot be generated gets a value that is not valid. So
 * does one that nothing can be valid for. `if`, `contains`, `patternProperties` and `dependentRequired` are ignored, and
 * `not` but for choosing among the options of an `anyOf` or `oneOf` or the values of an `enum`.
 */
import { Effect, Predicate } from "effect"
import type { Facts } from "./Facts.ts"
import { fieldWords } from "./Facts.ts"
import { stringOfFormat } from "./Formats.ts"
import { combine, type Constraints, keyOf, keysOf, SchemaDocument, typeOf } from "./JsonSchema.ts"
import { samplePatterns } from "./Patterns.ts"
import { clip } from "./Sentences.ts"

/** What a value is made from. */
export interface Substance {
  readonly facts: Facts
  /** What a field is filled with that holds prose. */
  readonly prose: string
  /** Sentences for a list of prose. */
  readonly sentences: ReadonlyArray<string>
  /** Whether fields that the schema does not demand are left out where the text has nothing for them. */
  readonly sparing: boolean
  /** Selects among what is equally good. */
  readonly variant: number
}

const maxValues = 2_000
const maxDepth = 32
const maxCharacters = 10_000
const maxAllCharacters = 50_000
const maxOptions = 16
/** Deeper than this, only what is demanded is made. */
const plentifulDepth = 4

export const jsonValue = Effect.fnUntraced(function*(schema: unknown, substance: Substance) {
  const patterns = yield* samplePatterns(schema, substance.variant)
  return new Maker(new SchemaDocument(schema), substance, patterns).make(schema, "", 0, 0)
})

const proseFields =
  /^(?:answer|summary|text|message|content|response|reply|explanation|reasoning|rationale|thought|description|conclusion|result|output|body|comment|details?|quote|evidence|caption|final_?answer|query|question|q|prompt|input|search|request|instructions?|statement|passage|note)$/u

class Maker {
  readonly #document: SchemaDocument
  readonly #substance: Substance
  readonly #patterns: ReadonlyMap<string, string>
  /** The referenced schemas whose values are being made. */
  readonly #open = new Set<unknown>()
  #made = 0
  #characters = 0

  constructor(document: SchemaDocument, substance: Substance, patterns: ReadonlyMap<string, string>) {
    this.#document = document
    this.#substance = substance
    this.#patterns = patterns
  }

  /** `index` counts the items of a list, so that they differ. */
  make(schema: unknown, field: string, index: number, depth: number): unknown {
    return this.#fromConstraints(this.#document.constraints(schema), field, index, depth)
  }

  #fromConstraints(constraints: Constraints, field: string, index: number, depth: number): unknown {
    if (this.#made++ > maxValues || depth > maxDepth) return null
    const recursive = this.#isRecursive(constraints)
    const opened = [...constraints.references].filter((reference) => !this.#open.has(reference))
    for (const reference of opened) this.#open.add(reference)
    const value = constraints.values !== undefined
      ? this.#listed(constraints, constraints.values, index)
      : constraints.unions.length > 0
      ? this.#option(constraints, field, index, depth, recursive)
      : this.#ofType(constraints, field, index, depth)
    for (const reference of opened) this.#open.delete(reference)
    return value
  }

  #isRecursive(constraints: Constraints): boolean {
    return [...constraints.references].some((reference) => this.#open.has(reference))
  }

  #listed(constraints: Constraints, values: ReadonlyArray<unknown>, index: number): unknown {
    const rest = { ...constraints, values: undefined }
    const allowed = values.filter((value) => this.#document.obeys(rest, value))
    const { facts, variant } = this.#substance
    const mentioned = facts.mentioned(allowed.filter((value) => typeof value === "string"))
    if (mentioned !== undefined && index === 0) return mentioned
    const keys = keysOf(allowed)
    const sample = constraints.samples.find((sample) => keys.has(keyOf(sample)))
    if (sample !== undefined && index === 0 && variant === 0) return sample
    return allowed[(variant + index) % Math.max(1, allowed.length)] ?? null
  }

  /** Takes the first option whose value obeys the whole schema. */
  #option(constraints: Constraints, field: string, index: number, depth: number, recursive: boolean): unknown {
    const [union, ...unions] = constraints.unions
    const options = (union?.options ?? []).slice(0, maxOptions)
      .map((option) => combine({ ...constraints, unions }, this.#document.constraints(option)))
      .filter(({ types, values }) => types?.size !== 0 && values?.length !== 0)
      .map((option) => ({ option, rank: this.#rank(option, recursive || depth > plentifulDepth) }))
      .toSorted((a, b) => a.rank - b.rank)
    let first: unknown = null
    for (const [i, { option }] of options.entries()) {
      const value = this.#fromConstraints(option, field, index, depth)
      if (this.#document.obeys(constraints, value)) return value
      if (i === 0) first = value
    }
    return first
  }

  /** What says least stands last: nothing at all, or what leads into a circle. */
  #rank(option: Constraints, shallow: boolean): number {
    const isNull = option.types?.size === 1 && option.types.has("null")
    if (shallow) return isNull ? 0 : this.#height(option, 6)
    const marker = [...option.properties].some(([, schema]) => {
      const { values } = this.#document.constraints(schema)
      return values?.length === 1 && this.#substance.facts.mentioned(values.filter((v) => typeof v === "string"))
    })
    return (this.#isRecursive(option) ? 4 : 0) + (isNull ? 2 : 0) + (marker ? 0 : 1)
  }

  /** How many values must nest inside one another, as far as `limit`. */
  #height(constraints: Constraints, limit: number): number {
    if (limit === 0 || this.#made++ > maxValues) return limit === 0 ? 0 : Infinity
    if (constraints.values !== undefined) return 0
    const inner = (schema: unknown): number => 1 + this.#height(this.#document.constraints(schema), limit - 1)
    let height = 0
    for (const { options } of constraints.unions) {
      height = Math.max(height, Math.min(...options.slice(0, maxOptions).map(inner)))
    }
    for (const name of constraints.required) height = Math.max(height, inner(constraints.properties.get(name)))
    return constraints.least.items > 0 ? Math.max(height, inner(constraints.items)) : height
  }

  #ofType(constraints: Constraints, field: string, index: number, depth: number): unknown {
    switch (this.#chooseType(constraints)) {
      case "object":
        return this.#object(constraints, depth)
      case "array":
        return this.#array(constraints, field, depth)
      case "integer":
        return this.#number(constraints, field, index, true)
      case "number":
        return this.#number(constraints, field, index, false)
      case "boolean":
        return this.#substance.facts.boolean(field) ?? this.#sample(constraints, Predicate.isBoolean) ?? index % 2 === 1
      case "string":
        return this.#string(constraints, field, index)
      default:
        return null
    }
  }

  #chooseType({ format, items, least, most, pattern, prefix, properties, required, types }: Constraints): string {
    if (types !== undefined) {
      return ["object", "array", "string", "integer", "number", "boolean"].find((type) => types.has(type)) ?? "null"
    }
    if (properties.size > 0 || required.size > 0 || least.properties > 0) return "object"
    if (items !== undefined || prefix.length > 0 || least.items > 0) return "array"
    if (format !== undefined || pattern !== undefined) return "string"
    return Number.isFinite(least.value) || Number.isFinite(most.value) ? "number" : "string"
  }

  #sample<A>(constraints: Constraints, is: (value: unknown) => value is A): A | undefined {
    return constraints.samples.filter(is).find((value) => this.#document.obeys(constraints, value))
  }

  #object(constraints: Constraints, depth: number): unknown {
    const { additional, least, most, properties, required } = constraints
    const entries: Array<readonly [string, unknown]> = []
    const made = new Set<string>()
    const add = (name: string, schema: unknown): void => {
      entries.push([name, this.make(schema, name, 0, depth + 1)])
      made.add(name)
    }
    for (const [name, schema] of properties) {
      if (required.has(name) || (entries.length < most.properties && this.#isWanted(name, schema, depth))) {
        add(name, schema)
      }
    }
    for (const name of required) if (!properties.has(name)) add(name, additional)
    for (const [name, schema] of properties) {
      if (entries.length < least.properties && !made.has(name)) add(name, schema)
    }
    for (let extra = 1; entries.length < Math.min(least.properties, maxValues); extra++) {
      if (!properties.has(`field${extra}`)) add(`field${extra}`, additional)
    }
    // Over `maxProperties` may stand only what is demanded.
    const room = Math.max(0, most.properties - required.size)
    const spare = new Set(entries.filter(([name]) => !required.has(name)).slice(0, room))
    return Object.fromEntries(entries.filter((entry) => required.has(entry[0]) || spare.has(entry)))
  }

  #isWanted(name: string, schema: unknown, depth: number): boolean {
    const constraints = this.#document.constraints(schema)
    if (constraints.types?.size === 0 || depth > plentifulDepth || this.#isRecursive(constraints)) return false
    if (!this.#substance.sparing) return true
    const { facts } = this.#substance
    if (facts.labelled(name) !== undefined || facts.boolean(name) === true) return true
    return facts.mentioned((constraints.values ?? []).filter((value) => typeof value === "string")) !== undefined
  }

  #array(constraints: Constraints, field: string, depth: number): unknown {
    const { items, least, most, prefix, unique } = constraints
    const inner = this.#document.constraints(items)
    const made = prefix.map((schema, i) => this.make(schema, field, i, depth + 1))
    const closed = inner.types?.size === 0
    const strings =
      closed || inner.values !== undefined || inner.unions.length > 0 || this.#chooseType(inner) !== "string" ||
        inner.format !== undefined || inner.pattern !== undefined
        ? []
        : this.#strings(field)
    const free = closed || this.#isRecursive(inner) || depth > plentifulDepth
      ? prefix.length
      : Math.max(1, strings.length)
    const wanted = Math.min(Math.max(free, least.items), most.items, maxValues)
    const seen = new Set(made.map((item) => JSON.stringify(item)))
    for (let i = made.length; made.length < wanted && i < wanted * 3 + 20; i++) {
      const text = strings[i]
      const item = text === undefined ? this.make(items, field, i, depth + 1) : this.#fitLength(text, inner)
      const key = JSON.stringify(item)
      if (unique && seen.has(key)) continue
      seen.add(key)
      made.push(item)
    }
    return made.slice(0, Math.max(wanted, 0))
  }

  #strings(field: string): ReadonlyArray<string> {
    const { facts, sentences } = this.#substance
    const listed = facts.list(field)
    if (listed.length > 0) return listed
    const names = facts.names()
    return names.length > 0 && !proseFields.test(field.toLowerCase().replace(/s$/u, "")) ? names : sentences
  }

  #number(constraints: Constraints, field: string, index: number, whole: boolean): number {
    const { aboveLeast, belowMost, least, most, multipleOf } = constraints
    const is = (value: unknown): value is number => typeof value === "number" && (!whole || Number.isInteger(value))
    const found = this.#substance.facts.number(field, (value) => is(value) && this.#document.obeys(constraints, value))
    const sample = found ?? this.#sample(constraints, is)
    if (sample !== undefined) return sample
    const step = whole
      ? Math.max(1, multipleOf ?? 1)
      : multipleOf ?? (aboveLeast && belowMost ? (most.value - least.value) / 1_000 : 1)
    const low = Number.isFinite(least.value)
      ? least.value
      : Math.min(0, Number.isFinite(most.value) ? most.value - 100 * step : 0)
    let first = Math.ceil(low / step)
    if (aboveLeast && first * step <= least.value) first++
    let last = Number.isFinite(most.value) ? Math.floor(most.value / step) : first + 1_000
    if (belowMost && last * step >= most.value) last--
    const start = first <= 0 && last >= 0 ? 0 : first
    const times = start + index <= last ? start + index : first + index % Math.max(1, last - first + 1)
    const value = Number((times * step).toPrecision(12))
    // Between narrow bounds no step may fall.
    return multipleOf === undefined && !whole && last < first ? (least.value + most.value) / 2 : value
  }

  #string(constraints: Constraints, field: string, index: number): string {
    const { format, pattern } = constraints
    const { facts, prose, sentences, variant } = this.#substance
    const formatted = format === undefined ? undefined : stringOfFormat(format, facts, index)
    if (formatted !== undefined) return formatted
    const patterned = pattern === undefined ? undefined : this.#patterns.get(pattern)
    if (patterned !== undefined) return patterned
    return this.#fitLength(
      facts.labelled(field) ?? this.#sample(constraints, Predicate.isString) ??
        (field === "" || proseFields.test(field.toLowerCase())
          ? index === 0 ? prose : sentences[index] ?? `${prose} ${index + 1}`
          : facts.name(field) ?? this.#about(constraints, field) ?? sentences[(variant + index) % sentences.length] ??
            prose),
      constraints
    )
  }

  /** In characters as JSON Schema counts them: code points. */
  #fitLength(text: string, { least, most }: Constraints): string {
    const max = Math.min(most.length, maxCharacters, Math.max(0, maxAllCharacters - this.#characters))
    const clipped = text.length > max ? [...clip(text, max)].slice(0, max).join("") : text
    const missing = Math.min(least.length, max) - [...clipped].length
    const fitting = missing <= 0 ? clipped : clipped + " -".repeat(Math.ceil(missing / 2)).slice(0, missing)
    this.#characters += fitting.length
    return fitting
  }

  /** The sentence that speaks of the field. */
  #about({ description }: Constraints, field: string): string | undefined {
    const words = [...fieldWords(field), ...fieldWords(description)].filter((word) => word.length > 3)
    return this.#substance.sentences.find((sentence) => words.some((word) => sentence.toLowerCase().includes(word)))
  }
}

/** Whether a value can stand as the arguments of a tool. */
export const isJsonObject = (value: unknown): value is Record<string, unknown> => typeOf(value) === "object"
