/** Paints pictures from prompts, in threads of its own, so that the process stays responsive. */
import { Context, Effect, Layer, Pool, Schema } from "effect"
import { availableParallelism } from "node:os"
import { Worker } from "node:worker_threads"
import { compose, type Painting } from "./Scene.ts"

/** A mistake of the painter's, or a thread that has died. */
export class PaintFailed extends Schema.TaggedError<PaintFailed>()("PaintFailed", { cause: Schema.Defect() }) {
  override get message() {
    return "The picture could not be painted"
  }
}

/** One core stays for the process itself. A thread without work for this long is ended. */
const threads = Math.max(1, availableParallelism() - 1)
const idleFor = "1 minute"

export class Painter extends Context.Service<Painter, {
  /** The PNG. Waits for a free thread. Interruption ends the work. */
  readonly paint: (painting: Painting) => Effect.Effect<Uint8Array, PaintFailed>
  /** What the picture shows, in words, and what was added to the prompt. */
  readonly describe: (painting: Painting) => { readonly description: string; readonly additions: ReadonlyArray<string> }
}>()("shared/painter/Painter") {
  static readonly layer = Layer.effect(
    Painter,
    Effect.gen(function*() {
      const pool = yield* Pool.makeWithTTL({ acquire: thread, min: 0, max: threads, timeToLive: idleFor })
      const paint = Effect.fnUntraced(
        function*(painting: Painting) {
          const worker = yield* Pool.get(pool)
          return yield* paintIn(worker, painting).pipe(
            // a thread that was left in the middle of a picture, or has failed, is of no use any more
            Effect.onError(() => Pool.invalidate(pool, worker))
          )
        },
        Effect.scoped
      )
      return Painter.of({ paint, describe: compose })
    })
  )
}

const thread = Effect.acquireRelease(
  Effect.sync(() =>
    new Worker(new URL("./thread.ts", import.meta.url), { name: "painter" })
      // an error that nobody listens to ends the process, and nobody does to a thread that is being ended
      .on("error", () => undefined)
  ),
  (worker) => Effect.promise(() => worker.terminate())
)

const paintIn = (worker: Worker, painting: Painting): Effect.Effect<Uint8Array, PaintFailed> =>
  Effect.callback<Uint8Array, PaintFailed>((resume) => {
    const onMessage = (png: Uint8Array) => settle(Effect.succeed(png))
    const onError = (cause: unknown) => settle(Effect.fail(new PaintFailed({ cause })))
    const onExit = (code: number) => onError(new Error(`the thread ended with ${code}`))
    const forget = () => worker.off("message", onMessage).off("error", onError).off("exit", onExit)
    const settle = (result: Effect.Effect<Uint8Array, PaintFailed>) => {
      forget()
      resume(result)
    }
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    worker.postMessage(painting, [])
    return Effect.sync(forget)
  })
