/** Compressed requests, on every route that takes a body: decoded within the bounds of bodies, or refused with a clear error. */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import * as Zlib from "node:zlib"
import { chat } from "../../fixture/client/ChatClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const gateway = sharedGateway({ services: ["speech"] })

/** Quickly: the services run in this process, and must not miss their heartbeats. */
const brotli = (bytes: Uint8Array) =>
  Zlib.brotliCompressSync(bytes, { params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })

const encoders: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  identity: (bytes) => bytes,
  zstd: Zlib.zstdCompressSync,
  gzip: Zlib.gzipSync,
  "x-gzip": Zlib.gzipSync,
  br: brotli,
  deflate: Zlib.deflateSync
}

/** Applies the codings of a header. */
const encode = (codings: string, bytes: Uint8Array): Uint8Array =>
  codings.split(",").reduce((inner, coding) => encoders[coding.trim().toLowerCase()]?.(inner) ?? inner, bytes)

interface Sent {
  readonly path?: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

const send = async (
  codings: string,
  body: Uint8Array,
  { headers = {}, path = "/v1/chat/completions", type }: Sent = {}
) => {
  const answer = await fetch(`${gateway().url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${gateway().key}`,
      "content-type": type ?? "application/json",
      "content-encoding": codings,
      ...headers
    },
    body
  })
  const text = await answer.text()
  return { status: answer.status, text, accepts: answer.headers.get("accept-encoding") }
}

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value))

describe("a compressed chat", () => {
  it.each(["identity", "zstd", "gzip", "X-GZIP", "br", "deflate", "gzip, br", "deflate, identity, zstd, gzip"])(
    "with %s is answered, and the provider gets it decoded",
    async (codings) => {
      for (const padding of ["", "x".repeat(3_000_000)]) {
        const body = chat("free-chat", { user: `user ${padding}` })
        const received = gateway().provider.nextRequest()
        const { status, text } = await send(codings, encode(codings, json(body)))
        assert.strictEqual(status, 200, text)
        assert.deepInclude(JSON.parse((await received).body.toString()), { user: `user ${padding}` })
      }
    }
  )
})

describe("a compressed body", () => {
  const boundary = "----compressed"
  const form = (parts: ReadonlyArray<readonly [head: string, content: string]>) =>
    Buffer.from(
      parts.map(([head, content]) => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${content}\r\n`)
        .join("") + `--${boundary}--\r\n`
    )
  const line = JSON.stringify({ custom_id: "1", method: "POST", url: "/v1/chat/completions", body: chat("free-chat") })
  const file = form([[`name="purpose"`, "batch"], [`name="file"; filename="a.jsonl"`, line]])
  const formType = `multipart/form-data; boundary=${boundary}`
  const message = { model: "free-chat", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] }
  const version = { "anthropic-version": "2023-06-01" }

  const routes: ReadonlyArray<Sent & { readonly path: string; readonly body: () => Promise<Uint8Array> | Uint8Array }> =
    [
      { path: "/v1/messages", headers: version, body: () => json(message) },
      { path: "/v1/responses", body: () => json({ model: "free-chat", input: "Hi" }) },
      {
        path: "/v1beta/models/free-chat:generateContent",
        body: () => json({ contents: [{ parts: [{ text: "Hi" }] }] })
      },
      {
        path: "/v1/audio/transcriptions",
        type: formType,
        body: () => form([[`name="model"`, "whisper-1"], [`name="file"; filename="a.wav"`, "RIFF"]])
      },
      { path: "/v1/files", type: formType, body: () => file },
      {
        path: "/v1/batches",
        body: async () => {
          const { text } = await send("gzip", encode("gzip", file), { path: "/v1/files", type: formType })
          const { id } = JSON.parse(text) as { readonly id: string }
          return json({ input_file_id: id, endpoint: "/v1/chat/completions", completion_window: "24h" })
        }
      },
      {
        path: "/v1/messages/batches",
        headers: version,
        body: () => json({ requests: [{ custom_id: "1", params: message }] })
      }
    ]
  for (const { body, ...sent } of routes) {
    it(`is read at ${sent.path}, and refused if its coding is unknown or it is broken`, async () => {
      const bytes = await body()
      for (const codings of ["zstd", "gzip, br"]) {
        const { status, text } = await send(codings, encode(codings, bytes), sent)
        assert.strictEqual(status, 200, text)
      }
      const unknown = await send("compress", bytes, sent)
      assert.deepInclude(unknown, { status: 415, accepts: "zstd, br, gzip, deflate" })
      assert.include(unknown.text, "The content encoding 'compress' of the request body is not supported")
      const broken = await send("gzip", encode("gzip", bytes).subarray(0, -9), sent)
      assert.strictEqual(broken.status, 400, broken.text)
      assert.include(broken.text, "content-encoding: the request body is not valid gzip")
    })
  }

  const small = json(chat("free-chat"))
  const refused: ReadonlyArray<
    readonly [name: string, codings: string, body: Uint8Array, status: number, code: string]
  > = [
    // RFC 9110, 15.5.16: 415, with the codings in `accept-encoding`
    ["of an unknown coding", "lzma", small, 415, "unsupported_content_encoding"],
    ["of a known and an unknown coding", "gzip, compress", small, 415, "unsupported_content_encoding"],
    ["of too many codings", Array(6).fill("gzip").join(), small, 415, "unsupported_content_encoding"],
    ["that is not compressed", "zstd", small, 400, "invalid_content_encoding"],
    ["of another coding", "br", Zlib.gzipSync(small), 400, "invalid_content_encoding"],
    ["that breaks off", "zstd", Zlib.zstdCompressSync(small).subarray(0, -2), 400, "invalid_content_encoding"],
    [
      "with bytes behind it",
      "deflate",
      Buffer.concat([Zlib.deflateSync(small), small]),
      400,
      "invalid_content_encoding"
    ],
    ["that is empty", "gzip", Buffer.alloc(0), 400, "invalid_json"],
    ["that is a bomb", "gzip", Zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024, " ")), 413, "request_too_large"],
    [
      "that is a bomb in a bomb",
      "zstd, br",
      encode("zstd, br", Buffer.alloc(64 * 1024 * 1024)),
      413,
      "request_too_large"
    ]
  ]
  it.each(refused)("%s is refused", async (_, codings, body, status, code) => {
    const answer = await send(codings, body)
    assert.strictEqual(answer.status, status, answer.text)
    assert.strictEqual((JSON.parse(answer.text) as { readonly error: { readonly code: string } }).error.code, code)
  })
})
