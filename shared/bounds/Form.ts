/** Reads the bodies of forms (`multipart/form-data`) within limits, and in steps, so that a large one does not block other requests. */
import { Effect, Result, Schema } from "effect"
import { MultipartParser } from "effect/http"
import { MIMEType } from "node:util"
import { turnFor } from "./Turns.ts"

/** Pictures, a mask and settings: far more than any model accepts. */
const maxParts = 1_000

/** The longest name of a part, in characters. A name such as `a[b][c]` stands for an object in an object, which may nest too deep. */
const maxNameLength = 100

/** Bytes that are read in one turn of the event loop, which takes a few milliseconds. */
const perTurnBytes = 2 * 1024 * 1024

/** A body that is not a form, or exceeds a limit of forms. */
export class FormRefused extends Schema.TaggedError<FormRefused>()("FormRefused", {
  /** The limit, such as `more than 1000 parts`; absent if the body is not a form. */
  excess: Schema.optionalKey(Schema.String)
}) {}

const malformed = new FormRefused()

/** The boundary that a `content-type` names; `undefined` if none. */
export const boundaryOf = (contentType: string): string | undefined =>
  Result.getOrUndefined(Result.try(() => new MIMEType(contentType).params.get("boundary"))) || undefined

/** Why the parser ended. Each part's headers have at most 16 KiB in 100 lines, by its own limits. */
const refusalOf = (error: MultipartParser.MultipartError): FormRefused => {
  if (error._tag === "ReachedLimit") return new FormRefused({ excess: `more than ${maxParts} parts` })
  const isTooLong = error._tag === "BadHeaders" &&
    (error.error.reason === "HeaderTooLarge" || error.error.reason === "TooManyHeaders")
  return isTooLong ? new FormRefused({ excess: "a part whose headers are too long" }) : malformed
}

/** Parses the whole body that the pieces form. */
class FormReader {
  readonly #form = new FormData()
  readonly #parser: MultipartParser.Parser
  /** The form after its last boundary. What follows is ignored, as RFC 2046 requires. */
  #result: Result.Result<FormData, FormRefused> | undefined

  constructor(boundary: string) {
    const quoted = boundary.replaceAll(/["\\]/g, "\\$&")
    this.#parser = MultipartParser.make({
      headers: { "content-type": `multipart/form-data; boundary="${quoted}"` },
      isFile: ({ filename }) => filename !== undefined,
      maxParts,
      // the body is bounded already
      maxFieldSize: Infinity,
      onField: (part, value) => this.#add(part, MultipartParser.decodeField(part, value)),
      onFile: (part) => {
        const pieces: Array<Uint8Array<ArrayBuffer>> = []
        return (piece) => {
          if (piece !== null) pieces.push(piece as Uint8Array<ArrayBuffer>)
          else this.#add(part, new File(pieces, part.filename ?? "", { type: part.contentType }))
        }
      },
      onError: (error) => this.#end(Result.fail(refusalOf(error))),
      onDone: () => this.#end(Result.succeed(this.#form))
    })
  }

  #end(result: Result.Result<FormData, FormRefused>): void {
    this.#result ??= result
  }

  #add({ contentDisposition, name }: MultipartParser.PartInfo, value: string | File): void {
    if (this.#result !== undefined) return
    if (contentDisposition !== "form-data") return this.#end(Result.fail(malformed))
    if (name.length > maxNameLength) {
      const excess = `a part whose name is longer than ${maxNameLength} characters`
      return this.#end(Result.fail(new FormRefused({ excess })))
    }
    this.#form.append(name, value)
  }

  /** Reads a piece. Returns the result once it is certain. */
  push(piece: Uint8Array): Result.Result<FormData, FormRefused> | undefined {
    try {
      this.#parser.write(piece)
    } catch {
      // Effect's parser throws at the header of a part that ends in a carriage return alone
      this.#end(Result.fail(malformed))
    }
    return this.#result
  }

  end(): Result.Result<FormData, FormRefused> {
    this.#parser.end()
    return this.#result ?? Result.fail(malformed)
  }
}

export const read = Effect.fnUntraced(function*(contentType: string, body: Uint8Array) {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return yield* malformed
  const reader = new FormReader(boundary)
  for (let at = 0; at < body.length; at += perTurnBytes) {
    const piece = body.subarray(at, at + perTurnBytes)
    yield* turnFor(piece.length)
    const result = reader.push(piece)
    if (result !== undefined) return yield* Effect.fromResult(result)
  }
  return yield* Effect.fromResult(reader.end())
})
