/**
 * Requests that two HTTP parsers could understand differently, by their host, framing, version or an upgrade. Ingress rejects
 * them with the usual error, or serves them in the one way that RFC 9110 and 9112 allow.
 */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { type RawAnswer, sendRaw } from "../../fixture/client/RawHttp.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { assertRefused } from "./Refused.ts"

const shared = sharedGateway()
const body = `{"model": "free-chat", "messages": [{"role": "user", "content": "hi"}]}`

type Case = readonly [what: string, text: string]

/** Sends the text, ends the connection's sending side, and returns all answers. */
const send = (text: string): Promise<ReadonlyArray<RawAnswer>> =>
  sendRaw(shared().ingress.port, [Buffer.from(text, "latin1")], { afterwards: "end" })

/** A request with these lines in its head, up to its body. `KEY` stands for the key. */
const post = (...lines: ReadonlyArray<string>): string =>
  ["POST /v1/chat/completions HTTP/1.1", "content-type: application/json", "authorization: Bearer KEY", ...lines]
    .map((line) => `${line}\r\n`).join("") + "\r\n"

const withKey = (text: string): string => text.replaceAll("KEY", shared().key)

const valid = post("host: x", `content-length: ${body.length}`) + body

/**
 * The answers to several requests, the last of which closes the connection. A client that closes it earlier has disconnected.
 */
const serve = (text: string): Promise<ReadonlyArray<RawAnswer>> => sendRaw(shared().ingress.port, [withKey(text)])

const validLast = post("host: x", `content-length: ${body.length}`, "connection: close") + body

const get = (...lines: ReadonlyArray<string>): string =>
  `GET /v1/models HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`

/** Each is rejected with 400 `malformed_request`, and a valid request behind it on the connection is not served. */
const testRejections = (cases: ReadonlyArray<Case>) =>
  it.for(cases)("%s", async ([_, text]) => {
    const { provider } = shared()
    const index = provider.requests.length
    const answers = await send(withKey(text + valid))
    assert.lengthOf(answers, 1)
    assertRefused(answers[0]!, { status: 400, code: "malformed_request", param: null })
    assert.strictEqual(answers[0]!.headers["connection"], "close")
    assert.lengthOf(provider.requests, index)
  })

describe("a host is rejected", () => {
  const invalid = [
    "",
    " ",
    "a b",
    "a, b",
    "a,b",
    "a/b",
    "u@a",
    "a:b",
    "a:1:2",
    "a:123456",
    "[::1",
    "::1",
    "http://a",
    "a?b",
    "a#b"
  ]
    .concat(["\u00e4", "a\tb", "%61"])
  testRejections([
    ["if missing", get("a: b")],
    ["if missing, with a body to come", post(`content-length: ${body.length}`) + body],
    ["if repeated", get("host: x", "host: x")],
    ["if repeated with another value", get("Host: x", "a: b", "HOST: y")],
    ["if repeated in HTTP/1.0", get("host: x", "host: y").replace("1.1", "1.0")],
    ...invalid.map((host): Case => [`as '${host}'`, get(`host: ${host}`)]),
    ...["http://other.example", "https://x.other", "http://x:80", "http://u@x", "http://", "ftp://x", "x://x"]
      .map((origin): Case => [`if it differs from ${origin}/`, get("host: x").replace(" /", ` ${origin}/`)])
  ])
})

describe("a host is accepted", () => {
  const unauthorized = { status: 401, code: "missing_api_key" }
  it.for(["x", "x:", "x:80", "X.example", "a_b-c.d", "127.0.0.1:8080", "[::1]:8080", " x\t"])(
    "as '%s'",
    async (host) => assertRefused((await send(get(`host: ${host}`)))[0]!, unauthorized)
  )

  it("repeated by the target", async () => {
    assertRefused((await send(get("host: X:80").replace(" /", " http://x:80/")))[0]!, unauthorized)
  })

  it("missing in HTTP/1.0", async () => {
    assertRefused((await send(get("a: b").replace("1.1", "1.0")))[0]!, unauthorized)
  })
})

describe("a version is rejected", () => {
  testRejections(["0.9", "1.2", "2.0", "3.0"].map((version) => [version, get("host: x").replace("1.1", version)]))
})

describe("a header is rejected", () => {
  testRejections([
    ["with a space in its name", get("host: x", "a b: c")],
    ["with a space after its name", get("host: x", "a : c")],
    ["without a colon", get("host: x", "a")],
    ["without a name", get("host: x", ": a")],
    ["if folded", get("host: x", "a: b", " c")],
    ["if folded and the first", get(" a: b", "host: x")],
    ["that ends with a bare line feed", "GET /v1/models HTTP/1.1\r\nhost: x\na: b\r\n\r\n"],
    ["that ends with a bare carriage return", "GET /v1/models HTTP/1.1\r\nhost: x\ra: b\r\n\r\n"],
    ["after a request line that ends with a bare line feed", "GET /v1/models HTTP/1.1\nhost: x\r\n\r\n"],
    ["with a NUL", get("host: x", "a: \0")]
  ])

  it("if there are 2,000", async () => {
    const answers = await send(get("host: x", ...Array.from({ length: 2_000 }, () => "a:b")))
    assertRefused(answers[0]!, { status: 431, code: "headers_too_large" })
  })
})

describe("a length is rejected", () => {
  const of = (...lines: ReadonlyArray<string>) => post("host: x", ...lines)
  testRejections([
    ["before chunks", of("content-length: 5", "transfer-encoding: chunked") + "0\r\n\r\n"],
    ["after chunks", of("transfer-encoding: chunked", "content-length: 5") + "0\r\n\r\n"],
    ["if repeated", of("content-length: 1", "content-length: 1") + "a"],
    ["if repeated with another value", of("content-length: 1", "content-length: 2") + "a"],
    ...["1, 1", "-1", "+1", "1 1", "0x1", "1.0", "1e1", "", "\v1", "9".repeat(30)]
      .map((length): Case => [`as '${length}'`, of(`content-length: ${length}`) + "a"])
  ])
})

describe("an encoding is rejected", () => {
  const of = (...encodings: ReadonlyArray<string>) =>
    post("host: x", ...encodings.map((encoding) => `transfer-encoding: ${encoding}`)) + "0\r\n\r\n"
  testRejections([
    ["in two headers", of("chunked", "chunked")],
    ["in two headers that differ", of("gzip", "chunked")],
    ["in HTTP/1.0", of("chunked").replace("1.1", "1.0")],
    ...[
      "gzip, chunked",
      "chunked, gzip",
      "chunked, chunked",
      "gzip",
      "identity",
      "identity, chunked",
      "xchunked",
      "chunked;a=b",
      `"chunked"`
    ]
      .concat(["\vchunked", "chunked,", ",chunked", ""])
      .map((encoding): Case => [`as '${encoding}'`, of(encoding)])
  ])
})

describe("a chunk is rejected", () => {
  const of = (chunks: string) => post("host: x", "transfer-encoding: chunked") + chunks
  testRejections([
    ["of a negative size", of("-1\r\n\r\n")],
    ["of a size with a sign", of("+1\r\na\r\n0\r\n\r\n")],
    ["of a size with 0x", of("0x1\r\na\r\n0\r\n\r\n")],
    ["of a size with a space", of("1 \r\na\r\n0\r\n\r\n")],
    ["of a size with 17 digits", of(`${"f".repeat(17)}\r\na`)],
    ["of no size", of("\r\na\r\n0\r\n\r\n")],
    ["that is longer than its size", of("1\r\naa\r\n0\r\n\r\n")],
    ["with a bare line feed behind its size", of("1\na\r\n0\r\n\r\n")],
    ["with a bare line feed behind it", of("1\r\na\n0\r\n\r\n")],
    ["with a bare line feed in its extension", of("1;a\nb\r\na\r\n0\r\n\r\n")],
    ["with a length behind the last", of("1\r\na\r\n0\r\ncontent-length: 7\r\n\r\n")],
    ["with an encoding behind the last", of("1\r\na\r\n0\r\ntransfer-encoding: gzip\r\n\r\n")]
  ])

  it("with an extension of 20,000 characters", async () => {
    const text = post("host: x", "transfer-encoding: chunked") + `1;${"a".repeat(20_000)}\r\na\r\n0\r\n\r\n`
    assertRefused((await send(withKey(text)))[0]!, { status: 413, code: "request_too_large" })
  })

  it("but not with a small extension or a trailer", async () => {
    const chunks = `${body.length.toString(16)};a=b;c\r\n${body}\r\n0\r\na: b\r\n\r\n`
    const text = post("host: x", "Transfer-Encoding: Chunked") + chunks
    const answers = await serve(text + validLast)
    assert.deepStrictEqual(answers.map(({ status }) => status), [200, 200])
  })
})

describe("an expectation", () => {
  it("other than 100-continue is rejected", async () => {
    assertRefused((await send(get("host: x", "expect: tea")))[0]!, { status: 417, code: "expectation_failed" })
  })
})

describe("a tunnel", () => {
  it("is rejected", async () => {
    const answers = await send("CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n")
    assertRefused(answers[0]!, { status: 400, code: "malformed_request" })
  })
})

/** As recorded from the clients, with another address and key. */
const recorded: ReadonlyArray<Case> = [
  [
    "Java 17: HttpClient.newHttpClient()",
    "POST /v1/chat/completions HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 71\r\n" +
    "Host: 127.0.0.1:8080\r\nHTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\nUpgrade: h2c\r\n" +
    "User-Agent: Java-http-client/17.0.15\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\n\r\n" + body
  ],
  [
    "Java 17, a body of unknown length",
    "POST /v1/chat/completions HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nHost: 127.0.0.1:8080\r\n" +
    "HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\nTransfer-encoding: chunked\r\nUpgrade: h2c\r\n" +
    "User-Agent: Java-http-client/17.0.15\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\n\r\n" +
    `47\r\n${body}\r\n0\r\n\r\n`
  ],
  [
    "curl 7.88.1 --http2",
    "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n" +
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n" +
    "Authorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 71\r\n\r\n" + body
  ],
  [
    "a WebSocket, where there is none",
    post(
      "host: x",
      "connection: Upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
      "content-length: 71"
    ) + body
  ]
]

describe("an upgrade is ignored", () => {
  it.for(recorded)("of %s", async ([_, text]) => {
    const { provider } = shared()
    const index = provider.requests.length
    // Node drops the bytes behind such a request, so that none of them may count as a request
    const answers = await serve(text + validLast)
    assert.deepStrictEqual(answers.map(({ status }) => status), [200])
    assert.include(answers[0]!.body, `"object":"chat.completion"`)
    assert.strictEqual(answers[0]!.headers["connection"], "close")
    assert.lengthOf(provider.requests, index + 1)
  })

  it("of a request without a body", async () => {
    const text = get("host: x", "connection: upgrade", "upgrade: h2c", "authorization: Bearer KEY")
    const answers = await serve(text)
    assert.deepStrictEqual(answers.map(({ status }) => status), [200])
  })

  it("without 'Connection: upgrade', and the connection goes on", async () => {
    const text = get("host: x", "upgrade: h2c", "authorization: Bearer KEY")
    const answers = await serve(text + validLast)
    assert.deepStrictEqual(answers.map(({ status }) => status), [200, 200])
  })

  it("by every server of a worker and of the console", async () => {
    const console = await shared().startConsole()
    const text = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    const servers = [console.healthPort, ...shared().workers.map(({ healthPort }) => healthPort)]
    const statuses = [[console.port, 403], ...servers.map((port) => [port, 200])] as const
    for (const [port, status] of statuses) {
      const answers = await sendRaw(port!, [text])
      assert.deepStrictEqual(answers.map(({ status, headers }) => [status, headers["connection"]]), [[status, "close"]])
      const rejected = await sendRaw(port!, [text.replace("host: x", "host: x\r\nhost: y")])
      assert.deepStrictEqual(rejected.map(({ status, body }) => [status, body]), [[
        400,
        "The request has more than one Host header\n"
      ]])
    }
  })
})
