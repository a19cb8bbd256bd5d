/**
 * What every answer carries, whatever became of the request: its id, its trace and, while draining, the wish that the
 * client take another connection. Requests that no handler answers are answered here.
 */
import { Cause, Context, Effect, Metric, Option } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { randomUUID } from "node:crypto"
import { InternalError } from "../../shared/contract/JobError.ts"
import * as Metrics from "../../shared/telemetry/Metrics.ts"
import * as TraceParent from "../../shared/telemetry/TraceParent.ts"
import { Drain } from "./Drain.ts"
import * as ErrorEnvelope from "./ErrorEnvelope.ts"
import { RouteNotFound } from "./IngressError.ts"

/** The id of the request in hand: in the headers of its answer, and in the errors of the dialects that have a place for it. */
export class RequestId extends Context.Service<RequestId, string>()("services/ingress/RequestId") {
  static readonly make = (): string => `req_${randomUUID()}`

  /** Clients of the OpenAI kind read the first, those of Anthropic's the second. */
  static readonly headers = (id: string) => ({ "x-request-id": id, "request-id": id })
}

/** Anything that reaches this point is a path that no route has, a client that is gone, or a mistake of ours. */
const unanswered = Effect.fnUntraced(function*<E>(
  cause: Cause.Cause<E>,
  requestId: string
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest> {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (HttpServerError.isHttpServerError(failure) && failure.reason._tag === "RouteNotFound") {
    const { method, url } = yield* HttpServerRequest.HttpServerRequest
    const error = new RouteNotFound({ method, path: url.split("?")[0] ?? "" })
    yield* Metric.update(Metrics.requests("none", error._tag), 1)
    return ErrorEnvelope.toResponse("openai", error, requestId)
  }
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause)
  yield* Effect.logError("request failed by a mistake of ours", { requestId }, cause)
  return ErrorEnvelope.toResponse("openai", new InternalError(), requestId)
})

/** Gives every request its id, and every answer its headers. */
export const layer = HttpRouter.middleware<{ provides: RequestId }>()(
  Effect.gen(function*() {
    const drain = yield* Drain
    return (handler) =>
      Effect.suspend(() => {
        const requestId = RequestId.make()
        return handler.pipe(
          Effect.provideService(RequestId, requestId),
          Effect.catchCause((cause) => unanswered(cause, requestId)),
          Effect.flatMap((response) =>
            Effect.map(TraceParent.current, (traceparent) =>
              HttpServerResponse.setHeaders(response, {
                ...RequestId.headers(requestId),
                ...(traceparent === undefined ? {} : { traceparent }),
                ...(drain.isDraining() ? { connection: "close" } : {})
              }))
          )
        )
      })
  }),
  { global: true }
)
