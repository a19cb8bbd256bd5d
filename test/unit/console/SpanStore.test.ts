/** The spans that are kept of those that services send, and their eviction. */
import { assert, describe, it } from "@effect/vitest"
import { SpanStore } from "../../../services/console/traces/SpanStore.ts"

/** In the format of `effect/observability`. */
const payload = (...spans: ReadonlyArray<object>) => ({
  resourceSpans: [{
    resource: { attributes: [{ key: "service.name", value: { stringValue: "ingress" } }], droppedAttributesCount: 0 },
    scopeSpans: [{ scope: { name: "effect" }, spans }]
  }]
})

const span = (traceId: string, spanId: string, startMs: number, more: object = {}) => ({
  traceId,
  spanId,
  name: `span ${spanId}`,
  kind: 2,
  startTimeUnixNano: String(BigInt(startMs) * 1_000_000n),
  endTimeUnixNano: String(BigInt(startMs + 10) * 1_000_000n),
  attributes: [],
  events: [],
  links: [],
  status: { code: 1 },
  ...more
})

describe("the span store", () => {
  it("returns a trace in order of start times, whichever service reports first", () => {
    const store = new SpanStore()
    const child = span("t", "b", 1_005, {
      parentSpanId: "a",
      kind: 3,
      status: { code: 2 },
      attributes: [
        { key: "gen_ai.usage.input_tokens", value: { intValue: "7" } },
        { key: "gen_ai.response.time_to_first_chunk", value: { doubleValue: 0.25 } },
        { key: "gen_ai.response.finish_reasons", value: { arrayValue: { values: [{ stringValue: "stop" }] } } }
      ],
      events: [{ name: "first chunk", timeUnixNano: "1008000000", attributes: [] }],
      links: [{ traceId: "other", spanId: "c", attributes: [] }]
    })
    assert.isTrue(store.add(payload(child)))
    assert.isTrue(store.add(payload(span("t", "a", 1_000))))
    const [first, second, ...others] = store.find("t")
    assert.isEmpty(others)
    assert.deepInclude(first!, {
      spanId: "a",
      kind: "server",
      parentSpanId: null,
      isError: false,
      start: 1_000,
      end: 1_010
    })
    assert.deepStrictEqual(second, {
      service: "ingress",
      traceId: "t",
      spanId: "b",
      parentSpanId: "a",
      name: "span b",
      kind: "client",
      start: 1_005,
      end: 1_015,
      isError: true,
      attributes: {
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.response.finish_reasons": ["stop"]
      },
      events: [{ name: "first chunk", at: 1_008 }],
      links: [{ traceId: "other", spanId: "c" }]
    })
  })

  it("finds a request in a trace of several by its own id and by its job's id", () => {
    const store = new SpanStore()
    const attribute = (key: string, stringValue: string) => ({ attributes: [{ key, value: { stringValue } }] })
    for (const [index, request] of ["first", "second"].entries()) {
      const begin = 1_000 * (index + 1)
      // the workers report before ingress
      store.add(payload(
        span("t", `${request} worker`, begin + 2, { parentSpanId: `${request} queue`, kind: 5 }),
        span("t", `${request} queue`, begin + 1, {
          parentSpanId: `${request} server`,
          kind: 4,
          ...attribute("messaging.message.id", `${request} job`)
        })
      ))
      assert.lengthOf(store.find(`${request} job`), 2)
      store.add(payload(span("t", `${request} server`, begin, {
        parentSpanId: "of the client",
        ...attribute("gateway.request.id", `${request} id`)
      })))
    }
    for (const request of ["first", "second"]) {
      const expected = ["server", "queue", "worker"].map((part) => `${request} ${part}`)
      for (const id of [`${request} id`, `${request} job`]) {
        assert.deepStrictEqual(store.find(id).map(({ spanId }) => spanId), expected)
      }
    }
    assert.lengthOf(store.find("t"), 6)
    assert.isEmpty(store.find("nobody's"))
  })

  it("tells the requests of several keys in one trace apart, whatever parents their clients choose", () => {
    const store = new SpanStore()
    const ofKey = (stringValue: string) => ({ attributes: [{ key: "gateway.tenant", value: { stringValue } }] })
    store.add(payload(
      span("t", "ours", 1, { ...ofKey("key_1") }),
      span("t", "our job", 2, { parentSpanId: "ours", kind: 5 }),
      span("t", "theirs", 3, { parentSpanId: "our job", ...ofKey("key_2") }),
      span("t", "their job", 4, { parentSpanId: "theirs", kind: 5 }),
      span("t", "without a key", 5, { parentSpanId: "ours" }),
      span("t", "without a request", 6, { kind: 5 })
    ))
    const found = (isWithin?: (key: string) => boolean) => store.find("t", isWithin).map(({ spanId }) => spanId)
    assert.lengthOf(found(), 6)
    assert.deepStrictEqual(found((key) => key === "key_1"), ["ours", "our job"])
    assert.deepStrictEqual(found((key) => key === "key_2"), ["theirs", "their job"])
    assert.isEmpty(found(() => false))
  })

  it("finds the request of spans however far below it they are", () => {
    const store = new SpanStore()
    const chain = Array.from(
      { length: 1_999 },
      (_, index) => span("t", `${index + 1}`, index, { parentSpanId: `${index}`, kind: 1 })
    )
    const attributes = [{ key: "gateway.tenant", value: { stringValue: "key_1" } }]
    store.add(payload(span("t", "0", 0, { attributes }), ...chain))
    assert.lengthOf(store.find("t", (key) => key === "key_1"), 2_000)
  })

  it("tolerates cyclic parents, and bounds the size of a span", () => {
    const store = new SpanStore()
    const huge = "x".repeat(100_000)
    store.add(payload(
      span("t", "a", 1, { parentSpanId: "b", kind: 1 }),
      span("t", "b", 2, {
        parentSpanId: "a",
        kind: 1,
        name: huge,
        attributes: [
          { key: "gateway.request.id", value: { stringValue: "circle" } },
          { key: "long", value: { stringValue: huge } },
          ...Array.from({ length: 1_000 }, (_, index) => ({ key: `${index}`, value: { intValue: index } }))
        ],
        events: Array.from({ length: 1_000 }, () => ({ name: huge, timeUnixNano: "0" }))
      })
    ))
    assert.lengthOf(store.find("circle"), 2)
    assert.isBelow(JSON.stringify(store.find("t")).length, 50_000)
  })

  it("evicts whole traces, least recently updated first", () => {
    const store = new SpanStore(4)
    for (const trace of ["old", "live", "newer"]) store.add(payload(span(trace, `${trace} 1`, 1)))
    store.add(payload(span("old", "old 2", 2)))
    store.add(payload(span("newest", "newest 1", 3)))
    assert.isEmpty(store.find("live"))
    assert.lengthOf(store.find("old"), 2)
    assert.lengthOf(store.find("newer"), 1)
    assert.lengthOf(store.find("newest"), 1)
  })

  it("rejects an invalid trace, and keeps its traces", () => {
    const store = new SpanStore()
    store.add(payload(span("t", "a", 1)))
    for (const body of [null, "text", {}, { resourceSpans: [{}] }, payload({ traceId: 1 })]) {
      assert.isFalse(store.add(body))
    }
    assert.lengthOf(store.find("t"), 1)
  })
})
