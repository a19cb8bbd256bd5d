/** Content codings: which ones are known, and what becomes of bodies that are whole, broken, followed by garbage, or bombs. */
import { assert, describe, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { Readable } from "node:stream"
import * as Zlib from "node:zlib"
import {
  codingsIn,
  type ContentCoding,
  contentCodings,
  decode,
  decoderBytes,
  type DecodingBounds,
  Undecodable
} from "../../../shared/bounds/ContentCoding.ts"
import { cut } from "../../fixture/general/Cut.ts"

// RFC 9110, 8.4.1: names are case-insensitive, x-gzip is gzip, and a list is in the order of application
const headers: ReadonlyArray<readonly [header: string | undefined, codings: ReadonlyArray<ContentCoding> | undefined]> =
  [
    [undefined, []],
    ["", []],
    ["identity", []],
    ["Zstd", ["zstd"]],
    ["x-gzip", ["gzip"]],
    ["gzip, identity ,BR", ["gzip", "br"]],
    ["gzip,,deflate,", ["gzip", "deflate"]],
    ["compress", undefined],
    ["gzip, dcb", undefined],
    ["aws-chunked", undefined],
    // undici decodes at most five
    [Array(5).fill("gzip").join(), Array<ContentCoding>(5).fill("gzip")],
    [Array(6).fill("gzip").join(), undefined]
  ]
describe("the codings of the header", () => {
  it.each(headers)("%j are %j", (header, codings) => {
    assert.deepStrictEqual(codingsIn(header), codings)
  })
})

const encoders: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Buffer>> = {
  zstd: Zlib.zstdCompressSync,
  br: Zlib.brotliCompressSync,
  gzip: Zlib.gzipSync,
  deflate: Zlib.deflateSync
}

const roomy: DecodingBounds = { maxBytes: 1_000_000 }

/** The decoded text, or why there is none. */
const outcomeOf = async (
  codings: ReadonlyArray<ContentCoding>,
  pieces: ReadonlyArray<Uint8Array>,
  bounds = roomy
): Promise<string> => {
  const source = Readable.from(pieces, { objectMode: false })
  const decoded: Array<Uint8Array> = []
  try {
    for await (const piece of decode(source, codings, bounds) as AsyncIterable<Uint8Array>) decoded.push(piece)
  } catch (error) {
    assert.instanceOf(error, Undecodable)
    return `error: ${error.reason}`
  }
  return Buffer.concat(decoded).toString()
}

const text = "{\"text\": \"bees dance, bees sing\"}"
const garbage = Buffer.from("garbage!")

describe.each(contentCodings)("%s", (coding) => {
  const encode = encoders[coding]
  const whole = encode(Buffer.from(text))
  const broken = Buffer.from(whole).fill(0xff, 2, whole.length - 2)
  const zeros = encode(Buffer.alloc(2_000_000))
  // RFC 1952 and 8878: members and frames may follow each other; in RFC 1950 and 7932 nothing follows the end of the data
  const twice = coding === "gzip" || coding === "zstd" ? text + text : "error: content"
  const cases: ReadonlyArray<readonly [name: string, encoded: Uint8Array, outcome: string]> = [
    ["a whole body", whole, text],
    ["no body", Buffer.alloc(0), ""],
    ["an empty text", encode(Buffer.alloc(0)), ""],
    ["a body that breaks off", whole.subarray(0, -3), "error: content"],
    ["the first bytes of a body", whole.subarray(0, 3), "error: content"],
    ["a body that is broken", broken, "error: content"],
    ["plain text", Buffer.from(text), "error: content"],
    ["a body with garbage behind it", Buffer.concat([whole, garbage]), "error: content"],
    ["two bodies", Buffer.concat([whole, whole]), twice],
    ["a bomb", zeros, "error: size"]
  ]
  it.each(cases)("%s, whole and in pieces", async (_, encoded, outcome) => {
    assert.strictEqual(await outcomeOf([coding], [encoded]), outcome)
    assert.strictEqual(await outcomeOf([coding], cut(encoded, [1])), outcome)
  })
})

describe("bodies", () => {
  const layers = (codings: ReadonlyArray<ContentCoding>, bytes: Uint8Array) =>
    codings.reduce((inner, coding) => encoders[coding](inner), bytes)

  it.each<{ readonly codings: ReadonlyArray<ContentCoding> }>([
    { codings: [] },
    { codings: ["gzip", "br"] },
    { codings: ["deflate", "deflate", "zstd"] },
    { codings: ["zstd", "gzip", "br", "deflate", "gzip"] }
  ])("with $codings are decoded from the last to the first", async ({ codings }) => {
    const encoded = layers(codings, Buffer.from(text))
    assert.strictEqual(await outcomeOf(codings, [encoded]), text)
    assert.strictEqual(await outcomeOf(codings, cut(encoded, [7])), text)
  })

  it("may be deflate without the format around it, as some clients send", async () => {
    assert.strictEqual(await outcomeOf(["deflate"], [Zlib.deflateRawSync(text)]), text)
  })

  it("are bounded in every layer, also where the last decodes to nothing", async () => {
    const empty = Zlib.gzipSync("")
    const many = Buffer.concat(Array<Buffer>(100_000).fill(empty))
    assert.strictEqual(await outcomeOf(["gzip"], [many]), "error: size")
    assert.strictEqual(await outcomeOf(["gzip", "gzip"], [Zlib.gzipSync(many)]), "error: size")
  })

  it("of zstd have a window of at most 8 MiB", async () => {
    const encode = Zlib.createZstdCompress({ params: { [Zlib.constants.ZSTD_c_windowLog]: 24 } })
    const encoded = Readable.from([Buffer.from(text), Buffer.from(text)], { objectMode: false }).pipe(encode)
    assert.strictEqual(
      await outcomeOf(["zstd"], await Array.fromAsync(encoded as AsyncIterable<Uint8Array>)),
      "error: content"
    )
  })

  // half a mebibyte may have any ratio
  it.each([
    { decodedBytes: 500_000, outcome: 500_000 },
    { decodedBytes: 600_000, outcome: "error: size" }
  ])(
    "of $decodedBytes bytes that are all the same: $outcome with a limit of 200 times the size",
    async ({ decodedBytes, outcome }) => {
      const decoded = await outcomeOf(["gzip"], [Zlib.gzipSync(Buffer.alloc(decodedBytes, "a"))], {
        ...roomy,
        maxRatio: 200
      })
      assert.strictEqual(decoded.startsWith("error") ? decoded : decoded.length, outcome)
    }
  )

  it("leave their source open, which may have more to read", async () => {
    const source = new Readable({ read: () => undefined })
    source.push(garbage)
    const decoded = decode(source, ["gzip"], roomy).on("error", () => {}).resume()
    await new Promise<void>((resolve) => decoded.once("close", resolve))
    assert.instanceOf(decoded.errored, Undecodable)
    assert.isFalse(source.destroyed)
    const next = new Promise((resolve) => source.once("data", resolve).resume())
    source.push(Buffer.from("more"))
    assert.strictEqual(String(await next), "more")
  })
})

// the windows: RFC 9659 for zstd, RFC 7932 for br, RFC 1951 for gzip and deflate
it.each<{ readonly codings: ReadonlyArray<ContentCoding>; readonly decoded: number; readonly bytes: number }>([
  { codings: [], decoded: 1_000_000, bytes: 0 },
  { codings: ["gzip"], decoded: 1_000, bytes: 1_000 },
  { codings: ["gzip"], decoded: 1_000_000, bytes: 32_768 },
  { codings: ["zstd"], decoded: 100_000_000, bytes: 8_388_608 },
  { codings: ["br"], decoded: 100_000_000, bytes: 16_777_216 },
  // the inner ones may have decoded much of which nothing is left
  { codings: ["deflate", "br"], decoded: 0, bytes: 16_809_984 }
])("the decoders of $codings keep at most $bytes bytes of $decoded", ({ bytes, codings, decoded }) => {
  assert.strictEqual(decoderBytes(codings, decoded), bytes)
})
