/**
 * Checks the file of a batch during its upload: each line must be a request with a unique `custom_id`.
 *
 * Keeps only the current line, and a digest of each `custom_id`, in memory.
 */
import { hash } from "node:crypto"
import { JsonBounds } from "../bounds/JsonBounds.ts"

/** The maximum number of requests in a batch: OpenAI's limit. */
export const maxLines = 50_000

/** Limited, because even an empty line takes time. */
const maxEmptyLines = maxLines

/** The largest body that any operation accepts, plus room for the other fields. */
export const maxLineBytes = 32 * 1024 * 1024 + 4 * 1024

export const maxIdLength = 512

const newline = 0x0a
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const firstBytes = 4 * 1024

/** 96 bits of a hash. V8 copies only such short slices; a longer one would keep the whole hash in memory. */
const digest = (id: string): string => hash("sha256", id, "binary").slice(0, 12)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The rule for each field, in the order of the checks. */
const fields: ReadonlyArray<readonly [name: string, is: (value: unknown) => boolean, rule: string]> = [
  [
    "custom_id",
    (value) => typeof value === "string" && value.length > 0 && value.length <= maxIdLength,
    `must be a text of 1 to ${maxIdLength} characters`
  ],
  ["method", (value) => value === "POST", "must be 'POST'"],
  [
    "url",
    (value) => typeof value === "string" && value.startsWith("/"),
    "must be a path, such as '/v1/chat/completions'"
  ],
  ["body", isObject, "must be an object"]
]

export class BatchLines {
  #line = new Uint8Array(firstBytes)
  #length = 0
  #bounds = new JsonBounds()
  /** The number of the current line. */
  #number = 1
  readonly #ids = new Set<string>()

  /** The number of lines that are not empty. */
  get count(): number {
    return this.#ids.size
  }

  /** Checks the next bytes. Returns what is wrong; `undefined` if nothing. */
  push(bytes: Uint8Array): string | undefined {
    for (let at = 0; at < bytes.length;) {
      const end = bytes.indexOf(newline, at)
      const until = end === -1 ? bytes.length : end
      const wrong = this.#add(bytes.subarray(at, until)) ?? (end === -1 ? undefined : this.#finish())
      if (wrong !== undefined) return wrong
      at = until + 1
    }
    return undefined
  }

  /** Checks the last line. */
  end(): string | undefined {
    return this.#finish() ?? (this.count === 0 ? "The file has no lines" : undefined)
  }

  #wrong(problem: string): string {
    return `Line ${this.#number} ${problem}`
  }

  #add(part: Uint8Array): string | undefined {
    const length = this.#length + part.length
    if (length > maxLineBytes) return this.#wrong(`is longer than ${maxLineBytes} bytes`)
    const excess = this.#bounds.push(part)
    if (excess !== undefined) return this.#wrong(excess)
    if (length > this.#line.length) {
      const grown = new Uint8Array(Math.max(length, Math.min(maxLineBytes, 2 * this.#line.length)))
      grown.set(this.#line.subarray(0, this.#length))
      this.#line = grown
    }
    this.#line.set(part, this.#length)
    this.#length = length
    return undefined
  }

  #finish(): string | undefined {
    const line = this.#line.subarray(0, this.#length)
    // frees the memory of a long line
    if (this.#line.length > firstBytes) this.#line = new Uint8Array(firstBytes)
    this.#length = 0
    this.#bounds = new JsonBounds()
    const wrong = this.#check(line)
    this.#number += 1
    return wrong
  }

  #checkEmpty(): string | undefined {
    return this.#number - this.count > maxEmptyLines ? `The file has more than ${maxEmptyLines} empty lines` : undefined
  }

  #check(line: Uint8Array): string | undefined {
    let value: unknown
    try {
      const text = utf8.decode(line)
      if (text.trim() === "") return this.#checkEmpty()
      value = JSON.parse(text)
    } catch {
      return this.#wrong("is not valid JSON in UTF-8")
    }
    if (!isObject(value)) return this.#wrong("must be an object")
    for (const [name, is, rule] of fields) {
      if (!is(value[name])) return this.#wrong(`is wrong: \`${name}\` ${rule}`)
    }
    if (this.count === maxLines) return `The file has more than ${maxLines} lines`
    const id = digest(String(value["custom_id"]))
    if (this.#ids.has(id)) return this.#wrong("is wrong: `custom_id` is also on an earlier line")
    this.#ids.add(id)
    return undefined
  }
}
