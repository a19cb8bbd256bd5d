/**
 * Writes spans as OTLP/JSON, each when it ends, straight from span to text. Every request has four of them: objects to be
 * turned into text later would live long enough to be copied by the garbage collector, and cost several times as much.
 *
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
import { Option, type Tracer } from "effect"
import { OtlpResource } from "effect/observability"
import type { DiscreetSpan, Outcome, SpanEvent } from "./DiscreetSpan.ts"

/** OTLP's numbers. */
const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

/** Text that is JSON between quotes as it is. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const quoted = (text: string): string => plain.test(text) ? `"${text}"` : JSON.stringify(text)

const valueOf = (value: unknown): string =>
  typeof value === "string"
    ? `{"stringValue":${quoted(value)}}`
    : Number.isSafeInteger(value)
    ? `{"intValue":${value as number}}`
    : JSON.stringify(OtlpResource.unknownToAttributeValue(value))

/** Most attributes have few values: so many of each are remembered as text, where they are short. */
const maxRemembered = 100
const maxRememberedLength = 64

const remembered = new Map<string, Map<unknown, string>>()

const attributeOf = (key: string, value: unknown): string => {
  let texts = remembered.get(key)
  if (texts === undefined) remembered.set(key, texts = new Map())
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = `{"key":${quoted(key)},"value":${valueOf(value)}}`
  if (texts.size >= maxRemembered || String(value).length > maxRememberedLength) return text
  // in one piece, not as the tree of pieces that it was put together from
  const whole = Buffer.from(text).toString()
  texts.set(value, whole)
  return whole
}

const attributesOf = (keys: ReadonlyArray<string>, values: ReadonlyArray<unknown>): string => {
  let text = ""
  for (let at = 0; at < keys.length; at++) {
    text += at === 0 ? attributeOf(keys[at]!, values[at]) : `,${attributeOf(keys[at]!, values[at])}`
  }
  return text
}

const recordOf = (attributes: Readonly<Record<string, unknown>>): string =>
  attributesOf(Object.keys(attributes), Object.values(attributes))

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

export const spanText = (span: DiscreetSpan, startTime: bigint, endTime: bigint, outcome: Outcome): string => {
  const { events, kind, links, parent } = span
  const parentText = Option.isSome(parent) ? `"parentSpanId":${quoted(parent.value.spanId)},` : ""
  return `{"traceId":${quoted(span.traceId)},"spanId":"${span.spanId}",${parentText}"name":${quoted(span.name)},` +
    `"kind":${kinds[kind]},"startTimeUnixNano":"${startTime}","endTimeUnixNano":"${endTime}",` +
    `"attributes":[${attributesOf(span.keys, span.values)}],"events":[${events.map(eventOf).join(",")}],` +
    `"links":[${links.map(linkOf).join(",")}],"status":${statusOf(outcome)}}`
}

const comma = Buffer.from(",")

/** The body of a request to a collector, of pieces that hold spans with commas between. */
export const bodyOf = (
  resource: OtlpResource.Resource,
  scope: object,
  pieces: ReadonlyArray<Uint8Array>
): Uint8Array => {
  const head = `{"resourceSpans":[{"resource":${JSON.stringify(resource)},"scopeSpans":[{"scope":${
    JSON.stringify(scope)
  },"spans":[`
  const between = pieces.flatMap((piece, index) => index === 0 ? [piece] : [comma, piece])
  return Buffer.concat([Buffer.from(head), ...between, Buffer.from("]}]}]}")])
}
