/**
 * The delivery of an event to its owner's receiver: the record, and what follows an attempt. A receiver that does not accept an event
 * gets it again, with growing pauses, for a day.
 */
import { type Option, Schema } from "effect"

const statuses = ["pending", "delivered", "failed"] as const

export const Delivery = Schema.Struct({
  /** The event's id, the same at each attempt. */
  id: Schema.String,
  /** For example `response.completed`. */
  type: Schema.String,
  /** The id of the response, task or batch that the event is about. */
  subject: Schema.String,
  /** Further data about the subject. */
  details: Schema.optionalKey(Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite]))),
  /** When the event happened, in epoch milliseconds. */
  at: Schema.Finite,
  status: Schema.Literals(statuses),
  attempts: Schema.Int,
  /** The outcome of the last attempt: the receiver's status, or why there was none. */
  outcome: Schema.NullOr(Schema.String),
  /** The time of the next attempt, and of the end of all attempts, in epoch milliseconds. */
  next: Schema.Finite,
  until: Schema.Finite,
  /** How often an administrator has sent the event again. Queue items of earlier rounds are void. */
  round: Schema.Int
})
export type Delivery = typeof Delivery.Type

const codec = Schema.fromJsonString(Delivery)
export const encode = Schema.encodeSync(codec)
/** `None` for a record in the format of a newer gateway. */
export const decode: (text: string) => Option.Option<Delivery> = Schema.decodeUnknownOption(codec)

/** The first pause in milliseconds, the factor from one pause to the next, and the longest pause in milliseconds. */
const firstPauseMs = 5_000
const growth = 4
const longestPauseMs = 4 * 60 * 60_000
const triedForMs = 24 * 60 * 60_000

export interface Event extends Pick<Delivery, "id" | "type" | "subject" | "details" | "at"> {}

export const make = ({ at, details, id, subject, type }: Event, now: number): Delivery => ({
  ...{ id, type, subject, ...(details === undefined ? {} : { details }), at },
  ...{ status: "pending", attempts: 0, outcome: null, next: now, until: now + triedForMs, round: 0 }
})

/** Starts a delivery again, whatever its outcome was. */
export const restart = (delivery: Delivery, now: number): Delivery => ({
  ...delivery,
  ...{ status: "pending", attempts: 0, next: now, until: now + triedForMs, round: delivery.round + 1 }
})

/** How an attempt can end. `final`: the event cannot be delivered to this URL. */
export const outcomes = ["accepted", "refused", "final"] as const

/** The outcome of an attempt. */
export interface Outcome {
  readonly text: string
  readonly is: (typeof outcomes)[number]
}

export const after = (delivery: Delivery, { is, text: outcome }: Outcome, now: number): Delivery => {
  const attempts = delivery.attempts + 1
  const next = now + Math.min(longestPauseMs, firstPauseMs * growth ** delivery.attempts)
  const ended = is === "accepted" ? "delivered" : is === "final" || next > delivery.until ? "failed" : undefined
  return { ...delivery, attempts, outcome, ...(ended === undefined ? { next } : { status: ended, next: now }) }
}

/** The body that the receiver gets: ids and numbers, no content. */
export const bodyOf = ({ at, details, id, subject, type }: Delivery): string =>
  JSON.stringify({ id, object: "event", created_at: Math.floor(at / 1_000), type, data: { id: subject, ...details } })
