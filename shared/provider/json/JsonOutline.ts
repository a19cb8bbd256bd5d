/**
 * The outermost object of a JSON text that arrives in pieces and is too large to hold: its small members, parsed, and the
 * lengths of its long lists.
 */
import { Predicate } from "effect"
import { closingQuote, isSpace, openEscaped, structural } from "../../bounds/JsonBytes.ts"
import * as Json from "./Json.ts"

/** Larger members are not kept. In bytes. */
const memberBytes = 16 * 1024

const quote = 0x22
const comma = 0x2c

/** The name at the beginning of a member. */
const nameFirst = /^\s*("(?:[^"\\]|\\.)*")\s*:/

/** The index of the next structural byte; the end of the piece if there is none. */
const nextStructural = (piece: Uint8Array, from: number): number => {
  let at = from
  while (at < piece.length && structural[piece[at]!] === 0) at++
  return at
}

/** A small member that has ended, and its position in the whole text in bytes. */
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
  /** The next byte of the string is escaped. */
  #isEscaped = false
  #hasMembers = false
  #isWhole = false
  #isBroken = false
  /** The kept text of the current member, and whether that is all of it. */
  #kept: Array<Uint8Array> = []
  #keptBytes = 0
  #isKept = true
  #isList = false
  #commas = 0

  push(piece: Uint8Array): void {
    // where the current member's part of this piece begins
    let from = 0
    for (let at = 0; at < piece.length; at++) {
      if (this.#inString) {
        const end = closingQuote(piece, at, this.#isEscaped)
        this.#isEscaped = end === openEscaped
        if (end < 0) break
        this.#inString = false
        at = end
        continue
      }
      if (this.#depth > 0) at = nextStructural(piece, at)
      if (at === piece.length) break
      const byte = piece[at]
      if (this.#depth === 0 && byte !== 0x7b) {
        if (!isSpace(byte)) this.#isBroken = true
      } else if (byte === quote) {
        this.#inString = true
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

  /** Length of the text so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bytes at the end of the text that belong to a member which may yet turn out to be small. */
  get openBytes(): number {
    return this.#depth > 0 && this.#isKept ? this.#keptBytes : 0
  }

  /** The small members that have ended since the last call. */
  takeEnded(): ReadonlyArray<Ended> {
    const ended = this.#ended
    this.#ended = []
    return ended
  }

  /** `undefined` if the text is not a complete object. A long list keeps its length but no items. */
  get fields(): Json.Fields | undefined {
    return this.#isWhole && !this.#isBroken ? Object.fromEntries(this.#members) : undefined
  }

  #keep(part: Uint8Array): void {
    if (!this.#isKept) return
    this.#isKept = this.#keptBytes + part.length <= memberBytes
    // of a large member only the beginning, which has its name
    this.#kept.push(this.#isKept ? part : part.subarray(0, memberBytes - this.#keptBytes))
    this.#keptBytes += part.length
  }

  #end(last: Uint8Array, end: number): void {
    this.#keep(last)
    const member = Json.decodeText(Buffer.concat(this.#kept))
    if (!this.#isKept) {
      const name = Json.parse(nameFirst.exec(member)?.[1] ?? "")
      if (typeof name !== "string") this.#isBroken = true
      else this.#members.set(name, this.#isList ? Array<unknown>(this.#commas + 1) : undefined)
    } else if (member.trim() === "") {
      // only an empty object may have an empty member
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
