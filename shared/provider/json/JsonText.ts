/**
 * Makes small edits to a JSON text that leave every other byte unchanged.
 *
 * Parsing and printing the text would change white space, number formats, escapes and duplicate keys: the provider would get a
 * different request from the one that the client sent.
 */
import { Predicate } from "effect"
import { closingQuote, isSpace } from "../../bounds/JsonBytes.ts"
import * as Json from "./Json.ts"
import { JsonOutline } from "./JsonOutline.ts"

/** A member of the outermost object: the start of its key and the range of its value, in bytes. */
export interface Member {
  readonly name: string
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

const quote = 0x22

/** The index after white space. */
export const skipSpace = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (isSpace(bytes[at])) at++
  return at
}

/** The index after the closing quote of the string that opens at `from`, or -1. */
const skipString = (bytes: Uint8Array, from: number): number => {
  const end = closingQuote(bytes, from + 1)
  return end < 0 ? -1 : end + 1
}

/** The index after the value that begins at `from`, or -1 if it does not end. */
const skipValue = (bytes: Uint8Array, from: number): number => {
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

const known = new WeakMap<Uint8Array, { readonly members: ReadonlyArray<Member> | undefined }>()

/**
 * The members of the outermost object in order, duplicates included; `undefined` if the text is not a complete object. Several
 * parts of a worker call this for one request's body, which never changes: a large body is scanned once.
 */
export const members = (bytes: Uint8Array): ReadonlyArray<Member> | undefined => {
  // scanning a small text costs no more than the lookup
  if (bytes.length < rememberedBytes) return read(bytes)
  let found = known.get(bytes)
  if (found === undefined) {
    found = { members: read(bytes) }
    known.set(bytes, found)
  }
  return found.members
}

const rememberedBytes = 64 * 1024

const read = (bytes: Uint8Array): ReadonlyArray<Member> | undefined => {
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
  return name.includes("\\") ? Json.string(Json.parse(`"${name}"`)) : name
}

/** The bytes of a member's value. */
export const bytesOf = (bytes: Uint8Array, { valueEnd, valueStart }: Member): Uint8Array =>
  bytes.subarray(valueStart, valueEnd)

/** The bytes of each item of the list that is a member's value; nothing if the value is not a list. */
export function* items(bytes: Uint8Array, { valueEnd, valueStart }: Member): Generator<Uint8Array> {
  if (bytes[valueStart] !== 0x5b) return
  for (let at = skipSpace(bytes, valueStart + 1); at < valueEnd - 1; at = skipSpace(bytes, at + 1)) {
    const end = skipValue(bytes, at)
    if (end === -1) return
    yield bytes.subarray(at, end)
    at = skipSpace(bytes, end)
  }
}

/** The parsed value of the last member with this name; `undefined` if there is none or the value is not JSON. */
export const valueOf = (bytes: Uint8Array, all: ReadonlyArray<Member>, name: string): unknown => {
  const member = all.findLast((member) => member.name === name)
  return member === undefined
    ? undefined
    : Json.parse(Json.decodeText(bytesOf(bytes, member)))
}

/** Maximum size of a text that is parsed as a whole, in bytes. */
const wholeBytes = 256 * 1024

/**
 * The outermost object, parsed; `undefined` if it is not complete. Of a large text, only what `JsonOutline` keeps: small values at any
 * depth, the length and the first items of long lists, and the beginnings of long strings.
 *
 * A small text is cheaper to parse than to scan.
 */
export const parsed = (bytes: Uint8Array): Json.Fields | undefined => {
  if (bytes.length <= wholeBytes) {
    const json = Json.parse(Json.decodeText(bytes))
    return Predicate.isReadonlyObject(json) ? json : undefined
  }
  const outline = new JsonOutline()
  outline.push(bytes)
  return outline.fields
}

/** The JSON text of a value. Bytes are taken to be JSON text already. */
const toText = (value: unknown): Uint8Array => value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value))

/**
 * Replaces the values of members, including duplicates. Adds missing members at the front of the object. A value may also be given as
 * the bytes of its JSON text.
 */
export const setMembers = (
  bytes: Uint8Array,
  all: ReadonlyArray<Member>,
  changes: ReadonlyMap<string, unknown>
): Uint8Array => {
  const pieces: Array<Uint8Array> = []
  let copied = bytes.indexOf(0x7b) + 1
  pieces.push(bytes.subarray(0, copied))
  for (const [name, value] of changes) {
    if (all.some((member) => member.name === name)) continue
    const comma = all.length > 0 ? "," : ""
    pieces.push(Buffer.from(`${JSON.stringify(name)}:`), toText(value), Buffer.from(comma))
  }
  for (const member of all) {
    if (!changes.has(member.name)) continue
    pieces.push(bytes.subarray(copied, member.valueStart), toText(changes.get(member.name)))
    copied = member.valueEnd
  }
  pieces.push(bytes.subarray(copied))
  return Buffer.concat(pieces)
}

/** Adds an item at the end of the list that is a member of the outermost object. */
export const append = (bytes: Uint8Array, name: string, item: unknown): Uint8Array => {
  const member = members(bytes)?.findLast((member) => member.name === name)
  if (member === undefined) return bytes
  const isEmpty = bytes[skipSpace(bytes, member.valueStart + 1)] === 0x5d
  const end = member.valueEnd - 1
  const added = Buffer.from(`${isEmpty ? "" : ","}${JSON.stringify(item)}`)
  return Buffer.concat([bytes.subarray(0, end), added, bytes.subarray(end)])
}

/** Replaces the value at a path of members; `undefined` if there is none. */
export const setAt = (
  bytes: Uint8Array,
  all: ReadonlyArray<Member>,
  [name = "", ...path]: ReadonlyArray<string>,
  value: unknown
): Uint8Array | undefined => {
  const member = all.findLast((member) => member.name === name)
  if (member === undefined) return undefined
  if (path.length === 0) return setMembers(bytes, all, new Map([[name, value]]))
  const inner = bytesOf(bytes, member)
  const replaced = setAt(inner, members(inner) ?? [], path, value)
  return replaced === undefined
    ? undefined
    : Buffer.concat([bytes.subarray(0, member.valueStart), replaced, bytes.subarray(member.valueEnd)])
}
