/**
 * The built-in video engine, not a model: moves a camera over a given picture, or else over a placeholder of the
 * prompt, and encodes the frames as H.264 in an MP4 file.
 *
 * Its reference to a task is the seed, so that a worker that takes over the task makes the same frames again. A thread
 * paints and encodes, so that the worker stays responsive.
 */
import { Context, Effect, Layer, Random, Schema } from "effect"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import * as ExactJson from "../../shared/bounds/ExactJson.ts"
import { InternalError, type JobError } from "../../shared/contract/JobError.ts"
import { extentOf, LocalVideoRequest } from "../../shared/contract/operations/LocalVideo.ts"
import * as SchemaErrors from "../../shared/contract/SchemaErrors.ts"
import { decodePicture, openPicture } from "../../shared/pictures/InputPicture.ts"
import { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import { carried, lostIn } from "../../shared/provider/dialects/conversation/Losses.ts"
import { bytesOf, invalidImage } from "../../shared/provider/dialects/images/ImageSource.ts"
import { LocalVideoEngine, type Video, type VideoCall } from "../../shared/provider/call/VideoEngine.ts"
import { room } from "./Camera.ts"
import type { Rendered, RenderOrder } from "./Render.ts"

const decodeTask = Schema.decodeUnknownEffect(Schema.Struct({ seed: Schema.Int }))

const decodeRequest = Schema.decodeUnknownEffect(LocalVideoRequest)

/** The engine's settings in `metadata`. */
const known = carried("negative_prompt", "style", "quality_level")

/** H.264 quantization, 10 to 51: lower is finer. */
const quantizations = { low: 36, standard: 28, high: 20 }

export class Renderer extends Context.Service<Renderer, {
  /** The file of the order; reports its progress in percent. */
  readonly render: (order: RenderOrder, report: (progress: number) => void) => Effect.Effect<Rendered, JobError>
}>()("services/video/Renderer") {}

const renderInThread: Renderer["Service"]["render"] = (order, report) =>
  Effect.callback<Rendered, JobError>((resume) => {
    const thread = new Worker(join(import.meta.dirname, "Render.ts"), { workerData: order })
    thread.on("message", (message: { readonly progress: number } | { readonly file: Rendered }) => {
      if ("file" in message) resume(Effect.succeed(message.file))
      else report(message.progress)
    })
    const fail = (cause: unknown) =>
      resume(Effect.andThen(Effect.logError("the video renderer ended", { cause: String(cause) }), new InternalError()))
    thread.on("error", fail)
    thread.on("exit", fail)
    return Effect.promise(() => thread.terminate())
  })

/** The picture that a video begins with, filling a frame of this size and the room around it. */
const load = Effect.fn("LocalVideo.load")(function*(image: string, width: number, height: number) {
  const source = { content: image, param: "image" }
  const bytes = yield* bytesOf(source, yield* GuardedFetch)
  const picture = yield* openPicture(bytes).pipe(
    Effect.flatMap(({ picture }) =>
      decodePicture(
        picture.resize(Math.ceil(width * room), Math.ceil(height * room), { fit: "cover" })
          .flatten({ background: "#ffffff" })
      )
    ),
    Effect.mapError(({ what }) => invalidImage(source, what))
  )
  return { ...picture, data: new Uint8Array(picture.data) }
})

const follow = Effect.fn("LocalVideo.follow")(function*(
  { request }: VideoCall,
  task: unknown,
  report: (progress: number) => void
): Effect.fn.Return<Video, JobError, GuardedFetch | Renderer> {
  const { seed } = yield* decodeTask(task).pipe(Effect.mapError(() => new InternalError()))
  // ingress has checked this if the model has no other provider
  const wished = request.seed ?? null
  const bounded = yield* decodeRequest({ ...request, seed: wished && ExactJson.toNumber(wished) }).pipe(
    Effect.mapError(({ issue }) => SchemaErrors.toInvalidRequest(issue, request))
  )
  const { fps, frames, height, width } = extentOf(bounded)
  const { image, metadata, prompt } = request
  const { render } = yield* Renderer
  const bytes = yield* render({
    width,
    height,
    fps,
    frames,
    seed,
    quantization: quantizations[bounded.metadata?.quality_level ?? "standard"],
    prompt: typeof metadata?.style === "string" ? `${prompt}, ${metadata.style}` : prompt,
    negativePrompt: metadata?.negative_prompt ?? "",
    picture: typeof image === "string" ? yield* load(image, width, height) : undefined
  }, report)
  const warnings = lostIn(metadata, known, "metadata")
  return {
    bytes,
    format: "mp4",
    metadata: { duration: frames / fps, fps, width, height, seed, ...(warnings.length === 0 ? {} : { warnings }) }
  }
})

export const layerNoDeps = Layer.effect(
  LocalVideoEngine,
  Effect.map(Effect.context<GuardedFetch | Renderer>(), (services) =>
    LocalVideoEngine.of({
      start: ({ request: { seed } }) =>
        Effect.map(
          typeof seed === "number" ? Effect.succeed(seed) : Random.nextIntBetween(0, 2 ** 31 - 1),
          (seed) => ({ seed })
        ),
      follow: (call, task, report) => Effect.provideContext(follow(call, task, report), services),
      // the thread ends with the fiber that follows it
      cancel: () => Effect.void
    }))
)

export const layer = Layer.provide(layerNoDeps, Layer.succeed(Renderer, { render: renderInThread }))
