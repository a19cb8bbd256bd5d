/** Writes answers with pictures: in base64, as URLs, or as parts of generated content. */
import { Clock, Effect, Stream } from "effect"
import { randomUUID } from "node:crypto"
import { type GenerateContentAnswer, streamGenerateContent } from "../../../contract/operations/GenerateContent.ts"
import { type JobError, ProviderFailed } from "../../../contract/JobError.ts"
import { toUsageMetadata } from "../gemini/GeminiUsage.ts"
import { originOf } from "../../transport/Endpoint.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import type { Call } from "../../call/Protocol.ts"
import * as ProviderResult from "../../transport/ProviderResult.ts"
import { keepFor, type ResultStore } from "../../call/ResultStore.ts"
import { type Sink, writeAll } from "../../transport/Sink.ts"
import * as TranslationWarnings from "../../call/TranslationWarnings.ts"
import type { WantedParts } from "./ContentRequest.ts"
import type { GeneratedPictures, Picture } from "./ImageModel.ts"
import type { ImageRequest } from "./ImageRequest.ts"
import { mediaTypeOf, pictureKind } from "../../call/PictureKind.ts"
import { contentAt } from "./PictureUrl.ts"

export interface Dependencies {
  readonly guard: GuardedFetch["Service"]
  readonly results: ResultStore["Service"]
}

const malformed = ({ endpoint: { name: provider } }: Call) => ProviderFailed.malformed(provider)

/** The limits for fetching one picture, within the request's deadline. */
const bounds = { maximumBytes: 20 * 1024 * 1024, withinMs: 60_000, tries: 3 }

const contentOf = ({ content }: Picture, { endpoint }: Call) =>
  typeof content === "string" ? contentAt(content, endpoint) : Effect.succeed(content)

/** The bytes of a picture, fetched if there is only its URL. */
export const fileOf = Effect.fnUntraced(function*(content: Uint8Array | URL, call: Call, { guard }: Dependencies) {
  const bytes = content instanceof URL ? yield* ProviderResult.fetch(guard, call.endpoint, content, bounds) : content
  const kind = pictureKind(bytes)
  return kind === undefined ? yield* malformed(call) : { bytes, kind }
})

const utf8 = new TextEncoder()

/** Writes the answer with base64 or URLs, one picture at a time, so that memory holds only one as base64. */
export const write = Effect.fnUntraced(function*(
  { pictures, warnings = [] }: GeneratedPictures,
  call: Call,
  { answerAs }: ImageRequest,
  dependencies: Dependencies,
  sink: Sink
) {
  if (pictures.length === 0) return yield* malformed(call)
  // fetches and stores all pictures before the answer starts: until then a failure can still set the status
  const ready = yield* Effect.forEach(pictures, (picture) => prepare(picture, call, answerAs, dependencies), {
    concurrency: 4
  })
  const created = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
  const body = Stream.make(`{"created":${created},"data":[`).pipe(
    Stream.concat(
      Stream.fromIterable(ready.entries()).pipe(
        Stream.rechunk(1),
        Stream.mapEffect(([index, { bytes, revised_prompt, url }]) => {
          const where = bytes === undefined ? { url } : { b64_json: Buffer.from(bytes).toString("base64") }
          const item = `${index === 0 ? "" : ","}${JSON.stringify({ ...where, revised_prompt })}`
          return Effect.as(Effect.yieldNow, item)
        })
      )
    ),
    Stream.concat(Stream.make("]}")),
    Stream.map((text) => utf8.encode(text))
  )
  sink.start({ status: 200, contentType: "application/json", headers: TranslationWarnings.toHeaders(warnings) })
  yield* writeAll(sink, body)
})

interface Ready {
  readonly bytes?: Uint8Array
  readonly url?: string
  readonly revised_prompt?: string | undefined
}

const prepare = Effect.fnUntraced(function*(
  picture: Picture,
  call: Call,
  answerAs: ImageRequest["answerAs"],
  dependencies: Dependencies
): Effect.fn.Return<Ready, JobError> {
  const prompt = { revised_prompt: picture.revisedPrompt }
  const content = yield* contentOf(picture, call)
  // clients must not learn the provider's own URLs, which they may be unable to reach
  if (answerAs === "url" && content instanceof URL && content.origin !== originOf(call.endpoint)) {
    return { ...prompt, url: content.href }
  }
  const { bytes, kind } = yield* fileOf(content, call, dependencies)
  return answerAs === "url"
    ? { ...prompt, url: yield* keepFor(call, dependencies.results, bytes, kind) }
    : { ...prompt, bytes }
})

/** Writes the answer of generateContent in one piece, even as a stream. */
export const writeContent = Effect.fnUntraced(function*(
  { pictures, usage, warnings = [] }: GeneratedPictures,
  call: Call,
  wants: WantedParts,
  dependencies: Dependencies,
  sink: Sink
) {
  if (pictures.length === 0) return yield* malformed(call)
  const candidates = yield* Effect.forEach(
    pictures,
    Effect.fnUntraced(function*(picture, index) {
      const text = wants.text && picture.revisedPrompt !== undefined ? [{ text: picture.revisedPrompt }] : []
      const { bytes, kind } = yield* fileOf(yield* contentOf(picture, call), call, dependencies)
      const data = Buffer.from(bytes).toString("base64")
      const image = wants.image ? [{ inlineData: { mimeType: mediaTypeOf(kind), data } }] : []
      return {
        content: { role: "model" as const, parts: [...text, ...image] },
        finishReason: "STOP",
        index,
        safetyRatings: []
      }
    })
  )
  const whole: GenerateContentAnswer = {
    candidates,
    ...(usage === undefined ? {} : { usageMetadata: toUsageMetadata(usage) }),
    modelVersion: call.answersAs,
    responseId: randomUUID()
  }
  const streams = call.operation.name === streamGenerateContent.name
  sink.start({
    status: 200,
    contentType: streams ? "text/event-stream" : "application/json",
    headers: TranslationWarnings.toHeaders(warnings)
  })
  sink.write(utf8.encode(streams ? `data: ${JSON.stringify(whole)}\n\n` : JSON.stringify(whole)))
})
