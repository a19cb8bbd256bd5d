/**
 * The parts that spans have in common. Most spans repeat the name, attributes and events of an earlier one and differ in few values.
 * The JSON around those values, the span's shape, is encoded once and copied for each span.
 */
import type { Tracer } from "effect"
import { OtlpResource } from "effect/observability"
import * as Attributes from "./Attributes.ts"

export interface SpanEvent {
  readonly name: string
  /** Epoch nanoseconds. */
  readonly at: bigint
  readonly attributes: Readonly<Record<string, unknown>>
}

/** The type of a value that belongs to the span: of an attribute, the time of an event without attributes, or a whole event or link. */
export type ValueType = "text" | "integer" | "double" | "other" | "time" | "event" | "link"

/** The type of a part: the span's name, an attribute whose `constant` value belongs to the shape, or a value of the span itself. */
type PartType = "name" | "constant" | ValueType

const lists = ["attributes", "events", "links"] as const

const listOf: Readonly<Record<PartType, typeof lists[number] | undefined>> = {
  name: undefined,
  constant: "attributes",
  text: "attributes",
  integer: "attributes",
  double: "attributes",
  other: "attributes",
  time: "events",
  event: "events",
  link: "links"
}

/** The JSON of a part, or the JSON before and after its value. */
const textsOf = ({ key, type, value }: SpanShape): readonly [string, string?] => {
  const start = `{"key":${JSON.stringify(key)},"value":`
  switch (type) {
    case "name":
      return [`"name":${JSON.stringify(key)}`]
    case "constant":
      return [`${start}${JSON.stringify(OtlpResource.unknownToAttributeValue(value))}}`]
    case "text":
      return [`${start}{"stringValue":"`, `"}}`]
    case "integer":
      return [`${start}{"intValue":`, "}}"]
    case "double":
      return [`${start}{"doubleValue":`, "}}"]
    case "other":
      return [start, "}"]
    case "time":
      return [`{"name":${JSON.stringify(key)},"timeUnixNano":"`, `","attributes":[]}`]
    case "event":
    case "link":
      return ["", ""]
  }
}

const typeOf = (value: unknown): "text" | "integer" | "double" | "other" =>
  typeof value === "string"
    ? "text"
    : typeof value !== "number" || !Number.isFinite(value)
    ? "other"
    : Number.isSafeInteger(value)
    ? "integer"
    : "double"

/** Maximum size of constants: characters of a text, items of a list. */
const maxText = 64
const maxItems = 4

const mayBeConstant = (value: unknown): boolean =>
  typeof value === "string"
    ? value.length <= maxText
    : Array.isArray(value)
    ? value.length <= maxItems && value.every(mayBeConstant)
    : value !== undefined && typeof value !== "object"

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (Array.isArray(one) && Array.isArray(other) && one.length === other.length &&
    one.every((item, index) => item === other[index]))

/** A shape with this many successors takes no further constants. */
const maxSuccessors = 64

/** When there are this many shapes, all are dropped. */
const maxShapes = 4_096

/** The bytes before, between and after a span's own values; there is one piece more than there are values. */
export interface Template {
  readonly pieces: ReadonlyArray<Uint8Array>
  /** The length of all pieces. */
  readonly length: number
  /** The values in the order of the JSON: their types, and their indexes in the span's list of values. */
  readonly holes: ReadonlyArray<{ readonly type: ValueType; readonly index: number }>
}

/** The parts of a span so far: the last part, and the shape before it. All shapes form a trie. */
export class SpanShape {
  static #byName = new Map<string, SpanShape>()
  static #count = 0
  readonly before: SpanShape | undefined
  readonly type: PartType
  readonly key: string
  /** The value of a constant. */
  readonly value: unknown
  /** The most recently used first. */
  readonly #successors: Array<SpanShape> = []
  #template: Template | undefined

  private constructor(before: SpanShape | undefined, type: PartType, key: string, value?: unknown) {
    this.before = before
    this.type = type
    this.key = key
    this.value = value
    if (++SpanShape.#count < maxShapes) return
    SpanShape.#byName = new Map()
    SpanShape.#count = 0
  }

  /** The shape of a span without attributes, events and links. */
  static named(name: string): SpanShape {
    let shape = SpanShape.#byName.get(name)
    if (shape === undefined) SpanShape.#byName.set(name, shape = new SpanShape(undefined, "name", name))
    return shape
  }

  /** Adds an attribute, or a new value of one. Appends the value to the span's own `values`, unless it belongs to the shape. */
  attribute(key: string, value: unknown, values: Array<unknown>): SpanShape {
    const type = typeOf(value)
    const known = this.#find(type, key, value)
    if (
      known === undefined && this.#successors.length < maxSuccessors && mayBeConstant(value) &&
      !Attributes.unboundedNames.has(key)
    ) {
      return this.#add("constant", key, value)
    }
    if (known?.type !== "constant") values.push(value)
    return known ?? this.#add(type, key)
  }

  event(event: SpanEvent, values: Array<unknown>): SpanShape {
    const isPlain = Object.keys(event.attributes).length === 0
    values.push(isPlain ? event.at : event)
    return isPlain ? this.#with("time", event.name) : this.#with("event", "")
  }

  link(link: Tracer.SpanLink, values: Array<unknown>): SpanShape {
    values.push(link)
    return this.#with("link", "")
  }

  get template(): Template {
    return this.#template ??= templateOf(this.#parts())
  }

  #find(type: ValueType, key: string, value?: unknown): SpanShape | undefined {
    const successors = this.#successors
    for (let index = 0; index < successors.length; index++) {
      const found = successors[index]!
      if (found.key !== key) continue
      if (found.type !== type && (found.type !== "constant" || !isSame(found.value, value))) continue
      successors[index] = successors[0]!
      return successors[0] = found
    }
    return undefined
  }

  #add(type: PartType, key: string, value?: unknown): SpanShape {
    const added = new SpanShape(this, type, key, value)
    this.#successors.push(added)
    return added
  }

  #with(type: ValueType, key: string): SpanShape {
    return this.#find(type, key) ?? this.#add(type, key)
  }

  #parts(): ReadonlyArray<SpanShape> {
    return this.before === undefined ? [this] : [...this.before.#parts(), this]
  }
}

/** The parts with values that belong to the span. */
const ownOf = (parts: ReadonlyArray<SpanShape>) => parts.filter(({ type }) => type !== "name" && type !== "constant")

/** The last of several values counts, except for the route: the service's own is more specific than the router's. */
const attributesOf = (parts: ReadonlyArray<SpanShape>): ReadonlyArray<SpanShape> => {
  const attributes = new Map<string, SpanShape>()
  for (const part of parts) {
    if (listOf[part.type] !== "attributes") continue
    if (part.key !== Attributes.name.httpRoute || !attributes.has(part.key)) attributes.set(part.key, part)
  }
  return [...attributes.values()]
}

const templateOf = (parts: ReadonlyArray<SpanShape>): Template => {
  const own = ownOf(parts)
  const texts = [""]
  const holes: Array<Template["holes"][number]> = []
  const append = (text: string) => texts.push((texts.pop() ?? "") + text)
  const appendAll = (parts: ReadonlyArray<SpanShape>) => {
    for (const [index, part] of parts.entries()) {
      const [before, after] = textsOf(part)
      append(index === 0 ? before : `,${before}`)
      if (after === undefined) continue
      holes.push({ type: part.type as ValueType, index: own.indexOf(part) })
      texts.push(after)
    }
  }
  appendAll(parts.slice(0, 1))
  for (const list of lists) {
    append(`,"${list}":[`)
    appendAll(list === "attributes" ? attributesOf(parts) : parts.filter(({ type }) => listOf[type] === list))
    append("]")
  }
  const pieces = texts.map((text) => Buffer.from(text))
  return { pieces, length: pieces.reduce((sum, piece) => sum + piece.length, 0), holes }
}
