/** Runs the handler of a route and turns its errors into responses. */
import { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { RequestError } from "../errors/IngressError.ts"
import { CurrentRequest, type RequestRecord } from "../record/RequestRecord.ts"

type Handler<R> = (record: RequestRecord) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError, R>

/** Responds to the current request, with errors in the dialect of its route. */
export const respond = <R>(operation: string, dialect: Dialect, handler: Handler<R>) =>
  Effect.flatMap(CurrentRequest, (record) => respondTo(record, operation, dialect, handler))

export const respondTo = <R>(
  record: RequestRecord,
  operation: string,
  dialect: Dialect,
  handler: Handler<R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> => {
  record.operation = operation
  return Effect.catchEager(handler(record), (error) => {
    record.markFailed(error._tag)
    return Effect.succeed(ErrorEnvelope.toResponse(dialect, error, record.id))
  })
}
