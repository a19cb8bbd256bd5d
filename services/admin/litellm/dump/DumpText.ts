/** How PostgreSQL writes values in dumps: fields of `COPY` blocks, rows of `INSERT` statements, and arrays. */

const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" }

/** A field of a `COPY` block. */
export const fromCopy = (field: string): string | null => {
  if (field === "\\N") return null
  if (!field.includes("\\")) return field
  return field.replaceAll(/\\(?:([0-7]{1,3})|x([0-9a-f]{1,2})|(.))/gis, (_, octal, hex, character) => {
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    return escapes[character] ?? character
  })
}

/** The elements of a one-dimensional array of texts, such as `{gpt-4o,"a b"}`; `undefined` if it is none. */
export const fromArray = (text: string): ReadonlyArray<string> | undefined => {
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined
  const inner = text.slice(1, -1)
  if (inner === "") return []
  const element = /(?:"((?:[^"\\]|\\.)*)"|([^",{}\\]+))(,|$)/gsy
  const found: Array<string> = []
  while (element.lastIndex < inner.length) {
    const match = element.exec(inner)
    if (match === null) return undefined
    found.push(match[1]?.replaceAll(/\\(.)/gs, "$1") ?? match[2] ?? "")
  }
  return inner.endsWith(",") ? undefined : found
}

/** Reads the rows after `VALUES`. The statement may extend over several lines, and so may a text. */
export class InsertedRows {
  #place: "between" | "row" | "text" = "between"
  #values: Array<string | null> = []
  #value = ""
  #wasText = false
  #size = 0

  /** The length of the current row so far. */
  get length(): number {
    return this.#size
  }

  push(text: string): { readonly rows: ReadonlyArray<ReadonlyArray<string | null>>; readonly isEnded: boolean } {
    const rows: Array<ReadonlyArray<string | null>> = []
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      if (this.#place === "text") {
        const end = text.indexOf("'", at)
        this.#add(text.slice(at, end === -1 ? text.length : end))
        if (end === -1) break
        at = end
        // a quote is doubled within a text
        if (text.charAt(end + 1) === "'") {
          this.#add("'")
          at += 1
        } else this.#place = "row"
      } else if (this.#place === "between") {
        if (character === ";") return { rows, isEnded: true }
        if (character === "(") this.#place = "row"
      } else if (character === "'") {
        this.#place = "text"
        this.#wasText = true
        // drops the space before the quote
        this.#value = ""
      } else if (character === "," || character === ")") {
        this.#finishValue()
        if (character === ",") continue
        rows.push(this.#values)
        this.#values = []
        this.#size = 0
        this.#place = "between"
      } else if (!this.#wasText) this.#add(character)
    }
    return { rows, isEnded: false }
  }

  #add(text: string): void {
    this.#value += text
    this.#size += text.length
  }

  #finishValue(): void {
    const bare = this.#value.trim()
    this.#values.push(this.#wasText ? this.#value : bare === "NULL" ? null : bare)
    this.#value = ""
    this.#wasText = false
  }
}
