/**
 * The messages between ingress and worker about a published job: frames from the worker on the job's reply subject, controls
 * from ingress on its control subject. In version 2 each is a NATS message with one header, a type and its details, whose payload is
 * the raw bytes of the answer; in version 3 frames travel in bundles (`Bundle.ts`).
 *
 * Frames that carry bytes or end the answer are numbered from 0 within an attempt, so that ingress detects a lost one. The
 * number is the last token of the reply subject in version 2. A frame with only bytes, by far the most frequent, has no headers:
 * parsing headers costs more than everything else that ingress does with a frame.
 */
import type { Msg } from "@nats-io/nats-core"
import { Option, Schema } from "effect"
import { InternalError, JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import { decodeHeader, encodeHeaders } from "../../nats/Outbox.ts"
import { header, parseControl } from "./Subjects.ts"

/**
 * Whether a claimed job may be dispatched to another worker. `idempotent`: yes, a second call to the provider costs nothing.
 * `unsent`: yes, a second call would cost again, but the first has not been sent. `mayHaveBeenSent`: no.
 */
export type Redispatch = "idempotent" | "unsent" | "mayHaveBeenSent"

export const isRedispatch = (word: unknown): word is Redispatch =>
  word === "idempotent" || word === "unsent" || word === "mayHaveBeenSent"

/** The words of version 2 of the protocol. */
const wireWords = { idempotent: "always", unsent: "notYetSent", mayHaveBeenSent: "neverSent" } as const

/** The start of an answer: status and headers of the HTTP response. */
export interface AnswerHead {
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/** The end of an answer, with its usage if known. */
export interface AnswerEnd {
  readonly usage: Usage | undefined
}

/** A worker's statement that it runs a job. */
export interface Claim {
  readonly job: string
  readonly attempt: number
  readonly redispatch: Redispatch
  /** How many jobs of the pool were left in the stream when this one was delivered. */
  readonly behind: number
}

export type Frame =
  /** The worker has the job and waits for `go`. */
  | { readonly type: "claim"; readonly redispatch: Redispatch }
  /** The worker has these jobs and starts immediately. The frame's subject names the worker instead of a job. */
  | { readonly type: "claims"; readonly claims: ReadonlyArray<Claim> }
  /** Asks for `length` bytes of the request's body from `offset` on. */
  | { readonly type: "pull"; readonly offset: number; readonly length: number }
  /** Bytes of the answer. The first frame of an attempt has the head; the last has the end, which makes the answer complete. */
  | {
    readonly type: "data"
    readonly sequence: number
    readonly redispatch: Redispatch
    readonly head: AnswerHead | undefined
    readonly end: AnswerEnd | undefined
  }
  /** The job waits for this provider, and takes no slot until it `works` or sends anything of its answer. Only in version 3. */
  | { readonly type: "waits"; readonly provider: string }
  | { readonly type: "works" }
  /** The worker is alive. `sequence` is the number of the next frame. */
  | { readonly type: "heartbeat"; readonly sequence: number }
  | { readonly type: "error"; readonly sequence: number; readonly error: JobError }
  /** The worker is alive and keeps no bundles for this ingress. Its next bundle will have the number `next`. */
  | { readonly type: "pong"; readonly next: number }
  /** NATS's own answer: the subject has no listener, so the other side is gone. */
  | { readonly type: "noResponders" }

/**
 * Why a worker may not run a job. `over`: the job has ended. `moved`: a later attempt follows. `taken`: another worker runs the
 * same attempt, so its message in the queue is still needed.
 */
export type Fate = "over" | "moved" | "taken"

export type Control =
  /** Accepts a `claim` with this `redispatch`. */
  | { readonly type: "go"; readonly redispatch: Redispatch }
  /** Stops the worker. Unless `fate` is `over`, another worker runs and meters the job. */
  | { readonly type: "no" | "cancel"; readonly fate: Fate }
  | { readonly type: "ping" }
  /** The total number of bytes that the client has taken. A total, so that a lost message does no harm. */
  | { readonly type: "credit"; readonly bytes: number }
  /** About bundles. `ack`: ingress has received all below `number`. `resend`: it lacks those from `number` on. */
  | { readonly type: "ack" | "resend"; readonly number: number }
  | { readonly type: "noResponders" }

const encodeError = Schema.encodeSync(Schema.fromJsonString(JobError))
export const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(JobError))

/** The header lines of a frame, if it has any; `payloadOf` encodes the payloads of `error` and `claims`. */
export const encodeFrame = (frame: Frame): string | undefined => {
  if (frame.type === "data" && frame.head === undefined && frame.end === undefined) return undefined
  const detail = detailOf(frame)
  return encodeHeaders({ [header.frame]: detail === undefined ? frame.type : `${frame.type} ${detail}` })
}

const detailOf = (frame: Frame): string | undefined => {
  switch (frame.type) {
    case "data":
      return JSON.stringify(endsOf(frame, wireWords[frame.redispatch]))
    case "claim":
      return wireWords[frame.redispatch]
    case "pull":
      return `${frame.offset} ${frame.length}`
    case "pong":
      return String(frame.next)
    default:
      return undefined
  }
}

/** A frame's head and end for JSON: `null` without a head, `false` without an end. The end is its usage, `null` if unknown. */
type Ends = readonly [
  head: readonly [status: number, redispatch: string, contentType: string, headers: AnswerHead["headers"]] | null,
  usage: Usage | null | false
]

/** The head and end of a frame. `redispatch`: the word for it in the protocol's version. */
export const endsOf = ({ end, head }: Extract<Frame, { readonly type: "data" }>, redispatch: string): Ends => [
  head === undefined ? null : [head.status, redispatch, head.contentType, head.headers],
  end === undefined ? false : end.usage ?? null
]

/** The reply subject of a frame: the control subject, followed by the frame's number if it has one. */
export const replyOf = (control: string, frame: Frame): string =>
  "sequence" in frame ? `${control}.${frame.sequence}` : control

export const payloadOf = (frame: Extract<Frame, { readonly type: "error" | "claims" }>): Uint8Array =>
  Buffer.from(
    frame.type === "error"
      ? encodeError(frame.error)
      : frame.claims.map(({ attempt, behind, job, redispatch }) =>
        `${job} ${attempt} ${wireWords[redispatch]} ${behind}`
      ).join("\n")
  )

/** `undefined` if the message is not of this protocol. */
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
      return Number.isNaN(sequence) ? undefined : decodeData(sequence, detail, redispatchOf)
    case "heartbeat":
      return { type, sequence }
    case "claim":
      return { type, redispatch: redispatchOf(detail) }
    case "claims":
      return { type, claims: decodeClaims(message.string()) }
    case "pull": {
      const [offset, length] = detail.split(" ")
      return { type, offset: Number(offset), length: Number(length) }
    }
    case "error":
      return { type, sequence, error: Option.getOrElse(decodeError(message.string()), () => new InternalError()) }
    case "pong":
      // older workers send no number
      return { type, next: Number(detail) }
    default:
      return undefined
  }
}

const partsOf = (value: string): { readonly type: string; readonly detail: string } => {
  const decoded = decodeHeader(value)
  const at = decoded.indexOf(" ")
  return at === -1 ? { type: decoded, detail: "" } : { type: decoded.slice(0, at), detail: decoded.slice(at + 1) }
}

/** `toRedispatch` reads the version's word. Decodes without a schema, which took a tenth of ingress's time per request. */
export const decodeData = (
  sequence: number,
  json: string,
  toRedispatch: (word: unknown) => Redispatch
): Frame | undefined => {
  const ends = parse(json)
  if (!Array.isArray(ends) || ends.length !== 2) return undefined
  const [first, last]: ReadonlyArray<unknown> = ends
  const [status, redispatch, contentType, headers]: ReadonlyArray<unknown> = Array.isArray(first) ? first : []
  const head = typeof status === "number" && typeof contentType === "string" && isStrings(headers)
    ? { status, contentType, headers }
    : undefined
  // without its head, the answer cannot be relayed
  if (head === undefined && first !== null) return undefined
  return {
    type: "data",
    sequence,
    redispatch: toRedispatch(redispatch),
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

/** Treats unknown words as the strictest one. */
const redispatchOf = (word: unknown): Redispatch =>
  word === wireWords.idempotent ? "idempotent" : word === wireWords.unsent ? "unsent" : "mayHaveBeenSent"

/** Older ingresses send `moved` for a taken job too, and otherwise no fate. */
const fateOf = (word: unknown): Fate => word === "moved" || word === "taken" ? word : "over"

export const encodeControl = (control: Control): string => {
  const detail = control.type === "credit"
    ? control.bytes
    : "number" in control
    ? control.number
    : control.type === "go"
    ? wireWords[control.redispatch]
    : "fate" in control && control.fate !== "over"
    ? control.fate
    : undefined
  return encodeHeaders({ [header.control]: detail === undefined ? control.type : `${control.type} ${detail}` })
}

/** `undefined` if the message is not of this protocol. */
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
      return { type, fate: fateOf(detail) }
    case "ping":
      return { type }
    case "credit":
      return { type, bytes: Number(detail) }
    case "ack":
    case "resend":
      return { type, number: Number(detail) }
    default:
      return undefined
  }
}

/** Whether the worker sends nothing after this frame, so that there is nothing to stop. */
export const isLast = (frame: Frame): boolean =>
  frame.type === "error" || (frame.type === "data" && frame.end !== undefined)
