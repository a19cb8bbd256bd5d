/**
 * The records of clients' files. A record holds, in plain text, how many bytes count towards the owner's quota and when the writer was
 * last seen; and, sealed for the owner, the description of the file. Without the description the file is not complete.
 */
import { Option, Schema } from "effect"
import { randomBytes } from "node:crypto"
import type { Owner } from "../contract/Owner.ts"
import { ownerToken } from "../records/OwnerToken.ts"
import type * as Seal from "../records/Seal.ts"

/** `batch`: the requests of a batch, one per line. `batch_output`: the results of a batch. */
export const FilePurpose = Schema.Literals(["batch", "batch_output"])
export type FilePurpose = typeof FilePurpose.Type

const About = Schema.Struct({
  purpose: FilePurpose,
  filename: Schema.String,
  bytes: Schema.Int,
  lines: Schema.Int,
  created: Schema.Finite,
  expires: Schema.Finite
})

export interface ClientFile extends Schema.Schema.Type<typeof About> {
  /** `file-` and 32 hexadecimal digits that sort by creation time. */
  readonly id: string
}

const Entry = Schema.Struct({ counted: Schema.Finite, seen: Schema.Finite, sealed: Schema.optionalKey(Schema.String) })
export interface Entry extends Schema.Schema.Type<typeof Entry> {}

const pattern = /^file-[0-9a-f]{32}$/

/** A new id. `now`: epoch milliseconds. */
export const newId = (now: number): string =>
  `file-${now.toString(16).padStart(12, "0")}${randomBytes(10).toString("hex")}`

/** Checks text from a client before it becomes part of a key. */
export const isId = (id: string): boolean => pattern.test(id)

/** The key of a file's record, and the name of its object. */
export const keyOf = (owner: Owner, id: string): string => `${ownerToken(owner)}.${id}`
export const idOf = (key: string): string => key.slice(key.indexOf(".") + 1)

/** The keys of all records of an owner. */
export const keysOf = (owner: Owner): string => keyOf(owner, "*")

const decodeEntryJson = Schema.decodeUnknownOption(Schema.fromJsonString(Entry))
const encodeEntryJson = Schema.encodeSync(Schema.fromJsonString(Entry))
const decodeAbout = Schema.decodeUnknownOption(Schema.fromJsonString(About))
const encodeAbout = Schema.encodeSync(Schema.fromJsonString(About))

export const decodeEntry = (text: string): Option.Option<Entry> => decodeEntryJson(text)

/** The entry of a file that is not complete. */
export const encodeEntry = (entry: Omit<Entry, "sealed">): string => encodeEntryJson(entry)

const placeOf = (owner: Owner, id: string): Seal.Place => ({ owner, kind: "file record", id, page: 0 })

export const encode = (seal: Seal.Seal, owner: Owner, { id, ...about }: ClientFile, entry: Entry): string => {
  const sealed = seal.seal(placeOf(owner, id), Buffer.from(encodeAbout(about)))
  return encodeEntryJson({ ...entry, sealed: Buffer.from(sealed).toString("base64url") })
}

/** The file of an entry; `None` if the file is not complete, or belongs to another owner. */
export const decode = (seal: Seal.Seal, owner: Owner, id: string, text: string): Option.Option<ClientFile> =>
  decodeEntry(text).pipe(
    Option.flatMapNullishOr(({ sealed }) => sealed),
    Option.flatMap((sealed) => seal.open(placeOf(owner, id), Buffer.from(sealed, "base64url"))),
    Option.flatMap((bytes) => decodeAbout(Buffer.from(bytes).toString())),
    Option.map((about) => ({ ...about, id }))
  )
