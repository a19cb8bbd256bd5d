/** Reads and decodes request bodies: checks size, UTF-8, JSON, depth, and the operation's schema. */
import { Effect, Result } from "effect"
import type { Readable } from "node:stream"
import { InvalidRequest, type QueueFull } from "../../../shared/contract/JobError.ts"
import { type ContentCoding, decode as decoded, decoderBytes } from "../../../shared/bounds/ContentCoding.ts"
import * as Form from "../../../shared/bounds/Form.ts"
import { JsonBounds, repeatedMember } from "../../../shared/bounds/JsonBounds.ts"
import type * as Contract from "../../../shared/contract/Operation.ts"
import { type Decode, decoderOf } from "../../../shared/contract/http/RequestDecoder.ts"
import { smallBytes, turnFor, Turns } from "../../../shared/bounds/Turns.ts"
import { BodyCollector } from "../body/BodyCollector.ts"
import { maxBodyBytes } from "../body/BodyMemory.ts"
import { codingsOf, refusalOf } from "../body/BodySource.ts"
import { noMemory, type UploadBudget } from "../body/UploadBudget.ts"
import { BodyTooLarge, type ContentCodingUnsupported, MediaTypeUnsupported } from "../errors/IngressError.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"

/** Bytes of a larger body that are checked in one turn of the event loop, which takes a few milliseconds. */
const checkedPerTurnBytes = 2 * 1024 * 1024

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type Read = Result.Result<Uint8Array, BodyTooLarge | InvalidRequest | QueueFull>

/** What the headers announce about a body. */
interface Announced {
  /** The size, or 0 if it is not known. */
  readonly bytes: number
  readonly codings: ReadonlyArray<ContentCoding>
}

/** What the headers announce about the body, or why it cannot be read. */
export const announced = (
  operation: Contract.Operation,
  headers: RequestHeaders
): Result.Result<Announced, BodyTooLarge | ContentCodingUnsupported | MediaTypeUnsupported> => {
  if (!isJson(headers) && !(operation.form !== undefined && isForm(headers))) {
    return Result.fail(new MediaTypeUnsupported())
  }
  const bytes = Number(headers["content-length"] ?? 0)
  return bytes > maxBodyBytes
    ? tooLarge
    : Result.map(codingsOf(headers), (codings) => ({ bytes: codings.length === 0 ? bytes : 0, codings }))
}

const tooLarge = Result.fail(new BodyTooLarge({ limitBytes: maxBodyBytes }))

/**
 * Reads the body, decoded, and passes it to `done`. Its bytes stay reserved in the budget until the caller releases them. While there is no memory
 * for more, the connection is not read. Returns a function that stops reading and releases them.
 */
export const read = (
  request: Readable,
  { bytes, codings }: Announced,
  budget: UploadBudget,
  done: (body: Read) => void
): () => void => {
  const source = decoded(request, codings, { maxBytes: maxBodyBytes })
  const body = new BodyCollector(budget, bytes, maxBodyBytes)
  let cancelWait = ignore
  let isStopped = false
  const fail = (error: Read) => {
    stop()
    request.pause()
    done(error)
  }
  const onData = (piece: Uint8Array) => {
    if (body.size + piece.length > maxBodyBytes) return fail(tooLarge)
    if (body.add(piece)) return
    source.pause()
    cancelWait = body.addLater(piece, (isAdded) => {
      if (isAdded) source.resume()
      else fail(Result.fail(noMemory))
    })
  }
  const onEnd = () => {
    budget.shrink(body.size)
    done(Result.succeed(body.take()))
  }
  const stop = () => {
    cancelWait()
    budget.release()
    body.drop()
    isStopped = true
    source.off("data", onData).off("end", onEnd)
    if (source !== request) source.destroy()
  }
  // if the client disconnects, the response closes, too
  const onError = (error: unknown) => {
    const refusal = refusalOf(error, maxBodyBytes)
    if (refusal !== undefined && !isStopped) fail(Result.fail(refusal))
  }
  source.on("data", onData).on("end", onEnd).on("error", onError)
  if (!budget.reserveBesides(decoderBytes(codings, 0))) fail(Result.fail(noMemory))
  return stop
}

const ignore = (): void => {}

/**
 * The longest media type, in characters. A boundary may have 70 (RFC 2046). Node's search for more than 250 bytes takes time
 * proportional to the product of both lengths: minutes for a boundary of 15,000.
 */
const longestType = 200

const isOfType = ({ "content-type": type }: RequestHeaders, pattern: RegExp): boolean =>
  type !== undefined && type.length <= longestType && pattern.test(type)

const isJson = (headers: RequestHeaders): boolean =>
  headers["content-type"] === undefined ||
  isOfType(headers, /^\s*application\/(?:[\w.+-]*\+)?json\s*(?:;|$)/i)

export const isForm = (headers: RequestHeaders): boolean => isOfType(headers, /^multipart\/form-data\s*(?:;|$)/i)

/** Decodes and validates the body of an operation. The error's `param` is the path of the first wrong field. */
export const decode = (
  operation: Contract.Operation,
  headers: RequestHeaders,
  bytes: Uint8Array
): Effect.Effect<Contract.RequestBody, InvalidRequest> => {
  const decoder = decoderOf(operation)
  return decoder.form !== undefined && isForm(headers)
    ? decodeForm(decoder.form, headers["content-type"] ?? "", bytes)
    : bytes.length <= smallBytes
    ? Effect.fromResult(decodeJson(decoder.json, bytes))
    : decodeInSteps(decoder.json, bytes)
}

const wrongBody = (message: string, code: string) => new InvalidRequest({ message, param: null, code })

/** Clients that set Content-Type by hand often omit the boundary. */
export const notAForm = wrongBody(
  "The request body is not a valid form. Check the boundary in the Content-Type header.",
  "invalid_form"
)

const notUtf8 = wrongBody("The request body is not valid UTF-8", "invalid_json")

export const notJson = wrongBody("The request body is not valid JSON", "invalid_json")

const noBody = wrongBody("The request has no body. Send the request as JSON.", "invalid_json")

const decodeForm = Effect.fnUntraced(function*(decode: Decode, contentType: string, bytes: Uint8Array) {
  const form = yield* Effect.catchTag(
    Form.read(contentType, bytes),
    "FormRefused",
    ({ excess }) =>
      Effect.fail(excess === undefined ? notAForm : wrongBody(`The request body has ${excess}`, "invalid_form"))
  )
  yield* turnFor(bytes.length)
  return yield* Effect.fromResult(decode(form))
})

type Decoded = Result.Result<Contract.RequestBody, InvalidRequest>

const decodeJson = (decode: Decode, bytes: Uint8Array): Decoded => {
  const bounds = new JsonBounds()
  return excessFailure(bounds.push(bytes)) ??
    Result.flatMap(textOf(bytes), (text) => Result.flatMap(parse(bytes, text, bounds), decode))
}

/** Like `decodeJson`, with a turn of the event loop for each step, so that a large body does not block other requests. */
const decodeInSteps = Effect.fnUntraced(function*(decode: Decode, bytes: Uint8Array) {
  const turn = yield* Turns
  const bounds = new JsonBounds()
  for (let at = 0; at < bytes.length; at += checkedPerTurnBytes) {
    yield* turn.next
    const excess = excessFailure(bounds.push(bytes.subarray(at, at + checkedPerTurnBytes)))
    if (excess !== undefined) return yield* Effect.fromResult(excess)
  }
  yield* turn.next
  const text = yield* Effect.fromResult(textOf(bytes))
  yield* turn.next
  const value = yield* Effect.fromResult(parse(bytes, text, bounds))
  yield* turn.next
  return yield* Effect.fromResult(decode(value))
})

const excessFailure = (excess: string | undefined) =>
  excess === undefined ? undefined : Result.fail(wrongBody(`The request body ${excess}`, "invalid_json"))

const textOf = (bytes: Uint8Array) => Result.try({ try: () => utf8.decode(bytes), catch: () => notUtf8 })

const parse = (bytes: Uint8Array, text: string, bounds: JsonBounds): Result.Result<unknown, InvalidRequest> =>
  Result.flatMap(
    Result.try({ try: (): unknown => JSON.parse(text), catch: () => text === "" ? noBody : notJson }),
    (value) => {
      const repeated = bounds.repeatsMember(value) ? repeatedMember(bytes) : undefined
      return repeated === undefined
        ? Result.succeed(value)
        : Result.fail(InvalidRequest.at(repeated, "must appear only once", "invalid_json"))
    }
  )
