/**
 * Finds, adds and removes the marks of accounts before signatures in the bytes of requests and answers. Most requests need nothing else,
 * so a long history need not be parsed.
 */
import { accountAt, accountCharacters, markOf, wrappedPrefix, wrappedStart } from "./Signature.ts"

const wrappedBytes = Buffer.from(wrappedPrefix)

const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)

/** Whether a request may contain a signature with a mark. */
export const mayHoldAny = (body: Uint8Array): boolean => bufferOf(body).includes(wrappedBytes)

/** The account that made the last signature with a mark in a request; `undefined` if there is none. */
export const lastAccountIn = (body: Uint8Array): string | undefined => {
  const bytes = bufferOf(body)
  const at = bytes.lastIndexOf(wrappedBytes)
  if (at === -1) return undefined
  const from = at + wrappedBytes.length
  return accountAt(bytes.toString("latin1", from, from + accountCharacters))
}

const quote = 0x22
const backslash = 0x5c

/** Where the signatures with a mark begin, among the strings of a JSON text. */
function* marksIn(bytes: Buffer): Generator<number> {
  for (let at = bytes.indexOf(wrappedBytes); at !== -1; at = bytes.indexOf(wrappedBytes, at + 1)) {
    if (bytes[at - 1] === quote && bytes[at - 2] !== backslash) yield at
  }
}

const markBytes = wrappedBytes.length + accountCharacters

/** Whether all signatures with a mark are values of this account as it made them. */
export const holdsOnlyOf = (body: Uint8Array, account: string): boolean => {
  const bytes = bufferOf(body)
  const mark = Buffer.from(markOf(account))
  const others = Buffer.from(wrappedStart)
  for (const at of marksIn(bytes)) {
    const rest = bytes.subarray(at + markBytes, at + markBytes + others.length)
    if (!bytes.subarray(at, at + markBytes).equals(mark) || rest.equals(others)) return false
  }
  return true
}

/** The bytes with all these signatures as they were made. */
export const withoutMarks = (body: Uint8Array): Uint8Array => {
  const bytes = bufferOf(body)
  const pieces: Array<Uint8Array> = []
  let copied = 0
  for (const at of marksIn(bytes)) {
    pieces.push(bytes.subarray(copied, at))
    copied = at + markBytes
  }
  return Buffer.concat([...pieces, bytes.subarray(copied)])
}

/** What precedes a value: never longer than this, in bytes. */
const tailBytes = 64
const empty = new Uint8Array(0)
const newline = 0x0a

/** Puts the mark of the account before the values of a JSON member, in pieces of any size. */
export const marker = (member: string, account: () => string): (piece: Uint8Array) => Uint8Array => {
  const opening = new RegExp(`(?<!\\\\)"${member}"\\s{0,8}:\\s{0,8}"(?=[^"])`, "g")
  let tail = empty
  return (piece) => {
    const seen = tail === empty ? bufferOf(piece) : Buffer.concat([tail, piece])
    const from = tail.length
    // nearly all pieces of a stream are whole events
    tail = piece.at(-1) === newline ? empty : Uint8Array.from(seen.subarray(-tailBytes))
    if (!seen.includes(member)) return piece
    const pieces: Array<Uint8Array> = []
    let copied = from
    // in latin1 every byte is a character
    for (const { 0: { length }, index } of seen.toString("latin1").matchAll(opening)) {
      const at = index + length
      if (at < from) continue
      pieces.push(seen.subarray(copied, at), Buffer.from(markOf(account())))
      copied = at
    }
    return pieces.length === 0 ? piece : Buffer.concat([...pieces, seen.subarray(copied)])
  }
}
