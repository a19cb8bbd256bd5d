/** From the bytes of a request to a decoded one: bounded, valid UTF-8, valid JSON, not too deep, and as its schema says. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { ByteSize, Effect, Result, Schema } from "effect"
import { type Headers, HttpIncomingMessage, type HttpServerRequest } from "effect/http"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"
import { InvalidRequest, type QueueFull } from "../../../shared/contract/JobError.ts"
import { excessOf, JsonBounds } from "../../../shared/bounds/JsonBounds.ts"
import * as Mistake from "../../../shared/contract/Mistake.ts"
import type * as Contract from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { Turns } from "../../../shared/bounds/Turns.ts"
import { BodyCollector } from "./BodyCollector.ts"
import { BodyTooLarge, MediaTypeUnsupported } from "../errors/IngressError.ts"
import { noRoom, type ReadingRoom } from "./ReadingRoom.ts"

/** The largest body that is read: 32 MiB. */
export const maxBodyBytes = 32 * 1024 * 1024

/** A body of up to this many bytes is decoded in one go. */
const smallBytes = 128 * 1024

/** Of a larger one, what is looked through in one turn of the event loop: a few milliseconds. In bytes. */
const lookedThroughBytes = 2 * 1024 * 1024

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

type Decoder = (value: unknown) => Result.Result<Contract.RequestBody, Schema.SchemaError>

const decoders = new Map(
  operations.map(({ form, name, request }): [string, { json: Decoder; form: Decoder | undefined }] => {
    // becomes code of its own when it is first used, which decodes three times as fast
    SchemaJITCompiler.enable(request.ast)
    return [name, {
      json: Schema.decodeUnknownResult(request),
      form: form === undefined ? undefined : Schema.decodeUnknownResult(form)
    }]
  })
)

/**
 * The bytes of the body, which stay in the room until the caller leaves it. Fails before reading where the client says that
 * there are too many.
 */
export const read = (
  operation: Contract.Operation,
  request: HttpServerRequest.HttpServerRequest,
  headers: Headers.Headers,
  room: ReadingRoom
): Effect.Effect<Uint8Array, BodyTooLarge | MediaTypeUnsupported | QueueFull> => {
  if (!isJson(headers) && !(operation.form !== undefined && isForm(headers))) {
    return Effect.fail(new MediaTypeUnsupported())
  }
  const told = Number(headers["content-length"] ?? 0)
  if (told > maxBodyBytes) return tooLarge
  // whoever waits to be told to go on is told by the platform's reader, of which nobody hears how far it is
  return headers["expect"] === undefined
    ? collect(request, told, room)
    : readByPlatform(request, told || maxBodyBytes, room)
}

const tooLarge = Effect.fail(new BodyTooLarge({ limitBytes: maxBodyBytes }))

/** Plain listeners: the platform's reader costs a fiber and a stream per request. */
const collect = (
  request: HttpServerRequest.HttpServerRequest,
  told: number,
  room: ReadingRoom
): Effect.Effect<Uint8Array, BodyTooLarge | QueueFull> =>
  Effect.callback<Uint8Array, BodyTooLarge | QueueFull>((resume) => {
    const source = NodeHttpServerRequest.toIncomingMessage(request)
    const body = new BodyCollector(room, told, maxBodyBytes)
    const onData = (piece: Uint8Array) => {
      const isTooLarge = body.size + piece.length > maxBodyBytes
      if (!isTooLarge && body.add(piece)) return
      stop()
      source.pause()
      resume(isTooLarge ? tooLarge : Effect.fail(noRoom))
    }
    const onEnd = () => resume(Effect.succeed(body.take()))
    const stop = () => {
      body.drop()
      room.leave()
      source.off("data", onData).off("end", onEnd)
    }
    // of a client that goes away the server hears, and interrupts this; the listener only keeps it from being thrown
    source.on("data", onData).on("end", onEnd).on("error", ignore)
    return Effect.sync(stop)
  })

const ignore = (): void => {}

const readByPlatform = (
  request: HttpServerRequest.HttpServerRequest,
  size: number,
  room: ReadingRoom
): Effect.Effect<Uint8Array, BodyTooLarge | QueueFull> => {
  if (!room.hasRoomFor(size)) return Effect.fail(noRoom)
  return request.arrayBuffer.pipe(
    Effect.map((buffer) => new Uint8Array(buffer)),
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.bytes(maxBodyBytes)),
    // the only way for this to fail but for a client that went away, to whom nothing can be said
    Effect.catch(() => tooLarge)
  )
}

const isJson = (headers: Headers.Headers): boolean => {
  const type = headers["content-type"]
  return type === undefined || /^application\/(?:[\w.+-]*\+)?json\s*(?:;|$)/i.test(type.trim())
}

const isForm = (headers: Headers.Headers): boolean =>
  /^multipart\/form-data\s*(?:;|$)/i.test(headers["content-type"] ?? "")

/** Decodes and validates the body of an operation. `param` of the error is the path of the first mistake. */
export const decode = (
  operation: Contract.Operation,
  headers: Headers.Headers,
  bytes: Uint8Array
): Effect.Effect<Contract.RequestBody, InvalidRequest> => {
  const decoder = decoders.get(operation.name)
  if (decoder === undefined) return Effect.die(new Error(`no decoder for ${operation.name}`))
  return decoder.form !== undefined && isForm(headers)
    ? decodeForm(decoder.form, headers["content-type"] ?? "", bytes)
    : bytes.length <= smallBytes
    ? Effect.fromResult(decodeJson(decoder.json, bytes))
    : decodeInSteps(decoder.json, bytes)
}

/** Who sets the header by hand forgets the boundary. */
const notAForm = "The request body is not a valid form with the boundary that its Content-Type names"

/** Pictures, a mask and settings: far more than any model takes. */
const maxParts = 1_000

const tooManyParts = new InvalidRequest({
  message: `The request body holds more than ${maxParts} parts`,
  param: null,
  code: "invalid_form"
})

/** Every part begins in a line of its own with two hyphens. */
const partMark = Buffer.from("\r\n--")

const hasTooManyParts = (bytes: Uint8Array): boolean => {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let parts = 0
  for (let at = body.indexOf(partMark); at !== -1; at = body.indexOf(partMark, at + partMark.length)) {
    if (++parts > maxParts) return true
  }
  return false
}

const decodeForm = (decoder: Decoder, contentType: string, bytes: Uint8Array) =>
  hasTooManyParts(bytes) ? Effect.fail(tooManyParts) : Effect.tryPromise({
    // the platform's own parser, which undici keeps
    try: () => new Response(bytes as Uint8Array<ArrayBuffer>, { headers: { "content-type": contentType } }).formData(),
    catch: () => new InvalidRequest({ message: notAForm, param: null, code: "invalid_form" })
  }).pipe(Effect.flatMap((form) => Effect.fromResult(validate(decoder, form))))

type Decoded = Result.Result<Contract.RequestBody, InvalidRequest>

const decodeJson = (decoder: Decoder, bytes: Uint8Array): Decoded =>
  excessive(excessOf(bytes)) ??
    Result.flatMap(textOf(bytes), (text) => Result.flatMap(parse(text), (value) => validate(decoder, value)))

/** The same with a turn of the event loop for each step: a large body holds up no other request. */
const decodeInSteps = Effect.fnUntraced(function*(decoder: Decoder, bytes: Uint8Array) {
  const turn = yield* Turns
  const bounds = new JsonBounds()
  for (let at = 0; at < bytes.length; at += lookedThroughBytes) {
    yield* turn.next
    const excess = excessive(bounds.push(bytes.subarray(at, at + lookedThroughBytes)))
    if (excess !== undefined) return yield* Effect.fromResult(excess)
  }
  yield* turn.next
  const text = yield* Effect.fromResult(textOf(bytes))
  yield* turn.next
  const value = yield* Effect.fromResult(parse(text))
  yield* turn.next
  return yield* Effect.fromResult(validate(decoder, value))
})

const excessive = (excess: string | undefined) =>
  excess === undefined ? undefined : invalid(null, `The request body ${excess}`, "invalid_json")

const textOf = (bytes: Uint8Array): Result.Result<string, InvalidRequest> => {
  try {
    return Result.succeed(utf8.decode(bytes))
  } catch {
    return invalid(null, "The request body is not valid UTF-8", "invalid_json")
  }
}

const parse = (text: string): Result.Result<unknown, InvalidRequest> => {
  try {
    return Result.succeed(JSON.parse(text))
  } catch {
    return invalid(null, "The request body is not valid JSON", "invalid_json")
  }
}

const validate = (decoder: Decoder, value: unknown): Decoded =>
  Result.mapError(decoder(value), (error) => {
    const mistake = Mistake.first(error.issue, value)
    return new InvalidRequest({
      message: Mistake.line(mistake, "The request body"),
      param: Mistake.place(mistake.path) || null,
      code: "invalid_value"
    })
  })

const invalid = (param: string | null, message: string, code: string): Result.Result<never, InvalidRequest> =>
  Result.fail(new InvalidRequest({ message, param, code }))
