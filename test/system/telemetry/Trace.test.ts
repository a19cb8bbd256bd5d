/** What a collector receives about requests, what it must not receive, and that nothing waits for it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { chat, outcomeOf, tally } from "../../fixture/client/ChatClient.ts"
import { Collector } from "../../fixture/telemetry/Collector.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { type AnyGateway, Gateway } from "../../fixture/gateway/Gateway.ts"
import type { Span, SpanKind } from "../../fixture/telemetry/Otlp.ts"

/** Exports soon, so that a test need not wait for the usual seconds. */
const exportTo = (endpoint: string) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_BSP_SCHEDULE_DELAY: "10",
  OTEL_BLRP_SCHEDULE_DELAY: "10",
  OTEL_METRIC_EXPORT_INTERVAL: "200"
})

const ofKind = (spans: ReadonlyArray<Span>, wanted: SpanKind) => spans.find(({ kind }) => kind === wanted)

const traceOf = (response: Response): string => {
  const traceparent = response.headers.get("traceparent") ?? assert.fail("the answer names no trace")
  return traceparent.split("-")[1] ?? assert.fail(traceparent)
}

/** A trace, once ingress and worker have both exported their spans. */
const wholeTrace = async (collector: Collector, traceId: string): Promise<ReadonlyArray<Span>> => {
  await collector.until(() => {
    const spans = collector.spansOf(traceId)
    return ofKind(spans, "server") !== undefined && ofKind(spans, "consumer") !== undefined
  })
  return collector.spansOf(traceId)
}

const prompt = "a prompt that is nobody's business"
const messages = [{ role: "user", content: prompt }]

const withCollector = (
  environment: Record<string, string>,
  test: (collector: Collector, gateway: AnyGateway) => Promise<void>
) =>
  Effect.scoped(
    Effect.flatMap(Collector.make, (collector) =>
      Gateway.runHere({ environment: { ...exportTo(collector.url), ...environment } }, (gateway) =>
        test(collector, gateway)))
  )

const askWith = (gateway: AnyGateway, body: object, headers: Record<string, string> = {}) =>
  gateway.request(body, {
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json", ...headers }
  })

describe("telemetry", () => {
  it.live("joins ingress, worker and provider in one trace, which continues the client's if it has one", () =>
    withCollector({}, async (collector, gateway) => {
      const own = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" }
      const traceparent = `00-${own.traceId}-${own.spanId}-01`
      for (const [headers, parent] of [[{}, undefined], [{ traceparent }, own.spanId]] as const) {
        const response = await askWith(gateway, { model: "free-chat", messages, stream: true }, headers)
        const traceId = traceOf(response)
        assert.deepStrictEqual(await outcomeOf(response), { kind: "whole" })
        if (parent !== undefined) assert.strictEqual(traceId, own.traceId)

        const spans = await wholeTrace(collector, traceId)
        const server = ofKind(spans, "server")
        const consumer = ofKind(spans, "consumer")
        const client = ofKind(spans, "client")
        assert.strictEqual(server?.parentSpanId, parent)
        const producer = ofKind(spans, "producer")
        assert.strictEqual(producer?.parentSpanId, server?.spanId)
        assert.strictEqual(consumer?.parentSpanId, producer?.spanId)
        assert.strictEqual(client?.parentSpanId, consumer?.spanId)
        const known = new Set([parent, ...spans.map(({ spanId }) => spanId)])
        assert.deepStrictEqual(spans.filter(({ parentSpanId }) => !known.has(parentSpanId)), [])

        const call = await gateway.provider.nextRequest()
        assert.strictEqual(call.headers["traceparent"], `00-${traceId}-${client?.spanId}-01`)
      }
    }))

  it.live("exports requests that are not sampled if they fail, and tells workers and providers the decision", () =>
    withCollector({ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" }, async (
      collector,
      gateway
    ) => {
      const ask = async (flags?: string) => {
        const headers: Record<string, string> = flags === undefined ? {} : {
          traceparent: `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-${flags}`
        }
        const response = await askWith(gateway, { model: "free-chat", messages }, headers)
        await response.text()
        const call = await gateway.provider.nextRequest()
        const given = [response.headers.get("traceparent"), call.headers["traceparent"]]
        return { traceId: traceOf(response), flags: given.map((traceparent) => traceparent?.slice(-2)) }
      }
      const unsampled = await ask()
      assert.deepStrictEqual(unsampled.flags, ["00", "00"])
      gateway.provider.behaveOnce({ kind: "status", status: 500, error: { message: prompt } })
      const failed = await ask()
      assert.deepStrictEqual(failed.flags, ["00", "00"])
      const spans = await wholeTrace(collector, failed.traceId)
      for (const kind of ["server", "producer", "consumer", "client"] as const) {
        assert.isDefined(ofKind(spans, kind), kind)
      }
      const asClient = await ask("01")
      assert.deepStrictEqual(asClient.flags, ["01", "01"])
      await wholeTrace(collector, asClient.traceId)
      // it was answered before both
      assert.isEmpty(collector.spansOf(unsampled.traceId))
    }))

  it.live("contains no prompt and no key, whatever fails", () =>
    withCollector({}, async (collector, gateway) => {
      const ask = (body: object, headers: Record<string, string> = {}) =>
        askWith(gateway, body, headers).then((response) => response.text()).catch(String)
      const stray = "sk-gw-ThisKeyIsNotKnownToAnyoneAtAll00"
      // providers often quote it
      gateway.provider.behaveOnce(
        { kind: "status", status: 500, error: { message: `cannot do ${prompt}` } },
        { kind: "status", status: 400, error: { message: `cannot do ${prompt}` } },
        { kind: "cut", after: 3 },
        { kind: "raw", pieces: [prompt] }
      )
      for (const stream of [false, false, true, false]) await ask({ model: "free-chat", messages, stream })
      await ask({ model: "free-chat", messages: prompt })
      await ask({ model: prompt, messages })
      await ask({ model: "free-chat", messages, "x-api-key": stray }, { "x-api-key": stray, "x-goog-api-key": stray })
      await ask({ model: "free-chat", messages }, { authorization: `Bearer ${stray}` })

      await wholeTrace(collector, traceOf(await askWith(gateway, { model: "free-chat", messages })))
      const holds = (path: string, word: string) =>
        collector.payloads.get(path)?.some((payload) => payload.includes(word)) === true
      // the failures are reported, in every kind of signal
      await collector.until(() =>
        ["ProviderRejected", "ProviderFailed"].every((word) => holds("/v1/traces", word)) &&
        holds("/v1/metrics", "gateway_requests_total") && holds("/v1/logs", "worker started")
      )
      const exported = [...collector.payloads.values()].flat().join("\n") + gateway.log
      for (const secret of [prompt, gateway.key, "provider-secret", stray]) {
        assert.isFalse(exported.includes(secret), `exported a secret: ${secret}`)
      }
      assert.isFalse(exported.includes("/readyz"), "probes are traced like requests")
    }))
})

type Connect = (socket: Socket) => void

/** A collector whose connections the test handles, as it last said; stops with its scope. */
const rawCollector = (connect: Connect) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const state = { connect, sockets: new Set<Socket>(), server: createServer() }
        state.server.on("connection", (socket) => {
          state.sockets.add(socket.on("error", () => undefined).on("close", () => state.sockets.delete(socket)))
          state.connect(socket)
        })
        await once(state.server.listen(0, "127.0.0.1"), "listening")
        return state
      }),
      ({ server, sockets }) =>
        Effect.sync(() => {
          server.close()
          for (const socket of sockets) socket.destroy()
        })
    ),
    (state) => ({ ...exportTo(`http://127.0.0.1:${(state.server.address() as AddressInfo).port}`), state })
  )

const answer = (status: string) => (socket: Socket) =>
  void socket.once("data", () => socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`))

const requestsOf = (gateway: AnyGateway, count: number) =>
  Promise.all(Array.from({ length: count }, () => outcomeOf(gateway.request(chat("free-chat")))))

describe.concurrent("telemetry without a working collector", () => {
  it.live("delays no request: none waits for a collector that never answers", () =>
    Effect.scoped(Effect.gen(function*() {
      const received = new Set<Socket>()
      const { state, ...environment } = yield* rawCollector((socket) =>
        void socket.once("data", () => received.add(socket))
      )
      const untimed = { ...environment, OTEL_EXPORTER_OTLP_TIMEOUT: String(60 * 60 * 1_000) }
      yield* Gateway.runHere({ environment: untimed }, async (gateway) => {
        assert.deepStrictEqual(tally(await requestsOf(gateway, 20)), { whole: 20 })
        // ingress and worker wait for answers about traces, metrics and logs
        await eventually(() => received.size, (size) => size >= 6)
        for (let round = 0; round < 5; round++) {
          assert.deepStrictEqual(tally(await requestsOf(gateway, 20)), { whole: 20 })
        }
        // the services can end at once
        state.connect = answer("200 OK")
        for (const socket of state.sockets) socket.destroy()
      })
    })))

  const deaf: ReadonlyArray<readonly [does: string, connect: Connect]> = [
    ["refuses connections", () => assert.fail("it listens")],
    ["accepts everything and never answers", () => undefined],
    ["answers 500", answer("500 No")]
  ]
  it.live.each(deaf)(
    "is reported once and delays no exit if the collector %s",
    ([does, connect]) =>
      Effect.scoped(Effect.gen(function*() {
        const { state, ...environment } = yield* rawCollector(connect)
        if (does === "refuses connections") state.server.close()
        yield* Gateway.runHere(
          { environment: { ...environment, OTEL_EXPORTER_OTLP_TIMEOUT: "1000" } },
          async (gateway) => {
            const services = [gateway.ingress, ...gateway.workers]
            const warnings = () =>
              services.map(({ log }) =>
                log.split("\n").filter((line) => line.includes("telemetry cannot be delivered")).length
              )
            assert.deepStrictEqual(tally(await requestsOf(gateway, 20)), { whole: 20 })
            await eventually(warnings, (counts) => counts.every((count) => count > 0))
            assert.deepStrictEqual(tally(await requestsOf(gateway, 20)), { whole: 20 })
            await Promise.all(services.map((service) => service.terminate()))
            assert.deepStrictEqual(warnings(), [1, 1])
          }
        )
      }))
  )
})
