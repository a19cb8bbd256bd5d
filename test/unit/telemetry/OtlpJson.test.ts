/** The encoding of spans, of known and of new shapes. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Exit, Option, Schema, Tracer } from "effect"
import { name } from "../../../shared/telemetry/Attributes.ts"
import { type EndedSpan, RedactingSpan } from "../../../shared/telemetry/RedactingSpan.ts"
import * as OtlpJson from "../../../shared/telemetry/OtlpJson.ts"

type Value = string | number | boolean | ReadonlyArray<string>

interface SpanSpec {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: ReadonlyArray<readonly [string, Value]>
}

const parent = Tracer.externalSpan({ traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" })

const { after, before, maxBytes, write } = OtlpJson.encoding({ attributes: [], droppedAttributesCount: 0 }, {})

/** Written into the smallest page that must suffice. */
const encode = (span: EndedSpan): string => {
  const page = Buffer.alloc(maxBytes(span))
  return page.toString("utf8", 0, write(span, page, 0))
}

const textOf = ({ attributes, kind, name }: SpanSpec, exit: Exit.Exit<unknown, unknown> = Exit.void): string => {
  const texts: Array<string> = []
  const span = new RedactingSpan(
    {
      name,
      kind,
      parent: Option.some(parent),
      annotations: Context.empty(),
      links: [{ span: parent, attributes: { why: "\"quoted\"" } }],
      startTime: 1_795_325_748_666_369_292n,
      root: false,
      sampled: true
    },
    { decide: () => "export", slowNanos: 0n },
    (ended) => texts.push(encode(ended))
  )
  const half = attributes.length >> 1
  for (const [key, value] of attributes.slice(0, half)) span.attribute(key, value)
  span.event("half\nway", 1_795_325_748_667_000_000n)
  for (const [key, value] of attributes.slice(half)) span.attribute(key, value)
  span.end(1_795_325_748_667_906_682n, exit)
  return texts.join()
}

const valueOf = (value: Value): object =>
  typeof value === "string"
    ? { stringValue: value }
    : typeof value === "boolean"
    ? { boolValue: value }
    : typeof value === "number"
    ? Number.isInteger(value) ? { intValue: value } : { doubleValue: value }
    : { arrayValue: { values: value.map(valueOf) } }

const kinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 }

const byKey = (a: { readonly key: string }, b: { readonly key: string }) => a.key < b.key ? -1 : 1

const assertEncoded = (spec: SpanSpec): void => {
  const { attributes, kind, name, ...rest } = JSON.parse(textOf(spec)) as {
    readonly attributes: ReadonlyArray<{ readonly key: string }>
    readonly kind: number
    readonly name: string
    readonly spanId: string
  }
  assert.strictEqual(name, spec.name)
  assert.strictEqual(kind, kinds[spec.kind])
  assert.deepStrictEqual(
    attributes.toSorted(byKey),
    // the last of several values counts
    [...new Map(spec.attributes)].map(([key, value]) => ({ key, value: valueOf(value) })).toSorted(byKey)
  )
  assert.deepStrictEqual({ ...rest, spanId: "" }, {
    traceId: parent.traceId,
    spanId: "",
    parentSpanId: parent.spanId,
    events: [{ name: "half\nway", timeUnixNano: "1795325748667000000", attributes: [] }],
    links: [{
      traceId: parent.traceId,
      spanId: parent.spanId,
      attributes: [{ key: "why", value: { stringValue: "\"quoted\"" } }]
    }],
    startTimeUnixNano: "1795325748666369292",
    endTimeUnixNano: "1795325748667906682",
    status: { code: 1 }
  } as object)
}

const Key = Schema.Literals([
  name.operation,
  name.requestModel,
  name.messageId,
  name.tenant,
  name.inputTokens,
  "a",
  "b",
  "c",
  "\"d\""
])
const Text = Schema.Union([Schema.Literals(["", "one", "two", "\"", "é", "\\", "\u2028", "\ud83d"]), Schema.String])
const Attribute = Schema.Tuple([
  Key,
  Schema.Union([
    Text,
    Text,
    Schema.Literals([0, 1, 23, 456, 7_890, 12_345, -7, 0.25, 1e-9, 9_007_199_254_740_991]),
    Schema.Boolean,
    Schema.Array(Text)
  ])
])

describe("a span as OTLP/JSON", () => {
  it.prop(
    "has the span's own values, whatever similar spans were encoded before",
    [
      Schema.Literals(["publish jobs.chat.default", "chat \"é\"", "x".repeat(100)]),
      Schema.Literals(["internal", "server", "client", "producer", "consumer"]),
      Schema.Array(Attribute)
    ],
    ([name, kind, attributes]) => {
      assertEncoded({ name, kind, attributes })
    },
    { arbitrary: { runs: 1_000 } }
  )

  it("is correct when there are more shapes and values than are kept", () => {
    for (let at = 0; at < 3_000; at++) {
      assertEncoded({
        name: `name ${at % 1_500}`,
        kind: "client",
        attributes: [["a", `value ${at}`], ["b", "same"], ["c", at]]
      })
    }
  })

  it("names the route that the service set before the router, and no URL", () => {
    const text = textOf({
      name: "n",
      kind: "server",
      attributes: [[name.httpRoute, "/own"], ["url.full", "secret"], [name.httpRoute, "/*"], ["url.query", "secret"]]
    })
    assert.include(text, "/own")
    assert.notMatch(text, /secret|\/\*/)
  })

  it("names only an error's type", () => {
    const text = textOf({ name: "n", kind: "client", attributes: [] }, Exit.fail({ _tag: "Boom", message: "secret" }))
    assert.deepStrictEqual((JSON.parse(text) as { readonly status: object }).status, { code: 2, message: "Boom" })
    assert.notInclude(text, "secret")
  })
})

describe("the body of an OTLP request", () => {
  it("is valid JSON around its spans", () => {
    const body = `${Buffer.from(before).toString()}1,2,3${Buffer.from(after).toString()}`
    const { resourceSpans: [of] } = JSON.parse(body) as {
      readonly resourceSpans: ReadonlyArray<{ readonly scopeSpans: ReadonlyArray<{ readonly spans: unknown }> }>
    }
    assert.deepStrictEqual(of?.scopeSpans[0]?.spans, [1, 2, 3])
  })
})
