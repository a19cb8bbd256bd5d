/**
 * Makes small edits to a JSON text that leave every other byte unchanged.
 *
 * Parsing and printing the text would change white space, number formats, escapes and duplicate keys: the provider would get a
 * different request from the one that the client sent.
 */
import { Predicate } from "effect"
import { skipSpace } from "../../bounds/JsonBytes.ts"
import { type Member, membersIn, skipValue } from "../../bounds/JsonMembers.ts"
import * as Json from "./Json.ts"
import { JsonOutline } from "./JsonOutline.ts"

const known = new WeakMap<Uint8Array, { readonly members: ReadonlyArray<Member> | undefined }>()

/** Like `membersIn`. Several parts of a worker call this for one request's body, which never changes: a large body is scanned once. */
export const members = (bytes: Uint8Array): ReadonlyArray<Member> | undefined => {
  // scanning a small text costs no more than the lookup
  if (bytes.length < rememberedBytes) return membersIn(bytes)
  let found = known.get(bytes)
  if (found === undefined) {
    found = { members: membersIn(bytes) }
    known.set(bytes, found)
  }
  return found.members
}

const rememberedBytes = 64 * 1024

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

const valueBy =
  (parse: (text: string) => unknown) => (bytes: Uint8Array, all: ReadonlyArray<Member>, name: string): unknown => {
    const member = all.findLast((member) => member.name === name)
    return member === undefined ? undefined : parse(Json.decodeText(bytesOf(bytes, member)))
  }

/** The parsed value of the last member with this name; `undefined` if there is none or the value is not JSON. */
export const valueOf = valueBy(Json.parse)

/** Like `valueOf`, with all digits of numbers (see `ExactJson`). */
export const exactValueOf = valueBy(Json.parseExact)

/** Reads the members of an object by name. */
export const fieldsOf = (bytes: Uint8Array): (name: string) => unknown => {
  let all: ReadonlyArray<Member> | undefined
  return (name) => valueOf(bytes, all ??= members(bytes) ?? [], name)
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
