/** What ingress itself refuses before there is a job. Together with `JobError` this is everything a client can be told. */
import { Schema } from "effect"
import { type JobError, tryAgain } from "../../../shared/contract/JobError.ts"

export class KeyMissing extends Schema.TaggedError<KeyMissing>()("KeyMissing", {}) {
  override get message() {
    return "No API key was given. Send it as 'Authorization: Bearer <key>'"
  }
}

export class KeyInvalid extends Schema.TaggedError<KeyInvalid>()("KeyInvalid", {}) {
  override get message() {
    return "The API key is not valid: it is not whole, or was revoked"
  }
}

export class KeyInactive extends Schema.TaggedError<KeyInactive>()("KeyInactive", {
  reason: Schema.Literals(["disabled", "expired"])
}) {
  override get message() {
    return `The API key is ${this.reason}: whoever runs the gateway can change that`
  }
}

/** The model is there, but not for this key. */
export class ModelNotAllowed extends Schema.TaggedError<ModelNotAllowed>()("ModelNotAllowed", {
  model: Schema.String
}) {
  override get message() {
    return `The API key may not use the model '${this.model}': GET /v1/models lists those that it may`
  }
}

/** The key has used up what it may use at a time. */
export class LimitReached extends Schema.TaggedError<LimitReached>()("LimitReached", {
  limit: Schema.Literals(["requests", "tokens", "concurrent"]),
  most: Schema.Int,
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    const limit = this.limit === "concurrent" ? "requests at the same time" : `${this.limit} per minute`
    return `The API key has reached its limit of ${this.most} ${limit}: ${tryAgain(this.retryAfterMs)}`
  }
}

/** The request asks for more at once than the key may use in a minute, so waiting would not help. */
export class TokensOverLimit extends Schema.TaggedError<TokensOverLimit>()("TokensOverLimit", {
  /** Tokens that its answers may take, and the fields that say so. */
  tokens: Schema.Finite,
  fields: Schema.NonEmptyArray(Schema.String),
  most: Schema.Int
}) {
  override get message() {
    const fields = this.fields.map((field) => `'${field}'`).join(" and ")
    const [allow, them] = this.fields.length === 1 ? ["allows", "it"] : ["allow", "them"]
    return `${fields} ${allow} ${this.tokens} tokens, but the API key is limited to ${this.most} tokens per minute: ` +
      `lower ${them}, or raise the key's limit`
  }
}

/** The key has spent what it may spend in a month. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", {
  budgetUsd: Schema.Finite,
  retryAfterMs: Schema.Finite
}) {
  override get message() {
    return `The API key has spent its budget of ${this.budgetUsd} USD for this month (UTC)`
  }
}

export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>()("BodyTooLarge", { limitBytes: Schema.Int }) {
  override get message() {
    return `The request body is larger than ${this.limitBytes} bytes, the most that is taken`
  }
}

export class MediaTypeUnsupported extends Schema.TaggedError<MediaTypeUnsupported>()("MediaTypeUnsupported", {}) {
  override get message() {
    return "The request body must be JSON, with 'Content-Type: application/json'"
  }
}

export class RouteNotFound extends Schema.TaggedError<RouteNotFound>()("RouteNotFound", {
  method: Schema.String,
  path: Schema.String,
  /** Where there is what was looked for, as far as one can tell. */
  meant: Schema.UndefinedOr(Schema.String)
}) {
  override get message() {
    const help = this.meant === undefined ? "/docs describes what there is" : `it is at ${this.meant}`
    return `There is nothing at ${this.method} ${this.path}: ${help}`
  }
}

/** The address of a file that nobody here signed, or not for now. */
export class LinkRefused extends Schema.TaggedError<LinkRefused>()("LinkRefused", {
  reason: Schema.Literals(["expired", "forged"])
}) {
  override get message() {
    return this.reason === "expired"
      ? "The link has expired"
      : "The link's signature is not valid: use the address whole, as it was given"
  }
}

/** The address is right, but what it named is not kept any more. */
export class FileNotFound extends Schema.TaggedError<FileNotFound>()("FileNotFound", {}) {
  override get message() {
    return "The file is not kept any more"
  }
}

/** There is no such task, not any more, or not of this client. */
export class TaskNotFound extends Schema.TaggedError<TaskNotFound>()("TaskNotFound", {}) {
  override get message() {
    return "There is no such task, not any more, or it is another API key's"
  }
}

/** The result of a task was asked for that has none. */
export class TaskNotCompleted extends Schema.TaggedError<TaskNotCompleted>()("TaskNotCompleted", {
  status: Schema.String
}) {
  override get message() {
    return `The task has no result: it is ${this.status}`
  }
}

/** The idempotency key came before with another body. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()("IdempotencyKeyReused", {}) {
  override get message() {
    return "The idempotency key was used before for another request: send a new one, or the same request"
  }
}

/** The part of a file that was asked for lies behind its end. */
export class RangeNotSatisfiable extends Schema.TaggedError<RangeNotSatisfiable>()("RangeNotSatisfiable", {
  /** Bytes. */
  size: Schema.Int
}) {
  override get message() {
    return `The range begins behind the end of the file, which has ${this.size} bytes`
  }
}

/** What came is not a whole HTTP request, or one that two readers could understand differently. */
export class RequestUnreadable extends Schema.TaggedError<RequestUnreadable>()("RequestUnreadable", {
  reason: Schema.Literals(["syntax", "expectation", "headers", "extensions", "timeout"]),
  /** What is wrong, where more is known than the reason. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    if (this.detail !== undefined) return this.detail
    switch (this.reason) {
      case "syntax":
        return "What was sent is not a whole HTTP request"
      case "expectation":
        return "The Expect header must be '100-continue'"
      case "headers":
        return "The headers of the request are too large"
      case "extensions":
        return "The chunk extensions of the request are too large"
      case "timeout":
        return "The request did not arrive in time"
    }
  }
}

export type RequestError =
  | JobError
  | KeyMissing
  | KeyInvalid
  | KeyInactive
  | ModelNotAllowed
  | LimitReached
  | TokensOverLimit
  | BudgetSpent
  | BodyTooLarge
  | MediaTypeUnsupported
  | RouteNotFound
  | LinkRefused
  | FileNotFound
  | TaskNotFound
  | TaskNotCompleted
  | IdempotencyKeyReused
  | RangeNotSatisfiable
  | RequestUnreadable
