/** The typed client of the admin API. */
import { Effect, Predicate } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient, HttpApiError } from "effect/http-api"
import { pageHeader } from "../../api/Admin.ts"
import { ConsoleApi } from "../../api/Api.ts"

export const client = Effect.runSync(
  HttpApiClient.make(ConsoleApi, {
    baseUrl: location.origin,
    transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader(pageHeader, "1"))
  }).pipe(Effect.provide(FetchHttpClient.layer))
)

/** Runs a call. Rejects with the typed error, which has a `_tag` and a `message`. */
export const call = <A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> =>
  Effect.runPromise(effect, { signal })

export const isNotSignedIn = Predicate.isTagged("NotSignedIn")

/** The services send their traces to a collector. */
export const isTracedElsewhere = Predicate.isTagged("TracesElsewhere")

export const isNoWebhook = Predicate.isTagged("WebhookUnknown")

/** The trace has not arrived yet, or was evicted. */
export const isNoTrace = Predicate.isTagged("TraceUnknown")

export const messageOf = (error: unknown): string => {
  if (Predicate.isTagged(error, "HttpClientError")) return "The console does not answer. Check that it is running."
  if (error instanceof HttpApiError.BadRequestProblem && error.detail !== undefined) return error.detail
  return error instanceof Error && error.message !== "" ? error.message : "Something went wrong"
}
