/** Answers with a stored file, or with the part of it that the request asks for. */
import { Effect, type Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { RangeNotSatisfiable } from "../errors/IngressError.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"
import * as ByteRange from "./ByteRange.ts"

interface StoredFile {
  /** The size in bytes. */
  readonly size: number
  /** The entity tag, which changes only with the content. */
  readonly tag: string
  readonly contentType: string
  readonly filename: string
  /** The bytes from `from` up to but not including `until`. */
  readonly read: (from: number, until: number) => Stream.Stream<Uint8Array, unknown>
}

export const answerRange = Effect.fnUntraced(function*(
  headers: RequestHeaders,
  { contentType, filename, read, size, tag }: StoredFile
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, RangeNotSatisfiable> {
  const condition = headers["if-range"]
  const range = ByteRange.parse(condition === undefined || condition === tag ? headers["range"] : undefined, size)
  if (range === "unsatisfiable") return yield* new RangeNotSatisfiable({ size })
  const { from, until } = range === "whole" ? { from: 0, until: size } : range
  return HttpServerResponse.stream(read(from, until), {
    status: range === "whole" ? 200 : 206,
    contentType,
    contentLength: until - from,
    headers: {
      "accept-ranges": "bytes",
      "etag": tag,
      "cache-control": "private, max-age=3600, immutable",
      "content-disposition": `inline; filename="${filename}"`,
      "x-content-type-options": "nosniff",
      ...(range === "whole" ? {} : { "content-range": `bytes ${from}-${until - 1}/${size}` })
    }
  })
})
