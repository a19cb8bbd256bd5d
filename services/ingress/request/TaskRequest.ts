/** Rejects a request for a task that its model can never run, before the task exists. */
import { Result, Schema } from "effect"
import { isBuiltIn, makesVideos, type OfferedModel } from "../../../shared/catalogue/Models.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import * as SchemaErrors from "../../../shared/contract/SchemaErrors.ts"

/** See `maxVideos` of the catalogue. */
const defaultMaxVideos = 4

/** `undefined` if the model may be able to run it. */
export const refusalOf = (
  operation: Operation,
  name: string,
  model: OfferedModel,
  request: RequestBody
): InvalidRequest | undefined => {
  if (operation.kind !== "task") return undefined
  if (!makesVideos(model)) return InvalidRequest.notSupported(name, operation.name)
  const { maxVideos = defaultMaxVideos } = model
  if ((request.n ?? 1) > maxVideos) return InvalidRequest.at("n", `must be at most ${maxVideos} for this model`)
  if (operation.local === undefined || !isBuiltIn(model)) return undefined
  const bounded = Schema.decodeUnknownResult(operation.local)(request)
  return Result.isSuccess(bounded) ? undefined : SchemaErrors.toInvalidRequest(bounded.failure.issue, request)
}
