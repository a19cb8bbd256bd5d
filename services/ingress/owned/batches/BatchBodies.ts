/** Reads the bodies of requests that create batches. */
import { Effect, Predicate, Result, Schema, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"
import { hash } from "node:crypto"
import * as ContentCoding from "../../../../shared/bounds/ContentCoding.ts"
import * as ExactJson from "../../../../shared/bounds/ExactJson.ts"
import { excessOf } from "../../../../shared/bounds/JsonBounds.ts"
import { turnFor } from "../../../../shared/bounds/Turns.ts"
import { InvalidRequest } from "../../../../shared/contract/JobError.ts"
import * as SchemaErrors from "../../../../shared/contract/SchemaErrors.ts"
import { BodyTooLarge, type RequestError } from "../../errors/IngressError.ts"
import type { DecodeTurns } from "../../request/DecodeTurns.ts"
import { maxBodyBytes } from "../../body/BodyMemory.ts"
import { streamOf } from "../../body/BodySource.ts"
import { noMemory, type UploadBudget } from "../../body/UploadBudget.ts"
import { notJson } from "../../request/IncomingBody.ts"
import type { Asked } from "../OwnedRoutes.ts"
import { RequestSplitter } from "./RequestSplitter.ts"

type Incoming = HttpServerRequest.HttpServerRequest

const pieces = (request: Incoming, maxBytes: number): Stream.Stream<Uint8Array, RequestError> => {
  const tooLarge = new BodyTooLarge({ limitBytes: maxBytes })
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return Stream.fail(tooLarge)
  let bytes = 0
  return streamOf(request, maxBytes, notJson).pipe(
    Stream.mapEffect((piece) => {
      bytes += piece.length
      return bytes > maxBytes ? Effect.fail(tooLarge) : Effect.succeed(piece)
    })
  )
}

const parseText = (text: string): Result.Result<unknown, InvalidRequest> =>
  Result.try({ try: (): unknown => ExactJson.parse(text), catch: () => notJson })

const parse = (bytes: Uint8Array): Result.Result<unknown, InvalidRequest> =>
  excessOf(bytes) === undefined ? parseText(Buffer.from(bytes).toString()) : Result.fail(notJson)

/** Maximum size of the fields that describe a batch. */
const maxFields = 64 * 1024

/** Metadata, with OpenAI's limits. */
const Metadata = Schema.Record(
  Schema.String.check(Schema.isMaxLength(64)),
  Schema.String.check(Schema.isMaxLength(512))
).check(Schema.isMaxProperties(16))

/** The longest endpoint of a batch, in characters: its record holds it. */
export const maxEndpointLength = 512

const NewBatch = Schema.Struct({
  input_file_id: Schema.String,
  endpoint: Schema.String.check(Schema.isMaxLength(maxEndpointLength)),
  completion_window: Schema.Literal("24h"),
  metadata: Schema.optionalKey(Schema.NullOr(Metadata))
})
export type NewBatch = typeof NewBatch.Type

const decodeBatch = Schema.decodeUnknownResult(NewBatch)

/** The fields of a request to `/v1/batches`, and a hash of its body. */
export const readBatch = Effect.fnUntraced(function*(
  request: Incoming
): Effect.fn.Return<{ readonly fields: NewBatch; readonly bodyHash: string }, RequestError> {
  const body = Buffer.concat(yield* Stream.runCollect(pieces(request, maxFields)))
  const value = yield* Effect.fromResult(parse(body))
  const decoded = decodeBatch(value)
  if (Result.isFailure(decoded)) return yield* SchemaErrors.toInvalidRequest(decoded.failure.issue, value)
  const unknown = Object.keys(value as object).find((name) => !(name in NewBatch.fields))
  if (unknown !== undefined) return yield* InvalidRequest.at(unknown, "is not supported")
  return { fields: decoded.success, bodyHash: hash("sha256", body, "hex") }
})

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isReadonlyObject(value) && !Array.isArray(value)

/** A request as a line of a file. For a large request, each step has its own turn of the event loop. */
const lineOf = Effect.fnUntraced(function*(
  request: Uint8Array,
  index: number,
  url: string
): Effect.fn.Return<Uint8Array, InvalidRequest> {
  const turn = turnFor(request.length)
  const at = (field: string) => `requests[${index}]${field}`
  yield* turn
  if (excessOf(request) !== undefined) return yield* notJson
  yield* turn
  const text = Buffer.from(request.buffer, request.byteOffset, request.length).toString()
  yield* turn
  const value = yield* Effect.fromResult(parseText(text))
  const { custom_id: id, params } = isObject(value) ? value : {}
  if (typeof id !== "string") return yield* InvalidRequest.at(at(".custom_id"), "must be a text")
  if (!isObject(params)) return yield* InvalidRequest.at(at(".params"), "must be an object")
  if (params["stream"] === true) return yield* InvalidRequest.at(at(".params.stream"), "must not be set in a batch")
  yield* turn
  const line = `${JSON.stringify({ custom_id: id, method: "POST", url, body: params })}\n`
  yield* turn
  return Buffer.from(line)
})

/** The error of a body that is not one list of requests and nothing else. */
const frameError = (splitter: RequestSplitter): InvalidRequest | undefined => {
  if (splitter.isTooLarge) return InvalidRequest.at("requests", "is surrounded by too many other fields")
  const frame = parse(splitter.frame)
  if (Result.isFailure(frame)) return notJson
  const { requests, ...others } = isObject(frame.success) ? frame.success : {}
  const [other] = Object.keys(others)
  if (other !== undefined) return InvalidRequest.at(other, "is not supported")
  if (!Array.isArray(requests) || requests.length === 0) {
    return InvalidRequest.at("requests", "must be a list of at least one request")
  }
  const wrong = requests.findIndex((request) => request !== 0)
  return wrong === -1 ? undefined : InvalidRequest.at(`requests[${wrong}]`, "must be an object")
}

/** The requests of a body for `/v1/messages/batches`, as the lines of a file. */
export const requestLines = (
  { key, request }: Pick<Asked, "key" | "request">,
  url: string,
  budget: UploadBudget,
  turns: DecodeTurns["Service"]
): Stream.Stream<Uint8Array, RequestError> =>
  Stream.suspend(() => {
    const splitter = new RequestSplitter(budget)
    const codings = ContentCoding.codingsIn(request.headers["content-encoding"]) ?? []
    let index = 0
    let decoded = 0
    const begin = budget.wait(ContentCoding.decoderBytes(codings, 0))
    const lines = Stream.concat(Stream.fromEffectDrain(begin), pieces(request, maxBodyBytes)).pipe(
      Stream.tap((piece) => {
        decoded += piece.length
        return budget.wait(splitter.heldBytes + piece.length + ContentCoding.decoderBytes(codings, decoded))
      }),
      Stream.mapEffect((piece) => {
        const found = splitter.push(piece)
        return found === undefined ? Effect.fail(noMemory) : Effect.succeed(found)
      }),
      Stream.flattenIterable,
      Stream.mapEffect((found) => turns.inTurn(key, found.length, () => lineOf(found, index++, url)))
    )
    const end = Effect.suspend(() => {
      const error = frameError(splitter)
      return error === undefined ? Effect.void : Effect.fail(error)
    })
    return Stream.concat(lines, Stream.fromEffectDrain(end))
  })
