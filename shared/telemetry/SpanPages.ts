/**
 * Buffers encoded spans in pages of bytes until the export. Kept as objects, a few hundred spans would cost more time in
 * garbage collection than their creation does.
 */

/** The maximum size of a page in bytes, unless a single span is larger. */
export const pageBytes = 1024 * 1024

/** Spans are encoded in batches of this many, because only the first of a batch misses the processor's caches. */
const spansPerWrite = 32

const comma = 0x2c

export interface Encoding<Span> {
  /** The bytes before and after the comma-separated spans of a page. */
  readonly before: Uint8Array
  readonly after: Uint8Array
  /** An upper bound of a span's size, in bytes. */
  readonly maxBytes: (span: Span) => number
  /** Writes a span into a page from an offset on, and returns the offset after it. */
  readonly write: (span: Span, page: Buffer, from: number) => number
}

export class SpanPages<Span> {
  readonly #everyMs: number
  readonly #encoding: Encoding<Span>
  readonly #onPage: (page: Buffer) => void
  /** The memory of an exported page, for reuse: allocating memory costs more than writing to it. */
  #spare: Buffer | undefined
  #page: Buffer | undefined
  #used = 0
  #unwritten: Array<Span> = []
  #timer: NodeJS.Timeout | undefined

  /** `onPage` gets each page when it is full, and `everyMs` milliseconds after its first span. */
  constructor(everyMs: number, encoding: Encoding<Span>, onPage: (page: Buffer) => void) {
    this.#everyMs = everyMs
    this.#encoding = encoding
    this.#onPage = onPage
  }

  add(span: Span): void {
    this.#timer ??= setTimeout(() => this.flush(), this.#everyMs)
    this.#unwritten.push(span)
    if (this.#unwritten.length >= spansPerWrite) this.#write()
  }

  /** Passes the page to `onPage` unless it is empty. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#write()
    this.#close()
  }

  /** Takes back the memory of a page that is no longer in use. */
  recycle(page: Buffer): void {
    if (page.buffer.byteLength === pageBytes) this.#spare = Buffer.from(page.buffer)
  }

  #write(): void {
    const spans = this.#unwritten
    this.#unwritten = []
    for (const span of spans) {
      const { after, maxBytes, write } = this.#encoding
      const bytes = 1 + maxBytes(span) + after.length
      if (this.#page !== undefined && this.#used + bytes > this.#page.length) this.#close()
      const page = this.#page ??= this.#open(bytes)
      if (this.#used > this.#encoding.before.length) page[this.#used++] = comma
      this.#used = write(span, page, this.#used)
    }
  }

  #open(bytes: number): Buffer {
    const { before } = this.#encoding
    const needed = before.length + bytes
    const page = needed > pageBytes ? Buffer.allocUnsafeSlow(needed) : this.#spare ?? Buffer.allocUnsafeSlow(pageBytes)
    this.#spare = undefined
    page.set(before)
    this.#used = before.length
    return page
  }

  #close(): void {
    const page = this.#page
    if (page === undefined) return
    this.#page = undefined
    page.set(this.#encoding.after, this.#used)
    this.#onPage(page.subarray(0, this.#used + this.#encoding.after.length))
  }
}
