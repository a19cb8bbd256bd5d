/** Finds the members of a JSON object in its bytes, without parsing their values. */
import { closingQuote, isSpace, skipSpace } from "./JsonBytes.ts"

/** A member of the outermost object: the start of its key and the range of its value, in bytes. */
export interface Member {
  readonly name: string
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

const quote = 0x22

/** The index after the closing quote of the string that opens at `from`, or -1. */
const skipString = (bytes: Uint8Array, from: number): number => {
  const end = closingQuote(bytes, from + 1)
  return end < 0 ? -1 : end + 1
}

/** The index after the value that begins at `from`, or -1 if it does not end. */
export const skipValue = (bytes: Uint8Array, from: number): number => {
  const first = bytes[from]
  if (first === quote) return skipString(bytes, from)
  if (first !== 0x7b && first !== 0x5b) {
    let at = from
    while (at < bytes.length && !isSpace(bytes[at]) && bytes[at] !== 0x2c && bytes[at] !== 0x7d && bytes[at] !== 0x5d) {
      at++
    }
    return at === from ? -1 : at
  }
  let depth = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte === quote) {
      at = skipString(bytes, at) - 1
      if (at < 0) return -1
    } else if (byte === 0x7b || byte === 0x5b) depth++
    else if (byte === 0x7d || byte === 0x5d) {
      if (--depth === 0) return at + 1
    }
  }
  return -1
}

/** The members of the outermost object in order, duplicates included; `undefined` if the text is not a complete object. */
export const membersIn = (bytes: Uint8Array): ReadonlyArray<Member> | undefined => {
  const found: Array<Member> = []
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== 0x7b) return undefined
  at = skipSpace(bytes, at + 1)
  if (bytes[at] === 0x7d) return skipSpace(bytes, at + 1) === bytes.length ? found : undefined
  for (;;) {
    if (bytes[at] !== quote) return undefined
    const start = at
    at = skipString(bytes, at)
    if (at === -1) return undefined
    const name = readString(buffer, start, at)
    at = skipSpace(bytes, at)
    if (name === undefined || bytes[at] !== 0x3a) return undefined
    const valueStart = skipSpace(bytes, at + 1)
    const valueEnd = skipValue(bytes, valueStart)
    if (valueEnd === -1) return undefined
    found.push({ name, start, valueStart, valueEnd })
    at = skipSpace(bytes, valueEnd)
    if (bytes[at] === 0x7d) return skipSpace(bytes, at + 1) === bytes.length ? found : undefined
    if (bytes[at] !== 0x2c) return undefined
    at = skipSpace(bytes, at + 1)
  }
}

const readString = (bytes: Buffer, start: number, end: number): string | undefined => {
  const name = bytes.toString("utf8", start + 1, end - 1)
  if (!name.includes("\\")) return name
  try {
    return JSON.parse(`"${name}"`) as string
  } catch {
    return undefined
  }
}
