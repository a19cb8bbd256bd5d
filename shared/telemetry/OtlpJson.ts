/**
 * Encodes spans as OTLP/JSON, soon after they end. Kept as objects until the export, they would cost several times as much, because
 * the garbage collector copies them.
 *
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
import { Option, type Tracer } from "effect"
import { OtlpResource } from "effect/observability"
import type { EndedSpan, Outcome } from "./RedactingSpan.ts"
import type { Encoding } from "./SpanPages.ts"
import type { SpanEvent, ValueType } from "./SpanShape.ts"

/** OTLP's numbers for the kinds of spans. */
const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

const zeros = (count: number): string => "0".repeat(count)

/** The offsets of ids and times in the start of a span. */
const traceIdAt = `{"traceId":"`.length
const spanIdAt = traceIdAt + 32 + `","spanId":"`.length
const startTimeAt = spanIdAt + 16 + `","startTimeUnixNano":"`.length
const endTimeAt = startTimeAt + 19 + `","endTimeUnixNano":"`.length

const startOf = (kind: number): Uint8Array =>
  Buffer.from(
    `{"traceId":"${zeros(32)}","spanId":"${zeros(16)}","startTimeUnixNano":"${zeros(19)}","endTimeUnixNano":"${
      zeros(19)
    }","kind":${kind},`
  )

const starts: Readonly<Record<Tracer.SpanKind, Uint8Array>> = {
  internal: startOf(kinds.internal),
  server: startOf(kinds.server),
  client: startOf(kinds.client),
  producer: startOf(kinds.producer),
  consumer: startOf(kinds.consumer)
}

const parentStart = Buffer.from(`"parentSpanId":"`)
const parentEnd = Buffer.from(`",`)

const unset = Buffer.from(`,"status":{"code":0}}`)
const ok = Buffer.from(`,"status":{"code":1}}`)

const statusOf = (outcome: Outcome): Buffer =>
  outcome === "ok"
    ? ok
    : outcome === "unset"
    ? unset
    : Buffer.from(`,"status":{"code":2,"message":${JSON.stringify(outcome.failed)}}}`)

const recordOf = (attributes: Readonly<Record<string, unknown>>) =>
  OtlpResource.entriesToAttributes(Object.entries(attributes))

const eventOf = ({ at, attributes, name }: SpanEvent) => ({
  name,
  timeUnixNano: String(at),
  attributes: recordOf(attributes)
})

const linkOf = ({ attributes, span: { spanId, traceId } }: Tracer.SpanLink) => ({
  traceId,
  spanId,
  attributes: recordOf(attributes)
})

/** The JSON of a value that a shape does not contain. */
const jsonOf = (type: "other" | "event" | "link", value: unknown): string =>
  JSON.stringify(
    type === "event"
      ? eventOf(value as SpanEvent)
      : type === "link"
      ? linkOf(value as Tracer.SpanLink)
      : OtlpResource.unknownToAttributeValue(value)
  )

/** Text that needs no escapes in JSON. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const writeDigits = (page: Buffer, at: number, value: number, count: number): number => {
  let rest = value
  for (let digit = at + count - 1; digit >= at; digit--) {
    const tens = (rest / 10) | 0
    page[digit] = 48 + rest - tens * 10
    rest = tens
  }
  return at + count
}

const nanosPerSecond = 1_000_000_000n

/** Writes the 19 digits of times. Fast if a time is in the same second as the last one, as most are. */
class Times {
  #second = 0n
  #digits = Buffer.from(zeros(10))

  write(page: Buffer, at: number, time: bigint): number {
    let nanos = Number(time - this.#second)
    if (nanos < 0 || nanos >= 1e9) {
      this.#second = time - time % nanosPerSecond
      this.#digits = Buffer.from(String(this.#second / nanosPerSecond).padStart(10, "0"))
      nanos = Number(time - this.#second)
    }
    page.set(this.#digits, at)
    return writeDigits(page, at + 10, nanos, 9)
  }
}

const writeInteger = (page: Buffer, at: number, value: number): number =>
  value < 0 || value >= 10_000
    ? at + page.write(String(value), at)
    : writeDigits(page, at, value, value < 10 ? 1 : value < 100 ? 2 : value < 1_000 ? 3 : 4)

const writeText = (page: Buffer, at: number, text: string): number =>
  at + page.write(plain.test(text) ? text : JSON.stringify(text).slice(1, -1), at)

const copy = (page: Buffer, at: number, bytes: Uint8Array): number => {
  page.set(bytes, at)
  return at + bytes.length
}

const writeValue = (times: Times, page: Buffer, at: number, type: ValueType, value: unknown): number => {
  switch (type) {
    case "text":
      return writeText(page, at, value as string)
    case "integer":
      return writeInteger(page, at, value as number)
    case "time":
      return times.write(page, at, value as bigint)
    case "double":
      return at + page.write(String(value), at)
    case "other":
    case "event":
    case "link":
      return at + page.write(jsonOf(type, value), at)
  }
}

/** Upper bounds, in bytes, of the start of a span with its status, and of a number. */
const startBytes = 512
const numberBytes = 32

/** The maximum number of bytes per UTF-16 code unit, namely for an escape. */
const bytesPerUnit = 6

const bytesOfValue = (type: ValueType, value: unknown): number =>
  type === "integer" || type === "double" || type === "time"
    ? numberBytes
    : bytesPerUnit * (type === "text" ? value as string : jsonOf(type, value)).length

/** An upper bound of a span's size, in bytes. */
const maxBytes = ({ content: { shape: { template: { holes, length } }, values }, outcome }: EndedSpan): number => {
  let bytes = startBytes + length
  if (typeof outcome === "object") bytes += bytesPerUnit * outcome.failed.length
  for (let index = 0; index < holes.length; index++) {
    const hole = holes[index]!
    bytes += bytesOfValue(hole.type, values[hole.index])
  }
  return bytes
}

/** Writes a span, which must fit, and returns the offset of its end. */
const write = (times: Times, span: EndedSpan, page: Buffer, from: number): number => {
  const { content: { shape, values }, outcome, parent } = span
  const { holes, pieces } = shape.template
  let at = copy(page, from, starts[span.kind])
  page.write(span.traceId, from + traceIdAt, 32)
  page.write(span.spanId, from + spanIdAt, 16)
  times.write(page, from + startTimeAt, span.startTime)
  times.write(page, from + endTimeAt, span.endTime)
  if (Option.isSome(parent)) {
    at = copy(page, at, parentStart)
    at += page.write(parent.value.spanId, at, 16)
    at = copy(page, at, parentEnd)
  }
  for (let index = 0; index < holes.length; index++) {
    const hole = holes[index]!
    at = writeValue(times, page, copy(page, at, pieces[index]!), hole.type, values[hole.index])
  }
  at = copy(page, at, pieces[holes.length]!)
  return copy(page, at, statusOf(outcome))
}

/** The encoding of a request to a collector. */
export const encoding = (resource: OtlpResource.Resource, scope: object): Encoding<EndedSpan> => {
  const times = new Times()
  return {
    before: Buffer.from(
      `{"resourceSpans":[{"resource":${JSON.stringify(resource)},"scopeSpans":[{"scope":${
        JSON.stringify(scope)
      },"spans":[`
    ),
    after: Buffer.from("]}]}]}"),
    maxBytes,
    write: (span, page, from) => write(times, span, page, from)
  }
}
