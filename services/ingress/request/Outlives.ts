/** Whether a client asks for an answer that outlives its connection, and whether it can have one. */
import { Predicate } from "effect"
import { taskQueueOf } from "../../../shared/bus/protocol/Subjects.ts"
import type { OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"

/** By the field of the request, or by the header `prefer`; `undefined`: it does not. */
export type Outlives = "background" | "respond-async" | undefined

/** See RFC 7240. */
const prefersAsync = ({ prefer = "" }: RequestHeaders): boolean =>
  prefer.split(/[,;]/).some((preference) => preference.trim().toLowerCase() === "respond-async")

/** The field is binding; the preference is ignored where it cannot be met. */
export const outlives = (
  operation: Operation,
  headers: RequestHeaders,
  { workload }: OfferedModel,
  request: RequestBody
): Outlives | InvalidRequest => {
  const streams = operation.streams(request)
  if (operation.hasBackground && Predicate.hasProperty(request, "background") && request.background === true) {
    if (Predicate.hasProperty(request, "store") && request.store === false) {
      return InvalidRequest.at("background", "requires that the response is stored: leave `store` out")
    }
    return streams ? InvalidRequest.at("stream", "is not available with `background`", "not_supported") : "background"
  }
  const canOutlive = operation.kind !== "task" && !streams && taskQueueOf(workload) !== undefined
  return canOutlive && prefersAsync(headers) ? "respond-async" : undefined
}
