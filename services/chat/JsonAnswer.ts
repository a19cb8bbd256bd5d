/**
 * Builds a value that fits a JSON Schema from the text of a message.
 *
 * A value that the text lacks is left out, null, or the schema's default. If the schema requires one anyway, it is the first
 * or the emptiest value allowed: 0, false, `[]`, an empty string, or the whole text for a field such as `query`. A string with
 * a pattern or a format would have to be invented, and is refused; so are keywords that this engine does not support. A value
 * may fit several options of `oneOf`.
 */
import { JsonPointer, Predicate, Result } from "effect"
import { Facts, type Field, takesWholeText } from "./Facts.ts"
import { clip } from "./Text.ts"

type Keywords = Readonly<Record<string, unknown>>

interface Made {
  readonly value: unknown
  /** Whether it comes from the text. */
  readonly found: boolean
}

/** The place of a value in the answer, and in the text. */
interface Slot extends Omit<Field, "description" | "format"> {
  readonly path: string
  /** The index in a list that the engine makes up, so that the items differ. */
  readonly index: number
  /** The text, or an item of a list that the text itself separates. */
  readonly facts: Facts
  readonly isItem: boolean
  /** The references that lead here. If one of them occurs again, the schema contains itself. */
  readonly open: ReadonlySet<string>
}

class Refusal extends Error {}

/** Limits on schemas read for one value (a few milliseconds of work), on strings, and on items or properties. */
const maxReads = 20_000
const maxLength = 10_000
const maxItems = 1_000
const tooLarge = "is too large for the built-in engine"

/** Maximum items to find in the text, and other fields of the object to consider for a value. */
const mostFound = 100
const mostOthers = 50

/** Keywords that restrict values and that this engine does not support. It ignores other unknown keywords as annotations. */
const unsupported =
  /^(?:not|if|contains|patternProperties|propertyNames|dependencies|dependent\w+|unevaluated\w+|additionalItems)$/u

/** Returns the value, or the reason why there is none, worded to follow the name of the schema's field. */
export const jsonValue = (schema: unknown, said: string): Result.Result<unknown, string> => {
  const facts = new Facts(said.slice(0, maxLength))
  const field = { name: "", others: [], isNeeded: true, isOnlyNumber: true }
  const whole: Slot = { ...field, path: "", index: 0, facts, isItem: false, open: new Set() }
  try {
    return Result.succeed(new Maker(schema).make([schema], whole).value)
  } catch (error) {
    if (error instanceof Refusal) return Result.fail(error.message)
    // nested too deep for the stack
    if (error instanceof RangeError) return Result.fail(tooLarge)
    throw error
  }
}

class Maker {
  readonly #root: unknown
  #reads = 0

  constructor(root: unknown) {
    this.#root = root
  }

  /** Makes a value that fits all the schemas. */
  make(schemas: ReadonlyArray<unknown>, field: Slot): Made {
    const parts: Array<Keywords> = []
    const open = new Set(field.open)
    for (const queue = [...schemas]; queue.length > 0;) {
      const { $ref, allOf, ...keywords } = this.#read(queue.shift(), field.path)
      parts.push(keywords)
      queue.push(...list(allOf))
      if (typeof $ref !== "string") continue
      if (field.open.has($ref)) throw new Refusal(`contains itself${at(field.path)} without an end`)
      if (!open.has($ref)) queue.push(this.#target($ref))
      open.add($ref)
    }
    return this.#makeOf(parts, { ...field, open })
  }

  #read(schema: unknown, path: string): Keywords {
    if (this.#reads++ > maxReads) throw new Refusal(tooLarge)
    if (schema === true || schema === undefined) return {}
    if (!Predicate.isReadonlyObject(schema)) throw new Refusal(`allows no value${at(path)}`)
    const keyword = Object.keys(schema).find((keyword) => unsupported.test(keyword))
    if (keyword === undefined) return schema
    throw new Refusal(`has the keyword ${keyword}${at(path)}, which the built-in engine does not support`)
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

  #makeOf(parts: ReadonlyArray<Keywords>, field: Slot): Made {
    for (const [number, part] of parts.entries()) {
      const { anyOf, oneOf, ...rest } = part
      const options = anyOf ?? oneOf
      if (!Array.isArray(options)) continue
      const slot = options.some(isNull) ? { ...field, isNeeded: false } : field
      const others = parts.with(number, anyOf === undefined ? rest : { ...rest, oneOf })
      return this.#first(options.map((option) => () => this.make([...others, option], slot)), field)
    }
    const types = typesOf(parts)
    const slot = types.includes("null") ? { ...field, isNeeded: false } : field
    const ways = parts.some((part) => valuesOf(part) !== undefined)
      ? [() => this.#listed(parts, types, field)]
      : types.map((type) => () => this.#ofType(type, parts, slot))
    const made = this.#first(ways, field)
    const usual = parts.find((part) => part["default"] !== undefined)?.["default"]
    const isUsual = !made.found && made.value !== null && usual !== undefined && field.index === 0
    return isUsual ? { value: usual, found: false } : made
  }

  /** The first value found in the text; otherwise null if any way allows it, otherwise the first value made. */
  #first(ways: ReadonlyArray<() => Made>, field: Slot): Made {
    const made: Array<Made> = []
    let refusal: unknown = new Refusal(`allows no value${at(field.path)}`)
    for (const way of ways) {
      const one = Result.try(way)
      if (Result.isSuccess(one) && one.success.found) return one.success
      if (Result.isSuccess(one)) made.push(one.success)
      else refusal = one.failure
    }
    const best = made.find(({ value }) => value === null) ?? made[0]
    if (best === undefined) throw refusal
    return best
  }

  #listed(parts: ReadonlyArray<Keywords>, types: ReadonlyArray<string>, field: Slot): Made {
    const [first = [], ...others] = parts.map(valuesOf).filter((values) => values !== undefined)
    const allowed = others.map((values) => new Set(values.map((value) => JSON.stringify(value))))
    const values = first.filter((value) =>
      allowed.every((values) => values.has(JSON.stringify(value))) && types.some((type) => isOf(value, type))
    )
    if (values.length === 0) throw new Refusal(`allows no value${at(field.path)}`)
    const words = ` ${field.facts.text.toLowerCase().replace(/[^\p{L}\p{N}_]+/gu, " ")} `
    const mentioned = values.filter((value) => typeof value === "string" && words.includes(` ${value.toLowerCase()} `))
    const { index } = field
    if (index < mentioned.length) return { value: mentioned[index], found: true }
    return { value: index === 0 && values.includes(null) ? null : values[index % values.length], found: false }
  }

  #ofType(type: string, parts: ReadonlyArray<Keywords>, field: Slot): Made {
    if (type === "object") return this.#object(parts, field)
    if (type === "array") return this.#array(parts, field)
    if (type === "string") return this.#string(parts, field)
    if (type === "boolean") return { value: field.index % 2 === 1, found: false }
    return type === "null" ? { value: null, found: false } : this.#number(type, parts, field)
  }

  #object(parts: ReadonlyArray<Keywords>, field: Slot): Made {
    const made = new Map<string, Made>()
    const required = new Set(parts.flatMap(({ required }) => list(required)).filter(Predicate.isString))
    const fewest = this.#fewest(parts, "Properties", field.path)
    const properties = parts.flatMap(({ properties }) => Object.entries(properties ?? {}))
    const names = [...new Set([...required, ...properties.map(([name]) => name)])]
    const isOnlyNumber = properties.filter(([, schema]) => isNumeric(schema)).length === 1
    const inner: Slot = { ...field, index: 0, isItem: false, isOnlyNumber }
    const make = (name: string): Made => {
      const schemas = parts.map(({ additionalProperties, properties }) =>
        Predicate.isReadonlyObject(properties) && Object.hasOwn(properties, name)
          ? properties[name]
          : additionalProperties
      )
      const path = field.path === "" ? name : `${field.path}.${name}`
      const others = names.slice(0, mostOthers).filter((other) => other !== name)
      return this.make(schemas, { ...inner, path, name, others, isNeeded: required.has(name) })
    }
    for (const name of names) {
      const isNeeded = required.has(name) || made.size < fewest
      const one = attempt(() => make(name), isNeeded)
      if (isNeeded || one?.found === true) made.set(name, one!)
    }
    for (let extra = 1; made.size < fewest; extra++) made.set(`field${extra}`, make(`field${extra}`))
    return {
      value: Object.fromEntries(Array.from(made, ([name, { value }]) => [name, value])),
      found: made.values().some(({ found }) => found)
    }
  }

  #array(parts: ReadonlyArray<Keywords>, field: Slot): Made {
    const fewest = this.#fewest(parts, "Items", field.path)
    const longest = Math.min(most(parts, "maxItems"), Math.max(fewest, mostFound))
    const isUnique = parts.some(({ uniqueItems }) => uniqueItems === true)
    const make = (index: number, slot: Slot): Made => {
      const schemas = parts.map(({ items, prefixItems }) =>
        index in list(prefixItems) ? list(prefixItems)[index] : items
      )
      return this.make(schemas, { ...slot, path: `${field.path}[${index}]`, isNeeded: false })
    }
    const items = field.facts.list(field.name)
    const made = items.slice(0, longest).flatMap((item, index) => {
      const one = attempt(() => make(index, { ...field, facts: new Facts(item), index: 0, isItem: true }))
      return one?.found === true ? [one] : []
    })
    while (made.length < (items.length > 0 ? fewest : longest)) {
      const isNeeded = made.length < fewest
      const next = attempt(() => make(made.length, { ...field, index: made.length, isItem: false }), isNeeded)
      if (next === undefined || !(isNeeded || next.found)) break
      made.push(next)
    }
    const distinct = new Map(made.map((one, at) => [isUnique ? JSON.stringify(one.value) : at, one.value]))
    if (distinct.size < fewest) {
      throw new Refusal(`requires more distinct items${at(field.path)} than the built-in engine can make`)
    }
    return { value: [...distinct.values()], found: made.some(({ found }) => found) }
  }

  #number(type: string, parts: ReadonlyArray<Keywords>, field: Slot): Made {
    const [low, high] = [least(parts, "minimum", -Infinity), most(parts, "maximum")]
    const [above, below] = [least(parts, "exclusiveMinimum", -Infinity), most(parts, "exclusiveMaximum")]
    const step = least(parts, "multipleOf", 0)
    const fits = (value: number): boolean =>
      value >= low && value <= high && value > above && value < below &&
      (type === "number" || Number.isInteger(value)) &&
      (step === 0 || Math.abs(value / step - Math.round(value / step)) < 1e-9)
    const said = field.facts.number({ ...field, ...describe(parts) }, fits)
    if (said !== undefined) return { value: said, found: true }
    const [first, last] = [Math.max(low, above), Math.min(high, below)]
    const by = step || 1
    const { index } = field
    const up = Math.ceil(first / by) + index
    const candidates = [index, up, up + 1, Math.floor(last / by) - index, Math.floor(last / by) - 1 - index]
    const value = [...candidates.map((times) => times * by), first + (last - first) * (index + 1) / (index + 2)]
      .map((value) => Number(value.toPrecision(12))).find((value) => Number.isFinite(value) && fits(value))
    if (value === undefined) throw new Refusal(`allows no number${at(field.path)} that the built-in engine can find`)
    return { value: value + 0, found: false }
  }

  #string(parts: ReadonlyArray<Keywords>, field: Slot): Made {
    const fewest = least(parts, "minLength")
    const longest = Math.min(most(parts, "maxLength"), maxLength)
    if (fewest > longest) throw new Refusal(`allows no string${at(field.path)} that the built-in engine can make`)
    const fits = (text: string): boolean => text.length >= fewest && [...text].length <= longest
    const isFree = parts.every(({ pattern }) => pattern === undefined)
    const said = isFree ? field.facts.string({ ...field, ...describe(parts) }) : undefined
    if (said !== undefined && fits(said)) return { value: said, found: true }
    for (const { format, pattern } of parts) {
      if (format === undefined && pattern === undefined) continue
      const what = pattern === undefined ? `of the format ${String(format)}` : "with a pattern"
      throw new Refusal(`requires a string${at(field.path)} ${what}, which the built-in engine would have to invent`)
    }
    const { facts: { text: whole }, index } = field
    const text = index > 0 ? `${index + 1}: ${whole}` : field.isItem || takesWholeText(field) ? whole : ""
    const clipped = clip(text, longest).slice(0, longest)
    const value = clipped + ".".repeat(Math.max(0, fewest - [...clipped].length))
    return { value, found: field.isItem && value === whole }
  }

  #fewest(parts: ReadonlyArray<Keywords>, noun: "Items" | "Properties", path: string): number {
    const fewest = least(parts, `min${noun}`)
    if (fewest <= Math.min(maxItems, most(parts, `max${noun}`))) return fewest
    throw new Refusal(`requires too many ${noun.toLowerCase()}${at(path)}`)
  }
}

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const describe = (parts: ReadonlyArray<Keywords>) => {
  const find = (keyword: "description" | "format") => parts.map((part) => part[keyword]).find(Predicate.isString)
  return { description: find("description") ?? "", format: find("format") }
}

const isNull = (schema: unknown): boolean => Predicate.isReadonlyObject(schema) && schema["type"] === "null"

/** What `make` makes; `undefined` if it refuses and the value is not needed. */
const attempt = (make: () => Made, isNeeded = false): Made | undefined =>
  isNeeded ? make() : Result.getOrUndefined(Result.try(make))

/** Whether a schema is that of a number or of a list of numbers. */
const isNumeric = (schema: unknown): boolean =>
  Predicate.isReadonlyObject(schema) &&
  (isNumeric(schema["items"]) || [schema["type"]].flat().some((type) => /^(?:number|integer)$/iu.test(String(type))))

const at = (path: string): string => path === "" ? "" : ` at ${path}`

/** Gemini writes some numbers as strings. */
const least = (parts: ReadonlyArray<Keywords>, name: string, otherwise = 0): number =>
  Math.max(...parts.map((part) => Number(part[name] ?? otherwise)))

const most = (parts: ReadonlyArray<Keywords>, name: string): number =>
  Math.min(...parts.map((part) => Number(part[name] ?? Infinity)))

const allTypes = ["object", "array", "integer", "number", "string", "boolean", "null"]

/** The types that all parts allow, or the one that their keywords imply. Knows OpenAPI's `nullable` and Gemini's upper case. */
const typesOf = (parts: ReadonlyArray<Keywords>): ReadonlyArray<string> => {
  const named = parts.flatMap(({ nullable, type }) => {
    const names = (Array.isArray(type) ? type : [type]).filter(Predicate.isString).map((name) => name.toLowerCase())
    return names.length === 0 || names[0] === "type_unspecified" ? [] : [nullable === true ? [...names, "null"] : names]
  })
  if (named.length > 0) {
    return allTypes.filter((type) =>
      named.every((names) => names.includes(type) || (type === "integer" && names.includes("number")))
    )
  }
  if (parts.some((part) => valuesOf(part) !== undefined)) return allTypes
  const keywords = parts.flatMap((part) => Object.keys(part)).join(" ")
  if (/roperties|required/u.test(keywords)) return ["object"]
  return /items/iu.test(keywords) ? ["array"] : /imum|multipleOf/u.test(keywords) ? ["number"] : ["string"]
}

const valuesOf = (keywords: Keywords): ReadonlyArray<unknown> | undefined =>
  "const" in keywords ? [keywords["const"]] : Array.isArray(keywords["enum"]) ? keywords["enum"] : undefined

const isOf = (value: unknown, type: string): boolean =>
  type === "integer"
    ? Number.isInteger(value)
    : type === (value === null ? "null" : Array.isArray(value) ? "array" : typeof value)
