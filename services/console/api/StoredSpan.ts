/** A span as the console stores and shows it. */
import { Schema } from "effect"

export const kinds = ["internal", "server", "client", "producer", "consumer"] as const

const Attribute = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String)])
export type Attribute = typeof Attribute.Type

export const StoredSpan = Schema.Struct({
  /** The service that sent it. */
  service: Schema.String,
  traceId: Schema.String,
  spanId: Schema.String,
  /** `null` for the root. */
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
  /** Related spans, of this trace or another. */
  links: Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String }))
})
export type StoredSpan = typeof StoredSpan.Type
