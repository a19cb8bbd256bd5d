/**
 * The built-in video engine: paints a scene from the prompt, or moves over a given picture, and encodes it as H.264 in an
 * MP4 file. It shows what it was asked for by its own rules, not by a learned model.
 *
 * Its name for a task is the seed: whoever goes on with the task makes the same video from the beginning. Painting and
 * encoding happen in a thread of their own, for they take the processor whole.
 */
import { Effect, Layer, Random, Schema } from "effect"
import { Worker } from "node:worker_threads"
import { InternalError, InvalidRequest, type JobError } from "../../shared/contract/JobError.ts"
import { extentOf, type VideoGenerationRequest } from "../../shared/contract/VideoGenerations.ts"
import { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { LocalVideoEngine, type Video, type VideoCall } from "../../shared/provider/VideoEngine.ts"
import * as Picture from "./Picture.ts"
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
    picture: typeof request.image === "string" ? yield* Picture.load(request.image, width, height) : undefined
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
      // nothing of it is left once nobody follows it
      cancel: () => Effect.void
    }))
)
