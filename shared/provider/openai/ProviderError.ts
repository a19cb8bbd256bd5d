/** Turns an error answer of an OpenAI-compatible provider into what the client may know of it. */
import { Clock, DateTime, Effect, Option, Schema } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import type { JobError } from "../../contract/JobError.ts"
import { ProviderFailed, ProviderRateLimited, ProviderRejected } from "../../contract/JobError.ts"

const Loose = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite])))
const ErrorBody = Schema.fromJsonString(Schema.Struct({
  error: Schema.Struct({ message: Loose, type: Loose, param: Loose, code: Loose })
}))
const decodeBody = Schema.decodeUnknownOption(ErrorBody)

/** As much of an error's body as is read. */
export const maxErrorBytes = 64 * 1024

/** `retry-after-ms`, or `retry-after` in seconds or as a date; `null` where neither makes sense. In milliseconds. */
export const retryAfter = Effect.fnUntraced(function*(headers: IncomingHttpHeaders) {
  const milliseconds = Number(headers["retry-after-ms"] ?? Number.NaN)
  if (milliseconds >= 0) return milliseconds
  const value = headers["retry-after"]
  if (value === undefined) return null
  const seconds = Number(value)
  if (seconds >= 0) return seconds * 1_000
  const date = DateTime.make(value)
  return Option.isNone(date) ? null : Math.max(0, DateTime.toEpochMillis(date.value) - (yield* Clock.currentTimeMillis))
})

/**
 * A 4xx about the request keeps its status and message. Refused credentials are the gateway's fault, not the client's,
 * and what the provider says about them may quote a key: they become a 502 without its words.
 */
export const fromAnswer = Effect.fnUntraced(function*(
  provider: string,
  status: number,
  headers: IncomingHttpHeaders,
  body: string,
  secrets: ReadonlyArray<string>
): Effect.fn.Return<JobError> {
  const retryAfterMs = yield* retryAfter(headers)
  if (status === 429) return new ProviderRateLimited({ provider, retryAfterMs })
  if (status === 401 || status === 403) {
    return new ProviderFailed({ provider, reason: "credentials", status, retryAfterMs: null })
  }
  if (status < 400 || status >= 500 || status === 408) {
    return new ProviderFailed({ provider, reason: "status", status, retryAfterMs })
  }
  const error = Option.getOrUndefined(decodeBody(body))?.error
  return new ProviderRejected({
    provider,
    status,
    message: redact(textOf(error?.message) ?? `The provider '${provider}' rejected the request`, secrets),
    type: textOf(error?.type) ?? null,
    param: textOf(error?.param) ?? null,
    code: textOf(error?.code) ?? null
  })
})

const textOf = (value: string | number | null | undefined): string | undefined =>
  value === null || value === undefined ? undefined : String(value)

const redact = (message: string, secrets: ReadonlyArray<string>): string =>
  secrets.reduce((text, secret) => secret === "" ? text : text.replaceAll(secret, "[redacted]"), message)
