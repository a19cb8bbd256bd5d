/** Runs calls of AI SDK models as effects, with deadline and abort, and maps the packages' errors to the gateway's. */
import { Effect, Predicate } from "effect"
import { InvalidRequest, type JobError, ProviderFailed } from "../../../contract/JobError.ts"
import * as TraceParent from "../../../telemetry/TraceParent.ts"
import { Commitment } from "../../transport/Commitment.ts"
import * as Endpoint from "../../transport/Endpoint.ts"
import { FetchRefused } from "../../transport/GuardedFetch.ts"
import * as ProviderError from "../../exchange/ProviderError.ts"
import { networkFailure } from "../../transport/Upstream.ts"

/** The options of every model call. */
export interface CallOptions {
  readonly abortSignal: AbortSignal
  readonly headers: Record<string, string>
}

export interface Attempt {
  readonly endpoint: Endpoint.Endpoint
  readonly secrets: ReadonlyArray<string>
  /** Replaces the catalogue's total timeout if shorter, in milliseconds. */
  readonly withinMs?: number
}

/** Has a package call the provider. Interruption aborts the call, and so does its deadline, even in an uninterruptible region. */
export const attempt = <A>(
  options: Attempt,
  use: (options: CallOptions) => PromiseLike<A>
): Effect.Effect<A, JobError> => Effect.andThen(Effect.flatten(Commitment), ask(options, use))

/** Asks a package for something for which it calls no provider, such as its limits. Otherwise the same as `attempt`. */
export const ask = <A>(
  { endpoint, secrets, withinMs }: Attempt,
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
        end(Effect.fail(Endpoint.timedOut(endpoint, "total", { withinMs })))
        controller.abort()
      }, Endpoint.timeoutsOf(endpoint, { withinMs }).totalMs)
      const headers = traceparent === undefined ? {} : { traceparent }
      // a package may throw before it returns a promise
      new Promise<A>((resolve) => resolve(use({ abortSignal: controller.signal, headers }))).then(
        (value) => end(Effect.succeed(value)),
        (error: unknown) => end(Effect.flatMap(failureOf(endpoint.name, error, secrets), Effect.fail))
      )
      return Effect.sync(() => {
        clearTimeout(deadline)
        controller.abort()
      })
    }))

/** Recognises the SDK's errors by their marks, because each package may bundle its own classes. */
export const isMarked = (error: unknown, name: string): boolean =>
  Predicate.hasProperty(error, Symbol.for(`vercel.ai.error.${name}`))

const requestErrors = ["AI_UnsupportedFunctionalityError", "AI_InvalidArgumentError", "AI_InvalidPromptError"]
const credentials = ["AI_LoadAPIKeyError", "AI_LoadSettingError"]
const malformed = [
  "AI_JSONParseError",
  "AI_TypeValidationError",
  "AI_InvalidResponseDataError",
  "AI_EmptyResponseBodyError",
  "AI_NoContentGeneratedError"
]

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** The gateway's error for one that a package has thrown. */
export const failureOf = Effect.fnUntraced(function*(
  provider: string,
  error: unknown,
  secrets: ReadonlyArray<string>
): Effect.fn.Return<JobError> {
  const failed = (reason: ProviderFailed["reason"]) => new ProviderFailed({ provider, reason })
  if (!Predicate.isObject(error)) return failed("error")
  const message = ProviderError.redact(textOf(error["message"]), secrets)
  const status = isMarked(error, "AI_APICallError") ? error["statusCode"] : undefined
  if (typeof status === "number") return yield* fromStatus(provider, status, error, secrets)
  if (requestErrors.some((name) => isMarked(error, name))) {
    return new InvalidRequest({ message, param: null, code: "not_supported" })
  }
  if (credentials.some((name) => isMarked(error, name))) return failed("credentials")
  if (malformed.some((name) => isMarked(error, name))) return failed("malformed")
  const causes = causesOf(error)
  // the SDK has its own guard before the gateway's
  if (isMarked(error, "AI_DownloadError") || causes.some((cause) => cause instanceof FetchRefused)) {
    yield* Effect.logWarning("blocked an AI SDK package from a private address", { provider })
    return failed("result")
  }
  if (causes.some((cause) => networkCodeOf(cause) !== undefined)) return fromNetwork(provider, causes)
  yield* Effect.logWarning("an AI SDK package failed", { provider, name: textOf(error["name"]), message })
  return failed("error")
})

const fromStatus = Effect.fnUntraced(function*(
  provider: string,
  status: number,
  { isRetryable, message, responseBody, responseHeaders }: { readonly [key: PropertyKey]: unknown },
  secrets: ReadonlyArray<string>
) {
  const headers = Predicate.isObject(responseHeaders) ? responseHeaders as Record<string, string> : {}
  // if the body has no message in a known form, the package may have found one
  const body = ProviderError.hasMessage(textOf(responseBody)) ? textOf(responseBody) : JSON.stringify({ message })
  if (status >= 200 && status < 300) return ProviderFailed.malformed(provider)
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

/** An error and its chain of causes. */
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

/** Codes of connections that failed to open. */
const unconnected = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]

const fromNetwork = (provider: string, causes: ReadonlyArray<unknown>): JobError => {
  const code = causes.map(networkCodeOf).find((code) => code !== undefined)
  return networkFailure(provider, code, code === undefined || !unconnected.includes(code))
}
