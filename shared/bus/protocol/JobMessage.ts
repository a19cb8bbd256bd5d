/**
 * Encodes and decodes a job's message. The payload starts with one line of metadata, followed by the request's body: separate
 * headers would cost more to parse than their content is worth. Version 2 has that line in a header.
 *
 * Spaces separate the fields of the line. A field with anything but printable ASCII without spaces is percent-encoded. An unknown
 * value is an empty field.
 */
import type { Msg } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import type { Owner } from "../../contract/Owner.ts"
import { decodeHeader } from "../../nats/Outbox.ts"
import { header, type Version, versions } from "./Subjects.ts"

interface Metadata {
  readonly version: Version
  readonly id: string
  readonly attempt: number
  /** The subject for the frames of the answer. */
  readonly reply: string
  /** Epoch milliseconds; see `JobRequest`. */
  readonly deadline: number
  readonly operation: string
  readonly model: string
  readonly tenant: string
  /** See `JobRequest`. Always `undefined` in version 2. */
  readonly owner: Owner | undefined
  readonly contentType: string
  /** Further request headers that the worker needs. */
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly traceparent: string | undefined
  readonly bodySize: number
  /** See `JobRequest`. Always `false` in version 2. */
  readonly isPlain: boolean
}

/** A job as a worker receives it. */
export interface Job extends Metadata {
  /** `undefined` if the body is too large for the message: the worker pulls it after its claim. */
  readonly body: Uint8Array | undefined
}

const plain = /^[\x21-\x24\x26-\x7e]*$/

const field = (value: string): string => plain.test(value) ? value : encodeURIComponent(value.toWellFormed())

const newline = 0x0a

/** The message with its header lines. The stream stores only the first one with a `messageId`. */
export const encodeJob = (
  job: Metadata,
  body: Uint8Array,
  messageId: string
): { readonly payload: Uint8Array; readonly headers: string } => {
  const headers = job.headers === undefined ? "" : field(JSON.stringify(job.headers))
  const about = `${field(job.operation)} ${field(job.model)} ${field(job.tenant)} ${field(job.contentType)}`
  const line = `${job.version} ${job.id} ${job.attempt} ${job.reply} ${job.deadline} ${about} ` +
    `${headers} ${field(job.traceparent ?? "")} ${job.bodySize}`
  const id = `${header.messageId}: ${messageId}\r\n\r\n`
  return job.version === 2
    ? { payload: body, headers: `NATS/1.0\r\n${header.job}: ${line}\r\n${id}` }
    : { payload: join(`${line} ${sinceVersion3(job)}\n`, body), headers: `NATS/1.0\r\n${id}` }
}

const sinceVersion3 = ({ isPlain, owner }: Metadata): string =>
  `${owner === undefined ? " " : `${field(owner.id)} ${owner.salt}`} ${isPlain ? "plain" : "any"}`

const join = (line: string, body: Uint8Array): Uint8Array => {
  const payload = Buffer.allocUnsafe(line.length + body.length)
  payload.write(line, "latin1")
  payload.set(body, line.length)
  return payload
}

const fields: Readonly<Record<Version, number>> = { 2: 12, 3: 15 }

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

/** The metadata line and the body of a message from a queue of this version. */
const partsOf = (message: Msg, version: Version): readonly [line: string, body: Uint8Array] => {
  const { data } = message
  if (version === 2) return [message.headers?.get(header.job) ?? "", data]
  const end = data.indexOf(newline)
  return end === -1
    ? ["", data]
    : [Buffer.from(data.buffer, data.byteOffset, end).toString("latin1"), data.subarray(end + 1)]
}

/** Whether the message is a job in a protocol version that this worker does not read, but another worker may. */
export const isForeign = (message: Msg, queue: Version): boolean => {
  const version = Number(partsOf(message, queue)[0].split(" ", 1)[0] || Number.NaN)
  return Number.isInteger(version) && !versions.some((known) => known === version)
}

/** `undefined` unless the message is a job in a version that this worker reads. `queue`: the version of the queue. */
export const decodeJob = (message: Msg, queue: Version): Job | undefined => {
  const [metadata, body] = partsOf(message, queue)
  const line = metadata.split(" ")
  const version = versions.find((known) => line[0] === `${known}`)
  if (version === undefined || line.length !== fields[version]) return undefined
  const text = (index: number) => decodeHeader(line[index] ?? "")
  const [attempt, deadline, bodySize] = [Number(line[2]), Number(line[4]), Number(line[11])]
  if (!Number.isSafeInteger(attempt) || Number.isNaN(deadline) || !Number.isSafeInteger(bodySize)) return undefined
  return {
    version,
    id: text(1),
    attempt,
    reply: text(3),
    deadline,
    operation: text(5),
    model: text(6),
    tenant: text(7),
    owner: line[12] ? { id: text(12), salt: text(13) } : undefined,
    contentType: text(8),
    headers: line[9] === "" ? undefined : Option.getOrUndefined(decodeRecord(text(9))),
    traceparent: line[10] === "" ? undefined : text(10),
    bodySize,
    isPlain: line[14] === "plain",
    body: body.length === 0 && bodySize > 0 ? undefined : body
  }
}
