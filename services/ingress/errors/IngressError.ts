/** Errors that ingress returns itself, without a worker. With `JobError`, these are all errors a client can see. */
import { Schema } from "effect"
import { contentCodings } from "../../../shared/bounds/ContentCoding.ts"
import { type JobError, levelNamed, tryAgain } from "../../../shared/contract/JobError.ts"
import { TokenCheck } from "../../../shared/keys/KeyRing.ts"
import { leastBytesPerSecond } from "../../../shared/process/http/ReceiveRate.ts"
import type { FileRefused } from "../../../shared/files/ClientFiles.ts"
import type { TaskStorageFull } from "../../../shared/tasks/TaskBytes.ts"

export class KeyMissing extends Schema.TaggedError<KeyMissing>()("KeyMissing", {
  /** How clients of the route may send a key. */
  ways: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Missing API key. Send it as ${this.ways.join(", or as ")}.`
  }
}

/** The token in place of an API key did not pass a check. */
export class TokenInvalid extends Schema.TaggedError<TokenInvalid>()("TokenInvalid", { check: TokenCheck }) {
  override get message() {
    return `Invalid token: ${tokenChecks[this.check]}. Send a fresh token made for this gateway, or an API key.`
  }
}

const tokenChecks: Readonly<Record<TokenCheck, string>> = {
  malformed: "it is not a signed JSON Web Token",
  alg: "its signature has no allowed asymmetric algorithm (alg)",
  kid: "its issuer has no such key (kid)",
  signature: "its signature is wrong",
  iss: "its issuer (iss) is not one of this gateway's",
  aud: "its audience (aud) is not this gateway",
  exp: "it has expired, or has no expiry (exp)",
  iat: "it has no time of issue (iat), or one in the future",
  nbf: "it is not valid yet (nbf)",
  lifetime: "its lifetime, from iat to exp, is too long",
  jti: "its lifetime is more than an hour, so it needs an id (jti)",
  claim: "it has no valid value in the claim that identifies its owner",
  revoked: "it was revoked",
  principal: "its owner may not use this gateway"
}

/** The name of the team whose limit was reached; absent if it is the key's own limit. */
const team = Schema.optionalKey(Schema.String)

/** The key, or a team above it, has reached a limit. */
export class KeyLimitReached extends Schema.TaggedError<KeyLimitReached>()("LimitReached", {
  limit: Schema.Literals(["requests", "tokens", "concurrent", "budget"]),
  /** The limit; in US dollars for `budget`. */
  max: Schema.Finite,
  team,
  retryAfterMs: Schema.Finite,
  /** How many of the concurrent requests wait for a provider, as far as this ingress knows: for any, and for the one with the most. */
  waiting: Schema.optionalKey(
    Schema.Struct({ requests: Schema.Int, provider: Schema.String, ofProvider: Schema.Int })
  )
}) {
  override get message() {
    if (this.limit === "budget") {
      return `${levelNamed(this.team)} has ${this.max} USD of its budget left, which running requests have reserved: ` +
        tryAgain(this.retryAfterMs)
    }
    const limit = `${this.max} ${unitsOf(this.limit)}`
    return `${levelNamed(this.team)} has reached its limit of ${limit}: ${this.#cause}${tryAgain(this.retryAfterMs)}`
  }

  get #cause(): string {
    if (this.waiting === undefined) return ""
    const { ofProvider, provider, requests } = this.waiting
    return ofProvider === requests
      ? `${requests} of them wait for the provider '${provider}'; `
      : `${requests} of them wait for providers, ${ofProvider} for '${provider}'; `
  }
}

const unitsOf = (limit: KeyLimitReached["limit"]): string =>
  limit === "concurrent" ? "concurrent requests" : `${limit} per minute`

/** What a key or team has, such as `a limit of 60 requests per minute`. */
export const limitNamed = (limit: KeyLimitReached["limit"], max: number): string =>
  limit === "budget" ? `${max} USD left of a budget` : `a limit of ${max} ${unitsOf(limit)}`

/** The request may use more tokens than the key may use in a minute, so waiting would not help. */
export class TokensOverLimit extends Schema.TaggedError<TokensOverLimit>()("TokensOverLimit", {
  /** The tokens that its answers may take, and the fields that set this number. */
  tokens: Schema.Finite,
  fields: Schema.NonEmptyArray(Schema.String),
  max: Schema.Int,
  team
}) {
  override get message() {
    const fields = this.fields.map((field) => `'${field}'`).join(" and ")
    const [allow, them] = this.fields.length === 1 ? ["allows", "it"] : ["allow", "them"]
    const level = this.team === undefined ? "the API key" : levelNamed(this.team)
    return `${fields} ${allow} ${this.tokens} tokens, but ${level} is limited to ${this.max} tokens per minute. ` +
      `Lower ${them}, or ask the operator of the gateway to raise the limit.`
  }
}

export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>()("BodyTooLarge", { limitBytes: Schema.Int }) {
  override readonly message = `The request body exceeds the limit of ${this.limitBytes} bytes`
}

export class MediaTypeUnsupported extends Schema.TaggedError<MediaTypeUnsupported>()("MediaTypeUnsupported", {}) {
  override readonly message = "The request body must be JSON. Send 'Content-Type: application/json'."
}

/** The body has a content coding that the gateway cannot decode, or too many. */
export class ContentCodingUnsupported
  extends Schema.TaggedError<ContentCodingUnsupported>()("ContentCodingUnsupported", { header: Schema.String })
{
  /** The error for the value of a `content-encoding`, which may be long. */
  static readonly of = (header: string) => new ContentCodingUnsupported({ header: header.slice(0, 100) })

  override readonly message = `The content encoding '${this.header}' of the request body is not supported. ` +
    `Send the body uncompressed, or with one of ${contentCodings.join(", ")}.`
}

export class RouteNotFound extends Schema.TaggedError<RouteNotFound>()("RouteNotFound", {
  method: Schema.String,
  path: Schema.String,
  /** The path, or the method and path, of a route that the client probably meant. */
  suggestion: Schema.UndefinedOr(Schema.String)
}) {
  override get message() {
    const help = this.suggestion === undefined ? "See /docs for all routes." : `Did you mean ${this.suggestion}?`
    return `No such route: ${this.method} ${this.path}. ${help}`
  }
}

/** A page of this origin may not call the gateway from a browser. */
export class OriginNotAllowed extends Schema.TaggedError<OriginNotAllowed>()("OriginNotAllowed", {
  origin: Schema.String
}) {
  /** The error for the value of an `origin`, which may be long. */
  static readonly of = (origin: string) => new OriginNotAllowed({ origin: origin.slice(0, 100) })

  override readonly message = `Pages of the origin '${this.origin}' may not call this gateway from a browser. ` +
    "To allow it, its operator adds the origin to GATEWAY_CORS_ORIGINS of the ingress."
}

/** A signed URL that has expired or whose signature is wrong. */
export class LinkRefused extends Schema.TaggedError<LinkRefused>()("LinkRefused", {
  reason: Schema.Literals(["expired", "forged"])
}) {
  override readonly message = this.reason === "expired"
    ? "The link has expired"
    : "Invalid link signature. Use the complete URL from the answer."
}

/** The signed URL is valid, but the file is no longer stored. */
export class FileNotFound extends Schema.TaggedError<FileNotFound>()("FileNotFound", {}) {
  override readonly message = "The file is no longer stored"
}

export class TaskNotFound extends Schema.TaggedError<TaskNotFound>()("TaskNotFound", {}) {
  override readonly message = "Task not found, expired, or owned by another API key"
}

export class TaskNotCompleted extends Schema.TaggedError<TaskNotCompleted>()("TaskNotCompleted", {
  status: Schema.String
}) {
  override readonly message = `The task has no result. Its status is '${this.status}'.`
}

/** The idempotency key was already used with another body. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()("IdempotencyKeyReused", {}) {
  override readonly message =
    "The idempotency key was already used for another request. Send a new key or repeat the same request."
}

/** The answer to the first request with the idempotency key was too large to be kept. */
export class AnswerNotKept extends Schema.TaggedError<AnswerNotKept>()("AnswerNotKept", {}) {
  override readonly message =
    "The request was answered before, but answers over 64 MB are not kept. Send the request with a new idempotency key."
}

export class RangeNotSatisfiable extends Schema.TaggedError<RangeNotSatisfiable>()("RangeNotSatisfiable", {
  /** The file's size in bytes. */
  size: Schema.Int
}) {
  override readonly message = `The requested range starts after the end of the file, which has ${this.size} bytes`
}

/** The route serves only WebSockets, or ingress has too many of them. With this error, Codex uses HTTP immediately. */
export class UpgradeRequired extends Schema.TaggedError<UpgradeRequired>()("UpgradeRequired", {}) {
  override readonly message = "This route accepts only WebSockets, and only a limited number of them. Use POST instead."
}

/** A WebSocket has reached its maximum age. Its running answers may finish. */
export class SocketExpired extends Schema.TaggedError<SocketExpired>()("SocketExpired", { minutes: Schema.Int }) {
  override readonly message = `The WebSocket has been open for ${this.minutes} minutes. Open a new one to continue.`
}

export class TooManyLanes extends Schema.TaggedError<TooManyLanes>()("TooManyLanes", { max: Schema.Int }) {
  override readonly message =
    `A WebSocket has at most ${this.max} values of 'stream_id'. Use one of them, or open another WebSocket.`
}

/** The request is not valid HTTP, incomplete, or ambiguous: two parsers could read it differently. */
export class RequestUnreadable extends Schema.TaggedError<RequestUnreadable>()("RequestUnreadable", {
  reason: Schema.Literals(["syntax", "expectation", "headers", "extensions", "timeout", "slow"]),
  /** Replaces the message of the reason. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override readonly message = this.detail ?? unreadable[this.reason]
}

const unreadable = {
  syntax: "The request is incomplete or not valid HTTP",
  expectation: "The Expect header must be '100-continue'",
  headers: "The request headers are too large",
  extensions: "The chunk extensions of the request are too large",
  timeout: "The request did not arrive in time",
  slow: `The request body arrived at less than ${leastBytesPerSecond} bytes per second`
} as const

export type RequestError =
  | JobError
  | KeyMissing
  | TokenInvalid
  | KeyLimitReached
  | TokensOverLimit
  | BodyTooLarge
  | MediaTypeUnsupported
  | ContentCodingUnsupported
  | RouteNotFound
  | OriginNotAllowed
  | LinkRefused
  | FileNotFound
  | FileRefused
  | TaskNotFound
  | TaskNotCompleted
  | IdempotencyKeyReused
  | AnswerNotKept
  | TaskStorageFull
  | RangeNotSatisfiable
  | RequestUnreadable
  | UpgradeRequired
  | SocketExpired
  | TooManyLanes
