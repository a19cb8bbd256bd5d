/**
 * Decodes the content codings of HTTP bodies (`content-encoding`) as they arrive. What they decode to is bounded, because a few bytes may
 * stand for gigabytes.
 */
import { Duplex, type Readable, type Writable } from "node:stream"
import * as Zlib from "node:zlib"

/** In the order in which clients should prefer them. */
export const contentCodings = ["zstd", "br", "gzip", "deflate"] as const

export type ContentCoding = (typeof contentCodings)[number]

/** Maximum codings of one body. undici has the same bound. */
const maxCodings = 5

/** RFC 9110 asks to treat the older name like the newer one. */
const namedOtherwise: Readonly<Record<string, ContentCoding>> = { "x-gzip": "gzip" }

const isKnown = (name: string): name is ContentCoding => contentCodings.some((coding) => coding === name)

const none: ReadonlyArray<ContentCoding> = []

/** The codings in the order in which they were applied; `undefined` if one is unknown or there are too many. */
export const codingsIn = (header = ""): ReadonlyArray<ContentCoding> | undefined => {
  if (header === "") return none
  const names = header.split(",").map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity")
    .map((name) => namedOtherwise[name] ?? name)
  return names.length <= maxCodings && names.every(isKnown) ? names : undefined
}

export interface DecodingBounds {
  /** Maximum size of what each coding is decoded from and to. */
  readonly maxBytes: number
  /** How many times as large the decoded bytes may be, once they are more than `maxRatioFrom`. Default: any. */
  readonly maxRatio?: number
}

/** An answer of this size may have any ratio to its encoded bytes. */
const maxRatioFrom = 512 * 1024

/** Why a body cannot be decoded. */
export class Undecodable extends Error {
  readonly coding: ContentCoding
  readonly reason: "content" | "size"

  constructor(coding: ContentCoding, reason: "content" | "size") {
    super(reason === "size" ? `${coding} of too much` : `not valid ${coding}`)
    this.coding = coding
    this.reason = reason
  }
}

/** The largest window of a zstd frame, as a power of two: 8 MiB, which RFC 9659 sets for HTTP. */
const zstdWindow = { params: { [Zlib.constants.ZSTD_d_windowLogMax]: 23 } }

/** The memory in which a decoder keeps what it has decoded, in bytes, at most. */
const windows: Readonly<Record<ContentCoding, number>> = {
  zstd: 8 * 1024 * 1024,
  br: 16 * 1024 * 1024,
  gzip: 32 * 1024,
  deflate: 32 * 1024
}

/** The memory of the decoders of a body of which this much has been decoded: of several, the inner ones may decode to nothing. */
export const decoderBytes = (codings: ReadonlyArray<ContentCoding>, decodedBytes: number): number => {
  const most = codings.reduce((sum, coding) => sum + windows[coding], 0)
  return codings.length > 1 ? most : Math.min(most, decodedBytes)
}

/** Makes the decoder of a body that begins with this byte. */
const engines = {
  zstd: () => Zlib.createZstdDecompress(zstdWindow),
  br: () => Zlib.createBrotliDecompress(),
  gzip: () => Zlib.createGunzip(),
  // some clients send the bare data without the format around it, whose first byte has a 8 in its lower half
  deflate: (first: number) => (first & 0x0f) === 8 ? Zlib.createInflate() : Zlib.createInflateRaw()
} satisfies Record<ContentCoding, (first: number) => Duplex>

/** Decodes one coding. An empty body stays empty. Bytes after the end of the encoded data are an error. */
class Decoder extends Duplex {
  readonly #coding: ContentCoding
  readonly #bounds: DecodingBounds
  #engine: ReturnType<(typeof engines)[ContentCoding]> | undefined
  /** The encoded bytes so far, and those of them in earlier frames. */
  #encoded = 0
  #earlier = 0
  #decoded = 0
  /** Called at the end of the encoded data. */
  #onEnd: () => void = () => {}

  constructor(coding: ContentCoding, bounds: DecodingBounds) {
    super()
    this.#coding = coding
    this.#bounds = bounds
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    this.#encoded += chunk.length
    if (this.#encoded > this.#bounds.maxBytes) done(new Undecodable(this.#coding, "size"))
    else this.#feed(chunk, done)
  }

  override _read(): void {
    this.#engine?.resume()
  }

  override _final(done: () => void): void {
    const end = () => {
      this.push(null)
      done()
    }
    if (this.#engine === undefined) return end()
    this.#onEnd = end
    this.#engine.end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#engine?.destroy()
    done(error)
  }

  #feed(chunk: Uint8Array, done: (error?: Error) => void): void {
    if (chunk.length === 0) return done()
    const engine = this.#engine ??= this.#start(chunk[0] ?? 0)
    const before = engine.bytesWritten
    const decoded = () => engine.bytesWritten - before
    // the encoded data ends within the chunk
    this.#onEnd = () => {
      const rest = chunk.subarray(decoded())
      // RFC 8878: zstd data may consist of several frames
      if (this.#coding !== "zstd" || rest.length === chunk.length) return done(this.#invalid)
      this.#engine = undefined
      this.#earlier += engine.bytesWritten
      this.#feed(rest, done)
    }
    // also called after such an end
    engine.write(chunk, (error) => {
      if (decoded() === chunk.length && (error === null || error === undefined)) done()
    })
  }

  #start(first: number): ReturnType<(typeof engines)[ContentCoding]> {
    return engines[this.#coding](first)
      .on("data", (piece: Uint8Array) => this.#pass(piece))
      .on("end", () => this.#onEnd())
      .on("error", () => this.destroy(this.#invalid))
  }

  get #invalid(): Undecodable {
    return new Undecodable(this.#coding, "content")
  }

  #pass(piece: Uint8Array): void {
    if (this.destroyed) return
    this.#decoded += piece.length
    const { maxBytes, maxRatio = Infinity } = this.#bounds
    // of the last chunk, only a part may have been decoded
    const encoded = this.#earlier + (this.#engine?.bytesWritten ?? 0)
    const most = Math.min(maxBytes, Math.max(maxRatioFrom, maxRatio * encoded))
    if (this.#decoded > most) this.destroy(new Undecodable(this.#coding, "size"))
    else if (!this.push(piece)) this.#engine?.pause()
  }
}

/** Decoders in a row: what is written to the first can be read from the last. */
export interface Decoding {
  readonly first: Writable
  /** Ends with an error of the source or of any decoder. Destroy it to stop. */
  readonly last: Readable
}

/** Makes one decoder for each coding. */
export const decodersOf = (
  codings: ReadonlyArray<ContentCoding>,
  bounds: DecodingBounds
): ReadonlyArray<Duplex> => codings.toReversed().map((coding) => new Decoder(coding, bounds))

/** Decodes what is written; `undefined` for no codings. */
export const decoding = (
  codings: ReadonlyArray<ContentCoding>,
  bounds: DecodingBounds
): Decoding | undefined => {
  if (codings.length === 0) return undefined
  const decoders = decodersOf(codings, bounds)
  const [first] = decoders
  const last = decoders.at(-1)
  if (first === undefined || last === undefined) return undefined
  for (const [index, decoder] of decoders.entries()) {
    const next = decoders[index + 1]
    if (next === undefined) continue
    decoder.on("error", (error) => last.destroy(error))
    decoder.pipe(next)
  }
  last.once("close", () => {
    for (const decoder of decoders) decoder.destroy()
  })
  return { first, last }
}

/** The decoded bytes of a source, which is left open: an answer may follow on its connection. */
export const decode = (
  source: Readable,
  codings: ReadonlyArray<ContentCoding>,
  bounds: DecodingBounds
): Readable => {
  const decoders = decoding(codings, bounds)
  if (decoders === undefined) return source
  const { first, last } = decoders
  source.on("error", (error) => last.destroy(error))
  last.once("close", () => source.unpipe(first))
  source.pipe(first)
  return last
}
