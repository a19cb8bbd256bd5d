/**
 * Encodes spans as OTLP/JSON directly, soon after they end. A request has four; as objects until the export they would cost
 * several times as much, because the garbage collector copies them.
 *
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
import { Option, type Tracer } from "effect"
import { OtlpResource } from "effect/observability"
import * as Attributes from "./Attributes.ts"
import type { EndedSpan, Outcome, RedactingSpan, SpanEvent } from "./RedactingSpan.ts"

/** OTLP's numbers. */
const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

/** Text that needs no escapes in JSON. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const quoted = (text: string): string => plain.test(text) ? `"${text}"` : JSON.stringify(text)

const isStrings = (value: unknown): value is ReadonlyArray<string> =>
  Array.isArray(value) && value.every((each) => typeof each === "string")

const valueOf = (value: unknown): string =>
  typeof value === "string"
    ? `{"stringValue":${quoted(value)}}`
    : Number.isSafeInteger(value)
    ? `{"intValue":${value as number}}`
    : isStrings(value)
    ? `{"arrayValue":{"values":[${value.map(valueOf).join(",")}]}}`
    : JSON.stringify(OtlpResource.unknownToAttributeValue(value))

const attributeOf = (key: string, value: unknown): string => `{"key":${quoted(key)},"value":${valueOf(value)}}`

/** Flattens V8's tree of concatenated strings. */
const flat = (text: string): string => Buffer.from(text).toString()

/** Bounds of each cache: its entries, and their length. */
const maxCached = 1_000
const maxCachedLength = 64

const numbers = new Map<string, Map<number, string>>()
let cachedNumbers = 0

/** Cached: most numbers are small or repeated. */
const numberText = (key: string, value: number): string => {
  let texts = numbers.get(key)
  if (texts === undefined) numbers.set(key, texts = new Map())
  const known = texts.get(value)
  if (known !== undefined || cachedNumbers >= maxCached) return known ?? attributeOf(key, value)
  cachedNumbers++
  const text = flat(attributeOf(key, value))
  texts.set(value, text)
  return text
}

/**
 * A trie of span texts: the encoded name and first attributes, and the nodes with one attribute more. Spans mostly repeat earlier
 * ones, so most of their text is looked up.
 */
class Prefix {
  static #count = 0
  readonly text: string
  readonly hasAttributes: boolean
  /** The last lookup, which is usually the next one too. */
  #key: string | undefined
  #value: string | undefined
  #next: Prefix | undefined
  readonly #children = new Map<string, Map<string, Prefix>>()

  private constructor(text: string, hasAttributes: boolean) {
    this.text = flat(text)
    this.hasAttributes = hasAttributes
    Prefix.#count++
  }

  static of(name: string, kind: Tracer.SpanKind): Prefix {
    return new Prefix(`"name":${quoted(name)},"kind":${kinds[kind]},"attributes":[`, false)
  }

  static get isRoom(): boolean {
    return Prefix.#count < maxCached
  }

  /** The node with one attribute more; `undefined` if it is not cached. */
  with(key: string, value: string): Prefix | undefined {
    if (key === this.#key && value === this.#value) return this.#next
    const next = this.#children.get(key)?.get(value) ?? this.#add(key, value)
    if (next === undefined) return undefined
    this.#key = key
    this.#value = value
    this.#next = next
    return next
  }

  #add(key: string, value: string): Prefix | undefined {
    if (!Prefix.isRoom || Attributes.unboundedNames.has(key) || value.length > maxCachedLength) return undefined
    let byValue = this.#children.get(key)
    if (byValue === undefined) this.#children.set(key, byValue = new Map())
    const next = new Prefix(`${this.text}${this.hasAttributes ? "," : ""}${attributeOf(key, value)}`, true)
    byValue.set(value, next)
    return next
  }
}

const prefixes: Record<Tracer.SpanKind, Map<string, Prefix>> = {
  internal: new Map(),
  server: new Map(),
  client: new Map(),
  producer: new Map(),
  consumer: new Map()
}

const prefixOf = (name: string, kind: Tracer.SpanKind): Prefix => {
  const known = prefixes[kind].get(name)
  if (known !== undefined) return known
  const prefix = Prefix.of(name, kind)
  if (Prefix.isRoom && name.length <= maxCachedLength) prefixes[kind].set(name, prefix)
  return prefix
}

/** Encodes name, kind and attributes. */
const describe = ({ keys, kind, name, values }: RedactingSpan): string => {
  let prefix = prefixOf(name, kind)
  let own = ""
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!
    const value = values[at]
    const next = typeof value === "string" ? prefix.with(key, value) : undefined
    if (next !== undefined) prefix = next
    else own += `,${typeof value === "number" ? numberText(key, value) : attributeOf(key, value)}`
  }
  return `${prefix.text}${prefix.hasAttributes ? own : own.slice(1)}]`
}

const recordOf = (attributes: Readonly<Record<string, unknown>>): string =>
  Object.entries(attributes).map(([key, value]) => attributeOf(key, value)).join(",")

const eventOf = ({ at, attributes, name }: SpanEvent): string =>
  `{"name":${quoted(name)},"timeUnixNano":"${at}","attributes":[${recordOf(attributes)}]}`

const statusOf = (outcome: Outcome): string =>
  outcome === "ok"
    ? `{"code":1}`
    : outcome === "unset"
    ? `{"code":0}`
    : `{"code":2,"message":${quoted(outcome.failed)}}`

const linkOf = ({ attributes, span: { spanId, traceId } }: Tracer.SpanLink): string =>
  `{"traceId":${quoted(traceId)},"spanId":${quoted(spanId)},"attributes":[${recordOf(attributes)}]}`

export const encodeSpan = ({ endTime, outcome, span, startTime }: EndedSpan): string => {
  const { events, links, parent } = span
  const parentText = Option.isSome(parent) ? `"parentSpanId":"${parent.value.spanId}",` : ""
  return `{"traceId":"${span.traceId}","spanId":"${span.spanId}",${parentText}${describe(span)},` +
    `"events":[${events.map(eventOf).join(",")}],"links":[${links.map(linkOf).join(",")}],` +
    `"startTimeUnixNano":"${startTime}","endTimeUnixNano":"${endTime}","status":${statusOf(outcome)}}`
}

const comma = Buffer.from(",")

/** The body of a request to a collector. Each piece holds comma-separated spans, or nothing. */
export const encodeBody = (
  resource: OtlpResource.Resource,
  scope: object,
  pieces: ReadonlyArray<Uint8Array>
): Uint8Array => {
  const head = `{"resourceSpans":[{"resource":${JSON.stringify(resource)},"scopeSpans":[{"scope":${
    JSON.stringify(scope)
  },"spans":[`
  const between = pieces
    .filter(({ length }) => length > 0)
    .flatMap((piece, index) => index === 0 ? [piece] : [comma, piece])
  return Buffer.concat([Buffer.from(head), ...between, Buffer.from("]}]}]}")])
}
