/**
 * Receives the form of an upload. The file is stored while it comes in, and is complete only after the last part of the form, because
 * clients may send the purpose after the file.
 */
import { Effect, Pull, Stream } from "effect"
import { type HttpServerRequest, Multipart } from "effect/http"
import { createHash } from "node:crypto"
import { type ContentCoding, decoderBytes } from "../../../shared/bounds/ContentCoding.ts"
import { InvalidRequest, type QueueFull } from "../../../shared/contract/JobError.ts"
import { asUnavailable } from "../../../shared/nats/JetStream.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import { type ClientFile, type ClientFiles, maxUploadBytes } from "../../../shared/files/ClientFiles.ts"
import { LineCount } from "../../../shared/files/LineCount.ts"
import { BodyTooLarge, type RequestError } from "../errors/IngressError.ts"
import { keyIn, keyReused } from "../request/IdempotencyKey.ts"
import { clientFilesPath } from "../paths/RouteTemplate.ts"
import { isForm, notAForm } from "../request/IncomingBody.ts"
import { codingsOf, streamOf } from "../body/BodySource.ts"
import type { UploadBudget } from "../body/UploadBudget.ts"

/** Maximum size of a form: the largest file and 1 MiB around it. */
const maxBodyBytes = maxUploadBytes + 1024 * 1024
const maxFieldBytes = 4 * 1024
const maxParts = 16
const limits = Multipart.limitsServices({
  maxParts,
  maxFieldSize: maxFieldBytes,
  maxFileSize: maxBodyBytes,
  maxTotalSize: maxBodyBytes
})

/**
 * Memory of an upload, besides the line that it reads: in total, but no more than a few times what has arrived, and for each line.
 */
const keptBytes = 512 * 1024
const keptTimes = 4
const keptBytesPerLine = 64

const newline = 0x0a
const longestName = 255

export interface Received {
  readonly file: ClientFile
  /** Whether an earlier request with the same idempotency key sent the file. */
  readonly isRepeated: boolean
}

/** What is wrong with a field of the form that is not a file; `undefined` if nothing. */
const problemOf = (field: string, value: string): string | undefined => {
  if (field === "file") return "must be a file, with a filename"
  if (field !== "purpose") return "is not supported: send `file` and `purpose`. Files are kept for 30 days"
  return value === "batch" ? undefined : "must be 'batch': files of other purposes are not supported"
}

const wrongForm = (message: string) => new InvalidRequest({ message, param: null, code: "invalid_form" })

const fromForm = ({ reason }: Multipart.MultipartError): RequestError => {
  switch (reason._tag) {
    case "FileTooLarge":
    case "BodyTooLarge":
      return new BodyTooLarge({ limitBytes: maxBodyBytes })
    case "FieldTooLarge":
      return wrongForm(`A field of the form is larger than ${maxFieldBytes} bytes. Send the file with a filename.`)
    case "TooManyParts":
      return wrongForm(`The form has more than ${maxParts} parts`)
    default:
      return notAForm
  }
}

/** Effect's parser throws at the header of a part that ends in a carriage return alone. */
const malformed = Stream.catchDefect(() => Stream.fail(notAForm))

/** Reserves memory for the lines that are being read. */
const reserveLines = (budget: UploadBudget, codings: ReadonlyArray<ContentCoding>) => {
  const lines = new LineCount()
  let arrived = 0
  let line = 0
  return (piece: Uint8Array): Effect.Effect<void, QueueFull> => {
    lines.push(piece)
    const end = piece.lastIndexOf(newline)
    line = end === -1 ? line + piece.length : piece.length - end - 1
    arrived += piece.length
    const kept = Math.min(keptBytes, keptTimes * arrived) + decoderBytes(codings, arrived)
    return budget.wait(kept + keptBytesPerLine * lines.count + line)
  }
}

export const receive = (
  files: ClientFiles["Service"],
  owner: Owner,
  request: HttpServerRequest.HttpServerRequest,
  budget: UploadBudget
): Effect.Effect<Received, RequestError> =>
  Effect.gen(function*() {
    const { headers } = request
    const key = yield* keyIn(headers)
    if (!isForm(headers)) return yield* notAForm
    const announced = Number(headers["content-length"] ?? 0)
    const codings = yield* Effect.fromResult(codingsOf(headers))
    yield* budget.wait(decoderBytes(codings, 0))
    if (announced > maxBodyBytes) return yield* new BodyTooLarge({ limitBytes: maxBodyBytes })

    const pull = yield* Stream.toPull(
      streamOf(request, maxBodyBytes, notAForm).pipe(
        Stream.pipeThroughChannelOrFail(Multipart.makeChannel<RequestError>(headers)),
        malformed,
        Stream.mapError((error) => Multipart.isMultipartError(error) ? fromForm(error) : error)
      )
    )
    const parts: Array<Multipart.Part> = []
    /** The next part; `undefined` at the end of the form. */
    const next = Effect.gen(function*() {
      if (parts.length === 0) {
        parts.push(...yield* Pull.catchDone(pull, () => Effect.succeed([])))
      }
      return parts.shift()
    })

    let hasPurpose = false
    const readField = ({ key, value }: { readonly key: string; readonly value: string }) => {
      const problem = problemOf(key, value)
      if (problem !== undefined) return Effect.fail(InvalidRequest.at(key, problem))
      hasPurpose = true
      return Effect.void
    }
    const firstFile = Effect.gen(function*() {
      for (;;) {
        const part = yield* next
        if (part === undefined) return yield* InvalidRequest.at("file", "is required")
        if (part._tag === "File") return part
        yield* readField(part)
      }
    })
    const rest = Effect.gen(function*() {
      for (;;) {
        const part = yield* next
        if (part === undefined) break
        if (part._tag === "File") return yield* InvalidRequest.at(part.key, "must be the only file")
        yield* readField(part)
      }
      if (!hasPurpose) return yield* InvalidRequest.at("purpose", "is required")
    })

    const file = yield* firstFile
    if (file.key !== "file") return yield* InvalidRequest.at(file.key, "is not supported: send the file as `file`")
    // the parser may split a chunk into very many pieces
    const pieces = file.content.pipe(
      Stream.mapArray((pieces) => [Buffer.concat(pieces)] as const),
      malformed,
      Stream.mapError((error) => Multipart.isMultipartError(error) ? fromForm(error) : error)
    )
    const about = { purpose: "batch", filename: file.name.slice(0, longestName).toWellFormed(), announced } as const
    const hash = createHash("sha256").update(JSON.stringify(about.filename))
    const content = pieces.pipe(
      Stream.tap(reserveLines(budget, codings)),
      Stream.tap((piece) => Effect.sync(() => hash.update(piece))),
      Stream.concat(Stream.fromEffectDrain(rest))
    )
    const created = yield* files.create(owner, about, content).pipe(
      Effect.catchTag("FileRefused", (refused) => {
        const refusal = Effect.fail(refused)
        // the rest of the form may show another purpose, whose error comes before those of the content
        return refused.reason === "content"
          ? Effect.andThen(Effect.andThen(Stream.runDrain(pieces), rest), refusal)
          : refusal
      }),
      asUnavailable
    )
    if (key === undefined) return { file: created, isRepeated: false }
    const keyed = { operation: clientFilesPath, key, bodyHash: hash.digest("hex") }
    const bound = yield* asUnavailable(keyReused(files.bind(owner, keyed, created)))
    return { file: bound, isRepeated: bound.id !== created.id }
  }).pipe(Effect.scoped, Effect.provide(limits))
