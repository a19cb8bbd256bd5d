/**
 * The headers of every response: the request's id, its trace and, while draining, `connection: close`. Also answers requests
 * that have no handler or whose handler failed.
 */
import { Cause, Context, Effect, Exit, Option, Scope, Tracer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { InternalError } from "../../../shared/contract/JobError.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { Drain } from "./Drain.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import { RequestLog } from "../record/RequestLog.ts"
import { CurrentRequest, RequestRecord } from "../record/RequestRecord.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"

/** OpenAI's clients read the first header, Anthropic's the second. */
export const requestIds = (id: string) => ({ "x-request-id": id, "request-id": id })

/** Answers a path without a route, or a defect. Fails again if the client has disconnected. */
const answerFailure = Effect.fnUntraced(function*<E>(
  cause: Cause.Cause<E>,
  record: RequestRecord
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest> {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RouteNotFound") {
    const { method, url } = yield* HttpServerRequest.HttpServerRequest
    const error = RouteTemplate.notFound(method, url)
    record.markFailed(error._tag)
    return ErrorEnvelope.toResponse("openai", error, record.id)
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
    const drain = yield* Drain
    const log = yield* RequestLog
    const makeRecord = yield* RequestRecord.makeFactory

    const complete = (response: HttpServerResponse.HttpServerResponse, record: RequestRecord) => {
      record.setStatus(response.status)
      const headers: Record<string, string> = { ...record.answerHeaders?.(), ...requestIds(record.id) }
      headers["traceparent"] = TraceParent.format(record.span)
      if (drain.isDraining()) headers["connection"] = "close"
      return HttpServerResponse.setHeaders(response, headers)
    }

    /** Counts and logs the request when its scope closes: the last byte is written, or the client has disconnected. */
    const follow = (record: RequestRecord, scope: Scope.Scope) => {
      record.begin()
      return Scope.addFinalizerExit(scope, (exit) => {
        record.end(Exit.hasInterrupts(exit))
        log.write(record)
        return Effect.void
      })
    }

    return (handler) =>
      Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest | Scope.Scope>) => {
        const request = Context.get(context, HttpServerRequest.HttpServerRequest)
        const record = makeRecord(request)
        const answered = handler.pipe(
          Effect.matchCauseEffect({
            onFailure: (cause) => Effect.map(answerFailure(cause, record), (response) => complete(response, record)),
            onSuccess: (response) => Effect.succeed(complete(response, record))
          }),
          // separately: providing a whole context would merge it with a copy of the process's context
          Effect.provideService(CurrentRequest, record),
          Effect.provideService(Tracer.ParentSpan, record.span)
        )
        return Effect.andThen(follow(record, Context.get(context, Scope.Scope)), answered)
      })
  }),
  { global: true }
)
