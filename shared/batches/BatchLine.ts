/** Reads a line of a file of requests: what it asks for, or why it is refused. */
import { Option, Predicate, Result, Schema } from "effect"
import * as ExactJson from "../bounds/ExactJson.ts"
import { InvalidRequest, type JobError, ModelNotFound, ModelUnsuitable } from "../contract/JobError.ts"
import type { Operation, Workload } from "../contract/Operation.ts"
import { decoderOf } from "../contract/http/RequestDecoder.ts"
import { steeringIn } from "../contract/outlines/Steering.ts"
import { tokenDemand } from "../contract/TokenEstimate.ts"
import type { BatchRequest, Mistake } from "./BatchRecord.ts"
import type { InputLine } from "./lines/InputLines.ts"

const RequestLine = Schema.Struct({
  custom_id: Schema.String,
  method: Schema.String,
  url: Schema.String,
  body: Schema.Record(Schema.String, Schema.Unknown)
})
type RequestLine = typeof RequestLine.Type

const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(RequestLine))

/** The id that the client gave a line; empty if the line is unreadable. */
export const customIdOf = ({ text }: InputLine): string =>
  Option.match(decodeLine(text), { onNone: () => "", onSome: ({ custom_id: id }) => id })

/** Why a line is not valid in this batch; `undefined` if it is. */
export const mistakeOf = ({ endpoint }: BatchRequest, { number: line, text }: InputLine): Mistake | undefined => {
  const found = Option.getOrUndefined(decodeLine(text))
  if (found === undefined) {
    return { code: "invalid_json_line", message: "This line is not a request of a batch.", line, param: null }
  }
  if (found.url !== endpoint) {
    // does not quote the endpoint: the record of a batch holds many mistakes
    const message = "The url of this line must be the batch's endpoint."
    return { code: "mismatched_endpoint", message, line, param: "url" }
  }
  return found.body["stream"] === true
    ? { code: "invalid_request", message: "A request of a batch cannot be streamed.", line, param: "body.stream" }
    : undefined
}

export interface LineRequest {
  readonly customId: string
  readonly model: string
  readonly workload: Workload
  readonly pool: string
  /** How many tokens the request is expected to use. */
  readonly tokens: number
  readonly body: Uint8Array
}

interface Offered {
  readonly workload: Workload
  readonly pool: string
}

/** The request of a line that is valid in its batch, or why no worker can perform it. */
export const requestOf = (
  operation: Operation,
  batch: BatchRequest,
  models: ReadonlyMap<string, Offered>,
  { text }: InputLine
): Result.Result<LineRequest, { readonly customId: string; readonly error: JobError }> => {
  const line = Option.getOrUndefined(decodeLine(text))
  const customId = line?.custom_id ?? ""
  return Result.gen(function*() {
    const { body } = yield* Result.fromNullishOr(line, () => InvalidRequest.at("body", "must be an object"))
    const decoded = yield* decoderOf(operation).json(body)
    const name = batch.model ?? decoded.model
    if (typeof name !== "string") return yield* Result.fail(InvalidRequest.at("model", "is required"))
    const model = models.get(name)
    if (model === undefined) return yield* Result.fail(new ModelNotFound({ model: name }))
    if (!operation.workloads.includes(model.workload)) {
      const { workload } = model
      return yield* Result.fail(new ModelUnsuitable({ model: name, workload, operation: operation.name }))
    }
    if (operation.streams(decoded)) return yield* Result.fail(InvalidRequest.at("stream", "must not be set in a batch"))
    if (Predicate.hasProperty(decoded, "background") && decoded.background === true) {
      return yield* Result.fail(InvalidRequest.at("background", "must not be set in a batch"))
    }
    // which limits apply to the line's key is known only when it runs
    const steering = steeringIn(body)
    if (steering !== undefined) return yield* Result.fail(steering)
    // with all digits of numbers
    const exact = ExactJson.mayHoldExact(text) ? Reflect.get(ExactJson.parse(text) as object, "body") : body
    const bytes = Buffer.from(JSON.stringify(exact))
    const demand = tokenDemand(operation, bytes.length, (field) => body[field])
    return { customId, model: name, workload: model.workload, pool: model.pool, tokens: demand.tokens, body: bytes }
  }).pipe(Result.mapError((error) => ({ customId, error })))
}
