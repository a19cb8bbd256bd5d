/**
 * Buffers encoded spans in pages of bytes until the export. Kept as objects, a few hundred spans would cost more time in
 * garbage collection than their creation does.
 */

const pageBytes = 64 * 1024

/** Spans are encoded in batches, because only the first misses the processor's caches. */
const spansPerWrite = 32

/** The maximum number of UTF-8 bytes per UTF-16 code unit. */
const bytesPerUnit = 3

const comma = 0x2c

/** Comma-separated spans. */
export class SpanPage {
  readonly #bytes: Buffer
  readonly #beforeTaken: (page: SpanPage) => void
  #used = 0
  isTaken = false

  constructor(bytes: number, beforeTaken: (page: SpanPage) => void) {
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
    this.#beforeTaken = beforeTaken
  }

  /** Returns `false` if the page is full. */
  add(text: string): boolean {
    if (this.#used + 1 + text.length * bytesPerUnit > this.#bytes.length) return false
    if (this.#used > 0) this.#bytes[this.#used++] = comma
    this.#used += this.#bytes.write(text, this.#used)
    return true
  }

  /** Closes the page and returns its content. */
  take(): Uint8Array {
    this.#beforeTaken(this)
    this.isTaken = true
    return this.#bytes.subarray(0, this.#used)
  }
}

export class SpanPages<Span> {
  /** Maximum number of pages per export. */
  static readonly maxAtOnce = 8
  /** A page that was not taken within this time, in nanoseconds, will probably never be taken. */
  readonly #maxAge: bigint
  readonly #textOf: (span: Span) => string
  readonly #onPage: (page: SpanPage) => void
  #page: SpanPage | undefined
  #since = 0n
  #latest = 0n
  #unwritten: Array<Span> = []

  /** `onPage` gets each page at its first span, and usually takes it within `everyMs` milliseconds or never. */
  constructor(everyMs: number, textOf: (span: Span) => string, onPage: (page: SpanPage) => void) {
    this.#maxAge = BigInt(everyMs) * 2_000_000n
    this.#textOf = textOf
    this.#onPage = onPage
  }

  /** `at` is the time, in epoch nanoseconds. */
  add(span: Span, at: bigint): void {
    this.#latest = at
    if (this.#page === undefined || this.#page.isTaken || at - this.#since >= this.#maxAge) {
      // if the process was only suspended, this page is still taken, so complete it
      if (this.#page?.isTaken === false) this.#write()
      this.#open(pageBytes)
    }
    this.#unwritten.push(span)
    if (this.#unwritten.length >= spansPerWrite) this.#write()
  }

  #open(bytes: number): SpanPage {
    const page = new SpanPage(bytes, (page) => {
      if (page === this.#page) this.#write()
    })
    this.#page = page
    this.#since = this.#latest
    this.#onPage(page)
    return page
  }

  #write(): void {
    const spans = this.#unwritten
    this.#unwritten = []
    for (const span of spans) {
      const text = this.#textOf(span)
      if (this.#page?.add(text) !== true) this.#open(Math.max(pageBytes, 1 + text.length * bytesPerUnit)).add(text)
    }
  }
}
