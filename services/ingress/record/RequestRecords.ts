/** Begins and ends the records of all requests, and makes the headers that every response has. */
import { Context, Effect, Layer } from "effect"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { Drain } from "../../../shared/process/Drain.ts"
import { RequestLog } from "./RequestLog.ts"
import { RequestRecord } from "./RequestRecord.ts"
import * as ServerSpan from "./ServerSpan.ts"

/** OpenAI's clients read the first header, Anthropic's the second. */
export const requestIds = (id: string) => ({ "x-request-id": id, "request-id": id })

export class RequestRecords extends Context.Service<RequestRecords, {
  /** From here to `end` the request counts as in progress. */
  readonly begin: (head: ServerSpan.RequestHead) => RequestRecord
  /** The status of its response is known. Makes the headers: the request's id, its trace, its key's limits. */
  readonly answering: (record: RequestRecord, status: number) => Record<string, string>
  /** The last byte is written, or the client has disconnected. */
  readonly end: (record: RequestRecord, isCancelled: boolean) => void
}>()("services/ingress/record/RequestRecords") {
  static readonly layer = Layer.effect(
    RequestRecords,
    Effect.gen(function*() {
      const drain = yield* Drain
      const log = yield* RequestLog
      const spans = yield* ServerSpan.make
      let inProgress = 0
      yield* Metrics.observe(Metrics.inProgress(), () => inProgress)
      return RequestRecords.of({
        begin: (head) => {
          inProgress++
          return new RequestRecord(head, spans)
        },
        answering: (record, status) => {
          record.setStatus(status)
          const headers: Record<string, string> = Object.assign(record.answerHeaders?.() ?? {}, requestIds(record.id))
          headers["traceparent"] = TraceParent.format(record.span)
          // so that the client's next request reaches another ingress
          if (drain.isDraining()) headers["connection"] = "close"
          return headers
        },
        end: (record, isCancelled) => {
          inProgress--
          record.end(isCancelled)
          log.write(record)
        }
      })
    })
  )
}
