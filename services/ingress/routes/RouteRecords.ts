/** Records the requests of Effect's router, and answers those that have no handler or whose handler failed. */
import { Cause, Context, Effect, Exit, Option, Scope, Tracer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { InternalError } from "../../../shared/contract/JobError.ts"
import { OriginNotAllowed } from "../errors/IngressError.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import { isPreflight } from "../exchange/CrossOrigin.ts"
import { CurrentRequest, type RequestRecord } from "../record/RequestRecord.ts"
import { RequestRecords } from "../record/RequestRecords.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"

/** Answers a path without a route, or a defect. Fails again if the client has disconnected. */
const answerFailure = Effect.fnUntraced(function*<E>(
  cause: Cause.Cause<E>,
  record: RequestRecord
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest> {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RouteNotFound") {
    const { headers, method, url } = yield* HttpServerRequest.HttpServerRequest
    const error = isPreflight(method, headers)
      ? OriginNotAllowed.of(headers["origin"] ?? "")
      : RouteTemplate.notFound(method, url)
    record.markFailed(error._tag)
    return ErrorEnvelope.toResponse(RouteTemplate.dialectOf(url), error, record.id)
  }
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
  const error = new InternalError()
  record.markFailed(error._tag)
  yield* Effect.logError("request failed with an internal error", { requestId: record.id }, cause)
  return ErrorEnvelope.toResponse("openai", error, record.id)
})

/** Provides each request's record and adds the headers to each response. */
export const layer = HttpRouter.middleware<{ provides: CurrentRequest }>()(
  Effect.gen(function*() {
    const records = yield* RequestRecords

    const complete = (response: HttpServerResponse.HttpServerResponse, record: RequestRecord) =>
      HttpServerResponse.setHeaders(response, records.answering(record, response.status))

    /** The record ends with the request's scope: the last byte is written, or the client has disconnected. */
    const begin = (
      { headers, method, remoteAddress, url }: HttpServerRequest.HttpServerRequest,
      scope: Scope.Scope
    ) => {
      const record = records.begin({
        method,
        headers,
        route: RouteTemplate.of(method, url),
        remoteAddress: Option.getOrUndefined(remoteAddress)
      })
      const followed = Scope.addFinalizerExit(scope, (exit) => {
        records.end(record, Exit.hasInterrupts(exit))
        return Effect.void
      })
      return { record, followed }
    }

    return (handler) =>
      Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest | Scope.Scope>) => {
        const request = Context.get(context, HttpServerRequest.HttpServerRequest)
        const { followed, record } = begin(request, Context.get(context, Scope.Scope))
        const answered = handler.pipe(
          Effect.matchCauseEffect({
            onFailure: (cause) => Effect.map(answerFailure(cause, record), (response) => complete(response, record)),
            onSuccess: (response) => Effect.succeed(complete(response, record))
          }),
          // separately: providing a whole context would merge it with a copy of the process's context
          Effect.provideService(CurrentRequest, record),
          Effect.provideService(Tracer.ParentSpan, record.span)
        )
        return Effect.andThen(followed, answered)
      })
  }),
  { global: true }
)
