/**
 * What a job's message says of it beside its body: one header with everything in one line, for each header costs its
 * reader more than all that it can say.
 *
 * The fields are separated by spaces. In a field whatever is not printable ASCII is percent-encoded, a space included; one
 * that is not known is empty.
 */
import type { Msg } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import { decodeHeader } from "../../nats/Outbox.ts"
import { header, protocolVersion } from "./Subjects.ts"

export interface JobHeader {
  readonly id: string
  readonly attempt: number
  /** Where the frames go. */
  readonly reply: string
  /** Epoch milliseconds; see `JobRequest`. */
  readonly deadline: number
  readonly operation: string
  readonly model: string
  readonly tenant: string
  readonly contentType: string
  /** What the worker is to know of the request's other headers. */
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly traceparent: string | undefined
  /** Where the message has no payload, the worker asks for the body after its claim. */
  readonly bodySize: number
}

const plain = /^[\x21-\x24\x26-\x7e]*$/

const field = (value: string): string => plain.test(value) ? value : encodeURIComponent(value.toWellFormed())

/** The header lines of a job's message. Of several with one `messageId` the stream keeps the first. */
export const encodeJob = (job: JobHeader, messageId: string): string => {
  const headers = job.headers === undefined ? "" : field(JSON.stringify(job.headers))
  const about = `${field(job.operation)} ${field(job.model)} ${field(job.tenant)} ${field(job.contentType)}`
  return `NATS/1.0\r\n${header.job}: ${protocolVersion} ${job.id} ${job.attempt} ${job.reply} ${job.deadline} ${about} ` +
    `${headers} ${field(job.traceparent ?? "")} ${job.bodySize}\r\n${header.messageId}: ${messageId}\r\n\r\n`
}

const fields = 12

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

/** `undefined` where it is of another version of the protocol, or of none. */
export const decodeJob = (message: Msg): JobHeader | undefined => {
  const line = message.headers?.get(header.job).split(" ")
  if (line?.length !== fields || line[0] !== protocolVersion) return undefined
  const text = (index: number) => decodeHeader(line[index] ?? "")
  const [attempt, deadline, bodySize] = [Number(line[2]), Number(line[4]), Number(line[11])]
  if (!Number.isSafeInteger(attempt) || Number.isNaN(deadline) || !Number.isSafeInteger(bodySize)) return undefined
  return {
    id: text(1),
    attempt,
    reply: text(3),
    deadline,
    operation: text(5),
    model: text(6),
    tenant: text(7),
    contentType: text(8),
    headers: line[9] === "" ? undefined : Option.getOrUndefined(decodeRecord(text(9))),
    traceparent: line[10] === "" ? undefined : text(10),
    bodySize
  }
}
