/**
 * The outermost object of a JSON text that comes in pieces and is too large to be held: its small members, parsed, and of
 * long lists how many items they have.
 */
import { Predicate } from "effect"
import * as Json from "./Json.ts"

/** Members that are larger than this are not kept. In bytes. */
const memberBytes = 16 * 1024

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c

/** The bytes that say where something begins or ends: most of a long list of numbers does not. */
const structural = new Uint8Array(256)
for (const byte of Buffer.from("\"{}[],")) structural[byte] = 1

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

// a byte order mark within the text is a character like any other
const text = new TextDecoder("utf-8", { ignoreBOM: true })

/** A member's name at its beginning, with what follows it. */
const nameFirst = /^\s*("(?:[^"\\]|\\.)*")\s*:/

/** Its index from here on; behind the piece where there is none. */
const nextStructural = (piece: Uint8Array, from: number): number => {
  let at = from
  while (at < piece.length && structural[piece[at]!] === 0) at++
  return at
}

/** A small member that has ended, and where in the whole text it lies, in bytes. */
export interface Ended {
  readonly name: string
  readonly start: number
  readonly end: number
}

export class JsonOutline {
  readonly #members = new Map<string, unknown>()
  #ended: Array<Ended> = []
  #bytes = 0
  #depth = 0
  #inString = false
  /** The backslashes at the end of what was seen of a string. */
  #backslashes = 0
  #hasMembers = false
  #isWhole = false
  #isBroken = false
  /** Of the member that is being read: its text as far as it is kept, and whether that is all of it. */
  #kept: Array<Uint8Array> = []
  #keptBytes = 0
  #isKept = true
  #isList = false
  #commas = 0

  push(piece: Uint8Array): void {
    // where the part of this piece begins that belongs to the member
    let from = 0
    for (let at = 0; at < piece.length; at++) {
      if (this.#inString) {
        at = this.#endOfString(piece, at)
        continue
      }
      if (this.#depth > 0) at = nextStructural(piece, at)
      if (at === piece.length) break
      const byte = piece[at]
      if (this.#depth === 0 && byte !== 0x7b) {
        if (!isSpace(byte)) this.#isBroken = true
      } else if (byte === quote) {
        this.#inString = true
        this.#backslashes = 0
      } else if (byte === 0x7b || byte === 0x5b) {
        this.#depth++
        if (this.#depth === 1) {
          if (this.#isWhole) this.#isBroken = true
          from = at + 1
        } else if (this.#depth === 2) this.#isList = byte === 0x5b
      } else if (byte === 0x7d || byte === 0x5d) {
        this.#depth--
        if (this.#depth !== 0) continue
        this.#isWhole = true
        this.#end(piece.subarray(from, at), this.#bytes + at)
      } else if (byte === comma && this.#depth === 1) {
        this.#end(piece.subarray(from, at), this.#bytes + at)
        from = at + 1
      } else if (byte === comma && this.#depth === 2) this.#commas++
    }
    if (this.#depth > 0) this.#keep(piece.subarray(from))
    this.#bytes += piece.length
  }

  /** How much there was of it so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** How much of that, at its end, belongs to a member that may yet turn out to be a small one. */
  get openBytes(): number {
    return this.#depth > 0 && this.#isKept ? this.#keptBytes : 0
  }

  /** The small members that have ended since this was last asked. */
  takeEnded(): ReadonlyArray<Ended> {
    const ended = this.#ended
    this.#ended = []
    return ended
  }

  /** `undefined` where the text is no whole object. A long list has its length, and nothing in it. */
  get fields(): Json.Fields | undefined {
    return this.#isWhole && !this.#isBroken ? Object.fromEntries(this.#members) : undefined
  }

  /** The index of the quote that closes the string in which `from` lies; behind the piece where that is in another. */
  #endOfString(piece: Uint8Array, from: number): number {
    const found = piece.indexOf(quote, from)
    const end = found === -1 ? piece.length : found
    let first = end
    while (first > from && piece[first - 1] === backslash) first--
    const backslashes = end - first + (first === from ? this.#backslashes : 0)
    this.#backslashes = found === -1 ? backslashes : 0
    if (found !== -1 && backslashes % 2 === 0) this.#inString = false
    return end
  }

  #keep(part: Uint8Array): void {
    if (!this.#isKept) return
    this.#isKept = this.#keptBytes + part.length <= memberBytes
    // of a large one the beginning, where its name is
    this.#kept.push(this.#isKept ? part : part.subarray(0, memberBytes - this.#keptBytes))
    this.#keptBytes += part.length
  }

  #end(last: Uint8Array, end: number): void {
    this.#keep(last)
    const member = text.decode(Buffer.concat(this.#kept))
    if (!this.#isKept) {
      const name = Json.parse(nameFirst.exec(member)?.[1] ?? "")
      if (typeof name !== "string") this.#isBroken = true
      else this.#members.set(name, this.#isList ? Array<unknown>(this.#commas + 1) : undefined)
    } else if (member.trim() === "") {
      // only between two braces may there be nothing
      this.#isBroken ||= this.#hasMembers || !this.#isWhole
    } else {
      const parsed = Json.parse(`{${member}}`)
      if (!Predicate.isReadonlyObject(parsed)) this.#isBroken = true
      else {
        for (const [name, value] of Object.entries(parsed)) {
          this.#members.set(name, value)
          this.#ended.push({ name, start: end - this.#keptBytes, end })
        }
      }
    }
    this.#hasMembers = true
    this.#kept = []
    this.#keptBytes = 0
    this.#isKept = true
    this.#isList = false
    this.#commas = 0
  }
}
