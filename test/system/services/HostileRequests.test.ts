/**
 * Invalid, broken and malicious requests: each gets a clear error, none a 500, and the same services still serve afterwards. An
 * exception that would end a process fails the run.
 */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { ChatCompletionRequest, Message } from "../../../shared/contract/operations/ChatCompletions.ts"
import * as UnreadableRequest from "../../../services/ingress/answer/UnreadableRequest.ts"
import * as HttpServer from "../../../shared/process/http/HttpServer.ts"
import { mutations } from "../../fixture/client/Mutations.ts"
import type { Pieces, RawAnswer, RawOptions } from "../../fixture/client/RawHttp.ts"
import { sendRaw } from "../../fixture/client/RawHttp.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { assertRefused } from "./Refused.ts"
import { everyField, wrongFields } from "./WrongFields.ts"

const shared = sharedGateway()
const valid = { model: "free-chat", messages: [{ role: "user", content: "hi" }] }
const tooLarge = 33 * 1024 * 1024

const post = async (
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  headers: Readonly<Record<string, string>> = {}
): Promise<RawAnswer> => {
  const { key, url } = shared()
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body,
    duplex: "half"
  })
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
}

const raw = (pieces: Pieces, options?: RawOptions) => sendRaw(shared().ingress.port, pieces, options)

/** Sends the pieces and returns the only answer. */
const rawOnce = async (pieces: Pieces, options?: RawOptions): Promise<RawAnswer> => {
  const answers = await raw(pieces, options)
  assert.lengthOf(answers, 1)
  return answers[0]!
}

/** The head of a valid request with a body of this length. */
const head = (length: number | string, ...more: ReadonlyArray<string>) =>
  [
    "POST /v1/chat/completions HTTP/1.1",
    "host: gateway",
    `authorization: Bearer ${shared().key}`,
    "content-type: application/json",
    typeof length === "number" ? `content-length: ${length}` : length,
    ...more
  ].map((line) => `${line}\r\n`).join("") + "\r\n"

describe("a field", () => {
  it("of each name is tested", () => {
    const tried = new Set(wrongFields.map(([param]) => param))
    for (const name of Object.keys(ChatCompletionRequest.fields)) assert.include([...tried], name)
    for (const name of Object.keys(Message.fields)) assert.include([...tried], `messages[0].${name}`)
  })

  // of a request that is relayed, its provider judges these
  it.for(wrongFields)("%s with a wrong value is named (%#)", async ([param, fields]) => {
    const answer = await post(JSON.stringify({ ...valid, model: "local-chat", ...fields }))
    assertRefused(answer, { status: 400, code: "invalid_value", param })
    assert.include(answer.body, `"message":"${param}: `)
  })

  it("that is missing is named", async () => {
    assertRefused(await post(JSON.stringify({ messages: valid.messages })), { status: 400, param: "model" })
    assertRefused(await post(JSON.stringify({ model: "free-chat" })), { status: 400, param: "messages" })
  })

  it("that asks for more answers than the built-in engine makes is rejected by it", async () => {
    for (const n of [129, 1_000_000_000]) {
      assertRefused(await post(JSON.stringify({ ...valid, model: "local-chat", n })), { status: 400, param: "n" })
    }
  })

  it("that its error would quote at a length beyond any message of NATS is quoted in part, and nothing waits behind it", async () => {
    const schema = { $ref: `#/${"a".repeat(1_200_000)}` }
    const response_format = { type: "json_schema", json_schema: { name: "a", schema } }
    const refused = await post(JSON.stringify({ ...valid, model: "local-chat", response_format }))
    assertRefused(refused, { status: 400 })
    assert.include(refused.body, "refers to #/aaa")
    assert.isBelow(refused.body.length, 20_000)
    assert.strictEqual((await post(JSON.stringify({ ...valid, model: "local-chat" }))).status, 200)
  })
})

describe("a body", () => {
  const notJson: ReadonlyArray<readonly [what: string, body: string | Uint8Array<ArrayBuffer>]> = [
    ["that is empty", ""],
    ["of white space", " \r\n"],
    ["that is text", "hello"],
    ["that is truncated", JSON.stringify(valid).slice(0, -1)],
    ["with something after it", JSON.stringify(valid) + "x"],
    ["with a comment", `/* hi */${JSON.stringify(valid)}`],
    ["with a comma too many", JSON.stringify(valid).replace("}", ",}")],
    ["with NaN", `{"model":NaN}`],
    ["with a byte order mark", `\ufeff${JSON.stringify(valid)}`],
    ["in UTF-16", Buffer.from(JSON.stringify(valid), "utf16le")],
    ["with a NUL after it", JSON.stringify(valid) + "\0"],
    ["with a NUL in a string", `{"model":"free-chat\0"}`],
    ["with a newline in a string", `{"model":"free-chat\n"}`],
    ["of NULs", new Uint8Array(1_000)],
    ["that is not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
    ["with an overlong character", Buffer.from([0x22, 0xc0, 0xaf, 0x22])],
    ["with half a character", Buffer.from([0x22, 0xe2, 0x82, 0x22])],
    ["with a surrogate in UTF-8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ["of a million values", `[0${",0".repeat(1_000_000)}]`],
    ["of 10,000 arrays", "[".repeat(10_000) + "]".repeat(10_000)],
    ["of 10,000 arrays left open", "[".repeat(10_000)],
    ["of 10,000 objects", `{"a":`.repeat(10_000) + "1" + "}".repeat(10_000)],
    [
      "with 10,000 arrays in an unknown field",
      JSON.stringify(valid).replace("{", `{"x":${"[".repeat(10_000)}${"]".repeat(10_000)},`)
    ]
  ]

  it.for(notJson)("%s is not JSON", async ([_, body]) => {
    assertRefused(await post(body), { status: 400, code: "invalid_json", param: null })
  })

  it.for(["[]", "null", "1", `"text"`, "true"])("that is %s is not a request", async (body) => {
    assertRefused(await post(body), { status: 400, code: "invalid_value", param: null })
  })

  it("of 33 MB is too large, with a length or in chunks", async () => {
    const expected = { status: 413, code: "request_too_large", param: null }
    assertRefused(await post(" ".repeat(tooLarge)), expected)
    let sent = 0
    const chunked = new ReadableStream({
      pull: (controller) => {
        if (sent >= tooLarge) return controller.close()
        controller.enqueue(new Uint8Array(65_536).fill(0x20))
        sent += 65_536
      }
    })
    assertRefused(await post(chunked), expected)
    // rejected before it arrives
    assertRefused(await rawOnce([head(tooLarge, "connection: close")], { afterwards: "end" }), expected)
  })

  it.for([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonx",
    "application/json-seq",
    "json",
    "*/*",
    "",
    `application/json; boundary=${"a".repeat(8_000)}`
  ])("of the type '%s' is rejected", async (type) => {
    assertRefused(await post(JSON.stringify(valid), { "content-type": type }), {
      status: 415,
      code: "unsupported_media_type"
    })
  })
})

describe("a form", () => {
  it("whose boundary takes long to search for is not read", async () => {
    const { key, url } = shared()
    const boundary = "a".repeat(8_000)
    // makes Node choose the search that is slow for long boundaries: a minute and a half
    const body = `${"-".repeat(40_000)}b${"a".repeat(20 * 1024 * 1024)}`
    for (const path of ["images/edits", "audio/transcriptions", "files"]) {
      const response = await fetch(`${url}/v1/${path}`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": `multipart/form-data; boundary=${boundary}`,
          "idempotency-key": path
        },
        body
      })
      assert.include([400, 415], response.status, path)
      await response.body?.cancel()
    }
  })
})

describe("a header that goes into the job", () => {
  const session = ["x-session-id", "session_id", "x-claude-code-session-id"]
  const filled = (characters: number) => Object.fromEntries(session.map((name) => [name, "\"".repeat(characters)]))

  it("of 1,024 characters fits beside the largest body in a job", async () => {
    const text = JSON.stringify(valid)
    const body = text + " ".repeat(512 * 1024 - text.length)
    const answer = await post(body, { ...filled(1_024), "content-type": `application/json; x=${"\u00ff".repeat(180)}` })
    assert.strictEqual(answer.status, 200)
  })

  it("that is longer is rejected", async () => {
    for (const name of session) {
      assertRefused(await post(JSON.stringify(valid), { [name]: "a".repeat(1_025) }), { status: 400, param: name })
    }
  })
})

describe("a key", () => {
  it.for(["Bearer", "Bearer ", "Basic dTpw", "sk-gw-0123456789abcdefghijABCDEFGHIJ01"])(
    "sent as '%s' counts as missing",
    async (authorization) => {
      assertRefused(await post(JSON.stringify(valid), { authorization }), { status: 401, code: "missing_api_key" })
    }
  )

  it.for([
    ["of one letter", "x"],
    ["of the right form", "sk-gw-0123456789abcdefghijABCDEFGHIJ02"],
    ["named like a property of every object", "__proto__"],
    ["in Latin-1", "\u00ff"],
    ["of 8,000 letters", "a".repeat(8_000)]
  ])(
    "%s that was never issued is rejected",
    async ([_, key]) => {
      assertRefused(await post(JSON.stringify(valid), { authorization: `Bearer ${key}` }), {
        status: 401,
        code: "invalid_api_key"
      })
    }
  )
})

describe("a path", () => {
  const assertNowhere = async (method: string, path: string) => {
    const authorization = `authorization: Bearer ${shared().key}`
    const lines = [`${method} ${path} HTTP/1.1`, "host: x", authorization, "connection: close"]
    assertRefused(await rawOnce([`${lines.join("\r\n")}\r\n\r\n`]), { status: 404 })
  }

  it.for(
    [
      ["GET", "/"],
      ["GET", "//"],
      ["GET", "/%zz"],
      ["GET", "/%00"],
      ["GET", "/v1/chat/completions"],
      ["PUT", "/v1/chat/completions"],
      ["POST", "/v1/chat/completions/../models"],
      ["GET", "/healthz"],
      ["GET", "/readyz"],
      ["GET", "/metrics"],
      ["POST", "/healthz"],
      ["OPTIONS", "*"],
      ["GET", "http://x/y"],
      ["GET", "/v1/models/%zz"],
      ["GET", "/v1/models/%E0%A4%A"],
      ["GET", "/v1/models/__proto__"]
    ] as const
  )("that does not exist: %s %s", ([method, path]) => assertNowhere(method, path))

  it("that is very long is not found either", async () => {
    await assertNowhere("GET", `/${"a".repeat(8_000)}`)
    await assertNowhere("GET", `/v1/models/${"a/".repeat(4_000)}`)
  })
})

describe("a connection", () => {
  const malformed: ReadonlyArray<readonly [what: string, text: string]> = [
    ["without HTTP", "garbage\r\n\r\n"],
    ["with binary", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["with HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["with an unknown method", "EAT /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["with a NUL in a header", "GET / HTTP/1.1\r\nhost: x\r\na: \0\r\n\r\n"],
    ["with a space in a header's name", "GET / HTTP/1.1\r\nhost: x\r\na b: c\r\n\r\n"]
  ]

  it.for(malformed)("%s gets an error", async ([_, text]) => {
    assertRefused(await rawOnce([Buffer.from(text, "latin1")], { afterwards: "end" }), {
      status: 400,
      code: "malformed_request"
    })
  })

  it("with a megabyte of headers gets an error", async () => {
    const one = `GET / HTTP/1.1\r\nhost: x\r\na: ${"a".repeat(1024 * 1024)}\r\n\r\n`
    const many = `GET / HTTP/1.1\r\nhost: x\r\n${"a: b\r\n".repeat(175_000)}\r\n`
    for (const text of [one, many]) assertRefused(await rawOnce([text]), { status: 431, code: "headers_too_large" })
  })

  it.for(
    [
      ["in the request line", ["POST /v1/chat"]],
      ["in the headers", ["POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauth"]],
      ["in the body", (head: string) => [head, `{"model":"free`]],
      [
        "in a chunk",
        (head: string) => [head.replace(/content-length: \d+/, "transfer-encoding: chunked"), `f\r\n{"mod`]
      ]
    ] as const
  )("that ends %s gets an error unless it is closed", async ([_, text]) => {
    const pieces = typeof text === "function" ? text(head(100)) : text
    assertRefused(await rawOnce(pieces, { afterwards: "end" }), { status: 400, code: "malformed_request" })
    assert.deepStrictEqual(await raw(pieces, { afterwards: "leave" }), [])
  })

  it("that sends garbage after a request gets an error", async () => {
    const body = JSON.stringify(valid)
    const answers = await raw([head(body.length) + body + "garbage\r\n\r\n"], { afterwards: "end" })
    assertRefused(answers.at(-1)!, { status: 400, code: "malformed_request" })
  })

  it("that closes before the answer ends its request", async () => {
    const { provider } = shared()
    const index = provider.requests.length
    provider.behaveOnce({ kind: "silent" })
    const body = JSON.stringify(valid)
    const untilSent = async function*() {
      yield head(body.length) + body
      await provider.until(() => provider.requests.length > index)
    }
    assert.deepStrictEqual(await raw(untilSent(), { afterwards: "end" }), [])
    assert.strictEqual(await provider.requests[index]!.closed, "aborted")
  })

  it("whose head is too slow gets an error, here from a server that does not wait for ten seconds", async () => {
    const server = UnreadableRequest.handle(HttpServer.make({ headersTimeout: 50, connectionsCheckingInterval: 10 }))
    await once(server.listen(0, "127.0.0.1"), "listening")
    try {
      const { port } = server.address() as AddressInfo
      const [answer] = await sendRaw(port, ["POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n"])
      assertRefused(answer!, { status: 408, code: "request_timeout" })
    } finally {
      server.close()
    }
  })

  it("that sends byte by byte is served", async () => {
    const body = JSON.stringify(valid)
    const answer = await rawOnce([...(head(body.length, "connection: close") + body)])
    assert.strictEqual(answer.status, 200)
  })

  it.for([
    ["x-stainless-timeout", "-1"],
    ["x-stainless-timeout", "1e999"],
    ["traceparent", "00-garbage"],
    ["traceparent", "\u00ff\t\u00e9"],
    ["content-type", "application/json; charset=\u00e9\u00ff"],
    ["expect", "100-continue"],
    ["upgrade", "h2c"]
  ])("with the header %s: %s is served nevertheless", async ([name, value]) => {
    const body = JSON.stringify(valid)
    const lines = head(body.length, "connection: close").replace(
      name === "content-type" ? /content-type.*\r\n/ : "",
      ""
    )
    const answers = await raw([
      Buffer.from(lines.replace("\r\n\r\n", `\r\n${name}: ${value}\r\n\r\n`) + body, "latin1")
    ])
    assert.strictEqual(answers.at(-1)?.status, 200)
  })
})

describe("a malformed request", () => {
  it.for(["free-chat", "local-chat"])("for %s is served or rejected, and breaks nothing", async (model) => {
    const bodies = mutations({ ...everyField, model }, 300, 1)
    const statuses = new Map<number, number>()
    const batch = 12
    for (let at = 0; at < bodies.length; at += batch) {
      await Promise.all(
        bodies.slice(at, at + batch).map(async (body, index) => {
          const answer = await post(Uint8Array.from(body))
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
          if (answer.status === 200) return
          assert.isBelow(answer.status, 500, `mutation ${at + index}: ${body.subarray(0, 500)}: ${answer.body}`)
          assertRefused(answer)
        })
      )
    }
    assert.isAbove(statuses.get(400) ?? 0, 100)
    assert.isAbove(statuses.get(200) ?? 0, 10)
  })
})

describe("after all of these", () => {
  it("the same services serve, and none had an internal error", async () => {
    const { ingress, log, workers } = shared()
    for (const model of ["free-chat", "local-chat"]) {
      assert.strictEqual((await post(JSON.stringify({ ...valid, model }))).status, 200)
    }
    for (const { healthUrl } of [ingress, ...workers]) {
      assert.strictEqual((await fetch(`${healthUrl}/readyz`)).status, 200)
    }
    assert.notMatch(log, /"level":"(?:ERROR|FATAL)"/)
  })
})
