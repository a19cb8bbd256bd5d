/** The encoding of spans, with and without cached parts. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Exit, Option, Schema, Tracer } from "effect"
import { name } from "../../../shared/telemetry/Attributes.ts"
import { RedactingSpan } from "../../../shared/telemetry/RedactingSpan.ts"
import * as OtlpJson from "../../../shared/telemetry/OtlpJson.ts"

type Value = string | number | boolean | ReadonlyArray<string>

interface SpanSpec {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: ReadonlyArray<readonly [string, Value]>
}

const parent = Tracer.externalSpan({ traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" })

const textOf = ({ attributes, kind, name }: SpanSpec, exit: Exit.Exit<unknown, unknown> = Exit.void): string => {
  const texts: Array<string> = []
  const span = new RedactingSpan({
    name,
    kind,
    parent: Option.some(parent),
    annotations: Context.empty(),
    links: [{ span: parent, attributes: { why: "\"quoted\"" } }],
    startTime: 1_795_325_748_666_369_292n,
    root: false,
    sampled: true
  }, (ended) => texts.push(OtlpJson.encodeSpan(ended)))
  for (const [key, value] of attributes) span.attribute(key, value)
  span.event("half\nway", 1_795_325_748_667_000_000n)
  span.end(1_795_325_748_667_906_682n, exit)
  return texts.join()
}

const valueOf = (value: Value): object =>
  typeof value === "string"
    ? { stringValue: value }
    : typeof value === "boolean"
    ? { boolValue: value }
    : typeof value === "number"
    ? { intValue: value }
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
    spec.attributes.map(([key, value]) => ({ key, value: valueOf(value) })).toSorted(byKey)
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

const Key = Schema.Literals([name.operation, name.requestModel, name.messageId, name.tenant, "a", "b", "c", "\"d\""])
const Text = Schema.Union([Schema.Literals(["", "one", "two", "\"", "é", "\\", "\u2028", "\ud83d"]), Schema.String])
const Attribute = Schema.Tuple([
  Key,
  Schema.Union([Text, Text, Schema.Literals([0, 1, 2, -7, 9_007_199_254_740_991]), Schema.Boolean, Schema.Array(Text)])
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
      // internal spans without a parent are not exported, and the last of duplicate attributes counts
      assertEncoded({ name, kind, attributes: [...new Map(attributes)] })
    },
    { arbitrary: { runs: 3_000 } }
  )

  it("is correct beyond the capacity of the cache", () => {
    for (let at = 0; at < 3_000; at++) {
      assertEncoded({
        name: `name ${at % 7}`,
        kind: "client",
        attributes: [["a", `value ${at}`], ["b", "same"], ["c", at]]
      })
    }
  })

  it("names only an error's type", () => {
    const text = textOf({ name: "n", kind: "client", attributes: [] }, Exit.fail({ _tag: "Boom", message: "secret" }))
    assert.deepStrictEqual((JSON.parse(text) as { readonly status: object }).status, { code: 2, message: "Boom" })
    assert.notInclude(text, "secret")
  })
})

describe("the body of an OTLP request", () => {
  it.each([
    ["an empty first page", ["", "1,2", "3"], [1, 2, 3]],
    ["an empty page in between", ["1", "", "2"], [1, 2]],
    ["no span", [""], []]
  ])("is valid JSON with %s", (_, pieces, spans) => {
    const body = OtlpJson.encodeBody(
      { attributes: [], droppedAttributesCount: 0 },
      {},
      pieces.map((text) => Buffer.from(text))
    )
    const { resourceSpans: [of] } = JSON.parse(Buffer.from(body).toString()) as {
      readonly resourceSpans: ReadonlyArray<{ readonly scopeSpans: ReadonlyArray<{ readonly spans: unknown }> }>
    }
    assert.deepStrictEqual(of?.scopeSpans[0]?.spans, spans)
  })
})
