/** A span as it is kept and shown: what OTLP says of it, without what OTLP needs to say it. */
import { Schema } from "effect"

export const kinds = ["internal", "server", "client", "producer", "consumer"] as const

const Attribute = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String)])
export type Attribute = typeof Attribute.Type

export const StoredSpan = Schema.Struct({
  /** The one that told of it. */
  service: Schema.String,
  traceId: Schema.String,
  spanId: Schema.String,
  /** `null` for what began the trace. */
  parentSpanId: Schema.NullOr(Schema.String),
  name: Schema.String,
  kind: Schema.Literals(kinds),
  /** Epoch milliseconds. */
  start: Schema.Finite,
  end: Schema.Finite,
  isError: Schema.Boolean,
  attributes: Schema.Record(Schema.String, Attribute),
  events: Schema.Array(Schema.Struct({
    name: Schema.String,
    /** Epoch milliseconds. */
    at: Schema.Finite
  })),
  /** Other spans, of this trace or another, that it has to do with. */
  links: Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String }))
})
export type StoredSpan = typeof StoredSpan.Type
