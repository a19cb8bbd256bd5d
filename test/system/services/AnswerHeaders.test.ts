/** The headers of every answer of ingress, and its endpoints for operators. */
import { assert, describe, it } from "@effect/vitest"
import type { Service } from "../../fixture/gateway/Service.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { sendRaw } from "../../fixture/client/RawHttp.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()
const valid = { model: "free-chat", messages: [{ role: "user", content: "hi" }] }
const get = (path: string) => () => fetch(`${shared().url}${path}`)
const garbage = async () => {
  const [answer] = await sendRaw(shared().ingress.port, ["garbage\r\n\r\n"])
  return new Response(answer!.body, answer!)
}

describe("an answer", () => {
  const answers: ReadonlyArray<readonly [what: string, status: number, ask: () => Promise<Response>]> = [
    ["in JSON", 200, () => shared().request(valid)],
    ["as a stream", 200, () => shared().request({ ...valid, stream: true })],
    ["from the built-in engine", 200, () => shared().request({ ...valid, model: "local-chat" })],
    ["to a wrong request", 400, () => shared().request({})],
    ["to garbage", 400, garbage],
    ["to a client without a key", 401, get("/v1/models")],
    ["for an unknown path", 404, get("/nowhere")],
    ["for a malformed path", 404, get("/%zz")],
    ["with the API's description", 200, get("/openapi.json")]
  ]

  it.for(answers)("%s has its own request id under both names", async ([_, status, ask]) => {
    const ids = new Set<string | null>()
    for (let time = 0; time < 2; time++) {
      const response = await ask()
      await response.text()
      assert.strictEqual(response.status, status)
      const id = response.headers.get("x-request-id")
      assert.match(id ?? "", /^req_[0-9a-f-]{36}$/)
      assert.strictEqual(response.headers.get("request-id"), id)
      ids.add(id)
    }
    assert.lengthOf(ids, 2)
  })

  it("of a provider has the gateway's id, not the provider's", async () => {
    const gateway = shared()
    gateway.provider.behaveOnce({
      kind: "raw",
      pieces: ["{}"],
      headers: { "x-request-id": "theirs", "set-cookie": "a=b" }
    })
    const response = await gateway.request(valid)
    assert.match(response.headers.get("x-request-id") ?? "", /^req_[0-9a-f-]{36}$/)
    assert.isNull(response.headers.get("set-cookie"))
  })
})

describe("ingress and worker", () => {
  it("are alive and ready, and count their work", async () => {
    const gateway = shared()
    const { ingress, workers: [worker] } = gateway
    const textOf = async ({ healthUrl }: Service, path: string) => {
      const response = await fetch(`${healthUrl}${path}`)
      assert.strictEqual(response.status, 200)
      return response.text()
    }
    for (const service of [ingress, worker!]) {
      assert.strictEqual(await textOf(service, "/healthz"), "ok\n")
      assert.strictEqual(await textOf(service, "/readyz"), "ready\n")
    }
    const counted = [
      [ingress, `gateway_requests_total{operation="chat.completions",model="free-chat",outcome="success"}`],
      [ingress, `gateway_requests_total{operation="chat.completions",model="none",outcome="InvalidRequest"}`],
      [worker!, `gateway_jobs_total{operation="chat.completions",outcome="success"}`]
    ] as const
    const counts = () =>
      Promise.all(counted.map(async ([service, series]) => {
        const lines = (await textOf(service, "/metrics")).split("\n")
        return Number(lines.find((line) => line.startsWith(series))?.slice(series.length) ?? 0)
      }))
    const before = await counts()
    await (await gateway.request(valid)).text()
    await (await gateway.request({})).text()
    await eventually(counts, (after) => after.every((count, at) => count > (before[at] ?? 0)))
  })

  it("serve health and metrics at their health port only", async () => {
    for (const path of ["/healthz", "/readyz", "/metrics", "/metrics/", "/metrics?a=b"]) {
      const answer = await fetch(`${shared().url}${path}`)
      assert.strictEqual(answer.status, 404, path)
      const { error } = await answer.json() as { readonly error: object }
      assert.deepInclude(error, { type: "not_found_error", code: "route_not_found" })
    }
    // and that port serves nothing else
    for (const path of ["/v1/models", "/openapi.json", "/"]) {
      assert.strictEqual((await fetch(`${shared().ingress.healthUrl}${path}`)).status, 404, path)
    }
  })

  it("a client whose base URL lacks its end gets the right path", async () => {
    const answer = await fetch(`${shared().url}/chat/completions`, { method: "POST" })
    const { error } = await answer.json() as { readonly error: { readonly message: string } }
    assert.strictEqual(answer.status, 404)
    assert.include(error.message, "Did you mean /v1/chat/completions?")
  })

  it("a client with the wrong method gets the right one", async () => {
    const answer = await fetch(`${shared().url}/v1/chat/completions`)
    const { error } = await answer.json() as { readonly error: { readonly message: string } }
    assert.strictEqual(answer.status, 404)
    assert.include(error.message, "Did you mean POST /v1/chat/completions?")
  })

  it("ingress logs one line per request, without its content", async () => {
    const gateway = shared()
    const secret = "a word that is nobody's business"
    const answers = [
      await gateway.request({ ...valid, messages: [{ role: "user", content: secret }], stream: true }),
      await gateway.request({ model: secret, messages: [] }),
      await fetch(`${gateway.url}/v1/models?key=${gateway.key}`)
    ]
    for (const answer of answers) await answer.text()
    const lineOf = async (answer: Response) => {
      const id = answer.headers.get("x-request-id") ?? assert.fail("no id")
      const look = async () => gateway.ingress.log.split("\n").filter((line) => line.includes(id))
      const [line = ""] = await eventually(look, (lines) => lines.length === 1)
      return JSON.parse(line) as { readonly message: string; readonly annotations: Record<string, unknown> }
    }
    const [served, unknown, keyless] = await Promise.all(answers.map(lineOf))
    assert.strictEqual(served?.message, "request")
    const { durationMs, firstByteMs, queueMs, requestId: _id, tenant, traceId, ...said } = served!.annotations
    assert.deepStrictEqual(said, {
      method: "POST",
      route: "/v1/chat/completions",
      status: 200,
      operation: "chat.completions",
      model: "free-chat"
    })
    assert.match(String(tenant), /^key_/)
    assert.strictEqual(traceId, answers[0]?.headers.get("traceparent")?.split("-")[1])
    assert.isAtLeast(Number(firstByteMs), Number(queueMs))
    assert.isAtLeast(Number(durationMs), Number(firstByteMs))
    assert.deepInclude(unknown!.annotations, { status: 404, error: "ModelNotFound", model: "none" })
    assert.deepInclude(keyless!.annotations, { method: "GET", route: "/v1/models", status: 401, error: "KeyMissing" })
    assert.notInclude(gateway.log, secret)
    assert.notInclude(gateway.log, gateway.key)
  })
})
