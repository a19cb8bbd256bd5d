/** The answer with pictures: in base64, or behind signed addresses. */
import { Clock, Effect, Stream } from "effect"
import { type JobError, Unavailable } from "../../shared/contract/JobError.ts"
import type { ResultFiles } from "../../shared/files/ResultFiles.ts"
import { type Sink, writeAll } from "../../shared/provider/Sink.ts"
import type { ImageRequest } from "./ImageRequest.ts"

export interface Result {
  /** A file in the format that the request asks for. */
  readonly bytes: Uint8Array
  /** What it shows, or what was done to it. */
  readonly revisedPrompt: string
}

const utf8 = new TextEncoder()

/** Writes one picture after the other, so that no more than one is in memory as text. */
export const answer = Effect.fn("Results.answer")(function*(
  results: ReadonlyArray<Result>,
  { answerAs, format }: ImageRequest,
  files: ResultFiles["Service"],
  sink: Sink
): Effect.fn.Return<void, JobError> {
  const created = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  // kept before the answer begins: until then a failure can still be told by a status
  const urls = answerAs === "b64_json" ?
    [] :
    yield* Effect.forEach(
      results,
      ({ bytes }) => Effect.mapError(files.keep(bytes, format), () => new Unavailable({ retryAfterMs: 1_000 }))
    )
  const item = ({ bytes, revisedPrompt }: Result, index: number): string => {
    const where = answerAs === "url" ? { url: urls[index] } : { b64_json: Buffer.from(bytes).toString("base64") }
    return `${index === 0 ? "" : ","}${JSON.stringify({ ...where, revised_prompt: revisedPrompt })}`
  }
  const body = Stream.make(`{"created":${created},"data":[`).pipe(
    Stream.concat(
      Stream.fromIterable(results.entries()).pipe(
        Stream.rechunk(1),
        Stream.mapEffect(([index, result]) => Effect.as(Effect.yieldNow, item(result, index)))
      )
    ),
    Stream.concat(Stream.make("]}")),
    Stream.map((text) => utf8.encode(text))
  )
  sink.start({ status: 200, contentType: "application/json", headers: {} })
  yield* writeAll(sink, body)
})
