/** One call of a model of the AI SDK as an effect: with its deadline, its abort, and its errors in the gateway's own terms. */
import { Effect, Predicate } from "effect"
import { InvalidRequest, type JobError, ProviderFailed, ProviderTimeout } from "../../../contract/JobError.ts"
import * as TraceParent from "../../../telemetry/TraceParent.ts"
import { Commitment } from "../../transport/Commitment.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import { FetchRefused } from "../../transport/GuardedFetch.ts"
import * as ProviderError from "../../exchange/ProviderError.ts"
import { networkFailure } from "../../transport/Upstream.ts"

/** What every call of a model takes. */
export interface CallOptions {
  readonly abortSignal: AbortSignal
  readonly headers: Record<string, string>
}

export interface Attempt {
  readonly endpoint: Endpoint.Endpoint
  readonly secrets: ReadonlyArray<string>
  /** Instead of the catalogue's total, where that is longer. Milliseconds. */
  readonly withinMs?: number
}

/** Interruption aborts the call, and so does its deadline, whether the effect can be interrupted or not. */
export const attempt = <A>(
  options: Attempt,
  use: (options: CallOptions) => PromiseLike<A>
): Effect.Effect<A, JobError> => Effect.andThen(Effect.flatten(Commitment), called(options, use))

const called = <A>(
  { endpoint, secrets, withinMs = Infinity }: Attempt,
  use: (options: CallOptions) => PromiseLike<A>
): Effect.Effect<A, JobError> =>
  Effect.flatMap(TraceParent.current, (traceparent) =>
    Effect.callback<A, JobError>((resume) => {
      const controller = new AbortController()
      const end = (exit: Effect.Effect<A, JobError>) => {
        clearTimeout(deadline)
        resume(exit)
      }
      const deadline = setTimeout(() => {
        end(Effect.fail(new ProviderTimeout({ provider: endpoint.name, phase: "total" })))
        controller.abort()
      }, Math.min(Endpoint.timeoutsOf(endpoint).totalMs, withinMs))
      const headers = traceparent === undefined ? {} : { traceparent }
      // a package may throw before there is a promise
      new Promise<A>((resolve) => resolve(use({ abortSignal: controller.signal, headers }))).then(
        (value) => end(Effect.succeed(value)),
        (error: unknown) => end(Effect.flatMap(failureOf(endpoint.name, error, secrets), Effect.fail))
      )
      return Effect.sync(() => {
        clearTimeout(deadline)
        controller.abort()
      })
    }))

/** The packages' errors are told by their marks: each package may come with a class of its own. */
export const isMarked = (error: unknown, name: string): boolean =>
  Predicate.hasProperty(error, Symbol.for(`vercel.ai.error.${name}`))

const mistakes = ["AI_UnsupportedFunctionalityError", "AI_InvalidArgumentError", "AI_InvalidPromptError"]
const credentials = ["AI_LoadAPIKeyError", "AI_LoadSettingError"]
const malformed = [
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError"
]

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** What was thrown by a package, in the gateway's own terms. */
export const failureOf = Effect.fnUntraced(function*(
  provider: string,
  error: unknown,
  secrets: ReadonlyArray<string>
): Effect.fn.Return<JobError> {
  const failed = (reason: ProviderFailed["reason"]) =>
    new ProviderFailed({ provider, reason, status: null, retryAfterMs: null })
  if (!Predicate.isObject(error)) return failed("error")
  const message = ProviderError.redact(textOf(error["message"]), secrets)
  const status = isMarked(error, "AI_APICallError") ? error["statusCode"] : undefined
  if (typeof status === "number") return yield* fromStatus(provider, status, error, secrets)
  if (mistakes.some((name) => isMarked(error, name))) {
    return new InvalidRequest({ message, param: null, code: "not_supported" })
  }
  if (credentials.some((name) => isMarked(error, name))) return failed("credentials")
  if (malformed.some((name) => isMarked(error, name))) return failed("malformed")
  const causes = causesOf(error)
  // the SDK has a guard of its own before ours
  if (isMarked(error, "AI_DownloadError") || causes.some((cause) => cause instanceof FetchRefused)) {
    yield* Effect.logWarning("a package of the AI SDK was refused an address", { provider })
    return failed("result")
  }
  if (causes.some((cause) => networkCodeOf(cause) !== undefined)) return fromNetwork(provider, causes)
  yield* Effect.logWarning("a package of the AI SDK failed", { provider, name: textOf(error["name"]), message })
  return failed("error")
})

const fromStatus = Effect.fnUntraced(function*(
  provider: string,
  status: number,
  { isRetryable, message, responseBody, responseHeaders }: { readonly [key: PropertyKey]: unknown },
  secrets: ReadonlyArray<string>
) {
  const headers = Predicate.isObject(responseHeaders) ? responseHeaders as Record<string, string> : {}
  // where the package has made more of the body than can be seen here, its words are taken
  const body = ProviderError.hasMessage(textOf(responseBody)) ? textOf(responseBody) : JSON.stringify({ message })
  if (status >= 200 && status < 300) {
    return ProviderFailed.malformed(provider)
  }
  const failure = yield* ProviderError.fromAnswer(provider, status, headers, body, secrets)
  return failure._tag === "ProviderRejected" && isRetryable === true
    ? new ProviderFailed({
      provider,
      reason: "status",
      status,
      retryAfterMs: yield* ProviderError.retryAfter(headers)
    })
    : failure
})

/** An error and what it says that it came from. */
const causesOf = (error: unknown): ReadonlyArray<unknown> => {
  const causes: Array<unknown> = []
  for (let cause = error; cause !== undefined && cause !== null && causes.length < 8;) {
    causes.push(cause)
    cause = Predicate.hasProperty(cause, "cause") ? cause.cause : undefined
  }
  return causes
}

const networkCodeOf = (cause: unknown): string | undefined => {
  const code = Predicate.hasProperty(cause, "code") ? textOf(cause.code) : ""
  return /^(UND_ERR|E[A-Z_]+)/.test(code) ? code : undefined
}

/** Codes of connections that were never made. */
const unmade = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]

const fromNetwork = (provider: string, causes: ReadonlyArray<unknown>): JobError => {
  const code = causes.map(networkCodeOf).find((code) => code !== undefined)
  return networkFailure(provider, code, code === undefined || !unmade.includes(code))
}
