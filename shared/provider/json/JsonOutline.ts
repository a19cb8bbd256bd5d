/**
 * Outlines the outermost object of a JSON text that arrives in pieces and is too large to hold or to parse. Small values are exact, at
 * any depth. Of a large object the first members are kept, of a large list the length and the first items, of a long string the
 * beginning.
 */
import { closingQuote, isSpace, nextStructural, openEscaped } from "../../bounds/JsonBytes.ts"
import * as Json from "./Json.ts"

/** Members and items up to this size are kept exactly, in bytes. Larger ones are outlined in turn. */
const smallBytes = 16 * 1024
/** How many members of a large object are kept: far more than an object of an answer has. */
const keptMembers = 256
/** How many items of a large list are kept: as many as an answer has choices, or a choice parts. Vectors have far more numbers. */
const keptItems = 16
/** Below this level nothing is kept of large objects, and only the length of large lists. Readers do not look that deep. */
const maxLevels = 8
/** How much of a long string is kept, in bytes. */
const beginningBytes = 1024

const quote = 0x22
const comma = 0x2c

/** White space, and the name at the beginning of a member. */
const spaceFirst = /^[ \t\r\n]*/
const nameFirst = /^[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*/

/** Matches the whole characters and escapes at the beginning of a string. */
const wholeFirst = /^(?:[^"\\\ufffd]|\\(?:[^u]|u[\da-f]{4}))*/i

const beginningOf = (string: Uint8Array): unknown =>
  Json.parse(`"${wholeFirst.exec(Json.decodeText(string.subarray(0, beginningBytes)))?.[0]}"`)

/** The index of the next byte that is not white space; the end of the piece if there is none. */
const afterSpace = (piece: Uint8Array, from: number): number => {
  let at = from
  while (isSpace(piece[at])) at++
  return at
}

/** A small member of the outermost object that has ended, and its position in the whole text in bytes. */
export interface Ended {
  readonly name: string
  readonly start: number
  readonly end: number
}

export class JsonOutline {
  readonly #root = new Level(false, maxLevels, (name, bytes, at) => {
    const end = this.#bytes + at
    this.#ended.push({ name, start: end - bytes, end })
  })
  #ended: Array<Ended> = []
  #bytes = 0
  #hasBegun = false
  #isBroken = false

  push(piece: Uint8Array): void {
    // a value must be known to be large before much of it is scanned
    for (let from = 0; from < piece.length; from += smallBytes) {
      const part = piece.subarray(from, from + smallBytes)
      if (!this.#isBroken) this.#read(part)
      this.#bytes += part.length
    }
  }

  /** The length of the text so far, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of bytes at the end of the text that belong to a member that may turn out to be small. */
  get openBytes(): number {
    return this.#root.isWhole ? 0 : this.#root.keptBytes
  }

  /** The small members that have ended since the last call. */
  takeEnded(): ReadonlyArray<Ended> {
    const ended = this.#ended
    this.#ended = []
    return ended
  }

  /** The outlined object; `undefined` if the text is not a complete object. */
  get fields(): Json.Fields | undefined {
    return this.#root.isWhole && !this.#root.isBroken && !this.#isBroken ? Json.fields(this.#root.value) : undefined
  }

  #read(piece: Uint8Array): void {
    let at = 0
    if (!this.#hasBegun) {
      at = afterSpace(piece, 0)
      if (at === piece.length) return
      this.#hasBegun = true
      this.#isBroken = piece[at++] !== 0x7b
    }
    if (!this.#root.isWhole) at = this.#root.read(piece, at)
    this.#isBroken ||= afterSpace(piece, at) < piece.length
  }
}

/** The outline of one object or list, which reads from after its opening bracket. */
class Level {
  readonly #isList: boolean
  /** How many levels of large values are kept, this one included. */
  readonly #levels: number
  /** Gets the name of a small member that has ended, its length, and the index of its end in the current piece. */
  readonly #onSmall: ((name: string, bytes: number, at: number) => void) | undefined
  /** The kept values by name, or by index. */
  readonly #values = new Map<string | number, unknown>()
  /** The number of members or items that have ended. */
  #count = 0
  isWhole = false
  isBroken = false
  /** The number of open brackets in the current member or item, unless a level of its own reads them. */
  #depth = 0
  #inString = false
  /** Whether the next byte of the string is escaped. */
  #isEscaped = false
  /** The text of the current member or item so far, while it is small. */
  #kept: Array<Uint8Array> = []
  #keptBytes = 0
  #isKept: boolean
  /** For a large member or item: its name or index, and the outline of its value. */
  #key: string | number | undefined
  #inner: Level | undefined
  #beginning: unknown

  constructor(isList: boolean, levels: number, onSmall?: (name: string, bytes: number, at: number) => void) {
    this.#isList = isList
    this.#levels = levels
    this.#onSmall = onSmall
    this.#isKept = this.#keepsNext
  }

  /** The length of the current member so far, while it is small. */
  get keptBytes(): number {
    return this.#isKept ? this.#keptBytes : 0
  }

  get value(): unknown {
    if (!this.#isList) return Object.fromEntries(this.#values)
    const list: Array<unknown> = []
    for (const [index, item] of this.#values) list[Number(index)] = item
    list.length = this.#count
    return list
  }

  /** Continues to read at an index. Returns the index after the end of this level; the length of the piece if the level continues. */
  read(piece: Uint8Array, start: number): number {
    let at = start
    // where the current member's part of this piece begins
    let from = start
    while (at < piece.length) {
      if (this.#inner?.isWhole === false) {
        at = this.#inner.read(piece, at)
        continue
      }
      if (this.#inString) {
        const end = closingQuote(piece, at, this.#isEscaped)
        this.#isEscaped = end === openEscaped
        if (end < 0) break
        this.#inString = false
        at = end + 1
        continue
      }
      at = nextStructural(piece, at)
      const byte = piece[at++]
      if (byte === comma) {
        if (this.#depth > 0) continue
        // items in the rest of a long list are only counted
        if (this.#isSkipped) this.#count++
        else this.#end(piece.subarray(from, at - 1), at - 1)
        from = at
      } else if (byte === quote) this.#inString = true
      else if (byte === 0x7b || byte === 0x5b) this.#depth++
      else if (byte === 0x7d || byte === 0x5d) {
        if (this.#depth-- > 0) continue
        this.isWhole = true
        this.#end(piece.subarray(from, at - 1), at - 1)
        return at
      }
    }
    this.#keep(piece.subarray(from))
    return piece.length
  }

  /** Whether the current member or item is only counted. */
  get #isSkipped(): boolean {
    return !this.#isKept && this.#key === undefined
  }

  get #keepsNext(): boolean {
    return this.#levels > 0 && this.#count < (this.#isList ? keptItems : keptMembers)
  }

  #keep(part: Uint8Array): void {
    if (!this.#isKept) return
    this.#kept.push(part)
    this.#keptBytes += part.length
    if (this.#keptBytes > smallBytes) this.#outline(Buffer.concat(this.#kept))
  }

  /** The current member is large. Outlines its value, from its text so far. */
  #outline(text: Buffer): void {
    this.#isKept = false
    this.#kept = []
    const [head = "", name = ""] = (this.#isList ? spaceFirst : nameFirst).exec(text.toString("latin1")) ?? []
    const key = this.#isList ? this.#count : Json.parse(Buffer.from(name, "latin1").toString())
    if (key === undefined) {
      this.isBroken = true
      return
    }
    this.#key = key as string | number
    const first = text[head.length]
    if (first === quote) this.#beginning = beginningOf(text.subarray(head.length + 1))
    if (first !== 0x7b && first !== 0x5b) return
    this.#inner = new Level(first === 0x5b, this.#levels - 1)
    this.#depth = 0
    this.#inString = false
    this.#inner.read(text, head.length + 1)
  }

  #end(last: Uint8Array, at: number): void {
    this.#keep(last)
    if (this.#isKept) this.#parse(at)
    else if (this.#key !== undefined) {
      this.#values.set(this.#key, this.#inner === undefined ? this.#beginning : this.#inner.value)
      this.isBroken ||= this.#inner !== undefined && (this.#inner.isBroken || !this.#inner.isWhole)
    }
    this.#count++
    this.#kept = []
    this.#keptBytes = 0
    this.#isKept = this.#keepsNext
    this.#key = undefined
    this.#inner = undefined
    this.#beginning = undefined
  }

  #parse(at: number): void {
    const [first] = this.#kept
    const text = Json.decodeText(first !== undefined && this.#kept.length === 1 ? first : Buffer.concat(this.#kept))
    if (text.trim() === "") {
      // only an empty object or list may have an empty member
      this.isBroken ||= this.#count > 0 || !this.isWhole
      this.#count--
      return
    }
    const [entry] = Object.entries(Json.fields(Json.parse(this.#isList ? `{"":${text}}` : `{${text}}`)))
    if (entry === undefined) {
      this.isBroken = true
      return
    }
    const [name, value] = entry
    this.#values.set(this.#isList ? this.#count : name, value)
    this.#onSmall?.(name, this.#keptBytes, at)
  }
}
