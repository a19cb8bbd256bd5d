/**
 * Where the text of spans gathers until it is exported: pages of bytes, which the garbage collector need not look at. A few
 * hundred spans as objects of their own would be copied by it again and again, and cost more than they did to be made.
 */

const pageBytes = 64 * 1024

/** The most that one UTF-16 code unit becomes as UTF-8. */
const bytesPerUnit = 3

const comma = 0x2c

/** Spans with commas between. */
export class SpanPage {
  readonly #bytes: Buffer
  #used = 0
  #isTaken = false

  constructor(bytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
  }

  /** `false` where there is no room for it. */
  add(text: string): boolean {
    if (this.#isTaken || this.#used + 1 + text.length * bytesPerUnit > this.#bytes.length) return false
    if (this.#used > 0) this.#bytes[this.#used++] = comma
    this.#used += this.#bytes.write(text, this.#used)
    return true
  }

  /** What has gathered. Nothing is added from here on. */
  take(): Uint8Array {
    this.#isTaken = true
    return this.#bytes.subarray(0, this.#used)
  }
}

export class SpanPages {
  /** So many pages are sent in one go. */
  static readonly maxAtOnce = 8
  /** After so many nanoseconds a page that is not taken never will be. */
  readonly #patience: bigint
  readonly #onPage: (page: SpanPage) => void
  #page: SpanPage | undefined
  #since = 0n

  /** `onPage` is given each page at its first span, and takes it within `everyMs` milliseconds or not at all. */
  constructor(everyMs: number, onPage: (page: SpanPage) => void) {
    this.#patience = BigInt(everyMs) * 2_000_000n
    this.#onPage = onPage
  }

  /** `at` is the time, in epoch nanoseconds. */
  add(text: string, at: bigint): void {
    if (this.#page !== undefined && at - this.#since < this.#patience && this.#page.add(text)) return
    const page = new SpanPage(Math.max(pageBytes, 1 + text.length * bytesPerUnit))
    page.add(text)
    this.#page = page
    this.#since = at
    this.#onPage(page)
  }
}
