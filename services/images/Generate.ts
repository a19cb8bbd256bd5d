/** Paints pictures from a prompt, and tells what they show. */
import { Effect } from "effect"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { InternalError } from "../../shared/contract/JobError.ts"
import type { Painter } from "../../shared/painter/Painter.ts"
import type { Picture } from "../../shared/provider/images/ImageModel.ts"
import type { LocalRequest } from "./LocalRequest.ts"
import { ownFault } from "./OwnFault.ts"
import { encode } from "./Pixels.ts"

const usualSide = 1024

/** As many pictures as were asked for, each from a seed of its own. */
export const generate = Effect.fn("Generate.generate")(
  function*(
    request: LocalRequest,
    painter: Painter["Service"]
  ): Effect.fn.Return<ReadonlyArray<Picture>, InternalError> {
    const { extend, negativePrompt, prompt, watermark } = request
    const { height, width } = request.size ?? { width: usualSide, height: usualSide }
    const seeds = Array.from({ length: request.n }, (_, index) => request.seed + index)
    return yield* Effect.forEach(seeds, (seed) => {
      const painting = { prompt, negativePrompt, width, height, seed, extend, watermark }
      const { additions, description } = painter.describe(painting)
      const added = additions.length === 0 ? "" : ` Added to the prompt: ${additions.join(", ")}.`
      return painter.paint(painting).pipe(
        ownFault("a picture could not be painted"),
        Effect.filterOrElse(() => request.format === "png", (png) => encode(sharp(png), request)),
        Effect.map((content): Picture => ({
          content,
          revisedPrompt: `Painted by rule, without a model: ${description}.${added}`
        }))
      )
    }, { concurrency: 4 })
  }
)
