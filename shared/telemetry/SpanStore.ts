/**
 * The latest spans in memory, for looking at traces on a machine that has no collector: takes OTLP as JSON, and forgets the
 * traces that have been still for longest where it holds too many spans.
 */
import { Option, Schema } from "effect"
import { name } from "./Attributes.ts"
import { type Attribute, kinds, type StoredSpan } from "./StoredSpan.ts"

/** What is kept of one span at the most: so many of each list, and so many characters of a text. */
const maxAttributes = 64
const maxEvents = 32
const maxText = 1_024

const Value = Schema.Struct({
  stringValue: Schema.optionalKey(Schema.String),
  intValue: Schema.optionalKey(Schema.Union([Schema.Finite, Schema.FiniteFromString])),
  doubleValue: Schema.optionalKey(Schema.Finite),
  boolValue: Schema.optionalKey(Schema.Boolean),
  arrayValue: Schema.optionalKey(Schema.Struct({
    values: Schema.Array(Schema.Struct({ stringValue: Schema.optionalKey(Schema.String) }))
  }))
})

const Attributes = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))

const WireSpan = Schema.Struct({
  traceId: Schema.String,
  spanId: Schema.String,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  kind: Schema.Finite,
  startTimeUnixNano: Schema.FiniteFromString,
  endTimeUnixNano: Schema.FiniteFromString,
  attributes: Schema.optionalKey(Attributes),
  events: Schema.optionalKey(
    Schema.Array(Schema.Struct({ name: Schema.String, timeUnixNano: Schema.FiniteFromString }))
  ),
  links: Schema.optionalKey(Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String }))),
  status: Schema.optionalKey(Schema.Struct({ code: Schema.optionalKey(Schema.Finite) }))
})

const decode = Schema.decodeUnknownOption(Schema.Struct({
  resourceSpans: Schema.Array(Schema.Struct({
    resource: Schema.Struct({ attributes: Attributes }),
    scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(WireSpan) }))
  }))
}))

const milliseconds = (nanoseconds: number): number => nanoseconds / 1e6

const cut = (text: string): string => text.length > maxText ? `${text.slice(0, maxText)}…` : text

const valueOf = ({ arrayValue, boolValue, doubleValue, intValue, stringValue = "" }: typeof Value.Type): Attribute =>
  arrayValue?.values.slice(0, maxEvents).map(({ stringValue = "" }) => cut(stringValue))
    ?? intValue ?? doubleValue ?? boolValue ?? cut(stringValue)

const recordOf = (attributes: typeof Attributes.Type = []): Record<string, Attribute> =>
  Object.fromEntries(attributes.slice(0, maxAttributes).map(({ key, value }) => [cut(key), valueOf(value)]))

/** OTLP's number is one more, and 0 where nobody said. */
const kindOf = (number: number): StoredSpan["kind"] => kinds[number - 1] ?? "internal"

const stored = (service: string, span: typeof WireSpan.Type): StoredSpan => ({
  service: cut(service),
  traceId: cut(span.traceId),
  spanId: cut(span.spanId),
  parentSpanId: span.parentSpanId === undefined || span.parentSpanId === "" ? null : cut(span.parentSpanId),
  name: cut(span.name),
  kind: kindOf(span.kind),
  start: milliseconds(span.startTimeUnixNano),
  end: milliseconds(span.endTimeUnixNano),
  isError: span.status?.code === 2,
  attributes: recordOf(span.attributes),
  events: (span.events ?? []).slice(0, maxEvents).map(({ name, timeUnixNano }) => ({
    name: cut(name),
    at: milliseconds(timeUnixNano)
  })),
  links: (span.links ?? []).slice(0, maxEvents).map(({ spanId, traceId }) => ({
    traceId: cut(traceId),
    spanId: cut(spanId)
  }))
})

/** Whether a request or its job goes by this id. */
const isNamed = ({ attributes }: StoredSpan, id: string): boolean =>
  attributes[name.requestId] === id || attributes[name.messageId] === id

/** The span of the server that a span belongs to, as far as it has come. */
const topOf = (spans: ReadonlyArray<StoredSpan>, span: StoredSpan): StoredSpan => {
  let top = span
  // no longer than there are spans: what is sent here may lead in a circle
  for (let steps = 0; steps < spans.length && top.kind !== "server"; steps++) {
    const parent = spans.find(({ spanId }) => spanId === top.parentSpanId)
    if (parent === undefined) return top
    top = parent
  }
  return top
}

/** A span and everything below it. */
const below = (spans: ReadonlyArray<StoredSpan>, top: StoredSpan): ReadonlyArray<StoredSpan> => {
  const found = new Set([top])
  // a set is walked to what is added on the way, and takes nothing twice
  for (const { spanId } of found) {
    for (const span of spans) if (span.parentSpanId === spanId) found.add(span)
  }
  return [...found]
}

export class SpanStore {
  readonly #maxSpans: number
  /** By id, the one that was heard of last at the end. */
  readonly #traces = new Map<string, Array<StoredSpan>>()
  #spans = 0

  constructor(maxSpans = 5_000) {
    this.#maxSpans = maxSpans
  }

  /** Takes the body of a POST to `/v1/traces`; `false` where it is none. */
  add(body: unknown): boolean {
    const decoded = Option.getOrUndefined(decode(body))
    if (decoded === undefined) return false
    for (const { resource, scopeSpans } of decoded.resourceSpans) {
      const service = String(recordOf(resource.attributes)["service.name"] ?? "")
      for (const { spans } of scopeSpans) for (const span of spans) this.#keep(stored(service, span))
    }
    return true
  }

  /**
   * The spans of a request, by the id that its client knows or by that of its job or task; or all of a trace, by its own.
   * In the order in which they began; none where there is nothing, or not any more.
   */
  find(id: string): ReadonlyArray<StoredSpan> {
    return this.#found(id).toSorted((a, b) => a.start - b.start)
  }

  #found(id: string): ReadonlyArray<StoredSpan> {
    const trace = this.#traces.get(id)
    if (trace !== undefined) return trace
    for (const spans of this.#traces.values()) {
      const named = spans.find((span) => isNamed(span, id))
      if (named !== undefined) return below(spans, topOf(spans, named))
    }
    return []
  }

  #keep(span: StoredSpan): void {
    const spans = this.#traces.get(span.traceId) ?? []
    spans.push(span)
    this.#spans++
    this.#traces.delete(span.traceId)
    this.#traces.set(span.traceId, spans)
    for (const [id, oldest] of this.#traces) {
      if (this.#spans <= this.#maxSpans) return
      this.#traces.delete(id)
      this.#spans -= oldest.length
    }
  }
}
