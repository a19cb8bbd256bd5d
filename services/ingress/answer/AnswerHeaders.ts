/**
 * What every answer carries, whatever became of the request: its id, its trace and, while draining, the wish that the
 * client take another connection. Requests that no handler answers are answered here.
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
import * as ServerSpan from "../record/ServerSpan.ts"

/** Clients of the OpenAI kind read the first, those of Anthropic's the second. */
export const requestIds = (id: string) => ({ "x-request-id": id, "request-id": id })

/** Anything that reaches this point is a path that no route has, a client that is gone, or a mistake of ours. */
const unanswered = Effect.fnUntraced(function*<E>(
  cause: Cause.Cause<E>,
  record: RequestRecord
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest> {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RouteNotFound") {
    const { method, url } = yield* HttpServerRequest.HttpServerRequest
    const error = RouteTemplate.notFound(method, url)
    record.failed(error._tag)
    return ErrorEnvelope.toResponse("openai", error, record.id)
  }
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
  const error = new InternalError()
  record.failed(error._tag)
  yield* Effect.logError("request failed by a mistake of ours", { requestId: record.id }, cause)
  return ErrorEnvelope.toResponse("openai", error, record.id)
})

/** Gives every request its record, and every answer its headers. */
export const layer = HttpRouter.middleware<{ provides: CurrentRequest }>()(
  Effect.gen(function*() {
    const drain = yield* Drain
    const log = yield* RequestLog
    const spans = yield* ServerSpan.make

    const complete = (response: HttpServerResponse.HttpServerResponse, record: RequestRecord) => {
      record.responded(response.status)
      const headers: Record<string, string> = { ...record.answerHeaders?.(), ...requestIds(record.id) }
      headers["traceparent"] = TraceParent.format(record.span)
      if (drain.isDraining()) headers["connection"] = "close"
      return HttpServerResponse.setHeaders(response, headers)
    }

    /** Counts and logs the request when the last byte is written, or the client is gone: the scope closes then. */
    const follow = (record: RequestRecord, scope: Scope.Scope) => {
      record.begin()
      return Scope.addFinalizerExit(scope, (exit) => {
        record.ended(Exit.hasInterrupts(exit))
        log.write(record)
        return Effect.void
      })
    }

    return (handler) =>
      Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest | Scope.Scope>) => {
        const request = Context.get(context, HttpServerRequest.HttpServerRequest)
        const record = new RequestRecord(request, spans)
        const answered = handler.pipe(
          Effect.matchCauseEffect({
            onFailure: (cause) => Effect.map(unanswered(cause, record), (response) => complete(response, record)),
            onSuccess: (response) => Effect.succeed(complete(response, record))
          }),
          // one by one: a whole context would be merged with a copy of the process's
          Effect.provideService(CurrentRequest, record),
          Effect.provideService(Tracer.ParentSpan, record.span)
        )
        return Effect.andThen(follow(record, Context.get(context, Scope.Scope)), answered)
      })
  }),
  { global: true }
)
