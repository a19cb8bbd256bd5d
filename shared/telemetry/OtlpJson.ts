/**
 * Writes spans as OTLP/JSON, each when it ends, straight from span to text. Every request has four of them: objects to be
 * turned into text later would live long enough to be copied by the garbage collector, and cost several times as much.
 *
 * https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
 */
import { Option, type Tracer } from "effect"
import { OtlpResource } from "effect/observability"
import type { DiscreetSpan, Outcome } from "./DiscreetSpan.ts"

/** OTLP's numbers. */
const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const

/** What is before an attribute's value. Names of attributes are our own, and few. */
const beginnings = new Map<string, string>()

const beginningOf = (key: string): string => {
  let beginning = beginnings.get(key)
  if (beginning === undefined) {
    beginning = `{"key":${JSON.stringify(key)},"value":`
    beginnings.set(key, beginning)
  }
  return beginning
}

/** Text that is JSON between quotes as it is. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

const quoted = (text: string): string => plain.test(text) ? `"${text}"` : JSON.stringify(text)

const valueOf = (value: unknown): string =>
  typeof value === "string"
    ? `{"stringValue":${quoted(value)}}`
    : Number.isSafeInteger(value)
    ? `{"intValue":${value as number}}`
    : JSON.stringify(OtlpResource.unknownToAttributeValue(value))

const attributesOf = (attributes: Iterable<readonly [string, unknown]>): string => {
  let text = ""
  for (const [key, value] of attributes) {
    text += `${text === "" ? "" : ","}${beginningOf(key)}${valueOf(value)}}`
  }
  return text
}

const statusOf = (outcome: Outcome): string =>
  outcome === "ok"
    ? `{"code":1}`
    : outcome === "unset"
    ? `{"code":0}`
    : `{"code":2,"message":${quoted(outcome.failed)}}`

const linkOf = ({ attributes, span: { spanId, traceId } }: Tracer.SpanLink): string =>
  `{"traceId":${quoted(traceId)},"spanId":${quoted(spanId)},"attributes":[${attributesOf(Object.entries(attributes))}]}`

export const spanText = (span: DiscreetSpan, startTime: bigint, endTime: bigint, outcome: Outcome): string => {
  const { attributes, events, links, parent } = span
  const parentText = Option.isSome(parent) ? `"parentSpanId":${quoted(parent.value.spanId)},` : ""
  const eventsText = events.map(({ at, attributes, name }) =>
    `{"name":${quoted(name)},"timeUnixNano":"${at}","attributes":[${attributesOf(Object.entries(attributes))}]}`
  )
  return `{"traceId":${quoted(span.traceId)},"spanId":"${span.spanId}",${parentText}"name":${quoted(span.name)},` +
    `"kind":${kinds[span.kind]},"startTimeUnixNano":"${startTime}","endTimeUnixNano":"${endTime}",` +
    `"attributes":[${attributesOf(attributes)}],"events":[${eventsText.join(",")}],` +
    `"links":[${links.map(linkOf).join(",")}],"status":${statusOf(outcome)}}`
}

const comma = Buffer.from(",")

/** The body of a request to a collector. */
export const bodyOf = (
  resource: OtlpResource.Resource,
  scope: object,
  spans: ReadonlyArray<Uint8Array>
): Uint8Array => {
  const parts: Array<Uint8Array> = [Buffer.from(
    `{"resourceSpans":[{"resource":${JSON.stringify(resource)},"scopeSpans":[{"scope":${
      JSON.stringify(scope)
    },"spans":[`
  )]
  for (const [index, span] of spans.entries()) {
    if (index > 0) parts.push(comma)
    parts.push(span)
  }
  parts.push(Buffer.from("]}]}]}"))
  return Buffer.concat(parts)
}
