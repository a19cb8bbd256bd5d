/** Keeps recent spans in memory for machines without a collector. Receives OTLP/JSON and evicts the longest inactive traces. */
import { Option, Schema } from "effect"
import { name } from "../../../shared/telemetry/Attributes.ts"
import { type Attribute, kinds, type StoredSpan } from "../api/StoredSpan.ts"

/** Limits per span: list items, and characters of a text. */
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

/** OTLP's numbers start at 1; 0 is unspecified. */
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

/** Whether it is the span of the request or job with this id. */
const isNamed = ({ attributes }: StoredSpan, id: string): boolean =>
  attributes[name.requestId] === id || attributes[name.messageId] === id

/** Finds the server span above each span, or the highest one received so far. Takes each step towards it only once. */
const topsIn = (spans: ReadonlyArray<StoredSpan>): (span: StoredSpan) => StoredSpan => {
  // of two spans with one id, the first counts
  const byId = new Map<string | null, StoredSpan>(spans.toReversed().map((span) => [span.spanId, span]))
  const known = new Map<StoredSpan, StoredSpan>()
  return (span) => {
    const passed: Array<StoredSpan> = []
    let top = span
    // bounded, because received spans may form a cycle
    while (!known.has(top) && top.kind !== "server" && passed.length < spans.length) {
      passed.push(top)
      const parent = byId.get(top.parentSpanId)
      if (parent === undefined) break
      top = parent
    }
    top = known.get(top) ?? top
    for (const one of passed) known.set(one, top)
    return top
  }
}

/** A span and its descendants. */
const below = (spans: ReadonlyArray<StoredSpan>, top: StoredSpan): ReadonlyArray<StoredSpan> => {
  const found = new Set([top])
  // iteration includes items added meanwhile
  for (const { spanId } of found) {
    for (const span of spans) if (span.parentSpanId === spanId) found.add(span)
  }
  return [...found]
}

export class SpanStore {
  readonly #maxSpans: number
  /** Spans by trace id, the most recently active trace last. */
  readonly #traces = new Map<string, Array<StoredSpan>>()
  #spans = 0

  constructor(maxSpans = 5_000) {
    this.#maxSpans = maxSpans
  }

  /** Adds the body of a POST to `/v1/traces`; returns `false` if it is invalid. */
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
   * The spans of a request, by the id of the request, job or task, or all spans of a trace by its id; in the order of their start.
   * Empty if none are stored. With `isWithin`, only spans of requests with keys for which it returns true: clients choose the ids of
   * traces and of parents, so that one trace may have requests of several keys.
   */
  find(id: string, isWithin?: (key: string) => boolean): ReadonlyArray<StoredSpan> {
    const found = this.#lookUp(id).toSorted((a, b) => a.start - b.start)
    const [first] = found
    if (isWithin === undefined || first === undefined) return found
    const topOf = topsIn(this.#traces.get(first.traceId) ?? [])
    // the key is empty without a request
    return found.filter((span) => isWithin(String(topOf(span).attributes[name.tenant] ?? "")))
  }

  #lookUp(id: string): ReadonlyArray<StoredSpan> {
    const trace = this.#traces.get(id)
    if (trace !== undefined) return trace
    for (const spans of this.#traces.values()) {
      const named = spans.find((span) => isNamed(span, id))
      if (named !== undefined) return below(spans, topsIn(spans)(named))
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
