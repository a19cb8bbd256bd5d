/**
 * Encodes and decodes bundles (protocol version 3). A bundle is one numbered message with everything that a worker tells one
 * ingress in one turn of its event loop.
 *
 * Layout, big-endian: `[u8 version][u48 number][u48 oldest]`, then for each entry `[u16 head length][u32 payload length]`, its head
 * (UTF-8, words separated by spaces) and its payload. A bundle without entries has no number of its own: its `number` says that all
 * bundles below that number were sent.
 */
import { Option } from "effect"
import { InternalError } from "../../contract/JobError.ts"
import {
  type Claim,
  decodeData,
  decodeError,
  endsOf,
  type Frame,
  isRedispatch,
  payloadOf,
  type Redispatch
} from "./Frame.ts"

/** The content of one entry: a claim to a job, a frame about a job, or the NATS server to which the worker is connected. */
export type Entry =
  | { readonly type: "claim"; readonly claim: Claim }
  | {
    readonly type: "frame"
    readonly job: string
    readonly attempt: number
    readonly frame: Frame
    readonly payload: Uint8Array
  }
  | { readonly type: "server"; readonly server: string }

/** An entry in its wire format. */
export interface EncodedEntry {
  readonly head: string
  readonly payload: Uint8Array
}

export interface Bundle {
  /** Consecutive over all bundles from a worker to one ingress. */
  readonly number: number
  /** The number of the oldest bundle that the worker can still send again. */
  readonly oldest: number
  /** Whether it has entries, and so a number of its own. */
  readonly isNumbered: boolean
  readonly entries: ReadonlyArray<Entry>
}

const version = 3
const oldestAt = 7
const entriesAt = 13
const lengthsBytes = 6
const nothing: Uint8Array = new Uint8Array(0)

/** Maximum size of the entries in one bundle, in bytes. NATS accepts messages up to 1 MiB. */
export const bundleBytes = 520 * 1024

/** Maximum size of an entry's head, in bytes: its length is a `u16`. */
const headBytesLimit = 0xffff

/** The size of an entry in a bundle, in bytes. */
export const entryBytes = ({ head, payload }: EncodedEntry): number =>
  lengthsBytes + Buffer.byteLength(head) + payload.length

/** Whether a bundle can carry the entry. */
export const fitsBundle = ({ head, payload }: EncodedEntry): boolean => {
  const headBytes = Buffer.byteLength(head)
  return headBytes <= headBytesLimit && lengthsBytes + headBytes + payload.length <= bundleBytes
}

export const encodeBundle = (number: number, oldest: number, entries: ReadonlyArray<EncodedEntry>): Buffer => {
  let size = entriesAt
  for (const entry of entries) size += entryBytes(entry)
  const bytes = Buffer.allocUnsafe(size)
  bytes[0] = version
  bytes.writeUIntBE(number, 1, 6)
  bytes.writeUIntBE(oldest, oldestAt, 6)
  let at = entriesAt
  for (const { head, payload } of entries) {
    const headBytes = bytes.write(head, at + lengthsBytes)
    bytes.writeUInt16BE(headBytes, at)
    bytes.writeUInt32BE(payload.length, at + 2)
    at += lengthsBytes + headBytes
    bytes.set(payload, at)
    at += payload.length
  }
  return bytes
}

/** Updates `oldest` in an encoded bundle before it is sent again. */
export const setOldest = (bundle: Buffer, oldest: number): void => void bundle.writeUIntBE(oldest, oldestAt, 6)

/** `undefined` if the bytes are not a bundle. Skips entries of unknown types. */
export const decodeBundle = (data: Uint8Array): Bundle | undefined => {
  if (data.length < entriesAt || data[0] !== version) return undefined
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  const entries: Array<Entry> = []
  let at = entriesAt
  while (at < bytes.length) {
    if (at + lengthsBytes > bytes.length) return undefined
    const payloadAt = at + lengthsBytes + bytes.readUInt16BE(at)
    const end = payloadAt + bytes.readUInt32BE(at + 2)
    if (end > bytes.length) return undefined
    const entry = decodeEntry(bytes.toString("utf8", at + lengthsBytes, payloadAt), bytes.subarray(payloadAt, end))
    if (entry !== undefined) entries.push(entry)
    at = end
  }
  return {
    number: bytes.readUIntBE(1, 6),
    oldest: bytes.readUIntBE(oldestAt, 6),
    isNumbered: data.length > entriesAt,
    entries
  }
}

export const encodeServer = (server: string): EncodedEntry => ({ head: `server ${server}`, payload: nothing })

/** A claim with which the worker starts immediately, without waiting for `go`. */
export const encodeClaim = ({ attempt, behind, job, redispatch }: Claim): EncodedEntry => ({
  head: `claim ${job} ${attempt} ${redispatch} ${behind}`,
  payload: nothing
})

/** `payload`: the bytes of a `data` frame. */
export const encodeEntry = (
  job: string,
  attempt: number,
  frame: Frame,
  payload: Uint8Array = nothing
): EncodedEntry => {
  const head = (word: string, detail: string | number) => `${word} ${job} ${attempt} ${detail}`
  switch (frame.type) {
    case "data": {
      const ends = frame.head === undefined && frame.end === undefined
        ? ""
        : ` ${JSON.stringify(endsOf(frame, frame.redispatch))}`
      return { head: head("data", `${frame.sequence}${ends}`), payload }
    }
    case "claim":
      return { head: head("ask", frame.redispatch), payload: nothing }
    case "pull":
      return { head: head("pull", `${frame.offset} ${frame.length}`), payload: nothing }
    case "waits":
      return { head: head("waits", frame.provider), payload: nothing }
    case "works":
      return { head: head("works", ""), payload: nothing }
    case "error":
      return { head: head("error", frame.sequence), payload: payloadOf(frame) }
    case "heartbeat":
      return { head: head("heartbeat", frame.sequence), payload: nothing }
    default:
      throw new Error(`a frame of type ${frame.type} concerns no job`)
  }
}

const decodeEntry = (head: string, payload: Buffer): Entry | undefined => {
  const jobAt = head.indexOf(" ") + 1
  const type = head.slice(0, jobAt - 1)
  if (type === "server") return { type, server: head.slice(jobAt) }
  const attemptAt = head.indexOf(" ", jobAt) + 1
  const detailAt = head.indexOf(" ", attemptAt) + 1
  if (jobAt === 0 || attemptAt === 0 || detailAt === 0) return undefined
  const job = head.slice(jobAt, attemptAt - 1)
  const attempt = Number(head.slice(attemptAt, detailAt - 1))
  const detail = head.slice(detailAt)
  if (type === "claim") {
    const [redispatch, behind] = detail.split(" ")
    return { type, claim: { job, attempt, redispatch: strictestUnless(redispatch), behind: Number(behind) } }
  }
  const frame = decodeFrame(type, detail, payload)
  return frame === undefined ? undefined : { type: "frame", job, attempt, frame, payload }
}

const decodeFrame = (type: string, detail: string, payload: Buffer): Frame | undefined => {
  switch (type) {
    case "data": {
      const endsAt = detail.indexOf(" ")
      return endsAt === -1
        ? { type, sequence: Number(detail), redispatch: "mayHaveBeenSent", head: undefined, end: undefined }
        : decodeData(Number(detail.slice(0, endsAt)), detail.slice(endsAt + 1), strictestUnless)
    }
    case "ask":
      return { type: "claim", redispatch: strictestUnless(detail) }
    case "pull": {
      const [offset, length] = detail.split(" ")
      return { type, offset: Number(offset), length: Number(length) }
    }
    case "waits":
      return { type, provider: detail }
    case "works":
      return { type }
    case "heartbeat":
      return { type, sequence: Number(detail) }
    case "error":
      return {
        type,
        sequence: Number(detail),
        error: Option.getOrElse(decodeError(payload.toString()), () => new InternalError())
      }
    default:
      return undefined
  }
}

/** Treats unknown words as the strictest one. */
const strictestUnless = (word: unknown): Redispatch => isRedispatch(word) ? word : "mayHaveBeenSent"
