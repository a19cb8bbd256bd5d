/**
 * Makes a value that fits a JSON Schema, from the text of a message.
 *
 * It invents nothing. Numbers, enum values and strings of a format come from the text, a string without a format is the
 * text itself. What the text lacks is left out, or null, or the schema's default. If the schema demands a value
 * nevertheless, it is the first or the emptiest one that fits: 0, false, `[]`. A schema that no such value fits is refused.
 *
 * A client's pattern is a program that can run for ever, so none is run: no string fits one. Nor does any value fit a
 * keyword that is not known here. The work is bounded.
 */
import { JsonPointer, Predicate, Result } from "effect"
import { clip } from "./Text.ts"

type Keywords = Readonly<Record<string, unknown>>

interface Made {
  readonly value: unknown
  /** Whether it comes from the text. */
  readonly found: boolean
}

/** Why a schema cannot be followed. */
class Refusal {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/** Schemas that are read for one value: references may multiply without end. A few milliseconds' worth. */
const maxReads = 20_000
/** The longest string, and the most items or properties, that are made. */
const maxLength = 10_000
const maxItems = 1_000

const types = ["object", "array", "integer", "number", "string", "boolean", "null"]
const unknown =
  /^(?:if|contains|patternProperties|propertyNames|dependencies|dependent\w+|unevaluated\w+|additionalItems)$/u

/** What strings of a format look like. A string of another format fits nothing. */
const formats: Readonly<Record<string, RegExp>> = {
  "date": /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/u,
  "time": /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/u,
  "date-time": /^\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/u,
  "email": /^[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}$/u,
  "uri": /^https?:\/\/[A-Za-z0-9.-]{1,253}(?::\d{1,5})?(?:\/[\w/~.%?&=#+-]{0,2000})?$/u,
  "uuid": /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu
}

/** The value, or why there is none, to follow the name of the schema's field. */
export const jsonValue = (schema: unknown, said: string): Result.Result<unknown, string> => {
  try {
    return Result.succeed(new Maker(schema, said).whole())
  } catch (error) {
    if (error instanceof Refusal) return Result.fail(error.reason)
    // nested too deep for the stack
    if (error instanceof RangeError) return Result.fail("is too large for the built-in engine")
    throw error
  }
}

class Maker {
  readonly #root: unknown
  readonly #said: string
  /** The numbers of the text that no field has taken yet. */
  readonly #numbers: Array<number>
  /** The references whose values are being made: a value needs none inside itself. */
  readonly #open = new Set<string>()
  #reads = 0

  constructor(root: unknown, said: string) {
    this.#root = root
    this.#said = said
    this.#numbers = (said.match(/(?<![\w.-])-?\d{1,15}(?:\.\d{1,10})?(?![\w-])/gu) ?? []).map(Number)
  }

  whole(): unknown {
    const { value } = this.#make([this.#root], "", 0)
    if (this.#fits(this.#root, value)) return value
    throw new Refusal("holds constraints that the built-in engine, which is no model, cannot meet")
  }

  #read(schema: unknown): Keywords {
    if (this.#reads++ > maxReads) throw new Refusal("is too large for the built-in engine")
    if (schema === true || schema === undefined) return {}
    if (!Predicate.isReadonlyObject(schema)) throw new Refusal("allows no value")
    return schema
  }

  #target(reference: string): unknown {
    let target = this.#root
    for (const key of JsonPointer.parseUriFragment(reference) ?? [""]) {
      const isThere = Predicate.isObjectOrArray(target) && Object.hasOwn(target, key)
      target = isThere ? (target as Keywords)[key] : undefined
    }
    if (target === undefined) throw new Refusal(`refers to ${reference}, which is not there`)
    return target
  }

  #fits(schema: unknown, value: unknown): boolean {
    if (schema === false) return false
    const keywords = this.#read(schema)
    const { $ref, additionalProperties, allOf, anyOf, format, items, not, oneOf, pattern, prefixItems } = keywords
    const fits = (schema: unknown): boolean => this.#fits(schema, value)
    const between = (size: number, noun: string): boolean =>
      size >= bound(keywords, `min${noun}`, 0) && size <= bound(keywords, `max${noun}`, Infinity)
    if (typeof $ref === "string" && !fits(this.#target($ref))) return false
    if (
      !list(allOf).every(fits) || (not !== undefined && fits(not)) || Object.keys(keywords).some((k) => unknown.test(k))
    ) {
      return false
    }
    if (Array.isArray(anyOf) && !anyOf.some(fits)) return false
    if (Array.isArray(oneOf) && oneOf.filter(fits).length !== 1) return false
    if (typesOf(keywords)?.some((type) => isOf(value, type)) === false) return false
    if (valuesOf(keywords)?.some((allowed) => isSame(allowed, value)) === false) return false
    if (typeof value === "string") {
      return pattern === undefined && between([...value].length, "Length") &&
        (typeof format !== "string" || formats[format]?.test(value) === true)
    }
    if (typeof value === "number") {
      const times = value / bound(keywords, "multipleOf", 1e-12)
      return value >= bound(keywords, "minimum", -Infinity) && value <= bound(keywords, "maximum", Infinity) &&
        value > bound(keywords, "exclusiveMinimum", -Infinity) &&
        value < bound(keywords, "exclusiveMaximum", Infinity) &&
        (keywords["multipleOf"] === undefined || Math.abs(times - Math.round(times)) < 1e-9)
    }
    if (Array.isArray(value)) {
      const first = list(prefixItems)
      return between(value.length, "Items") &&
        (keywords["uniqueItems"] !== true || new Set(value.map(canonical)).size === value.length) &&
        value.every((item, at) => this.#fits(at < first.length ? first[at] : items, item))
    }
    if (!Predicate.isReadonlyObject(value)) return true
    return between(Object.keys(value).length, "Properties") &&
      list(keywords["required"]).every((name) => typeof name !== "string" || Object.hasOwn(value, name)) &&
      Object.entries(value).every(([name, inner]) =>
        this.#fits(propertyOf(keywords, name, additionalProperties), inner)
      )
  }

  /** A value that fits all the schemas. `index` counts the items of a list, so that they differ. */
  #make(schemas: ReadonlyArray<unknown>, path: string, index: number): Made {
    const parts: Array<Keywords> = []
    const opened: Array<string> = []
    for (const queue = [...schemas]; queue.length > 0;) {
      const { $ref, allOf, ...keywords } = this.#read(queue.shift())
      parts.push(keywords)
      queue.push(...list(allOf))
      if (typeof $ref !== "string" || opened.includes($ref)) continue
      if (this.#open.has($ref)) throw new Refusal(`contains itself${at(path)} without an end`)
      opened.push($ref)
      queue.push(this.#target($ref))
    }
    for (const reference of opened) this.#open.add(reference)
    try {
      return this.#fromParts(parts, path, index)
    } finally {
      for (const reference of opened) this.#open.delete(reference)
    }
  }

  #fromParts(parts: ReadonlyArray<Keywords>, path: string, index: number): Made {
    for (const [number, { anyOf, oneOf, ...rest }] of parts.entries()) {
      const options = anyOf ?? oneOf
      if (!Array.isArray(options)) continue
      const others = parts.toSpliced(number, 1, anyOf === undefined ? rest : { ...rest, oneOf })
      const union = anyOf === undefined ? { oneOf } : { anyOf }
      return this.#first(options.map((option) => () => this.#make([...others, option], path, index)), path, union)
    }
    const listing = parts.find((part) => valuesOf(part) !== undefined)
    if (listing !== undefined) {
      const { const: _value, enum: _values, ...rest } = listing
      const others = [rest, ...parts.filter((part) => part !== listing)]
      const values = valuesOf(listing)?.filter((value) => others.every((part) => this.#fits(part, value)))
      return this.#listed(values ?? [], path, index)
    }
    const named = parts.map(typesOf).filter((types) => types !== undefined)
    const possible = named.length === 0
      ? [impliedType(parts)]
      : types.filter((type) =>
        named.every((some) => some.includes(type) || (type === "integer" && some.includes("number")))
      )
    const made = this.#first(possible.map((type) => () => this.#ofType(type, parts, path, index)), path)
    const given = parts.map(({ default: given }) => given).find((given) =>
      given !== undefined && parts.every((part) => this.#fits(part, given))
    )
    return made.found || made.value === null || given === undefined || index > 0 ? made : { value: given, found: false }
  }

  /** The first way that finds something in the text, else null, else the first that gives a value. */
  #first(ways: ReadonlyArray<() => Made>, path: string, schema: unknown = true): Made {
    const made: Array<Made> = []
    let refusal: unknown = new Refusal(`allows no value${at(path)} that the built-in engine finds`)
    for (const way of ways) {
      try {
        const one = way()
        if (!this.#fits(schema, one.value)) continue
        if (one.found) return one
        made.push(one)
      } catch (error) {
        refusal = error
      }
    }
    const best = made.find(({ value }) => value === null) ?? made[0]
    if (best === undefined) throw refusal
    return best
  }

  #listed(values: ReadonlyArray<unknown>, path: string, index: number): Made {
    const words = ` ${this.#said.toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, " ")} `
    const mentioned = values.find((value) => typeof value === "string" && words.includes(` ${value.toLowerCase()} `))
    if (mentioned !== undefined && index === 0) return { value: mentioned, found: true }
    if (values.length === 0) throw new Refusal(`allows no value${at(path)}`)
    return { value: index === 0 && values.includes(null) ? null : values[index % values.length], found: false }
  }

  #ofType(type: string, parts: ReadonlyArray<Keywords>, path: string, index: number): Made {
    if (type === "object") return this.#object(parts, path)
    if (type === "array") return this.#array(parts, path)
    if (type === "string") return this.#string(parts, path, index)
    if (type === "boolean") return { value: index % 2 === 1, found: false }
    return type === "null" ? { value: null, found: false } : this.#number([...parts, { type }], path, index)
  }

  #object(parts: ReadonlyArray<Keywords>, path: string): Made {
    const made = new Map<string, Made>()
    const required = new Set(parts.flatMap(({ required }) => list(required)).filter(Predicate.isString))
    const fewest = least(parts, "minProperties")
    if (fewest > maxItems) throw new Refusal(`demands too many properties${at(path)}`)
    const make = (name: string): Made => {
      const schemas = parts.map((part) => propertyOf(part, name, part["additionalProperties"]))
      return this.#make(schemas, path === "" ? name : `${path}.${name}`, 0)
    }
    for (const name of new Set([...required, ...parts.flatMap(({ properties }) => Object.keys(properties ?? {}))])) {
      const isNeeded = required.has(name) || made.size < fewest
      const one = isNeeded ? Result.succeed(make(name)) : Result.try(() => make(name))
      if (Result.isSuccess(one) && (isNeeded || one.success.found)) made.set(name, one.success)
    }
    for (let extra = 1; made.size < fewest; extra++) made.set(`field${extra}`, make(`field${extra}`))
    return {
      value: Object.fromEntries(Array.from(made, ([name, { value }]) => [name, value])),
      found: made.values().some(({ found }) => found)
    }
  }

  #array(parts: ReadonlyArray<Keywords>, path: string): Made {
    const fewest = least(parts, "minItems")
    if (fewest > maxItems) throw new Refusal(`demands too many items${at(path)}`)
    const made = Array.from({ length: fewest }, (_, index) => {
      const schemas = parts.map(({ items, prefixItems }) =>
        index < list(prefixItems).length ? list(prefixItems)[index] : items
      )
      return this.#make(schemas, `${path}[${index}]`, index)
    })
    return { value: made.map(({ value }) => value), found: made.some(({ found }) => found) }
  }

  #number(parts: ReadonlyArray<Keywords>, path: string, index: number): Made {
    const fits = (value: number): boolean => parts.every((part) => this.#fits(part, value))
    const taken = this.#numbers.findIndex(fits)
    if (taken !== -1) return { value: this.#numbers.splice(taken, 1)[0], found: true }
    const low = Math.max(least(parts, "minimum", -Infinity), least(parts, "exclusiveMinimum", -Infinity))
    const high = Math.min(most(parts, "maximum"), most(parts, "exclusiveMaximum"))
    const step = least(parts, "multipleOf", 0) || 1
    const [up, down] = [Math.ceil(low / step) + index, Math.floor(high / step) - index]
    const candidates = [index, up, up + 1, down, down - 1].map((times) => times * step)
    const value = [...candidates, low + (high - low) * (index + 1) / (index + 2)]
      .map((value) => Number(value.toPrecision(12))).find((value) => Number.isFinite(value) && fits(value))
    if (value === undefined) throw new Refusal(`allows no number${at(path)} that the built-in engine finds`)
    return { value: value + 0, found: false }
  }

  #string(parts: ReadonlyArray<Keywords>, path: string, index: number): Made {
    const special = parts.find(({ format, pattern }) => format !== undefined || pattern !== undefined)
    if (special !== undefined) {
      const words = this.#said.split(/[\s,;()<>"]+/u).map((word) => word.replace(/[.!?:]+$/u, ""))
      const value = words.filter((word) => parts.every((part) => this.#fits(part, word)))[index]
      if (value !== undefined) return { value, found: true }
      const what = special["pattern"] === undefined ? `of the format ${String(special["format"])}` : "with a pattern"
      throw new Refusal(`demands a string${at(path)} ${what}, and the built-in engine finds none in the message`)
    }
    const fewest = least(parts, "minLength")
    if (fewest > maxLength) throw new Refusal(`demands too long a string${at(path)}`)
    const longest = Math.min(most(parts, "maxLength"), maxLength)
    const text = index === 0 ? this.#said : `${index + 1}: ${this.#said}`
    const clipped = [...text].length > longest ? [...clip(text, longest)].slice(0, longest).join("") : text
    return { value: clipped + ".".repeat(Math.max(0, fewest - [...clipped].length)), found: false }
  }
}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const at = (path: string): string => path === "" ? "" : ` at ${path}`

/** Gemini writes some numbers as strings. */
const bound = (keywords: Keywords, name: string, otherwise: number): number => Number(keywords[name] ?? otherwise)

const least = (parts: ReadonlyArray<Keywords>, name: string, otherwise = 0): number =>
  Math.max(...parts.map((part) => bound(part, name, otherwise)))

const most = (parts: ReadonlyArray<Keywords>, name: string): number =>
  Math.min(...parts.map((part) => bound(part, name, Infinity)))

const propertyOf = ({ properties }: Keywords, name: string, otherwise: unknown): unknown =>
  Predicate.isReadonlyObject(properties) && Object.hasOwn(properties, name) ? properties[name] : otherwise

/** With OpenAPI's `nullable` and Gemini's capitals; `undefined` allows every type. */
const typesOf = ({ nullable, type }: Keywords): ReadonlyArray<string> | undefined => {
  const named = (Array.isArray(type) ? type : [type]).flatMap((name) =>
    typeof name === "string" ? [name.toLowerCase()] : []
  )
  if (named.length === 0 || named[0] === "type_unspecified") return undefined
  return nullable === true ? [...named, "null"] : named
}

const valuesOf = (keywords: Keywords): ReadonlyArray<unknown> | undefined =>
  "const" in keywords ? [keywords["const"]] : Array.isArray(keywords["enum"]) ? keywords["enum"] : undefined

const isOf = (value: unknown, type: string): boolean =>
  type === "null"
    ? value === null
    : type === "array"
    ? Array.isArray(value)
    : type === "object"
    ? isJsonObject(value)
    : type === "integer"
    ? Number.isInteger(value)
    : typeof value === type

const impliedType = (parts: ReadonlyArray<Keywords>): string => {
  const names = parts.flatMap((part) => Object.keys(part)).join(" ")
  if (/roperties|required/u.test(names)) return "object"
  return /items/iu.test(names) ? "array" : /imum|multipleOf/u.test(names) ? "number" : "string"
}

const canonical = (value: unknown): string | undefined =>
  JSON.stringify(
    value,
    (_, inner: unknown) =>
      isJsonObject(inner) ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => a < b ? -1 : 1)) : inner
  )

const isSame = (a: unknown, b: unknown): boolean =>
  a === b || (Predicate.isObjectOrArray(a) && Predicate.isObjectOrArray(b) && canonical(a) === canonical(b))

/** Whether a value can stand as the arguments of a tool. */
export const isJsonObject = (value: unknown): value is Keywords => Predicate.isReadonlyObject(value)
