/** The bytes of a request's body, without its content codings. */
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Result, Stream } from "effect"
import type { HttpServerRequest } from "effect/http"
import * as ContentCoding from "../../../shared/bounds/ContentCoding.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import { BodyTooLarge, ContentCodingUnsupported, type RequestError } from "../errors/IngressError.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"

type Codings = ReadonlyArray<ContentCoding.ContentCoding>

export const codingsOf = (headers: RequestHeaders): Result.Result<Codings, ContentCodingUnsupported> => {
  const header = headers["content-encoding"]
  const codings = ContentCoding.codingsIn(header)
  return codings === undefined ? Result.fail(ContentCodingUnsupported.of(header ?? "")) : Result.succeed(codings)
}

/** The error of a body that cannot be decoded; `undefined` for an error of the connection. */
export const refusalOf = (error: unknown, limitBytes: number): InvalidRequest | BodyTooLarge | undefined => {
  if (!(error instanceof ContentCoding.Undecodable)) return undefined
  return error.reason === "size"
    ? new BodyTooLarge({ limitBytes })
    : InvalidRequest.at("content-encoding", `the request body is not valid ${error.coding}`, "invalid_content_encoding")
}

/** The body as a stream of at most `maxBytes`. Fails with `unreadable` if it cannot be read. */
export const streamOf = (
  { headers, stream }: HttpServerRequest.HttpServerRequest,
  maxBytes: number,
  unreadable: RequestError
): Stream.Stream<Uint8Array, RequestError> => {
  const codings = codingsOf(headers)
  if (Result.isFailure(codings)) return Stream.fail(codings.failure)
  const raw: Stream.Stream<Uint8Array, RequestError> = Stream.mapError(stream, () => unreadable)
  const decoders = ContentCoding.decodersOf(codings.success, { maxBytes })
  const decoded = decoders.reduce(
    (encoded, decoder) =>
      NodeStream.pipeThroughDuplex(encoded, {
        evaluate: () => decoder,
        onError: (error): RequestError => refusalOf(error, maxBytes) ?? unreadable
      }),
    raw
  )
  return decoders.length === 0 ? raw : lastAtEnd(decoded)
}

/** Passes on the last piece only when the end shows that it is whole: a form may be complete before its last bytes have been checked. */
const lastAtEnd = <E>(pieces: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
  Stream.concat(pieces, Stream.succeed(undefined)).pipe(
    Stream.mapAccum(
      (): Uint8Array | undefined => undefined,
      (before, piece: Uint8Array | undefined) => [piece, before === undefined ? [] : [before]] as const
    )
  )
