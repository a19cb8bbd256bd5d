/**
 * A plain client and a provider of its dialect exchange the same bytes in both directions, except for the model's alias and
 * the usage that the gateway asks for.
 */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()

const jsonHeaders = { "content-type": "application/json" }
const sseHeaders = { "content-type": "text/event-stream; charset=utf-8" }

/** Sends this body; returns the body that the provider received. */
const receivedFrom = async (body: string) => {
  const { received, result } = await receivedBy(shared(), () => shared().request(body))
  const response = await result
  assert.strictEqual(response.status, 200, await response.text())
  return received
}

/** What a client receives if the provider answers in these pieces. */
const relay = async (
  pieces: ReadonlyArray<string | Uint8Array>,
  { model = "free-chat", headers = jsonHeaders, status = 200, ...more }: {
    readonly model?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly status?: number
    readonly stream?: boolean
    readonly stream_options?: object
  } = {}
) => {
  const gateway = shared()
  gateway.provider.behaveOnce({ kind: "raw", pieces, headers, status })
  const response = await gateway.request({ model, messages: [{ role: "user", content: "hi" }], ...more })
  return { response, text: Buffer.from(await response.arrayBuffer()).toString() }
}

/** Cuts a text in the worst places: inside characters, line ends and words. */
const crumbs = (text: string, size = 7): ReadonlyArray<Uint8Array> => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

/** A request that parsing and printing would change. */
const oddRequest = (model: string, more = "") =>
  `\r\n\t{ "zeta" : 12345678901234567890,"model"\n:\t"${model}" ,
  "messages":[ {"content":"\\u0068\\u00e9 \\/ \u{1F600} \\ud83d\\ude00 \u2028","role":"user","vendor":{"keep":[1.0,1e2,-0]}}],
  "temperature":1.0, "top_p":1E-2, "unknown":{"z":1,"a":{"model":"not-this-one"},"z":2}${more},
  "user":"a\\tb" }  \n`

describe("a request", () => {
  it("reaches the provider unchanged", async () => {
    const received = await receivedFrom(oddRequest("free-chat"))
    assert.strictEqual(received.body.toString(), oddRequest("free-chat"))
  })

  it("of several megabytes reaches it unchanged", async () => {
    const long = "löng \u{1F600} ".repeat(300_000)
    const received = await receivedFrom(oddRequest("free-chat", `,"long":"${long}"`))
    assert.isTrue(received.body.equals(Buffer.from(oddRequest("free-chat", `,"long":"${long}"`))))
  })

  it("has only the alias replaced by the provider's model", async () => {
    const received = await receivedFrom(oddRequest("alias-chat"))
    assert.strictEqual(received.body.toString(), oddRequest("upstream-chat"))
  })

  it("has the alias replaced if name and alias have escapes", async () => {
    const body = (model: string) => `{"messages":[{"role":"user","content":"alias-chat"}],"mod\\u0065l" : "${model}"}`
    const received = await receivedFrom(body("alias\\u002dchat"))
    assert.strictEqual(received.body.toString(), body("upstream-chat"))
  })

  it("for a stream has only a request for usage added", async () => {
    const received = await receivedFrom(oddRequest("free-chat", `,"stream" : true`))
    assert.strictEqual(
      received.body.toString(),
      oddRequest("free-chat", `,"stream" : true`).replace("{", `{"stream_options":{"include_usage":true},`)
    )
  })

  it("for a stream keeps its own options beside the usage", async () => {
    const body = (options: string) => oddRequest("free-chat", `,"stream":true,"stream_options" : ${options} `)
    const received = await receivedFrom(body(`{ "vendor" : 1, "include_usage":false }`))
    assert.strictEqual(received.body.toString(), body(`{"vendor":1,"include_usage":true}`))
  })

  it("for a stream that asks for usage is unchanged", async () => {
    const body = oddRequest("free-chat", `,"stream":true,"stream_options" : { "include_usage" : true }`)
    assert.strictEqual((await receivedFrom(body)).body.toString(), body)
  })

  it("has the provider's key, never the client's", async () => {
    const { headers } = await receivedFrom(oddRequest("free-chat"))
    assert.strictEqual(headers.authorization, "Bearer provider-secret")
    assert.strictEqual(headers["content-type"], "application/json")
    assert.notInclude(JSON.stringify(headers), shared().key)
  })
})

describe("an answer in JSON", () => {
  const odd = (model: string) =>
    ` {\r\n"vendor" : 12345678901234567890, "id":"\\u0061", "model" :"${model}","object":"chat.completion",
    "choices":[{"message":{"content":"\\/ h\u00e9 \u{1F600} \\ud83d\\ude00","model":"upstream-chat"},"index":0,"finish_reason":"stop"}],
    "usage":{"prompt_tokens":1,"completion_tokens":1.0,"total_tokens":2e0,"cost":0.10},"id":"b","error":null }\n\n`

  it("reaches the client unchanged", async () => {
    const { response, text } = await relay(crumbs(odd("any-name")))
    assert.strictEqual(text, odd("any-name"))
    assert.strictEqual(response.headers.get("content-type"), "application/json")
  })

  it("keeps its status and its JSON content type", async () => {
    const headers = { "content-type": "application/vnd.api+json; charset=utf-8" }
    const { response, text } = await relay([odd("any-name")], { headers, status: 201 })
    assert.strictEqual(text, odd("any-name"))
    assert.strictEqual(response.status, 201)
    assert.strictEqual(response.headers.get("content-type"), headers["content-type"])
  })

  it("has only the provider's model replaced by the alias", async () => {
    const { text } = await relay(crumbs(odd("upstream-chat")), { model: "alias-chat" })
    assert.strictEqual(text, odd("alias-chat"))
  })

  it("of several megabytes reaches the client unchanged", async () => {
    const long = odd("any-name").replace("\\u0061", "\\u0061 löng ".repeat(300_000))
    assert.isTrue((await relay([long])).text === long)
  })
})

describe("a stream", () => {
  const role = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"model":"upstream-chat"}\n\n`
  const odd = `: comment\r\n\r\nretry: 10\nid: 1\nevent: message\n` +
    `data:{"model" : "upstream-chat","choices":[{"index":0,"delta":{"content":"\\u0068\u00e9 \u{1F600} \\/","model":"upstream-chat"},` +
    `"finish_reason":null}],"vendor":12345678901234567890, "x":1.0,"x":2}\r\n\r\n` +
    `data:  {"choices":[],"model":"upstream-chat","error":null,"obfuscation":"\\"error\\" \\"usage\\""}  \n\n`
  const finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"model":"upstream-chat"}\n\n`
  const usage =
    `data: {"choices":[],"model":"upstream-chat","usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0.10}}\n\n`
  const done = "data: [DONE]\n\n"
  const metered = { stream: true, stream_options: { include_usage: true } }

  const renamed = (text: string) => text.replaceAll(/("model" ?: ?)"upstream-chat"(?!\},)/g, `$1"alias-chat"`)

  it.for([1, 7, 100_000])("reaches the client unchanged, in pieces of %d bytes", async (size) => {
    const all = role + odd + finish + usage + done
    const { response, text } = await relay(crumbs(all, size), { headers: sseHeaders, ...metered })
    assert.strictEqual(text, all)
    assert.strictEqual(response.headers.get("content-type"), sseHeaders["content-type"])
  })

  it("hides only the usage from a client that did not ask for it", async () => {
    const pieces = crumbs(role + odd + finish + usage + done)
    const { text } = await relay(pieces, { headers: sseHeaders, stream: true })
    assert.strictEqual(text, role + odd + finish + done)
  })

  it("has only the provider's model replaced by the alias", async () => {
    const all = role + odd + finish + usage + done
    const { text } = await relay(crumbs(all), { headers: sseHeaders, model: "alias-chat", ...metered })
    assert.strictEqual(text, renamed(all))
    assert.lengthOf(text.match(/alias-chat/g) ?? [], 5)
    assert.lengthOf(text.match(/upstream-chat/g) ?? [], 1)
  })

  it.for([
    ["without [DONE]", finish],
    ["with more after [DONE]", finish + done + ": bye\n\n"],
    [
      "with usage in the last chunk of the text",
      finish.replace(`"model"`, `"usage":{"prompt_tokens":1},"model"`) + done
    ]
  ])("that ends %s reaches the client unchanged", async ([_, end]) => {
    assert.strictEqual(
      (await relay([role + odd + end], { headers: sseHeaders, stream: true })).text,
      role + odd + end
    )
  })

  it("that ends without the last blank line gets it", async () => {
    const all = role + odd + finish + done
    assert.strictEqual((await relay([all.trimEnd()], { headers: sseHeaders, stream: true })).text, all)
  })

  it("with an event of several megabytes reaches the client unchanged", async () => {
    const all = role + odd.replace("\u00e9", "\u00e9 ".repeat(2_000_000)) + finish + done
    assert.isTrue((await relay([all], { headers: sseHeaders, stream: true })).text === all)
  })
})
