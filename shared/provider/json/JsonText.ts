/**
 * Small edits of a JSON text that leave every other byte as it was.
 *
 * Parsing and printing again would change white space, number formats, escapes and duplicate keys, and so make the
 * provider see another request than the client sent.
 */

import { Predicate } from "effect"
import * as Json from "./Json.ts"
import { JsonOutline } from "./JsonOutline.ts"

/** A member of the outermost object: where its key begins and where its value lies, in bytes. */
export interface Member {
  readonly name: string
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

/** Strings are read by the byte up to here; beyond, the search for their end is worth its call. */
const nearBytes = 64

const quote = 0x22
const backslash = 0x5c
// a byte order mark within the text is a character like any other
const text = new TextDecoder("utf-8", { ignoreBOM: true })

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The index of what comes after white space. */
export const skipSpace = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (isSpace(bytes[at])) at++
  return at
}

/** The index after the closing quote of the string that opens at `from`, or -1. */
const skipString = (bytes: Uint8Array, from: number): number => {
  let at = from + 1
  for (;;) {
    // a call for each of many escaped quotes would cost far more than their bytes
    const near = Math.min(bytes.length, at + nearBytes)
    for (; at < near; at++) {
      if (bytes[at] === backslash) at++
      else if (bytes[at] === quote) return at + 1
    }
    const found = bytes.indexOf(quote, at)
    if (found === -1) return -1
    let escapes = found
    while (escapes > at && bytes[escapes - 1] === backslash) escapes--
    if ((found - escapes) % 2 === 0) return found + 1
    at = found + 1
  }
}

/** The index after the value that begins at `from`, or -1 where it does not end. */
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
 * The members of the outermost object in order, duplicates included; `undefined` where the text is no whole object. Several
 * parts of a worker ask this of one request's body, which nobody changes, and it is read once.
 */
export const members = (bytes: Uint8Array): ReadonlyArray<Member> | undefined => {
  // what is small is read again as soon as it is looked up
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

/** The string between these quotes. */
const readString = (bytes: Buffer, start: number, end: number): string | undefined => {
  const name = bytes.toString("utf8", start + 1, end - 1)
  if (!name.includes("\\")) return name
  try {
    return JSON.parse(`"${name}"`)
  } catch {
    return undefined
  }
}

/** The value of the last member of that name, parsed; `undefined` where there is none or it is no JSON. */
export const valueOf = (bytes: Uint8Array, all: ReadonlyArray<Member>, name: string): unknown => {
  const member = all.findLast((member) => member.name === name)
  if (member === undefined) return undefined
  try {
    return JSON.parse(text.decode(bytes.subarray(member.valueStart, member.valueEnd)))
  } catch {
    return undefined
  }
}

/** What is larger than this is not parsed as a whole. In bytes. */
const wholeBytes = 256 * 1024

/**
 * The outermost object, parsed; of a large text what `JsonOutline` keeps of it. `undefined` where it is no whole object.
 *
 * What is small is cheaper to parse than to search.
 */
export const parsed = (bytes: Uint8Array): Json.Fields | undefined => {
  if (bytes.length <= wholeBytes) {
    const json = Json.parse(text.decode(bytes))
    return Predicate.isReadonlyObject(json) ? json : undefined
  }
  const outline = new JsonOutline()
  outline.push(bytes)
  return outline.fields
}

/**
 * Replaces the values of members, or adds a member at the front of the object where there is none of that name. Of
 * duplicates every one is replaced.
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
    pieces.push(Buffer.from(`${JSON.stringify(name)}:${JSON.stringify(value)}${comma}`))
  }
  for (const member of all) {
    if (!changes.has(member.name)) continue
    pieces.push(bytes.subarray(copied, member.valueStart), Buffer.from(JSON.stringify(changes.get(member.name))))
    copied = member.valueEnd
  }
  pieces.push(bytes.subarray(copied))
  return Buffer.concat(pieces)
}

/** Replaces the value at a path of members; `undefined` where there is none. */
export const setAt = (
  bytes: Uint8Array,
  all: ReadonlyArray<Member>,
  [name = "", ...path]: ReadonlyArray<string>,
  value: unknown
): Uint8Array | undefined => {
  const member = all.findLast((member) => member.name === name)
  if (member === undefined) return undefined
  if (path.length === 0) return setMembers(bytes, all, new Map([[name, value]]))
  const inner = bytes.subarray(member.valueStart, member.valueEnd)
  const replaced = setAt(inner, members(inner) ?? [], path, value)
  return replaced === undefined
    ? undefined
    : Buffer.concat([bytes.subarray(0, member.valueStart), replaced, bytes.subarray(member.valueEnd)])
}
