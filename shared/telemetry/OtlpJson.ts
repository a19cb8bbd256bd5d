/**
 * Writes spans as OTLP/JSON, soon after they end, straight from span to text. Every request has four of them: objects to be
 * turned into text when they are exported would be copied by the garbage collector, and cost several times as much.
 *
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
import { Option, type Tracer } from "effect"
import { OtlpResource } from "effect/observability"
import * as Attributes from "./Attributes.ts"
import type { DiscreetSpan, EndedSpan, Outcome, SpanEvent } from "./DiscreetSpan.ts"

/** OTLP's numbers. */
const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

/** Text that is JSON between quotes as it is. */
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

/** In one piece, not as the tree of pieces that it was put together from. */
const whole = (text: string): string => Buffer.from(text).toString()

/** What is remembered at most, of each kind, and only where it is as short as this. */
const maxRemembered = 1_000
const maxRememberedLength = 64

const numbers = new Map<string, Map<number, string>>()
let rememberedNumbers = 0

/** Most numbers are small, or the same again and again. */
const numberText = (key: string, value: number): string => {
  let texts = numbers.get(key)
  if (texts === undefined) numbers.set(key, texts = new Map())
  const known = texts.get(value)
  if (known !== undefined || rememberedNumbers >= maxRemembered) return known ?? attributeOf(key, value)
  rememberedNumbers++
  const text = whole(attributeOf(key, value))
  texts.set(value, text)
  return text
}

/**
 * How spans begin that have a name and some attributes in common, as text, and with which attributes such spans go on.
 * Nearly all that a span says was said by another one before it: so most of its text is found, not made.
 */
class Beginning {
  static #count = 0
  readonly text: string
  readonly hasAttributes: boolean
  /** The way that was taken last, which is most often the next one too. */
  #key: string | undefined
  #value: string | undefined
  #further: Beginning | undefined
  readonly #ways = new Map<string, Map<string, Beginning>>()

  private constructor(text: string, hasAttributes: boolean) {
    this.text = whole(text)
    this.hasAttributes = hasAttributes
    Beginning.#count++
  }

  static of(name: string, kind: Tracer.SpanKind): Beginning {
    return new Beginning(`"name":${quoted(name)},"kind":${kinds[kind]},"attributes":[`, false)
  }

  static get isRoom(): boolean {
    return Beginning.#count < maxRemembered
  }

  /** With one attribute more; `undefined` where that is not to be remembered. */
  with(key: string, value: string): Beginning | undefined {
    if (key === this.#key && value === this.#value) return this.#further
    const further = this.#ways.get(key)?.get(value) ?? this.#begin(key, value)
    if (further === undefined) return undefined
    this.#key = key
    this.#value = value
    this.#further = further
    return further
  }

  #begin(key: string, value: string): Beginning | undefined {
    if (!Beginning.isRoom || Attributes.individual.has(key) || value.length > maxRememberedLength) return undefined
    let ways = this.#ways.get(key)
    if (ways === undefined) this.#ways.set(key, ways = new Map())
    const further = new Beginning(`${this.text}${this.hasAttributes ? "," : ""}${attributeOf(key, value)}`, true)
    ways.set(value, further)
    return further
  }
}

const beginnings: Record<Tracer.SpanKind, Map<string, Beginning>> = {
  internal: new Map(),
  server: new Map(),
  client: new Map(),
  producer: new Map(),
  consumer: new Map()
}

const beginningOf = (name: string, kind: Tracer.SpanKind): Beginning => {
  const known = beginnings[kind].get(name)
  if (known !== undefined) return known
  const beginning = Beginning.of(name, kind)
  if (Beginning.isRoom && name.length <= maxRememberedLength) beginnings[kind].set(name, beginning)
  return beginning
}

/** Its name, kind and attributes. */
const describing = ({ keys, kind, name, values }: DiscreetSpan): string => {
  let beginning = beginningOf(name, kind)
  let own = ""
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at]!
    const value = values[at]
    const further = typeof value === "string" ? beginning.with(key, value) : undefined
    if (further !== undefined) beginning = further
    else own += `,${typeof value === "number" ? numberText(key, value) : attributeOf(key, value)}`
  }
  return `${beginning.text}${beginning.hasAttributes ? own : own.slice(1)}]`
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

export const textOf = ({ endTime, outcome, span, startTime }: EndedSpan): string => {
  const { events, links, parent } = span
  const parentText = Option.isSome(parent) ? `"parentSpanId":"${parent.value.spanId}",` : ""
  return `{"traceId":"${span.traceId}","spanId":"${span.spanId}",${parentText}${describing(span)},` +
    `"events":[${events.map(eventOf).join(",")}],"links":[${links.map(linkOf).join(",")}],` +
    `"startTimeUnixNano":"${startTime}","endTimeUnixNano":"${endTime}","status":${statusOf(outcome)}}`
}

const comma = Buffer.from(",")

/** The body of a request to a collector, of pieces that hold spans with commas between, or nothing. */
export const bodyOf = (
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
