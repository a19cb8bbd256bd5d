/**
 * What travels between ingress and worker once a job is on its way: frames from the worker on the job's reply subject,
 * controls from ingress on the job's control subject. Both are NATS messages whose headers say what they are; the
 * payload is raw bytes of the answer, untouched.
 *
 * Frames that carry bytes or end the answer are numbered from 0 within an attempt, so that a hole is seen.
 */
import type { Msg, MsgHdrs } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import { InternalError, JobError } from "../contract/JobError.ts"
import { Usage } from "../contract/Usage.ts"
import { decodeHeader, encodeHeaders } from "./Outbox.ts"
import { header } from "./Subjects.ts"

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

export type Frame =
  | { readonly type: "claim"; readonly redispatch: Redispatch; readonly awaits: boolean }
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
const encodeUsage = Schema.encodeSync(Schema.fromJsonString(Usage))
const decodeUsage = Schema.decodeUnknownOption(Schema.fromJsonString(Usage))
const decodeHeaders = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

const utf8 = new TextEncoder()
const text = new TextDecoder()

/** The header lines of a frame; an error's payload is made by `errorPayload`. */
export const encodeFrame = (frame: Frame): string => {
  switch (frame.type) {
    case "data":
      return encodeData(frame.sequence, frame.redispatch, frame.head, frame.end)
    case "claim":
      return encodeHeaders({
        [header.frame]: frame.type,
        [header.redispatch]: frame.redispatch,
        [header.awaits]: frame.awaits ? "1" : undefined
      })
    case "pull":
      return encodeHeaders({
        [header.frame]: frame.type,
        [header.offset]: frame.offset,
        [header.credit]: frame.length
      })
    case "heartbeat":
    case "error":
      return encodeHeaders({ [header.frame]: frame.type, [header.sequence]: frame.sequence })
    case "pong":
    case "noResponders":
      return encodeHeaders({ [header.frame]: frame.type })
  }
}

const encodeData = (
  sequence: number,
  redispatch: Redispatch,
  head: AnswerHead | undefined,
  end: AnswerEnd | undefined
): string => {
  // by far the most frequent frame of a stream
  if (head === undefined && end === undefined) {
    return `NATS/1.0\r\n${header.frame}: data\r\n${header.sequence}: ${sequence}\r\n\r\n`
  }
  return encodeHeaders({
    [header.frame]: "data",
    [header.sequence]: sequence,
    [header.status]: head?.status,
    [header.contentType]: head?.contentType,
    [header.headers]: head === undefined || Object.keys(head.headers).length === 0
      ? undefined
      : JSON.stringify(head.headers),
    [header.redispatch]: head === undefined ? undefined : redispatch,
    [header.end]: end === undefined ? undefined : "1",
    [header.usage]: end?.usage === undefined ? undefined : encodeUsage(end.usage)
  })
}

export const errorPayload = (error: JobError): Uint8Array => utf8.encode(encodeError(error))

/** `undefined` where the message is not of this protocol. */
export const decodeFrame = (message: Msg): Frame | undefined => {
  const headers = message.headers
  if (headers === undefined) return undefined
  if (headers.code === 503) return { type: "noResponders" }
  const number = (name: string) => Number(headers.get(name))
  const type = headers.get(header.frame)
  switch (type) {
    case "data":
      return {
        type,
        sequence: number(header.sequence),
        redispatch: redispatchOf(headers.get(header.redispatch)),
        head: headers.has(header.status) ? decodeHead(headers) : undefined,
        end: headers.has(header.end) ? decodeEnd(headers) : undefined
      }
    case "heartbeat":
      return { type, sequence: number(header.sequence) }
    case "claim":
      return { type, redispatch: redispatchOf(headers.get(header.redispatch)), awaits: headers.has(header.awaits) }
    case "pull":
      return { type, offset: number(header.offset), length: number(header.credit) }
    case "error":
      return {
        type,
        sequence: number(header.sequence),
        error: Option.getOrElse(decodeError(text.decode(message.data)), () => new InternalError())
      }
    case "pong":
      return { type }
    default:
      return undefined
  }
}

const noHeaders: AnswerHead["headers"] = {}

/** The headers of the HTTP answer or request that a message brings. */
export const furtherHeaders = (headers: MsgHdrs | undefined): AnswerHead["headers"] =>
  headers?.has(header.headers) === true
    ? Option.getOrElse(decodeHeaders(decodeHeader(headers.get(header.headers))), () => noHeaders)
    : noHeaders

const decodeHead = (headers: MsgHdrs): AnswerHead => ({
  status: Number(headers.get(header.status)),
  contentType: decodeHeader(headers.get(header.contentType)),
  headers: furtherHeaders(headers)
})

const decodeEnd = (headers: MsgHdrs): AnswerEnd => ({
  usage: headers.has(header.usage)
    ? Option.getOrUndefined(decodeUsage(decodeHeader(headers.get(header.usage))))
    : undefined
})

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
