/**
 * What travels between ingress and worker once a job is on its way: frames from the worker on the job's reply subject,
 * controls from ingress on the job's control subject. Both are NATS messages of which one header says what they are: a word
 * and what belongs to it. The payload is raw bytes of the answer, untouched.
 *
 * Frames that carry bytes or end the answer are numbered from 0 within an attempt, so that a hole is seen. The number is
 * the last token of their reply subject, and a frame of nothing but bytes, by far the most frequent, has no headers at
 * all: reading headers costs more than everything else that ingress does with it.
 */
import type { Msg } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import { InternalError, JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import { decodeHeader, encodeHeaders } from "../../nats/Outbox.ts"
import { header, parseControl } from "./Subjects.ts"

/**
 * Whether a job may be dispatched again after its worker is lost: yes if it is `idempotent`, because a second call to the
 * provider costs nothing; yes while its paid call is `unsent`; no once that call `mayHaveBeenSent`.
 */
export type Redispatch = "idempotent" | "unsent" | "mayHaveBeenSent"

/** The protocol's words, which differ from the code's. */
const wireWords = { idempotent: "always", unsent: "notYetSent", mayHaveBeenSent: "neverSent" } as const

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
  /** The answer to `claim`: the job is claimed like that from now on. */
  | { readonly type: "go"; readonly redispatch: Redispatch }
  | { readonly type: "no" }
  | { readonly type: "cancel" }
  | { readonly type: "ping" }
  /** The client has taken this many bytes of the answer so far. A sum, so that one that is lost does no harm. */
  | { readonly type: "credit"; readonly bytes: number }
  | { readonly type: "noResponders" }

const encodeError = Schema.encodeSync(Schema.fromJsonString(JobError))
const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(JobError))

const utf8 = new TextEncoder()
const text = new TextDecoder()

/** The header lines of a frame, where it has any; the payloads of `error` and `claims` are made by `payloadOf`. */
export const encodeFrame = (frame: Frame): string | undefined => {
  if (frame.type === "data" && frame.head === undefined && frame.end === undefined) return undefined
  const detail = detailOf(frame)
  return encodeHeaders({ [header.frame]: detail === undefined ? frame.type : `${frame.type} ${detail}` })
}

/** What belongs to the word. */
const detailOf = (frame: Frame): string | undefined => {
  switch (frame.type) {
    case "data":
      return JSON.stringify(
        [
          frame.head === undefined
            ? null
            : [frame.head.status, wireWords[frame.redispatch], frame.head.contentType, frame.head.headers],
          frame.end === undefined ? false : frame.end.usage ?? null
        ] satisfies Ends
      )
    case "claim":
      return wireWords[frame.redispatch]
    case "pull":
      return `${frame.offset} ${frame.length}`
    case "claims":
    case "heartbeat":
    case "error":
    case "pong":
    case "noResponders":
      return undefined
  }
}

/** A frame's head and end as JSON: `null` and `false` where it has none, and `null` where what was consumed is not known. */
type Ends = readonly [
  head: readonly [status: number, redispatch: string, contentType: string, headers: AnswerHead["headers"]] | null,
  usage: Usage | null | false
]

/** What the sender of a frame is answered on: its control subject, and behind it the number of a frame that has one. */
export const replyOf = (control: string, frame: Frame): string =>
  "sequence" in frame ? `${control}.${frame.sequence}` : control

export const payloadOf = (frame: Extract<Frame, { readonly type: "error" | "claims" }>): Uint8Array =>
  utf8.encode(
    frame.type === "error"
      ? encodeError(frame.error)
      : frame.claims.map(({ attempt, behind, job, redispatch }) =>
        `${job} ${attempt} ${wireWords[redispatch]} ${behind}`
      ).join("\n")
  )

/** `undefined` where the message is not of this protocol. */
export const decodeFrame = (message: Msg): Frame | undefined => {
  const headers = message.headers
  const sequence = parseControl(message.reply ?? "").sequence
  if (headers === undefined) {
    return Number.isNaN(sequence)
      ? undefined
      : { type: "data", sequence, redispatch: "mayHaveBeenSent", head: undefined, end: undefined }
  }
  if (headers.code === 503) return { type: "noResponders" }
  const { detail, type } = partsOf(headers.get(header.frame))
  switch (type) {
    case "data":
      return Number.isNaN(sequence) ? undefined : decodeData(sequence, detail)
    case "heartbeat":
      return { type, sequence }
    case "claim":
      return { type, redispatch: redispatchOf(detail) }
    case "claims":
      return { type, claims: decodeClaims(text.decode(message.data)) }
    case "pull": {
      const [offset, length] = detail.split(" ")
      return { type, offset: Number(offset), length: Number(length) }
    }
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

const partsOf = (value: string): { readonly type: string; readonly detail: string } => {
  const decoded = decodeHeader(value)
  const at = decoded.indexOf(" ")
  return at === -1 ? { type: decoded, detail: "" } : { type: decoded.slice(0, at), detail: decoded.slice(at + 1) }
}

/** Not by schemas, which took a tenth of all the time that ingress spends on a request. */
const decodeData = (sequence: number, json: string): Frame | undefined => {
  const ends = parse(json)
  if (!Array.isArray(ends) || ends.length !== 2) return undefined
  const [first, last]: ReadonlyArray<unknown> = ends
  const [status, redispatch, contentType, headers]: ReadonlyArray<unknown> = Array.isArray(first) ? first : []
  const head = typeof status === "number" && typeof contentType === "string" && isStrings(headers)
    ? { status, contentType, headers }
    : undefined
  // an answer without its head cannot be given
  if (head === undefined && first !== null) return undefined
  return {
    type: "data",
    sequence,
    redispatch: redispatchOf(redispatch),
    head,
    end: last === false ? undefined : { usage: isUsage(last) ? last : undefined }
  }
}

const parse = (json: string): unknown => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

const isStrings = (value: unknown): value is Readonly<Record<string, string>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) &&
  Object.values(value).every((each: unknown) => typeof each === "string")

const isUsage = (value: unknown): value is Usage =>
  typeof value === "object" && value !== null && "inputTokens" in value && "outputTokens" in value &&
  Object.values(value).every((count: unknown) => typeof count === "number" && Number.isSafeInteger(count) && count >= 0)

const decodeClaims = (lines: string): ReadonlyArray<Claim> =>
  lines.split("\n").map((line) => {
    const [job = "", attempt = "", redispatch = "", behind] = line.split(" ")
    return { job, attempt: Number(attempt), redispatch: redispatchOf(redispatch), behind: Number(behind) }
  })

/** Treats unknown words as the most careful one. */
const redispatchOf = (word: unknown): Redispatch =>
  word === wireWords.idempotent ? "idempotent" : word === wireWords.unsent ? "unsent" : "mayHaveBeenSent"

export const encodeControl = (control: Control): string => {
  const detail = control.type === "credit"
    ? control.bytes
    : control.type === "go"
    ? wireWords[control.redispatch]
    : undefined
  return encodeHeaders({ [header.control]: detail === undefined ? control.type : `${control.type} ${detail}` })
}

/** `undefined` where the message is not of this protocol. */
export const decodeControl = (message: Msg): Control | undefined => {
  const headers = message.headers
  if (headers === undefined) return undefined
  if (headers.code === 503) return { type: "noResponders" }
  const { detail, type } = partsOf(headers.get(header.control))
  switch (type) {
    case "go":
      return { type, redispatch: redispatchOf(detail) }
    case "no":
    case "cancel":
    case "ping":
      return { type }
    case "credit":
      return { type, bytes: Number(detail) }
    default:
      return undefined
  }
}

/** Whether its worker sends nothing after this frame, and so has nothing left to stop. */
export const isLast = (frame: Frame): boolean =>
  frame.type === "error" || (frame.type === "data" && frame.end !== undefined)
