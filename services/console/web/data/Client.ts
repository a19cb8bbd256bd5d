/** The typed client of the admin API, derived from the same value as the server. */
import { Effect } from "effect"
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

/** Makes the call. Rejects with the error as its schema has it, which has a `_tag` and a `message`. */
export const call = <A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> =>
  Effect.runPromise(effect, { signal })

const tagOf = (error: unknown): string | undefined =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string"
    ? error._tag
    : undefined

export const isNotSignedIn = (error: unknown): boolean => tagOf(error) === "NotSignedIn"

/** The console keeps no traces: a collector does. */
export const isTracedElsewhere = (error: unknown): boolean => tagOf(error) === "TracesElsewhere"

/** The trace has not come, or is not kept any more. */
export const isNoTrace = (error: unknown): boolean => tagOf(error) === "TraceUnknown"

/** What to tell whoever is waiting. */
export const messageOf = (error: unknown): string => {
  if (tagOf(error) === "HttpClientError") return "The console does not answer. Is it still running?"
  if (error instanceof HttpApiError.BadRequestProblem && error.detail !== undefined) return error.detail
  return error instanceof Error && error.message !== "" ? error.message : "Something went wrong"
}
