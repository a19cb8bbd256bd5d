/**
 * What every answer carries, whatever became of the request: its id, its trace and, while draining, the wish that the
 * client take another connection. Requests that no handler answers are answered here.
 */
import { Cause, Context, Effect, Exit, Option, Scope, Tracer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { InternalError } from "../../shared/contract/JobError.ts"
import * as TraceParent from "../../shared/telemetry/TraceParent.ts"
import { Drain } from "./Drain.ts"
import * as ErrorEnvelope from "./ErrorEnvelope.ts"
import { RouteNotFound } from "./IngressError.ts"
import { RequestLog } from "./RequestLog.ts"
import { CurrentRequest, isProbe, RequestRecord } from "./RequestRecord.ts"
import * as ServerSpan from "./ServerSpan.ts"

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
    const error = new RouteNotFound({ method, path: url.split("?")[0] ?? "" })
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
    return (handler) =>
      Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        const record = new RequestRecord(request, spans)
        if (!isProbe(request)) {
          record.begin()
          // which closes when the last byte is written, or the client is gone
          yield* Scope.addFinalizerExit(yield* Scope.Scope, (exit) =>
            Effect.sync(() => {
              record.ended(Exit.hasInterrupts(exit))
              log.write(record)
            }))
        }
        const response = yield* handler.pipe(
          Effect.catchCause((cause) => unanswered(cause, record)),
          Effect.provideContext(Context.make(CurrentRequest, record).pipe(Context.add(Tracer.ParentSpan, record.span)))
        )
        record.responded(response.status)
        return HttpServerResponse.setHeaders(response, {
          ...requestIds(record.id),
          traceparent: TraceParent.format(record.span),
          ...(drain.isDraining() ? { connection: "close" } : {})
        })
      })
  }),
  { global: true }
)
