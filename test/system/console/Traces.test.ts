/** The traces that the console stores: which senders it accepts, and what it does with malformed ones. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { serviceHeaders, traceOf, tracesPath } from "../../fixture/telemetry/OtlpTraces.ts"
import { testAdminToken, testKey } from "../../fixture/gateway/Gateway.ts"
import { type RawAnswer, sendRaw } from "../../fixture/client/RawHttp.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const token = "a-token-for-traces-in-this-test"

const gateway = sharedGateway({ workers: 0 })
let keeping: ConsoleClient
let other: ConsoleClient

beforeAll(async () => {
  keeping = await ConsoleClient.signedIn((await gateway().startConsole({ CONSOLE_OTLP_TOKEN: token })).port)
  other = await ConsoleClient.signedIn((await gateway().startConsole()).port)
})

const traces = (traceId: string) => traceOf(traceId, { "gateway.request.id": `req_${traceId}` })

/** Sends them as a service does, with these headers changed. */
const send = async (client: ConsoleClient, body: string, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(`${client.url}${tracesPath}`, {
    method: "POST",
    body,
    headers: { ...serviceHeaders(token), ...headers }
  })
  return { status: response.status, body: await response.json() as { readonly message?: string } }
}

const find = (client: ConsoleClient, id: string) =>
  client.send<ReadonlyArray<{ readonly name: string }>>("GET", `/api/traces/${id}`)

/** Sends one raw request, with the right token unless the lines replace it. */
const raw = async (lines: ReadonlyArray<string>): Promise<RawAnswer> => {
  const { host, port } = new URL(keeping.url)
  const body = JSON.stringify(traces("raw"))
  const head = [
    `POST ${tracesPath} HTTP/1.1`,
    ...(lines.some((line) => line.startsWith("host:")) ? [] : [`host: ${host}`]),
    "connection: close",
    `authorization: Bearer ${token}`,
    `content-length: ${body.length}`,
    ...lines
  ]
  const [answer] = await sendRaw(Number(port), [`${head.join("\r\n")}\r\n\r\n${body}`])
  return answer ?? assert.fail("no answer")
}

describe("the console's traces", () => {
  it("are found by the request's id and by their own, in a session", async () => {
    assert.strictEqual((await send(keeping, JSON.stringify(traces("known")))).status, 200)
    for (const id of ["known", "req_known"]) {
      const { body, status } = await find(keeping, id)
      assert.strictEqual(status, 200)
      assert.deepStrictEqual(body.map(({ name }) => name), ["POST /v1/chat/completions"])
    }
    const { body, status } = await find(keeping, "unknown")
    assert.deepStrictEqual({ status, ...body }, {
      status: 404,
      _tag: "TraceUnknown",
      message: "Trace not found: the id is unknown, or the trace was evicted"
    })
    assert.strictEqual((await find(new ConsoleClient(Number(new URL(keeping.url).port)), "known")).status, 401)
  })

  it("are accepted only with their token", async () => {
    for (const authorization of ["", "Bearer", "Bearer ", `Bearer ${token}x`, `Basic ${token}`]) {
      const { body, status } = await send(keeping, JSON.stringify(traces("strange")), { authorization })
      assert.oneOf(status, [401, 403], authorization)
      assert.isString(body.message)
    }
    for (const word of [testAdminToken, testKey]) {
      assert.strictEqual((await send(keeping, "{}", { authorization: `Bearer ${word}` })).status, 401)
    }
    // a session is not the services' token
    assert.strictEqual((await keeping.send("POST", tracesPath, traces("strange"))).status, 401)
    assert.strictEqual((await find(keeping, "strange")).status, 404)
  })

  it("are accepted neither from other sites nor under other host names", async () => {
    const json = "content-type: application/json"
    assert.strictEqual((await raw([json])).status, 200)
    assert.strictEqual((await raw([json, "host: evil.example"])).status, 403)
    assert.strictEqual((await raw([json, "origin: http://evil.example"])).status, 403)
    assert.strictEqual((await raw([json, "sec-fetch-site: cross-site"])).status, 403)
  })

  it("are rejected with the reason if malformed", async () => {
    const whole = JSON.stringify(traces("broken"))
    const wrong: ReadonlyArray<readonly [number, RegExp, string, Record<string, string>?]> = [
      [400, /Invalid OTLP trace/, ""],
      [400, /Invalid OTLP trace/, "not JSON"],
      [400, /Invalid OTLP trace/, whole.slice(0, -1)],
      [400, /Invalid OTLP trace/, "[]"],
      [400, /Invalid OTLP trace/, `{"resourceSpans":{}}`],
      [400, /Invalid OTLP trace/, whole.replace(`"kind":2`, `"kind":"server"`)],
      [415, /http\/json/, whole, { "content-type": "application/x-protobuf" }],
      [415, /http\/json/, whole, { "content-type": "text/plain" }],
      [415, /must not be compressed/, whole, { "content-encoding": "gzip" }],
      [413, /4 MiB/, " ".repeat(4 * 1024 * 1024 + 1)]
    ]
    for (const [status, message, body, headers] of wrong) {
      const answer = await send(keeping, body, headers)
      assert.strictEqual(answer.status, status, body.slice(0, 40))
      assert.match(answer.body.message ?? "", message)
    }
    assert.strictEqual((await find(keeping, "broken")).status, 404)
    assert.strictEqual((await send(keeping, whole)).status, 200)
  })

  it("are not accepted if the services send them to a collector", async () => {
    const { body, status } = await send(other, JSON.stringify(traces("elsewhere")))
    assert.oneOf(status, [404, 405], JSON.stringify(body))
    assert.deepStrictEqual(await other.send<unknown>("GET", "/api/traces/elsewhere"), {
      status: 404,
      body: { _tag: "TracesElsewhere", message: "This console keeps no traces. Look for the trace in your collector" }
    })
  })
})
