/** What is kept of a request when it has ended: who asked whom for what, what it consumed, and how it went. */
import { Schema } from "effect"
import { integer } from "../contract/Fields.ts"
import { Usage } from "../contract/Usage.ts"

/** Such as `key_4fJ2…`: a token of a NATS subject. */
export const KeyId = Schema.String.check(Schema.isPattern(/^[\w-]+$/u, { expected: "letters, digits, _ and -" }))

/** The last moment of the year 9999. */
const endOfTime = 253_402_300_799_999

const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** As it is in JSON: nothing in it is transformed, so that writing one is cheap. */
export const UsageEvent = Schema.Struct({
  /** The id of the job or task. There is one event for each, however often it is sent. */
  id: Schema.NonEmptyString,
  /** When it ended, in epoch milliseconds. */
  time: integer(0, endOfTime),
  /** The id of the API key. */
  key: KeyId,
  operation: Schema.NonEmptyString,
  /** The model's name as the client knows it. */
  model: Schema.NonEmptyString,
  /** The provider that was last asked, and the model's name there; `null` where that is not known any more. */
  provider: Schema.NullOr(Schema.String),
  providerModel: Schema.NullOr(Schema.String),
  /** `null` where nobody knows it. Of an answer that was cut or cancelled it is what its provider had said until then. */
  usage: Schema.NullOr(Usage),
  /** By the catalogue's prices at the time, in US dollars; `null` where there is no price or no usage. */
  costUsd: Schema.NullOr(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
  outcome: Schema.Literals(["success", "failure", "cancelled"]),
  /** The tag of the `JobError`, for a failure. */
  error: Schema.NullOr(Schema.String),
  /** From when a worker took it to the end of the answer. */
  durationMs: Millis,
  /** The same to the first byte of the answer; `null` where there was none. */
  firstByteMs: Schema.NullOr(Millis),
  /** How many calls to providers were made for it. */
  attempts: Schema.Int,
  /** The trace of its request, where there is one. */
  traceId: Schema.optionalKey(Schema.String)
})
export type UsageEvent = typeof UsageEvent.Type
