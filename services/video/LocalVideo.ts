/**
 * The built-in video engine, which is no model: it sets the placeholder of a prompt in motion, or moves a camera over a
 * given picture, and encodes the frames as H.264 in an MP4 file.
 *
 * Its name for a task is the seed: a worker that takes the task over makes the same video from the beginning. A thread of
 * its own paints and encodes, because that keeps a processor busy.
 */
import { Effect, Layer, Random, Schema } from "effect"
import { Worker } from "node:worker_threads"
import { InternalError, InvalidRequest, type JobError } from "../../shared/contract/JobError.ts"
import { extentOf, type VideoGenerationRequest } from "../../shared/contract/operations/VideoGenerations.ts"
import { decodePicture, openPicture } from "../../shared/files/InputPicture.ts"
import { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import { bytesOf, unusable } from "../../shared/provider/dialects/images/ImageSource.ts"
import { LocalVideoEngine, type Video, type VideoCall } from "../../shared/provider/call/VideoEngine.ts"
import { room } from "./Camera.ts"
import type { Rendered, RenderOrder } from "./Render.ts"

const LocalTask = Schema.Struct({ seed: Schema.Int })
const decodeTask = Schema.decodeUnknownEffect(LocalTask)

/** H.264's quantization, 10 to 51: less is finer. */
const quantizations: Readonly<Record<string, number>> = { low: 36, standard: 28, high: 20 }

const quantizationOf = ({ metadata }: VideoGenerationRequest): Effect.Effect<number, InvalidRequest> => {
  const level = metadata?.quality_level ?? "standard"
  const quantization = Object.hasOwn(quantizations, level) ? quantizations[level] : undefined
  return quantization === undefined
    ? Effect.fail(
      InvalidRequest.at("metadata.quality_level", "must be \"low\", \"standard\" or \"high\" for this model")
    )
    : Effect.succeed(quantization)
}

/** What the thread says: how far it is, then the file. */
type Word = { readonly progress: number } | { readonly file: Rendered }

const render = (order: RenderOrder, report: (progress: number) => void): Effect.Effect<Rendered, JobError> =>
  Effect.callback<Rendered, JobError>((resume) => {
    const thread = new Worker(new URL("./Render.ts", import.meta.url), { workerData: order })
    thread.on("message", (word: Word) => {
      if ("file" in word) resume(Effect.succeed(word.file))
      else report(word.progress)
    })
    const broken = (cause: unknown) =>
      resume(Effect.andThen(Effect.logError("the video renderer ended", { cause: String(cause) }), new InternalError()))
    thread.on("error", broken)
    thread.on("exit", broken)
    return Effect.promise(() => thread.terminate())
  })

/** The picture that a video begins with, filling a frame of this size and the room that the camera moves in. */
const load = Effect.fn("LocalVideo.load")(function*(image: string, width: number, height: number) {
  const source = { content: image, param: "image" }
  const bytes = yield* bytesOf(source, yield* GuardedFetch)
  const { data, ...size } = yield* openPicture(bytes).pipe(
    Effect.map(({ picture }) =>
      picture.resize(Math.ceil(width * room), Math.ceil(height * room), { fit: "cover" })
        .flatten({ background: "#ffffff" })
    ),
    Effect.flatMap(decodePicture),
    Effect.mapError(({ what }) => unusable(source, what))
  )
  return { ...size, data: new Uint8Array(data) }
})

const follow = Effect.fn("LocalVideo.follow")(function*(
  { request }: VideoCall,
  task: unknown,
  report: (progress: number) => void
): Effect.fn.Return<Video, JobError, GuardedFetch> {
  const { seed } = yield* decodeTask(task).pipe(Effect.mapError(() => new InternalError()))
  const { fps, frames, height, width } = extentOf(request)
  const style = request.metadata?.style
  const bytes = yield* render({
    width,
    height,
    fps,
    frames,
    seed,
    quantization: yield* quantizationOf(request),
    prompt: typeof style === "string" ? `${request.prompt}, ${style}` : request.prompt,
    negativePrompt: request.metadata?.negative_prompt ?? "",
    picture: typeof request.image === "string" ? yield* load(request.image, width, height) : undefined
  }, report)
  return { bytes, format: "mp4", metadata: { duration: frames / fps, fps, width, height, seed } }
})

export const layer = Layer.effect(
  LocalVideoEngine,
  Effect.map(GuardedFetch, (fetch) =>
    LocalVideoEngine.of({
      start: ({ request }) =>
        typeof request.seed === "number"
          ? Effect.succeed({ seed: request.seed })
          : Effect.map(Random.nextIntBetween(0, 2 ** 31 - 1), (seed) => ({ seed })),
      follow: (call, task, report) => follow(call, task, report).pipe(Effect.provideService(GuardedFetch, fetch)),
      // the thread ends with the fiber that follows it
      cancel: () => Effect.void
    }))
)
