/**
 * Everything that can go wrong with a request, as the closed union that crosses the bus.
 *
 * The cause of an error stays in the process where it happened; what travels is what the client may know. Messages hold
 * no payloads, keys or addresses. Statuses and envelopes are the ingress's business.
 */
import { Predicate, Schema } from "effect"

/** What a client may do that was turned away for a while. */
export const tryAgain = (afterMs: number): string => `try again in ${Math.max(1, Math.ceil(afterMs / 1_000))} s`

/** The request itself is wrong. `param` is the path of the field, as in `messages[0].content`. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  message: Schema.String,
  param: Schema.NullOr(Schema.String),
  code: Schema.String
}) {
  /** What is wrong with a field, as in `must be a number`. */
  static readonly at = (param: string, what: string, code = "invalid_value") =>
    new InvalidRequest({ message: `${param}: ${what}`, param, code })
}

/** No model of that name serves this operation. */
export class ModelNotFound extends Schema.TaggedError<ModelNotFound>()("ModelNotFound", {
  model: Schema.String
}) {
  override get message() {
    // clients can write anything there
    return `The model '${
      this.model.slice(0, 200)
    }' does not exist or does not serve this operation: GET /v1/models lists the models`
  }
}

/** The request names something that is not there, not any more, or not this client's. `param` is the field that names it. */
export class ReferenceNotFound extends Schema.TaggedError<ReferenceNotFound>()("ReferenceNotFound", {
  param: Schema.String
}) {
  override get message() {
    return `${this.param}: there is nothing of that id, not any more, or it is another API key's`
  }
}

/** A provider's answer of 4xx about the request, passed on with its own status and message. */
export class ProviderRejected extends Schema.TaggedError<ProviderRejected>()("ProviderRejected", {
  provider: Schema.String,
  status: Schema.Int,
  message: Schema.String,
  type: Schema.NullOr(Schema.String),
  param: Schema.NullOr(Schema.String),
  code: Schema.NullOr(Schema.String)
}) {}

/**
 * The provider turned the request away for its limits, or the gateway did, which was told of them. `retryAfterMs` is when to
 * come back, where that is known.
 */
export class ProviderRateLimited extends Schema.TaggedError<ProviderRateLimited>()("ProviderRateLimited", {
  provider: Schema.String,
  retryAfterMs: Schema.NullOr(Schema.Finite)
}) {
  override get message() {
    const reached = `The provider '${this.provider}' is at its rate limit`
    return this.retryAfterMs === null ? reached : `${reached}: ${tryAgain(this.retryAfterMs)}`
  }
}

const operatorsDuty = "whoever runs the gateway has to mend that"

/**
 * The provider failed. `credentials`: it does not serve the gateway's account. `credit`: nor while that is without credit.
 * `unreachable`: nothing was sent to it. `cut`: it broke off before its answer was whole. `unconfirmed`: it may have begun
 * costly work that it never confirmed. `result`: it has done the work, but the result cannot be fetched from where it
 * says. `resting`: it has failed too often just now to be called at all.
 */
export class ProviderFailed extends Schema.TaggedError<ProviderFailed>()("ProviderFailed", {
  provider: Schema.String,
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
  status: Schema.NullOr(Schema.Int),
  retryAfterMs: Schema.NullOr(Schema.Finite),
  /** What is wrong with an answer that is `malformed`, where there is more to say. */
  detail: Schema.optionalKey(Schema.String)
}) {
  /** Its answer makes no sense. */
  static readonly malformed = (provider: string, detail?: string) =>
    new ProviderFailed({
      provider,
      reason: "malformed",
      status: null,
      retryAfterMs: null,
      ...(detail === undefined ? {} : { detail })
    })

  override get message() {
    switch (this.reason) {
      case "unreachable":
        return `The provider '${this.provider}' could not be reached`
      case "status":
        return `The provider '${this.provider}' failed with status ${this.status}`
      case "credentials":
        return `The provider '${this.provider}' refused the gateway's credentials: ${operatorsDuty}`
      case "credit":
        return `The gateway's account at the provider '${this.provider}' has no credit left: ${operatorsDuty}`
      case "cut":
        return `The provider '${this.provider}' broke off its answer: send the request again`
      case "malformed":
        return `The provider '${this.provider}' sent an answer that cannot be understood` +
          (this.detail === undefined ? "" : `: ${this.detail}`)
      case "error":
        return `The provider '${this.provider}' reported an error in the middle of its answer`
      case "unconfirmed":
        return `The provider '${this.provider}' may have begun the work without confirming it; it was not asked again`
      case "result":
        return `The result of the provider '${this.provider}' could not be fetched`
      case "resting":
        return `The provider '${this.provider}' has failed too often just now and is given a rest: try again later`
    }
  }
}

/** The provider did not answer in time: no first byte, or silence in the middle, or more than the whole time allowed. */
export class ProviderTimeout extends Schema.TaggedError<ProviderTimeout>()("ProviderTimeout", {
  provider: Schema.String,
  phase: Schema.Literals(["connect", "first byte", "idle", "total"])
}) {
  override get message() {
    return `The provider '${this.provider}' ${late[this.phase]}`
  }
}

const late = {
  "connect": "could not be connected to in time",
  "first byte": "did not begin to answer in time",
  "idle": "fell silent in the middle of its answer",
  "total": "did not finish its answer in time"
} as const

/** The queue of this workload is full. */
export class QueueFull extends Schema.TaggedError<QueueFull>()("QueueFull", {
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `Too many requests are waiting for this model: ${tryAgain(this.retryAfterMs)}`
  }
}

/** No worker took the job before its deadline. */
export class QueueTimeout extends Schema.TaggedError<QueueTimeout>()("QueueTimeout", {
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `No worker was free to take the request in time: ${tryAgain(this.retryAfterMs)}`
  }
}

/** The worker died or hung after it had begun, where the work may not be done a second time. */
export class WorkerLost extends Schema.TaggedError<WorkerLost>()("WorkerLost", {}) {
  override get message() {
    return "The worker of this request was lost while it ran. The request was not begun anew, which might be paid for twice: "
      + "send it again if it may"
  }
}

/** Several workers died or hung over the same job, one after the other: it is most likely the cause, and is over for good. */
export class PoisonJob extends Schema.TaggedError<PoisonJob>()("PoisonJob", {}) {
  override get message() {
    return "Two workers were lost one after the other while they worked on this request, so it was not given to a third. "
      + "Do not send it again: the operator of the gateway can find it in the log by the id in the header x-request-id"
  }
}

/** Frames of the answer were lost between worker and ingress. */
export class AnswerLost extends Schema.TaggedError<AnswerLost>()("AnswerLost", {}) {
  override get message() {
    return "A part of the answer was lost on its way: send the request again"
  }
}

/** The job was abandoned because nobody waits for it any more. Never shown to a client. */
export class Cancelled extends Schema.TaggedError<Cancelled>()("Cancelled", {}) {
  override get message() {
    return "The request was cancelled"
  }
}

/** The gateway cannot do its work just now, because NATS is away or the service is shutting down. */
export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", {
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `The gateway is not available just now: ${tryAgain(this.retryAfterMs)}`
  }
}

/** A mistake of ours. */
export class InternalError extends Schema.TaggedError<InternalError>()("InternalError", {}) {
  override get message() {
    return "The gateway failed on this request: whoever runs it finds out why by the id in the header x-request-id"
  }
}

export const JobError = Schema.Union([
  InvalidRequest,
  ModelNotFound,
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
  InternalError
])
export type JobError = typeof JobError.Type

/** Whether another attempt, at the same provider or another, may succeed where this one did not. */
export const isTransient = (error: JobError): boolean =>
  Predicate.isTagged(error, "ProviderRateLimited") ||
  Predicate.isTagged(error, "ProviderTimeout") ||
  (Predicate.isTagged(error, "ProviderFailed") && !finalReasons.includes(error.reason))

/** What will be no better at another attempt, or must not be paid for twice. */
const finalReasons: ReadonlyArray<ProviderFailed["reason"]> = ["credentials", "credit", "unconfirmed", "result"]

/** Whether it is the provider's own failure, which another provider need not share. */
export const isProviders = (error: JobError): boolean =>
  isTransient(error) || Predicate.isTagged(error, "ProviderFailed")

/** Whether the provider surely did nothing of what it was asked for, so that asking again costs nothing twice. */
export const isUnsent = (error: JobError): boolean =>
  Predicate.isTagged(error, "ProviderRateLimited") ||
  (Predicate.isTagged(error, "ProviderTimeout") && error.phase === "connect") ||
  (Predicate.isTagged(error, "ProviderFailed") && (untouched.includes(error.reason) || error.status === 503))

const untouched: ReadonlyArray<ProviderFailed["reason"]> = ["unreachable", "credentials", "credit", "resting"]
