/**
 * The errors of jobs: the closed union that crosses the bus from worker to ingress. `IngressError.ts` has the errors of ingress.
 *
 * An error holds only what the client may know: no payloads, keys or addresses. Its cause stays in the process where the error
 * happened. Ingress chooses the HTTP status and the error's shape.
 */
import { Effect, Predicate, Schema, SchemaGetter } from "effect"

/** Advice for a client whose request was rejected for now. */
export const tryAgain = (afterMs: number): string => `try again in ${Math.max(1, Math.ceil(afterMs / 1_000))} s`

/** Maximum number of characters of a text in an encoded error. */
const longestText = 8_192

/** A text that may quote a client or a provider. It is cut when the error is encoded, so that any error fits into a message. */
const Text = Schema.String.pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.passthrough(),
    encode: SchemaGetter.transform((text) =>
      text.length > longestText ? `${text.slice(0, longestText).toWellFormed()}…` : text
    )
  })
)

/** A field that is `null` unless the constructor gets a value. */
const nullByDefault = <S extends Schema.Constraint>(schema: S) =>
  Schema.NullOr(schema).pipe(Schema.withConstructorDefault(Effect.succeed(null)))

/** The request is invalid. `param` is the path of the field, as in `messages[0].content`. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  message: Text,
  param: Schema.NullOr(Text),
  code: Text,
  /** What clients of the messages format look for in `error.details`. */
  details: Schema.optionalKey(Schema.Struct({ error_code: Text, unsupported: Schema.Array(Text) }))
}) {
  /** An error at one field. `problem` follows the path, as in `must be a number`. */
  static readonly at = (param: string, problem: string, code = "invalid_value") =>
    new InvalidRequest({ message: `${param}: ${problem}`, param, code })

  /** The protocol of the model's provider does not have the operation. */
  static readonly notSupported = (model: string, operation: string, advice?: string) => {
    const problem = `'${model}' does not serve ${operation}`
    return InvalidRequest.at(
      "model",
      advice === undefined ? problem : `${problem}: ${advice}`,
      "operation_not_supported"
    )
  }
}

/** No model has that name. */
export class ModelNotFound extends Schema.TaggedError<ModelNotFound>()("ModelNotFound", {
  model: Text
}) {
  override get message() {
    const name = this.model.slice(0, 200)
    return `The model '${name}' does not exist. GET /v1/models lists the models.`
  }
}

/** The model is of another kind than the operation needs. */
export class ModelUnsuitable extends Schema.TaggedError<ModelUnsuitable>()("ModelUnsuitable", {
  model: Text,
  workload: Text,
  operation: Text
}) {
  override get message() {
    const name = this.model.slice(0, 200)
    return `The model '${name}' belongs to the workload '${this.workload}' and does not serve '${this.operation}'. ` +
      "GET /v1/models lists the models with their types."
  }
}

/** The model exists, but the operator has switched off it or all of its targets. */
export class ModelDisabled extends Schema.TaggedError<ModelDisabled>()("ModelDisabled", {
  model: Text
}) {
  override readonly message =
    `The model '${this.model}' is switched off. Use another model, or ask the operator of the gateway to enable it.`
}

/** The request names something unknown, expired or owned by another key. `param` is the field that names it. */
export class ReferenceNotFound extends Schema.TaggedError<ReferenceNotFound>()("ReferenceNotFound", {
  param: Text
}) {
  override get message() {
    return `${this.param}: not found, expired, or owned by another API key`
  }
}

/** The provider rejected the request with a 4xx status; the client gets the provider's status and message. */
export class ProviderRejected extends Schema.TaggedError<ProviderRejected>()("ProviderRejected", {
  provider: Text,
  status: Schema.Int,
  message: Text,
  type: nullByDefault(Text),
  param: nullByDefault(Text),
  code: nullByDefault(Text)
}) {}

/** What a provider has said with a 429 about the limits of the account that all share. */
export const Quota = Schema.Struct({
  requestsLeft: Schema.optionalKey(Schema.Finite),
  tokensLeft: Schema.optionalKey(Schema.Finite),
  tokensLimit: Schema.optionalKey(Schema.Finite)
})
export type Quota = typeof Quota.Type

/**
 * The provider rate-limited the request, or the gateway rejected the request to stay within the provider's limits. `retryAfterMs`
 * is `null` if the time to wait is unknown.
 */
export class ProviderRateLimited extends Schema.TaggedError<ProviderRateLimited>()("ProviderRateLimited", {
  provider: Text,
  retryAfterMs: Schema.NullOr(Schema.Finite),
  /** For the gateway itself; the client does not get it. */
  quota: Schema.optionalKey(Quota)
}) {
  override get message() {
    const reached = `The provider '${this.provider}' is at its rate limit`
    return this.retryAfterMs === null ? reached : `${reached}: ${tryAgain(this.retryAfterMs)}`
  }
}

const forTheOperator = "the operator of the gateway must fix this"

/**
 * The provider failed:
 *
 * * `unreachable`: nothing was sent to the provider.
 * * `credentials`, `credit`: the provider rejected the gateway's account, or the account has no credit left. Without a status the
 *   gateway has no credentials.
 * * `cut`: the connection closed before the answer was complete.
 * * `unconfirmed`: the provider may have started paid work that it never confirmed.
 * * `result`: the provider finished the work, but the result cannot be fetched.
 * * `resting`: the provider's circuit is open after too many failures.
 */
export class ProviderFailed extends Schema.TaggedError<ProviderFailed>()("ProviderFailed", {
  provider: Text,
  reason: Schema.Literals([
    "unreachable",
    "status",
    "credentials",
    "credit",
    "cut",
    "malformed",
    "error",
    "unconfirmed",
    "result",
    "resting"
  ]),
  status: nullByDefault(Schema.Int),
  retryAfterMs: nullByDefault(Schema.Finite),
  /** The defect of a `malformed` answer. */
  detail: Schema.optionalKey(Text)
}) {
  static readonly malformed = (provider: string, detail?: string) =>
    new ProviderFailed({ provider, reason: "malformed", ...(detail === undefined ? {} : { detail }) })

  override get message() {
    switch (this.reason) {
      case "unreachable":
        return `The provider '${this.provider}' could not be reached`
      case "status":
        return `The provider '${this.provider}' failed with status ${this.status}`
      case "credentials":
        return this.status === null
          ? `The gateway has no credentials for the provider '${this.provider}': ${forTheOperator}`
          : `The provider '${this.provider}' refused the gateway's credentials: ${forTheOperator}`
      case "credit":
        return `The gateway's account at the provider '${this.provider}' has no credit left: ${forTheOperator}`
      case "cut":
        return `The provider '${this.provider}' closed the connection before its answer was complete. Send the request again.`
      case "malformed":
        return `The provider '${this.provider}' sent a malformed answer` +
          (this.detail === undefined ? "" : `: ${this.detail}`)
      case "error":
        return `The provider '${this.provider}' reported an error instead of a whole answer`
      case "unconfirmed":
        return `The provider '${this.provider}' may have started the work without confirming it; ` +
          "the gateway did not retry, to avoid paying twice"
      case "result":
        return `The provider '${this.provider}' finished the work, but its result could not be fetched`
      case "resting":
        return `The provider '${this.provider}' has failed too often recently, so calls to it are paused; try again later`
    }
  }
}

/** The provider exceeded a deadline: to connect, to the first byte or token, between two pieces of its answer, or in total. */
export class ProviderTimeout extends Schema.TaggedError<ProviderTimeout>()("ProviderTimeout", {
  provider: Text,
  phase: Schema.Literals(["connect", "first byte", "first token", "idle", "total"]),
  /** The limit, and the setting of it. */
  limit: Schema.optionalKey(Text)
}) {
  override get message() {
    const limit = this.limit === undefined ? "" : `: the limit is ${this.limit}`
    return `The provider '${this.provider}' ${timeouts[this.phase]}${limit}`
  }
}

const timeouts = {
  "connect": "did not accept a connection in time",
  "first byte": "did not start its answer in time",
  "first token": "did not send the first token of its answer in time",
  "idle": "stopped sending in the middle of its answer",
  "total": "did not finish its answer in time"
} as const

/** The queue of this workload is full, or has no room for further work of this owner. */
export class QueueFull extends Schema.TaggedError<QueueFull>()("QueueFull", {
  retryAfterMs: Schema.Finite,
  /** What the owner may not have more of. Absent if the queue itself is full. */
  unfinished: Schema.optionalKey(Schema.Struct({ most: Schema.Int, of: Schema.Literals(["batches", "tasks"]) }))
}) {
  override get message() {
    const { retryAfterMs, unfinished } = this
    const reason = unfinished === undefined
      ? "Too many requests are waiting for this model"
      : `The key's owner has ${unfinished.most} unfinished ${unfinished.of}, the most that are allowed`
    return `${reason}: ${tryAgain(retryAfterMs)}`
  }
}

/** No worker claimed the job before its deadline, or none is expected to. */
export class QueueTimeout extends Schema.TaggedError<QueueTimeout>()("QueueTimeout", {
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `No worker was free in time: ${tryAgain(this.retryAfterMs)}`
  }
}

/** The worker died or hung after it had started a job that must not be repeated. */
export class WorkerLost extends Schema.TaggedError<WorkerLost>()("WorkerLost", {}) {
  override get message() {
    return "The worker that ran this request was lost. The gateway did not retry, because the provider may bill the call twice. "
      + "Send the request again if that is acceptable."
  }
}

/** Two workers in a row died or hung while they ran this job, so the job is probably the cause. It is not dispatched again. */
export class PoisonJob extends Schema.TaggedError<PoisonJob>()("PoisonJob", {}) {
  override get message() {
    return "Two workers in a row were lost while they ran this request. Do not send it again. "
      + "Report it to the operator of the gateway, with the value of the x-request-id response header."
  }
}

/** Frames of the answer were lost between worker and ingress. */
export class AnswerLost extends Schema.TaggedError<AnswerLost>()("AnswerLost", {}) {
  override get message() {
    return "Part of the answer was lost. Send the request again."
  }
}

/** The client no longer waits for the job. Never shown to a client. */
export class Cancelled extends Schema.TaggedError<Cancelled>()("Cancelled", {}) {
  override get message() {
    return "The request was cancelled"
  }
}

/** NATS is unreachable, or the service is shutting down. */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  retryAfterMs: Schema.Finite
}) {
  static readonly briefly = () => new Unavailable({ retryAfterMs: 1_000 })
  override get message() {
    return `The gateway is temporarily unavailable: ${tryAgain(this.retryAfterMs)}`
  }
}

/** The gateway cannot read or write a limit, so it does not know whether the limit is reached, and serves no request uncounted. */
export class LimitsUnavailable extends Schema.TaggedError<LimitsUnavailable>()("LimitsUnavailable", {
  /** Says who has which limit. */
  limit: Schema.String,
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `${this.limit} that the gateway cannot read or write at the moment: ${tryAgain(this.retryAfterMs)}`
  }
}

/** Fails with `Unavailable` whatever the failure: it is the gateway's own, and may be over soon. */
export const orUnavailable = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Unavailable, R> =>
  Effect.mapError(effect, Unavailable.briefly)

/** No key has this secret or, for a waiting task, this id any more. */
export class KeyInvalid extends Schema.TaggedError<KeyInvalid>()("KeyInvalid", {}) {
  override readonly message =
    "Invalid API key: incomplete, unknown or revoked. Ask the operator of the gateway for a valid key."
}

export class KeyInactive extends Schema.TaggedError<KeyInactive>()("KeyInactive", {
  reason: Schema.Literals(["disabled", "expired"])
}) {
  override get message() {
    const remedy = this.reason === "disabled" ? "enable it" : "extend its expiry date"
    return `The API key is ${this.reason}. Ask the operator of the gateway to ${remedy}.`
  }
}

/** The model exists, but the key may not use it. */
export class ModelNotAllowed extends Schema.TaggedError<ModelNotAllowed>()("ModelNotAllowed", {
  model: Text
}) {
  override readonly message =
    `The API key may not use the model '${this.model}'. GET /v1/models lists the models it may use.`
}

/** The beginning of a message about a limit or budget: whose it is, a team's or the key's. */
export const levelNamed = (team: string | undefined): string =>
  team === undefined ? "The API key" : `The team '${team}'`

/** The key, or one of its teams, has spent its monthly budget. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", {
  budgetUsd: Schema.Finite,
  /** The name of the team whose budget is spent. Absent if it is the key's. */
  team: Schema.optionalKey(Text),
  retryAfterMs: Schema.Finite
}) {
  override readonly message =
    `${levelNamed(this.team)} has spent its budget of ${this.budgetUsd} USD for this month (UTC). ` +
    "Wait until next month, or ask the operator of the gateway to raise the budget."
}

/** The operator's guardrail refused the request, or the rest of its answer. */
export class GuardrailRefused extends Schema.TaggedError<GuardrailRefused>()("GuardrailRefused", {
  direction: Schema.Literals(["request", "answer"]),
  /** The guardrail's words for the client. */
  explanation: nullByDefault(Text)
}) {
  override get message() {
    const refused = `The guardrail of the gateway refused the ${this.direction}`
    return this.explanation === null ? refused : `${refused}: ${this.explanation}`
  }
}

/** The operator's guardrail gave no verdict, and nothing may pass unchecked. */
export class GuardrailUnavailable extends Schema.TaggedError<GuardrailUnavailable>()("GuardrailUnavailable", {
  direction: Schema.Literals(["request", "answer"]),
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `The guardrail of the gateway could not check the ${this.direction}: ${tryAgain(this.retryAfterMs)}`
  }
}

/** A bug in the gateway. */
export class InternalError extends Schema.TaggedError<InternalError>()("InternalError", {}) {
  override get message() {
    return "Internal error. Report it to the operator of the gateway, with the value of the x-request-id response header."
  }
}

export const JobError = Schema.Union([
  InvalidRequest,
  ModelNotFound,
  ModelUnsuitable,
  ModelDisabled,
  ReferenceNotFound,
  ProviderRejected,
  ProviderRateLimited,
  ProviderFailed,
  ProviderTimeout,
  QueueFull,
  QueueTimeout,
  WorkerLost,
  PoisonJob,
  AnswerLost,
  Cancelled,
  Unavailable,
  LimitsUnavailable,
  KeyInvalid,
  KeyInactive,
  ModelNotAllowed,
  BudgetSpent,
  GuardrailRefused,
  GuardrailUnavailable,
  InternalError
])
export type JobError = typeof JobError.Type

/** Whether another call to the same target may succeed. */
export const isTransient = (error: JobError): boolean =>
  Predicate.isTagged(error, "ProviderRateLimited") ||
  Predicate.isTagged(error, "ProviderTimeout") ||
  (Predicate.isTagged(error, "ProviderFailed") && !finalReasons.includes(error.reason))

/** The reasons after which a retry at the same target would fail again, or could be billed twice. */
const finalReasons: ReadonlyArray<ProviderFailed["reason"]> = ["credentials", "credit", "unconfirmed", "result"]

/** Whether the provider is the cause, so that another provider may succeed. */
export const isProviderFault = (error: JobError): boolean =>
  isTransient(error) || Predicate.isTagged(error, "ProviderFailed")

/** Whether the provider certainly did no work, so that a retry cannot be billed twice. */
export const isUnsent = (error: JobError): boolean =>
  Predicate.isTagged(error, "ProviderRateLimited") ||
  Predicate.isTagged(error, "LimitsUnavailable") ||
  (Predicate.isTagged(error, "ProviderTimeout") && error.phase === "connect") ||
  (Predicate.isTagged(error, "ProviderFailed") && (untouched.includes(error.reason) || error.status === 503))

const untouched: ReadonlyArray<ProviderFailed["reason"]> = ["unreachable", "credentials", "credit", "resting"]

/** Whether the provider may bill the failed call: the call was sent, and did not get an error status. */
export const mayBeBilled = (error: JobError): boolean =>
  (Predicate.isTagged(error, "ProviderTimeout") && error.phase !== "connect") ||
  (Predicate.isTagged(error, "ProviderFailed") && begun.includes(error.reason))

const begun: ReadonlyArray<ProviderFailed["reason"]> = ["cut", "malformed", "error", "unconfirmed", "result"]
