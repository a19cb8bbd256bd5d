/**
 * Makes a value that fits a JSON Schema, from the text of a message.
 *
 * It invents nothing. Numbers, enum values and strings of a format come from the text, a string without a format is the
 * text itself. What the text lacks is left out, or null, or a default or example of the schema; where the schema demands
 * a value nevertheless, it is the first or the emptiest one that fits, which says nothing: 0, false, `[]`. A schema that
 * no such value fits is refused.
 */
import { Predicate, Result } from "effect"
import { canonical, formats, type Keywords, merge, Refusal, SchemaDocument } from "./JsonSchema.ts"
import { clip } from "./Text.ts"

interface Made {
  readonly value: unknown
  /** Whether it comes from the text. */
  readonly found: boolean
}

/** The longest string, and the most items, that are made. */
const maxLength = 10_000
const maxItems = 1_000

/** The value, or why there is none, to follow the name of the schema's field. */
export const jsonValue = (schema: unknown, said: string): Result.Result<unknown, string> => {
  const document = new SchemaDocument(schema)
  try {
    const { value } = new Maker(document, said).make(schema, "", 0)
    return document.fits(schema, value)
      ? Result.succeed(value)
      : Result.fail("holds constraints that the built-in engine, which is no model, cannot meet")
  } catch (refusal) {
    if (refusal instanceof Refusal) return Result.fail(refusal.reason)
    // nested too deep for the stack
    if (refusal instanceof RangeError) return Result.fail("is too large for this engine")
    throw refusal
  }
}

const types = ["object", "array", "integer", "number", "string", "boolean"]

class Maker {
  readonly #document: SchemaDocument
  readonly #said: string
  /** The numbers of the text that no field has taken yet. */
  readonly #numbers: Array<number>
  /** The references whose values are being made: none needs to contain itself. */
  readonly #open = new Set<string>()

  constructor(document: SchemaDocument, said: string) {
    this.#document = document
    this.#said = said
    this.#numbers = (said.match(/(?<![\w.-])-?\d{1,15}(?:\.\d{1,10})?(?![\w-])/gu) ?? []).map(Number)
  }

  /** `index` counts the items of a list, so that they differ. */
  make(schema: unknown, path: string, index: number, also: Keywords = {}): Made {
    const references = new Set<string>()
    const keywords = merge(also, this.#document.keywords(schema, references))
    const opened = [...references]
    if (opened.some((reference) => this.#open.has(reference))) throw new Refusal(`needs ${path} without an end`)
    for (const reference of opened) this.#open.add(reference)
    try {
      return this.#fromKeywords(keywords, path, index)
    } finally {
      for (const reference of opened) this.#open.delete(reference)
    }
  }

  #fromKeywords(keywords: Keywords, path: string, index: number): Made {
    if (keywords.enum !== undefined) return this.#listed(keywords, path, index)
    const [union, ...unions] = keywords.unions ?? []
    if (union !== undefined) {
      const ways = ("anyOf" in union ? union.anyOf : union.oneOf).map((option) => () => {
        const made = this.make(option, path, index, { ...keywords, unions })
        if (this.#document.fits(union, made.value)) return made
        throw new Refusal(`allows no value${at(path)} that the built-in engine can find`)
      })
      return this.#first(ways, path)
    }
    const named = keywords.type ?? [impliedType(keywords)]
    const possible = [...types.filter((type) => named.includes(type)), ...named.includes("null") ? ["null"] : []]
    const made = this.#first(possible.map((type) => () => this.#ofType(type, keywords, path, index)), path)
    if (made.found || made.value === null) return made
    const [given] = [keywords["default"], ...asList(keywords["examples"])].filter((value) =>
      value !== undefined && this.#document.fits(keywords, value)
    )
    return given === undefined || index > 0 ? made : { value: given, found: false }
  }

  /** Of several ways the first that finds something in the text, else null, else the first that gives a value. */
  #first(ways: ReadonlyArray<() => Made>, path: string): Made {
    const made: Array<Made> = []
    let refusal: unknown = new Refusal(`allows no value${at(path)}`)
    for (const way of ways) {
      try {
        const one = way()
        if (one.found) return one
        made.push(one)
      } catch (error) {
        refusal = error
      }
    }
    const [first] = made
    if (first === undefined) throw refusal
    return made.find(({ value }) => value === null) ?? first
  }

  #listed({ enum: values = [], ...keywords }: Keywords, path: string, index: number): Made {
    const allowed = values.filter((value) => this.#document.fits(keywords, value))
    const text = this.#said.toLowerCase()
    const mentioned = allowed.find((value) => typeof value === "string" && holds(text, value.toLowerCase()))
    if (mentioned !== undefined && index === 0) return { value: mentioned, found: true }
    if (allowed.length === 0) throw new Refusal(`allows no value${at(path)}`)
    if (index === 0 && allowed.includes(null)) return { value: null, found: false }
    const given = allowed.find((value) => canonical(value) === canonical(keywords["default"]))
    return { value: index === 0 && given !== undefined ? given : allowed[index % allowed.length], found: false }
  }

  #ofType(type: string, keywords: Keywords, path: string, index: number): Made {
    switch (type) {
      case "object":
        return this.#object(keywords, path)
      case "array":
        return this.#array(keywords, path)
      case "integer":
      case "number":
        return this.#number({ ...keywords, type: [type] }, path, index)
      case "string":
        return this.#string(keywords, path, index)
      case "boolean":
        return { value: index % 2 === 1, found: false }
      default:
        return { value: null, found: false }
    }
  }

  #object(keywords: Keywords, path: string): Made {
    const { additionalProperties, properties = {}, required = [] } = keywords
    const value: Record<string, unknown> = Object.create(null)
    let found = false
    const fewest = Number(keywords["minProperties"] ?? 0)
    const inner = (name: string): string => path === "" ? name : `${path}.${name}`
    for (const name of [...required, ...Object.keys(properties).filter((name) => !required.includes(name))]) {
      const schema = Object.hasOwn(properties, name) ? properties[name] : additionalProperties
      const isNeeded = required.includes(name) || Object.keys(value).length < fewest
      const made = isNeeded
        ? Result.succeed(this.make(schema, inner(name), 0))
        : Result.try(() => this.make(schema, inner(name), 0))
      if (Result.isFailure(made) || !(isNeeded || made.success.found)) continue
      value[name] = made.success.value
      found ||= made.success.found
    }
    if (fewest > maxItems) throw new Refusal(`demands too many properties${at(path)}`)
    for (let extra = 1; Object.keys(value).length < fewest; extra++) {
      value[`field${extra}`] = this.make(additionalProperties, inner(`field${extra}`), 0).value
    }
    // with a prototype, as JSON.parse would make it
    return { value: Object.fromEntries(Object.entries(value)), found }
  }

  #array(keywords: Keywords, path: string): Made {
    const { items, prefixItems = [] } = keywords
    const fewest = Number(keywords["minItems"] ?? 0)
    if (fewest > maxItems) throw new Refusal(`demands too many items${at(path)}`)
    const made: Array<Made> = []
    while (made.length < fewest) {
      const next = made.length
      made.push(this.make(next < prefixItems.length ? prefixItems[next] : items, `${path}[${next}]`, next))
    }
    return { value: made.map(({ value }) => value), found: made.some(({ found }) => found) }
  }

  #number(keywords: Keywords, path: string, index: number): Made {
    const fits = (value: number): boolean => Number.isFinite(value) && this.#document.fits(keywords, value)
    const taken = this.#numbers.findIndex(fits)
    if (taken !== -1) return { value: this.#numbers.splice(taken, 1)[0], found: true }
    const limit = (name: string): number => Number(keywords[name] ?? Number.NaN)
    const low = Math.max(...[limit("minimum"), limit("exclusiveMinimum")].filter((bound) => !Number.isNaN(bound)))
    const high = Math.min(...[limit("maximum"), limit("exclusiveMaximum")].filter((bound) => !Number.isNaN(bound)))
    const step = Number(keywords["multipleOf"] ?? 1)
    const up = Math.ceil(low / step)
    const down = Math.floor(high / step)
    const between = low + (high - low) * (index + 1) / (index + 2)
    const candidates = [index, up + index, up + index + 1, down - index, down - index - 1].map((times) => times * step)
    const value = [...candidates, between].map((value) => Number(value.toPrecision(12))).find(fits)
    if (value === undefined) throw new Refusal(`allows no number${at(path)} that the built-in engine can find`)
    return { value: value === 0 ? 0 : value, found: false }
  }

  #string(keywords: Keywords, path: string, index: number): Made {
    const { format, pattern } = keywords
    const isOf = typeof format === "string" ? formats[format] : undefined
    if (pattern !== undefined || format !== undefined) {
      const words = this.#said.split(/[\s,;()<>"]+/u).map((word) => word.replace(/[.!?:]+$/u, ""))
      const value = pattern === undefined ? words.filter((word) => isOf?.test(word) === true)[index] : undefined
      if (value !== undefined && this.#document.fits(keywords, value)) return { value, found: true }
      const what = pattern === undefined ? `of the format ${String(format)}` : "that matches its pattern"
      throw new Refusal(
        `demands a string${at(path)} ${what}, and the message holds none that the built-in engine finds`
      )
    }
    const fewest = Number(keywords["minLength"] ?? 0)
    const most = Math.min(Number(keywords["maxLength"] ?? maxLength), maxLength)
    if (fewest > maxLength) throw new Refusal(`demands too long a string${at(path)}`)
    const text = index === 0 ? this.#said : `${index + 1}: ${this.#said}`
    const clipped = [...text].length > most ? [...clip(text, most)].slice(0, most).join("") : text
    const missing = fewest - [...clipped].length
    return { value: missing > 0 ? clipped + ".".repeat(missing) : clipped, found: false }
  }
}

const asList = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const at = (path: string): string => path === "" ? "" : ` at ${path}`

/** Whether a text holds a phrase as whole words. */
const holds = (text: string, phrase: string): boolean => {
  for (let from = text.indexOf(phrase); from !== -1 && phrase !== ""; from = text.indexOf(phrase, from + 1)) {
    if (!/[\p{L}\p{N}_]/u.test(`${text[from - 1] ?? ""}${text[from + phrase.length] ?? ""}`)) return true
  }
  return false
}

const impliedType = (keywords: Keywords): string => {
  const has = (...names: ReadonlyArray<string>): boolean => names.some((name) => keywords[name] !== undefined)
  if (Object.keys(keywords.properties ?? {}).length > 0 || (keywords.required ?? []).length > 0) return "object"
  if (has("minProperties", "additionalProperties")) return "object"
  if (has("items", "prefixItems", "minItems")) return "array"
  return has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf") ? "number" : "string"
}

/** Whether a value can stand as the arguments of a tool. */
export const isJsonObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isReadonlyObject(value) && !Array.isArray(value)
