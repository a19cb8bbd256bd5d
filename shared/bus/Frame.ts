/**
 * What travels between ingress and worker once a job is on its way: frames from the worker on the job's reply subject,
 * controls from ingress on the job's control subject. Both are NATS messages whose headers say what they are; the
 * payload is raw bytes of the answer, untouched.
 *
 * Frames that carry bytes or end the answer are numbered from 0 within an attempt, so that a hole is seen. The number is
 * the last token of their reply subject, and a frame of nothing but bytes, by far the most frequent, has no headers at
 * all: reading headers costs more than everything else that ingress does with it.
 */
import type { Msg, MsgHdrs } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import { InternalError, JobError } from "../contract/JobError.ts"
import type { Usage } from "../contract/Usage.ts"
import { decodeHeader, encodeHeaders } from "./Outbox.ts"
import { header, parseControl } from "./Subjects.ts"

/**
 * Whether a job may be given to a second worker after a first one has taken it: `always` where a second call to the
 * provider costs nothing, `neverSent` where the call may have been sent and would be paid twice.
 */
export type Redispatch = "always" | "neverSent"

/** How the answer begins: what ingress needs for the head of its HTTP answer. */
export interface AnswerHead {
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/** How the answer ends: what was consumed, where that is known. */
export interface AnswerEnd {
  readonly usage: Usage | undefined
}

/** That a worker has taken a job. */
export interface Claim {
  readonly job: string
  readonly attempt: number
  readonly redispatch: Redispatch
  /** How many jobs were left in the stream when it was given out. */
  readonly behind: number
}

export type Frame =
  /** The worker has the job, and goes on when it hears `go`. */
  | { readonly type: "claim"; readonly redispatch: Redispatch }
  /** The worker has these jobs and begins at once. Sent about the worker, not about one job. */
  | { readonly type: "claims"; readonly claims: ReadonlyArray<Claim> }
  /** The worker wants `length` more bytes of the request's body from `offset` on. */
  | { readonly type: "pull"; readonly offset: number; readonly length: number }
  /** Bytes of the answer. The first frame of an attempt has the head, the last says that the answer is whole. */
  | {
    readonly type: "data"
    readonly sequence: number
    readonly redispatch: Redispatch
    readonly head: AnswerHead | undefined
    readonly end: AnswerEnd | undefined
  }
  /** A sign of life. `sequence` is the number that the next frame will have. */
  | { readonly type: "heartbeat"; readonly sequence: number }
  | { readonly type: "error"; readonly sequence: number; readonly error: JobError }
  | { readonly type: "pong" }
  /** Nobody listens on the subject that was sent to: the other side is gone. NATS's own answer. */
  | { readonly type: "noResponders" }

export type Control =
  | { readonly type: "go" }
  | { readonly type: "no" }
  | { readonly type: "cancel" }
  | { readonly type: "ping" }
  /** The client has taken this many bytes of the answer so far. A sum, so that one that is lost does no harm. */
  | { readonly type: "credit"; readonly bytes: number }
  | { readonly type: "noResponders" }

const encodeError = Schema.encodeSync(Schema.fromJsonString(JobError))
const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(JobError))
const decodeHeaders = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

const utf8 = new TextEncoder()
const text = new TextDecoder()

/** The header lines of a frame, where it has any; the payloads of `error` and `claims` are made by `payloadOf`. */
export const encodeFrame = (frame: Frame): string | undefined => {
  switch (frame.type) {
    case "data":
      return frame.head === undefined && frame.end === undefined ? undefined : encodeHeaders({
        [header.head]: frame.head === undefined
          ? undefined
          : `${frame.head.status} ${frame.redispatch} ${frame.head.contentType}`,
        [header.headers]: frame.head === undefined || isEmpty(frame.head.headers)
          ? undefined
          : JSON.stringify(frame.head.headers),
        [header.end]: frame.end === undefined ? undefined : JSON.stringify(frame.end.usage ?? null)
      })
    case "claim":
      return encodeHeaders({ [header.frame]: frame.type, [header.redispatch]: frame.redispatch })
    case "pull":
      return encodeHeaders({
        [header.frame]: frame.type,
        [header.offset]: frame.offset,
        [header.credit]: frame.length
      })
    case "claims":
    case "heartbeat":
    case "error":
    case "pong":
    case "noResponders":
      return encodeHeaders({ [header.frame]: frame.type })
  }
}

const isEmpty = (record: object): boolean => {
  for (const _ in record) return false
  return true
}

/** What the sender of a frame is answered on: its control subject, and behind it the number of a frame that has one. */
export const replyOf = (control: string, frame: Frame): string =>
  "sequence" in frame ? `${control}.${frame.sequence}` : control

export const payloadOf = (frame: Extract<Frame, { readonly type: "error" | "claims" }>): Uint8Array =>
  utf8.encode(
    frame.type === "error"
      ? encodeError(frame.error)
      : frame.claims.map(({ attempt, behind, job, redispatch }) => `${job} ${attempt} ${redispatch} ${behind}`).join(
        "\n"
      )
  )

/** `undefined` where the message is not of this protocol. */
export const decodeFrame = (message: Msg): Frame | undefined => {
  const headers = message.headers
  const sequence = parseControl(message.reply ?? "").sequence
  if (headers === undefined) {
    return Number.isNaN(sequence)
      ? undefined
      : { type: "data", sequence, redispatch: "neverSent", head: undefined, end: undefined }
  }
  if (headers.code === 503) return { type: "noResponders" }
  const number = (name: string) => Number(headers.get(name))
  const type = headers.get(header.frame)
  switch (type) {
    case "":
      return Number.isNaN(sequence) ? undefined : decodeData(sequence, headers)
    case "heartbeat":
      return { type, sequence }
    case "claim":
      return { type, redispatch: redispatchOf(headers.get(header.redispatch)) }
    case "claims":
      return { type, claims: decodeClaims(text.decode(message.data)) }
    case "pull":
      return { type, offset: number(header.offset), length: number(header.credit) }
    case "error":
      return {
        type,
        sequence,
        error: Option.getOrElse(decodeError(text.decode(message.data)), () => new InternalError())
      }
    case "pong":
      return { type }
    default:
      return undefined
  }
}

const headPattern = /^(\d{3}) (\w+) (.*)$/

const decodeData = (sequence: number, headers: MsgHdrs): Frame | undefined => {
  const head = headPattern.exec(decodeHeader(headers.get(header.head)))
  const [, status = "", redispatch = "", contentType = ""] = head ?? []
  const end = headers.get(header.end)
  if (head === null && end === "") return undefined
  return {
    type: "data",
    sequence,
    redispatch: redispatchOf(redispatch),
    head: head === null ? undefined : { status: Number(status), contentType, headers: furtherHeaders(headers) },
    end: end === "" ? undefined : { usage: decodeUsage(decodeHeader(end)) }
  }
}

/** Not by the schema of usage, which took a twentieth of all the time that ingress spends on a request. */
const decodeUsage = (json: string): Usage | undefined => {
  try {
    const usage: unknown = JSON.parse(json)
    return isUsage(usage) ? usage : undefined
  } catch {
    return undefined
  }
}

const isUsage = (value: unknown): value is Usage =>
  typeof value === "object" && value !== null && "inputTokens" in value && "outputTokens" in value &&
  Object.values(value).every((count: unknown) => typeof count === "number" && Number.isSafeInteger(count) && count >= 0)

const decodeClaims = (lines: string): ReadonlyArray<Claim> =>
  lines.split("\n").map((line) => {
    const [job = "", attempt = "", redispatch = "", behind] = line.split(" ")
    return { job, attempt: Number(attempt), redispatch: redispatchOf(redispatch), behind: Number(behind) }
  })

const noHeaders: AnswerHead["headers"] = {}

/** The headers of the HTTP answer or request that a message brings. */
export const furtherHeaders = (headers: MsgHdrs | undefined): AnswerHead["headers"] =>
  headers?.has(header.headers) === true
    ? Option.getOrElse(decodeHeaders(decodeHeader(headers.get(header.headers))), () => noHeaders)
    : noHeaders

/** Whatever is not plainly `always` is treated with the greater care. */
const redispatchOf = (value: string): Redispatch => value === "always" ? "always" : "neverSent"

export const encodeControl = (control: Control): string =>
  encodeHeaders({
    [header.control]: control.type,
    [header.credit]: control.type === "credit" ? control.bytes : undefined
  })

/** `undefined` where the message is not of this protocol. */
export const decodeControl = (message: Msg): Control | undefined => {
  const headers = message.headers
  if (headers === undefined) return undefined
  if (headers.code === 503) return { type: "noResponders" }
  const type = headers.get(header.control)
  switch (type) {
    case "go":
    case "no":
    case "cancel":
    case "ping":
      return { type }
    case "credit":
      return { type, bytes: Number(headers.get(header.credit)) }
    default:
      return undefined
  }
}

/** Whether its worker sends nothing after this frame, and so has nothing left to stop. */
export const isLast = (frame: Frame): boolean =>
  frame.type === "error" || (frame.type === "data" && frame.end !== undefined)
