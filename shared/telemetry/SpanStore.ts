/**
 * The latest spans in memory, for looking at traces on a machine that has no collector: takes OTLP as JSON, and forgets the
 * traces that have been still for longest where it holds too many spans.
 */
import { Option, Schema } from "effect"

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

const kinds = ["internal", "internal", "server", "client", "producer", "consumer"] as const

type Attribute = string | number | boolean | ReadonlyArray<string>

export interface StoredSpan {
  readonly service: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | null
  readonly name: string
  readonly kind: typeof kinds[number]
  /** Epoch milliseconds. */
  readonly start: number
  readonly end: number
  readonly isError: boolean
  readonly attributes: Readonly<Record<string, Attribute>>
  /** Epoch milliseconds. */
  readonly events: ReadonlyArray<{ readonly name: string; readonly at: number }>
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
}

const milliseconds = (nanoseconds: number): number => nanoseconds / 1e6

const valueOf = (value: typeof Value.Type): Attribute =>
  value.arrayValue?.values.map(({ stringValue = "" }) => stringValue)
    ?? value.stringValue ?? value.intValue ?? value.doubleValue ?? value.boolValue ?? ""

const recordOf = (attributes: typeof Attributes.Type = []): Record<string, Attribute> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))

const stored = (service: string, span: typeof WireSpan.Type): StoredSpan => ({
  service,
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId ?? null,
  name: span.name,
  kind: kinds[span.kind] ?? "internal",
  start: milliseconds(span.startTimeUnixNano),
  end: milliseconds(span.endTimeUnixNano),
  isError: span.status?.code === 2,
  attributes: recordOf(span.attributes),
  events: (span.events ?? []).map(({ name, timeUnixNano }) => ({ name, at: milliseconds(timeUnixNano) })),
  links: span.links ?? []
})

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

  /** The spans with which the latest requests began, the newest first. */
  requests(limit: number): ReadonlyArray<StoredSpan> {
    return [...this.#traces.values()]
      .flatMap((spans) => spans.filter(({ kind }) => kind === "server"))
      .toSorted((a, b) => b.start - a.start)
      .slice(0, limit)
  }

  /** Everything that is known of a trace, in the order in which it began. */
  trace(id: string): ReadonlyArray<StoredSpan> {
    return (this.#traces.get(id) ?? []).toSorted((a, b) => a.start - b.start)
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
