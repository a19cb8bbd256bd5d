/**
 * The trace of every operation, and of all that can happen to a request: a retry, a fallback, a wait, a lost worker, no
 * worker, a client that disconnects. Ingress exports JSON, the workers protobuf.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import sharp from "sharp"
import { afterAll, beforeAll } from "vitest"
import { workloads } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { chat, outcomeOf, startStream } from "../../fixture/client/ChatClient.ts"
import { Collector } from "../../fixture/telemetry/Collector.ts"
import { detours, requestWithFallback, requestWithRetry, requestWithWait } from "../../fixture/client/Detours.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import type { ServiceHere } from "../../fixture/gateway/ServiceHere.ts"
import type { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { sound } from "../../fixture/client/Requests.ts"
import type { Span, SpanKind } from "../../fixture/telemetry/Otlp.ts"
import { smallVideo, VideoClient } from "../../fixture/client/VideoClient.ts"

const secretQuery = "a-signature-that-is-nobodys-business"
const prompt = "a prompt that is nobody's business"
const messages = [{ role: "user", content: prompt }]

const scope = Scope.makeUnsafe()
let collector: Collector
let gateway: Gateway<NatsServer, ServiceHere>

const options = (endpoint: string) => ({
  workers: 0,
  wired: true,
  environment: {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_BSP_SCHEDULE_DELAY: "10",
    OTEL_METRIC_EXPORT_INTERVAL: "500"
  },
  ...detours,
  models: `${detours.models}
  deadly-chat: { workload: chat, pool: deadly, targets: [{ provider: free }] }`
})

const protobuf = { OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf" }

beforeAll(async () => {
  collector = await Effect.runPromise(Scope.provide(Collector.make, scope))
  gateway = await Effect.runPromise(Scope.provide(Gateway.makeHere(options(collector.url)), scope))
  await Promise.all(workloads.map((service) => gateway.startWorker(protobuf, service)))
  // the first request loads the tokenizer, for which a busy machine may take so long that ingress repeats the job
  for (const name of ["chat.completions", "embeddings", "images.generations", "rerank"]) {
    const [path, body] = await (requests[name] ?? assert.fail(name))()
    await (await send(path, body)).text()
  }
})

afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const send = (path: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(`${gateway.url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${gateway.key}`,
      "content-type": "application/json",
      "vendor-version": "2023-06-01"
    },
    body: JSON.stringify(body),
    ...init
  })

const traceIdOf = (response: Response): string =>
  response.headers.get("traceparent")?.split("-")[1] ?? assert.fail("the answer names no trace")

const ofKind = (spans: ReadonlyArray<Span>, wanted: SpanKind) => spans.filter(({ kind }) => kind === wanted)

const only = (spans: ReadonlyArray<Span>, kind: SpanKind): Span => {
  const [first, ...others] = ofKind(spans, kind)
  if (first === undefined) assert.fail(`there is no ${kind} span`)
  assert.isEmpty(others)
  return first
}

type Counts = Partial<Record<SpanKind, number>>

/** A trace, once it has a server span and this many of the other selected ones. */
const wholeTrace = async (
  traceId: string,
  counts: Counts = {},
  select: (spans: ReadonlyArray<Span>) => ReadonlyArray<Span> = (spans) => spans
) => {
  const wanted = Object.entries({ server: 1, producer: 1, consumer: 1, client: 1, ...counts })
  const missing = () => {
    const spans = select(collector.spansOf(traceId))
    return wanted.filter(([kind, count]) => spans.filter((span) => span.kind === kind).length < count)
  }
  await collector.until(() => missing().length === 0, () => `missing: ${JSON.stringify(missing())}`)
  const spans = collector.spansOf(traceId)
  assertWhole(spans)
  return select(spans)
}

/**
 * The same without failed attempts, because ingress may take a worker for lost that a busy machine only delayed. One job's
 * publications share a span, except for such attempts, which have numbers and links.
 */
const trace = (traceId: string, counts: Counts = {}) => wholeTrace(traceId, counts, lastAttempt)

const numberOf = ({ attributes }: Span) => Number(attributes["gateway.job.attempt"])

const lastAttempt = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const attempts = ofKind(spans, "producer").toSorted((a, b) => numberOf(a) - numberOf(b))
  const stale = new Set(attempts.slice(0, -1).map(({ spanId }) => spanId))
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const isStale = (span: Span | undefined): boolean =>
    span !== undefined && (stale.has(span.spanId) || isStale(byId.get(span.parentSpanId ?? "")))
  return spans.filter((span) => !isStale(span))
}

/** Durations and points in time are of clocks that may differ. */
const skewMs = 5

/** One root, no orphans, one span for each attempt, and none starts before its parent. */
const assertWhole = (spans: ReadonlyArray<Span>) => {
  const attempts = ofKind(spans, "producer").toSorted((a, b) => numberOf(a) - numberOf(b))
  for (const [index, { attributes, links, name }] of attempts.entries()) {
    assert.strictEqual(attributes["gateway.job.attempt"], index + 1, name)
    assert.deepStrictEqual(
      links.map(({ spanId }) => spanId),
      attempts.slice(Math.max(0, index - 1), index).map(({ spanId }) => spanId)
    )
  }
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  assert.lengthOf(spans.filter(({ parentSpanId }) => parentSpanId === undefined), 1)
  const parents: Partial<Record<SpanKind, SpanKind>> = {
    producer: "server",
    consumer: "producer",
    client: "consumer"
  }
  for (const span of spans) {
    assert.isAtLeast(span.end, span.start)
    const parent = span.parentSpanId === undefined ? undefined : byId.get(span.parentSpanId)
    if (span.kind === "internal") assert.isDefined(parent, span.name)
    else assert.strictEqual(parent?.kind, parents[span.kind], `${span.kind} ${span.name}`)
    if (parent !== undefined) assert.isAtLeast(span.start, parent.start - skewMs, span.name)
  }
}

const assertAttributes = (span: Span, expected: Record<string, unknown>) => {
  for (const [name, value] of Object.entries(expected)) {
    if (value instanceof RegExp) assert.match(String(span.attributes[name]), value, `${span.name}: ${name}`)
    else assert.deepStrictEqual(span.attributes[name], value, `${span.name}: ${name}`)
  }
}

const content = async () => {
  const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: "red" } }).png().toBuffer()
  return [{ image: `data:image/png;base64,${image.toString("base64")}` }, { text: "invert" }]
}

/** Each operation's request, by the operation's name. */
const requests: Record<string, () => Promise<readonly [path: string, body: object]>> = {
  "audio.speech": async () => ["/v1/audio/speech", { model: "local-speech", input: prompt, voice: "nova" }],
  "chat.completions": async () => ["/v1/chat/completions", { model: "local-chat", messages, stream: true }],
  "responses": async () => ["/v1/responses", { model: "local-chat", input: prompt, stream: true }],
  "responses.compact": async () => ["/v1/responses/compact", { model: "local-chat", input: messages }],
  "responses.input_tokens": async () => ["/v1/responses/input_tokens", { model: "local-chat", input: prompt }],
  "completions": async () => ["/v1/completions", { model: "local-chat", prompt }],
  "embeddings": async () => ["/v1/embeddings", { model: "local-embedding", input: prompt }],
  "engines.embeddings": async () => ["/v1/engines/local-embedding/embeddings", { input: prompt }],
  "embedContent": async () => [
    "/v1beta/models/local-embedding:embedContent",
    { content: { parts: [{ text: prompt }] } }
  ],
  "batchEmbedContents": async () => [
    "/v1beta/models/local-embedding:batchEmbedContents",
    { requests: [{ content: { parts: [{ text: prompt }] } }] }
  ],
  "embed": async () => ["/v2/embed", { model: "local-embedding", texts: [prompt], input_type: "search_query" }],
  "generateContent": async () => [
    "/v1beta/models/local-chat:generateContent",
    { contents: [{ parts: [{ text: prompt }] }] }
  ],
  "streamGenerateContent": async () => [
    `/v1beta/models/local-chat:streamGenerateContent?alt=sse&key=${secretQuery}`,
    { contents: [{ parts: [{ text: prompt }] }] }
  ],
  "images.edits": async () => [
    "/v1/images/edits",
    { model: "local-image", input: { messages: [{ role: "user", content: await content() }] } }
  ],
  "images.generations": async () => ["/v1/images/generations", { model: "local-image", prompt, size: "64x64" }],
  "messages": async () => ["/v1/messages", { model: "local-chat", max_tokens: 50, messages }],
  "messages.count_tokens": async () => ["/v1/messages/count_tokens", { model: "local-chat", messages }],
  "countTokens": async () => ["/v1beta/models/local-chat:countTokens", { contents: [{ parts: [{ text: prompt }] }] }],
  "audio.transcriptions": async () => ["/v1/audio/transcriptions", { model: "gpt-4o-transcribe", file: sound, prompt }],
  "audio.translations": async () => ["/v1/audio/translations", { model: "whisper-1", file: sound, prompt }],
  "moderations": async () => ["/v1/moderations", { model: "omni-moderation-latest", input: prompt }],
  "rerank": async () => ["/v1/rerank", { model: "local-rerank", query: prompt, documents: ["a", "b"] }],
  "video.generations": async () => ["/v1/video/generations", { ...smallVideo, prompt }]
}

describe("a trace", () => {
  it.for(operations)("of $name goes from ingress through the queue to the provider", async (operation) => {
    const [path, body] =
      await (requests[operation.name] ?? assert.fail(`add ${operation.name} to "requests" in this file`))()
    const response = await send(path, body)
    const answer = await response.text()
    assert.strictEqual(response.status, 200, answer)
    const spans = await trace(traceIdOf(response), operation.kind === "task" ? { client: 2 } : {})

    const route = operation.paths.find((template) => {
      const [start = "", end = ""] = template.split("{model}")
      const [asked = ""] = path.split("?")
      return asked.startsWith(start) && asked.endsWith(end)
    })
    const server = only(spans, "server")
    assert.strictEqual(server.service, "ingress")
    assert.strictEqual(server.name, `POST ${route}`)
    assertAttributes(server, {
      "http.request.method": "POST",
      "http.route": route,
      "url.path": route,
      "url.scheme": "http",
      "http.response.status_code": 200,
      "gateway.request.id": response.headers.get("x-request-id"),
      "gateway.tenant": /^key_\w+$/,
      "gateway.operation": operation.name,
      "error.type": undefined
    })
    const producer = only(spans, "producer")
    const consumer = only(spans, "consumer")
    const queue = producer.name.replace("publish ", "")
    assert.match(queue, new RegExp(`^jobs3?\\.${consumer.service}\\.default$`))
    assert.strictEqual(consumer.name, `process ${queue}`)
    const message = {
      "messaging.system": "nats",
      "messaging.destination.name": queue,
      "messaging.message.id": /^\w{22,}$/,
      "gateway.operation": operation.name,
      "gen_ai.request.model": operation.needsProvider === true ? /./ : /^local-/
    }
    assertAttributes(producer, {
      ...message,
      "messaging.operation.name": "publish",
      "messaging.operation.type": "send"
    })
    assertAttributes(consumer, {
      ...message,
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.message.id": producer.attributes["messaging.message.id"],
      "gateway.queue.duration_ms": /^\d+$/
    })
    // the worker starts once the wait in the queue is over
    assert.isAtLeast(consumer.start, producer.start - skewMs)
    for (const client of ofKind(spans, "client")) {
      assert.strictEqual(client.service, consumer.service)
      const model = consumer.attributes["gen_ai.request.model"]
      assert.strictEqual(client.name, `${client.attributes["gen_ai.operation.name"]} ${model}`)
      assertAttributes(client, {
        "gen_ai.operation.name": /^[\w.]+$/,
        "gen_ai.provider.name": operation.needsProvider === true ? "free" : "local",
        "gen_ai.request.model": model
      })
      assert.notStrictEqual(client.status, "error")
    }
  })

  it("of a stream has its first byte's time and its usage, and ends with it", async () => {
    gateway.provider.behaveOnce({ kind: "hold", after: 2 })
    const answer = send("/v1/chat/completions", chat("free-chat", { stream: true }))
    const { outcome } = await startStream(answer)
    // between its first byte and its last
    const other = await send("/v1/chat/completions", chat("free-chat"))
    await other.text()
    const between = only(await trace(traceIdOf(other)), "server")
    gateway.provider.release()
    assert.deepStrictEqual(await outcome(), { kind: "whole" })
    const spans = await trace(traceIdOf(await answer))
    for (const kind of ["server", "consumer", "client"] as const) {
      assert.isAtLeast(only(spans, kind).end, between.end - skewMs, kind)
    }
    const client = only(spans, "client")
    assertAttributes(client, {
      "gen_ai.request.stream": true,
      "gen_ai.response.model": /^[\w-]+$/,
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": /^\d+$/,
      "gen_ai.usage.output_tokens": /^\d+$/
    })
    assert.deepStrictEqual(client.events, ["first chunk"])
    const firstSeconds = Number(client.attributes["gen_ai.response.time_to_first_chunk"])
    assert.isAbove(firstSeconds, 0)
    assert.isAtMost(client.start + firstSeconds * 1_000, between.start + skewMs)
  })

  it("of a request with a retry shows both calls", async () => {
    const response = await requestWithRetry(gateway)
    const spans = await trace(traceIdOf(response), { client: 2 })
    const [first, second] = ofKind(spans, "client").toSorted((a, b) => a.start - b.start)
    assertAttributes(first!, {
      "gateway.provider.attempt": 1,
      "gateway.provider.reason": "first",
      "error.type": "ProviderFailed",
      "http.response.status_code": 503
    })
    assert.strictEqual(first!.status, "error")
    assertAttributes(second!, { "gateway.provider.attempt": 2, "gateway.provider.reason": "retry" })
    for (const span of [second!, only(spans, "server"), only(spans, "consumer")]) {
      assert.notStrictEqual(span.status, "error")
    }
  })

  it("of a request that fell back names both providers", async () => {
    const response = await requestWithFallback(gateway, prompt)
    const spans = await trace(traceIdOf(response), { client: 2 })
    const [first, second] = ofKind(spans, "client").toSorted((a, b) => a.start - b.start)
    assertAttributes(first!, { "gen_ai.provider.name": "free", "error.type": "ProviderFailed" })
    assertAttributes(second!, {
      "gen_ai.provider.name": "second",
      "gateway.provider.reason": "fallback",
      "gen_ai.response.finish_reasons": ["stop"]
    })
  })

  it("of a request that failed says why, in ingress and worker", async () => {
    gateway.provider.behaveOnce({ kind: "status", status: 500, error: { message: prompt } })
    const response = await send("/v1/chat/completions", chat("free-chat"))
    assert.strictEqual(response.status, 502)
    await response.text()
    const spans = await trace(traceIdOf(response))
    for (const kind of ["server", "consumer", "client"] as const) {
      assert.strictEqual(only(spans, kind).status, "error", kind)
      assertAttributes(only(spans, kind), { "error.type": "ProviderFailed" })
    }
    assertAttributes(only(spans, "server"), { "http.response.status_code": 502 })
  })

  it("of a stream that broke off is an error, whatever its status", async () => {
    gateway.provider.behaveOnce({ kind: "cut", after: 3 })
    const response = await send("/v1/chat/completions", chat("free-chat", { stream: true }))
    assert.strictEqual(response.status, 200)
    await outcomeOf(response)
    const server = only(await trace(traceIdOf(response)), "server")
    assert.strictEqual(server.status, "error")
    assertAttributes(server, { "error.type": "ProviderFailed", "gateway.answer.broken": true })
  })

  it("of an invalid request is not a server error", async () => {
    const response = await send("/v1/chat/completions", { model: "free-chat", messages: prompt })
    assert.strictEqual(response.status, 400)
    await response.text()
    const server = only(await trace(traceIdOf(response), { producer: 0, consumer: 0, client: 0 }), "server")
    assert.notStrictEqual(server.status, "error")
    assertAttributes(server, { "error.type": "InvalidRequest" })
  })

  it("of a request that waited for its provider's limits shows the wait", async () => {
    const response = await requestWithWait(gateway)
    const spans = await trace(traceIdOf(response), { internal: 1 })
    assert.strictEqual(only(spans, "internal").name, "wait for narrow")
    assert.notStrictEqual(only(spans, "internal").status, "error")
    assert.isAtMost(only(spans, "internal").end, only(spans, "client").start + 1)
  })

  it("of a request whose client disconnected is cancelled everywhere, and not an error", async () => {
    gateway.provider.behaveOnce({ kind: "hold", after: 2 })
    const hangUp = new AbortController()
    const answer = send("/v1/chat/completions", chat("free-chat", { stream: true }), { signal: hangUp.signal })
    const traceId = traceIdOf(await answer)
    await startStream(answer)
    hangUp.abort()
    const spans = await trace(traceId)
    for (const kind of ["server", "consumer", "client"] as const) {
      assert.strictEqual(only(spans, kind).status, "unset", kind)
      assertAttributes(only(spans, kind), { "gateway.cancelled": true, "error.type": undefined })
    }
  })

  it("of a request whose worker died continues at the next one", async () => {
    const pool = { WORKER_POOL: "deadly" }
    // a process takes its spans with it
    const dying = await gateway.startWorker({ ...pool, OTEL_SDK_DISABLED: "true" })
    gateway.provider.behaveOnce({ kind: "silent" })
    const calls = gateway.provider.requests.length
    const answer = send("/v1/chat/completions", chat("deadly-chat"))
    await gateway.provider.until(() => gateway.provider.requests.length > calls)
    await gateway.startWorker({ ...protobuf, ...pool })
    await dying.kill()
    const response = await answer
    assert.strictEqual(response.status, 200)
    await response.text()
    const spans = await wholeTrace(traceIdOf(response), { producer: 2 })
    const [first, second] = ofKind(spans, "producer").toSorted((a, b) => a.start - b.start)
    assertAttributes(second!, { "gateway.job.attempt": 2 })
    assert.deepStrictEqual(second!.links, [{ traceId: first!.traceId, spanId: first!.spanId }])
    assertAttributes(only(spans, "consumer"), { "gateway.job.attempt": 2 })
    assert.strictEqual(only(spans, "consumer").parentSpanId, second!.spanId)
  })

  it("of a request that no worker takes shows its wait and its deliveries, in one span", async () => {
    // its client waits for five seconds, most of which is its time in the queue
    const response = await gateway.request(chat("unserved-chat"), { headers: { "x-stainless-timeout": "5" } })
    assert.strictEqual(response.status, 503)
    await response.text()
    const producer = only(await trace(traceIdOf(response), { consumer: 0, client: 0 }), "producer")
    // how often it was published again depends on how soon NATS answered
    assert.strictEqual(producer.events[0], "published")
    assert.strictEqual(producer.events.at(-1), "exception")
    assert.deepStrictEqual(new Set(producer.events.slice(1, -1)), new Set(["published again"]))
    assert.isAtLeast(producer.end - producer.start, 3_900)
    assert.strictEqual(producer.status, "error")
    assertAttributes(producer, { "gateway.job.attempt": 1, "error.type": "QueueTimeout" })
  })

  it("of a request about a video task links to that of the task, which continues in its worker", async () => {
    const client = new VideoClient(gateway)
    const created = await client.post({ ...smallVideo, prompt })
    const { task_id: id } = await created.json() as { readonly task_id: string }
    await client.untilEnded(id)
    const spans = await trace(traceIdOf(created), { client: 2 })
    assert.deepStrictEqual(
      ofKind(spans, "client").toSorted((a, b) => a.start - b.start).map(({ attributes }) =>
        attributes["gateway.provider.step"]
      ),
      ["start", "follow"]
    )
    const look = await client.request(`/${id}`)
    const { url = "" } = await look.json() as { readonly url?: string }
    const looked = only(await trace(traceIdOf(look), { producer: 0, consumer: 0, client: 0 }), "server")
    assert.strictEqual(looked.name, "GET /v1/video/generations/{task_id}")
    assert.deepStrictEqual(looked.links.map(({ traceId }) => traceId), [traceIdOf(created)])
    // a signed URL: its signature is in none of its spans
    const fetched = await fetch(url)
    await fetched.arrayBuffer()
    const content = only(await trace(traceIdOf(fetched), { producer: 0, consumer: 0, client: 0 }), "server")
    assert.strictEqual(content.name, "GET /v1/video/generations/{task_id}/content")
    signatures.push(new URL(url).searchParams.get("signature") ?? assert.fail(url))
  })

  const signatures: Array<string> = []

  it("belongs to a request: the services' own activity has none", () => {
    const begun = collector.spans.filter(({ parentSpanId }) => parentSpanId === undefined)
    assert.deepStrictEqual([...new Set(begun.map(({ kind }) => kind))], ["server"])
  })

  it("contains no prompt, key or signature", () => {
    const exported = [...collector.payloads.values()].flat().join("\n") + gateway.log
    assert.isAbove(collector.spans.length, 60)
    assert.lengthOf(signatures, 1)
    for (const secret of [prompt, gateway.key, "provider-secret", secretQuery, ...signatures]) {
      assert.isFalse(exported.includes(secret), `exported a secret: ${secret}`)
    }
  })
})
