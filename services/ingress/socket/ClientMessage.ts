/** The messages that clients send over a WebSocket for responses: OpenAI's `response.create` and `response.processed`. */
import { Predicate, Result } from "effect"
import * as ExactJson from "../../../shared/bounds/ExactJson.ts"
import { excessOf } from "../../../shared/bounds/JsonBounds.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import { notJson } from "../request/IncomingBody.ts"

/** A request for a response. */
export interface Creation {
  /** The lane's name, which its events repeat; `undefined` for the lane without a name. */
  readonly lane: string | undefined
  /** `false`: the model is not called, and the input is kept for a later request. */
  readonly generates: boolean
  /** The body of the same request over HTTP. */
  readonly body: Readonly<Record<string, unknown>>
  /** The size of the message. */
  readonly bytes: number
}

/** Fields that have no meaning, or another one, over HTTP. */
const ofSockets = new Set(["type", "stream_id", "generate", "background"])

const maxLaneName = 256

const laneOf = (message: Readonly<Record<string, unknown>>): string | undefined =>
  typeof message["stream_id"] === "string" ? message["stream_id"] : undefined

const mistakeIn = (message: Readonly<Record<string, unknown>>): InvalidRequest | undefined => {
  const { background, generate, stream_id: lane } = message
  if (lane !== undefined && (typeof lane !== "string" || lane === "" || lane.length > maxLaneName)) {
    return InvalidRequest.at("stream_id", `must be a text of 1 to ${maxLaneName} characters`)
  }
  if (background === true) return InvalidRequest.at("background", "is not supported over WebSocket")
  if (generate !== undefined && typeof generate !== "boolean") {
    return InvalidRequest.at("generate", "must be true or false")
  }
  return undefined
}

/** A mistake in a message, and the lane that the client expects the error in. */
export interface Mistake {
  readonly error: InvalidRequest
  readonly lane: string | undefined
}

/** Reads a message; `undefined` if the message needs no reaction. */
export const decode = (bytes: Uint8Array, isBinary: boolean): Result.Result<Creation | undefined, Mistake> => {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const excess = isBinary ? "must be a text message" : excessOf(text)
  if (excess !== undefined) {
    const error = new InvalidRequest({ message: `The message ${excess}`, param: null, code: "invalid_json" })
    return Result.fail({ error, lane: undefined })
  }
  const message = Result.getOrUndefined(Result.try((): unknown => ExactJson.parse(text.toString())))
  if (!Predicate.isReadonlyObject(message)) return Result.fail({ error: notJson, lane: undefined })
  const lane = laneOf(message)
  if (message["type"] === "response.processed") return Result.succeed(undefined)
  if (message["type"] !== "response.create") {
    return Result.fail({ error: InvalidRequest.at("type", "must be 'response.create'"), lane })
  }
  const error = mistakeIn(message)
  if (error !== undefined) return Result.fail({ error, lane })
  const body = Object.fromEntries(Object.entries(message).filter(([name]) => !ofSockets.has(name)))
  return Result.succeed({ lane, generates: message["generate"] !== false, body, bytes: bytes.byteLength })
}
