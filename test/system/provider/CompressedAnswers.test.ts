/** Answers of providers that are compressed although no request asks for it. */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import * as Zlib from "node:zlib"
import { chat, type Outcome, outcomeOf } from "../../fixture/client/ChatClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { cut } from "../../fixture/general/Cut.ts"

const gateway = sharedGateway()

/** Quickly: the services run in this process, and must not miss their heartbeats. */
const brotli = (bytes: Uint8Array) =>
  Zlib.brotliCompressSync(bytes, { params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })

const encoders: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  zstd: Zlib.zstdCompressSync,
  gzip: Zlib.gzipSync,
  br: brotli,
  deflate: Zlib.deflateSync,
  "gzip, br": (bytes) => brotli(Zlib.gzipSync(bytes))
}

const answerOf = (content: string) => ({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "free-chat",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
})

const eventOf = (content: string, reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason: reason }] })}\n\n`

const done = `${eventOf("", "stop")}data: [DONE]\n\n`

/** Text that cannot be compressed to less than a half. */
const varied = (bytes: number): string => {
  let seed = 1
  return Array.from({ length: bytes }, () => String.fromCharCode(97 + (seed = seed * 48_271 % 2_147_483_647) % 26))
    .join("")
}

const contents = ["Hi", varied(2_000_000)]

interface Raw {
  readonly coding: string
  readonly bytes: Uint8Array
  readonly type?: string
  readonly status?: number
}

const behave = ({ bytes, coding, status = 200, type = "application/json" }: Raw) =>
  gateway().provider.behaveOnce({
    kind: "raw",
    pieces: cut(bytes, [Math.max(100, Math.ceil(bytes.length / 50))]),
    status,
    headers: { "content-type": type, "content-encoding": coding }
  })

const stream = "text/event-stream"

describe.each(Object.keys(encoders))("an answer with %s", (coding) => {
  const encode = encoders[coding]!
  it("is decoded, small or large, whole or as a stream", async () => {
    for (const content of contents) {
      behave({ coding, bytes: encode(Buffer.from(JSON.stringify(answerOf(content)))) })
      const whole = await gateway().request(chat("free-chat"))
      assert.deepInclude(await whole.json(), { choices: answerOf(content).choices })
      assert.isNull(whole.headers.get("content-encoding"))
      behave({ coding, bytes: encode(Buffer.from(eventOf(content) + done)), type: stream })
      const text = await (await gateway().request(chat("free-chat", { stream: true }))).text()
      assert.include(text, JSON.stringify(content))
      assert.match(text, /data: \[DONE\]\n\n$/)
    }
  })

  it("and an error status keeps its error", async () => {
    const error = { error: { message: "no such voice", type: "invalid_request_error", param: "voice", code: null } }
    behave({ coding, bytes: encode(Buffer.from(JSON.stringify(error))), status: 400 })
    const answer = await gateway().request(chat("free-chat"))
    assert.strictEqual(answer.status, 400)
    assert.include(await answer.text(), "no such voice")
  })
})

describe("an answer that cannot be decoded within the bounds", () => {
  const bomb = Buffer.alloc(100 * 1024 * 1024, " ")
  const whole = Buffer.from(JSON.stringify(answerOf("Hi")))
  const events = Buffer.from(eventOf("Hi") + done)
  const refused: Outcome = { kind: "refused", status: 502, code: "upstream_error", retryAfter: null }
  const cases: ReadonlyArray<readonly [name: string, raw: Raw, streams: boolean]> = [
    ["of an unknown coding", { coding: "compress", bytes: whole }, false],
    ["of too many codings", { coding: Array(6).fill("gzip").join(), bytes: whole }, false],
    ["that is not compressed", { coding: "gzip", bytes: whole }, false],
    ["that breaks off", { coding: "zstd", bytes: Zlib.zstdCompressSync(whole).subarray(0, -4) }, false],
    ["with bytes behind it", { coding: "deflate", bytes: Buffer.concat([Zlib.deflateSync(whole), whole]) }, false],
    ["that is a gzip bomb", { coding: "gzip", bytes: Zlib.gzipSync(bomb) }, false],
    ["that is a bomb of brotli", { coding: "br", bytes: brotli(bomb) }, false],
    ["that is a bomb instead of a stream", { coding: "gzip", bytes: Zlib.gzipSync(bomb), type: stream }, true],
    ["that is a stream of an unknown coding", { coding: "compress", bytes: events, type: stream }, true]
  ]
  it.each(cases)("%s becomes a 502", async (_, raw, streams) => {
    behave(raw)
    assert.deepStrictEqual(await outcomeOf(gateway().request(chat("free-chat", { stream: streams }))), refused)
  })

  const begun = Buffer.from(eventOf(varied(100_000)))
  const streams: ReadonlyArray<readonly [name: string, raw: Raw]> = [
    ["becomes a bomb", { coding: "gzip", bytes: Zlib.gzipSync(Buffer.concat([begun, bomb])), type: stream }],
    ["breaks off", {
      coding: "gzip",
      bytes: Zlib.gzipSync(Buffer.concat([begun, events])).subarray(0, -12),
      type: stream
    }]
  ]
  it.each(streams)("and %s when it has begun ends with an event of the error", async (_, raw) => {
    behave(raw)
    const text = await (await gateway().request(chat("free-chat", { stream: true }))).text()
    assert.include(text, varied(100_000))
    assert.match(text, /"code":"upstream_error"\}\}\n\n$/)
  })

  it("with an error status keeps the status", async () => {
    behave({ coding: "gzip", bytes: Buffer.from("no gzip"), status: 400 })
    assert.deepInclude(await outcomeOf(gateway().request(chat("free-chat"))), { kind: "refused", status: 400 })
  })
})
