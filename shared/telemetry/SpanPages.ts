/**
 * Where the text of spans gathers until it is exported: pages of bytes, which the garbage collector need not look at. A few
 * hundred spans as objects of their own would be copied by it again and again, and cost more than they did to be made.
 */

const pageBytes = 64 * 1024

/** So many spans are made text in one go: the first of them finds nothing in the processor's caches, the others all of it. */
const writtenAtOnce = 32

/** The most that one UTF-16 code unit becomes as UTF-8. */
const bytesPerUnit = 3

const comma = 0x2c

/** Spans with commas between. */
export class SpanPage {
  readonly #bytes: Buffer
  readonly #beforeTaken: (page: SpanPage) => void
  #used = 0
  #isTaken = false

  constructor(bytes: number, beforeTaken: (page: SpanPage) => void) {
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
    this.#beforeTaken = beforeTaken
  }

  get isTaken(): boolean {
    return this.#isTaken
  }

  /** `false` where there is no room for it. */
  add(text: string): boolean {
    if (this.#used + 1 + text.length * bytesPerUnit > this.#bytes.length) return false
    if (this.#used > 0) this.#bytes[this.#used++] = comma
    this.#used += this.#bytes.write(text, this.#used)
    return true
  }

  /** What has gathered. Nothing is added from here on. */
  take(): Uint8Array {
    this.#beforeTaken(this)
    this.#isTaken = true
    return this.#bytes.subarray(0, this.#used)
  }
}

export class SpanPages<Span> {
  /** So many pages are sent in one go. */
  static readonly maxAtOnce = 8
  /** After so many nanoseconds a page that is not taken hardly ever will be. */
  readonly #patience: bigint
  readonly #textOf: (span: Span) => string
  readonly #onPage: (page: SpanPage) => void
  #page: SpanPage | undefined
  #since = 0n
  #latest = 0n
  #unwritten: Array<Span> = []

  /** `onPage` is given each page at its first span, and takes it within `everyMs` milliseconds or, as a rule, not at all. */
  constructor(everyMs: number, textOf: (span: Span) => string, onPage: (page: SpanPage) => void) {
    this.#patience = BigInt(everyMs) * 2_000_000n
    this.#textOf = textOf
    this.#onPage = onPage
  }

  /** `at` is the time, in epoch nanoseconds. */
  add(span: Span, at: bigint): void {
    this.#latest = at
    if (this.#page === undefined || this.#page.isTaken || at - this.#since >= this.#patience) {
      // in a process that stood still it is taken late, and not never
      if (this.#page?.isTaken === false) this.#write()
      this.#open(pageBytes)
    }
    this.#unwritten.push(span)
    if (this.#unwritten.length >= writtenAtOnce) this.#write()
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
