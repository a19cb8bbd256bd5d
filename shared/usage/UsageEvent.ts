/** The record of a request that has ended: its key, model and provider, its usage and its outcome. */
import { Schema } from "effect"
import { integer } from "../contract/Fields.ts"
import { Usage } from "../contract/Usage.ts"

/** The id of a key, such as `key_4fJ2…`. Valid as a token of a NATS subject. */
export const KeyId = Schema.String.check(Schema.isPattern(/^[\w-]+$/u, { expected: "letters, digits, _ and -" }))

/** The last moment of the year 9999. */
const endOfTime = 253_402_300_799_999

const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** The outcome of a guardrail's checks. `unchecked`: some of the content passed, or was refused, because it could not be checked. */
const Checked = Schema.Literals(["passed", "refused", "unchecked"])
export type Checked = typeof Checked.Type

/** The outcomes for request and answer. One is absent if the guardrail does not cover it, or the work ended before the check. */
export const Guardrail = Schema.Struct({
  request: Schema.optionalKey(Checked),
  answer: Schema.optionalKey(Checked)
})
export type Guardrail = typeof Guardrail.Type

/** A usage event. The schema transforms nothing, so that an event is cheap to write as JSON. */
export const UsageEvent = Schema.Struct({
  /** The id of the job or task. Only one of several events with the same id counts: see `RecentEvents.ts`. */
  id: Schema.NonEmptyString,
  /** When the request ended, in epoch milliseconds. */
  time: integer(0, endOfTime),
  /** The id of the API key. */
  key: KeyId,
  operation: Schema.NonEmptyString,
  /** The model's name in the gateway. */
  model: Schema.NonEmptyString,
  /** The last provider called, and the model's name there; `null` if no longer known. */
  provider: Schema.NullOr(Schema.String),
  providerModel: Schema.NullOr(Schema.String),
  /** `null` if unknown. For an interrupted or cancelled answer, the usage that the provider had reported until then. */
  usage: Schema.NullOr(Usage),
  /** US dollars by the catalogue's prices at the time; `null` without a price or usage. */
  costUsd: Schema.NullOr(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
  outcome: Schema.Literals(["success", "failure", "cancelled"]),
  /** The tag of the `JobError`, for a failure. */
  error: Schema.NullOr(Schema.String),
  /** From the worker's claim to the end of the answer; of a task, from its creation to its end. */
  durationMs: Millis,
  /** From the worker's claim to the first byte of the answer; `null` without one. */
  firstByteMs: Schema.NullOr(Millis),
  /** Number of calls to providers. */
  attempts: Schema.Int,
  /** Number of calls that were cut or timed out after they were sent, and then repeated: both may be billed. Absent for none. */
  repeatedCalls: Schema.optionalKey(Schema.Int),
  /** Absent if the model has no guardrail. */
  guardrail: Schema.optionalKey(Guardrail),
  /** The id of the request's trace, if any. */
  traceId: Schema.optionalKey(Schema.String)
})
export type UsageEvent = typeof UsageEvent.Type

/** Whether the event was written by another worker, which knows only that the job's previous worker did not settle it. */
export const isOfLostWorker = ({ error, provider }: UsageEvent): boolean => error === "WorkerLost" && provider === null

/**
 * How much an event knows about its job. 0: only that its worker was lost. 1: what that worker did before it had to stop; another may
 * have repeated the job since. 2: how the job ended.
 */
export const knowledgeOf = (event: UsageEvent): 0 | 1 | 2 =>
  isOfLostWorker(event) ? 0 : event.error === "WorkerLost" ? 1 : 2

/** Decodes the JSON text of an event. */
export const decodeUsageEvent = Schema.decodeUnknownOption(Schema.fromJsonString(UsageEvent))
