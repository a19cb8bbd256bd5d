/**
 * The metadata of a job's message: one header with all fields in one line, because parsing a header costs more than its content.
 *
 * Spaces separate the fields. A field with anything but printable ASCII without spaces is percent-encoded; an unknown field is
 * empty.
 */
import type { Msg } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import type { Owner } from "../../contract/Owner.ts"
import { decodeHeader } from "../../nats/Outbox.ts"
import { header, type Version, versions } from "./Subjects.ts"

export interface JobHeader {
  readonly version: Version
  readonly id: string
  readonly attempt: number
  /** The subject for frames. */
  readonly reply: string
  /** Epoch milliseconds; see `JobRequest`. */
  readonly deadline: number
  readonly operation: string
  readonly model: string
  readonly tenant: string
  /** See `JobRequest`. Version 2 does not say it. */
  readonly owner?: Owner | undefined
  readonly contentType: string
  /** The request's other headers that concern the worker. */
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly traceparent: string | undefined
  /** If the message has no payload, the worker pulls the body after its claim. */
  readonly bodySize: number
  /** See `JobRequest`. Version 2 does not say it. */
  readonly isPlain: boolean
}

const plain = /^[\x21-\x24\x26-\x7e]*$/

const field = (value: string): string => plain.test(value) ? value : encodeURIComponent(value.toWellFormed())

/** The header lines of a job's message. The stream stores only the first message with a `messageId`. */
export const encodeJob = (job: JobHeader, messageId: string): string => {
  const headers = job.headers === undefined ? "" : field(JSON.stringify(job.headers))
  const about = `${field(job.operation)} ${field(job.model)} ${field(job.tenant)} ${field(job.contentType)}`
  return `NATS/1.0\r\n${header.job}: ${job.version} ${job.id} ${job.attempt} ${job.reply} ${job.deadline} ${about} ` +
    `${headers} ${field(job.traceparent ?? "")} ${job.bodySize}${job.version === 2 ? "" : sinceVersion3(job)}\r\n` +
    `${header.messageId}: ${messageId}\r\n\r\n`
}

const sinceVersion3 = ({ isPlain, owner }: JobHeader): string =>
  ` ${owner === undefined ? " " : `${field(owner.id)} ${owner.salt}`} ${isPlain ? "plain" : "any"}`

const fields: Readonly<Record<Version, number>> = { 2: 12, 3: 15 }

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

/** Whether the message is a job in a version of the protocol that this worker does not read, but another may. */
export const isForeign = (message: Msg): boolean => {
  const version = Number(message.headers?.get(header.job).split(" ", 1)[0] || Number.NaN)
  return Number.isInteger(version) && !versions.some((known) => known === version)
}

/** `undefined` if the message is no job in a version that this worker reads. */
export const decodeJob = (message: Msg): JobHeader | undefined => {
  const line = message.headers?.get(header.job).split(" ")
  const version = versions.find((known) => line?.[0] === `${known}`)
  if (version === undefined || line?.length !== fields[version]) return undefined
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
    isPlain: line[14] === "plain"
  }
}
