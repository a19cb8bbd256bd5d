/** Offers the built-in painter and the pixel operations to the `local` protocol. */
import { Effect, Layer } from "effect"
import { generateContent, streamGenerateContent } from "../../shared/contract/GenerateContent.ts"
import { imageEdits } from "../../shared/contract/ImageEdits.ts"
import { imageGenerations } from "../../shared/contract/ImageGenerations.ts"
import { ResultFiles } from "../../shared/files/ResultFiles.ts"
import { Painter } from "../../shared/painter/Painter.ts"
import { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { LocalEngines } from "../../shared/provider/Local.ts"
import type { Perform } from "../../shared/provider/Protocol.ts"
import { content } from "./Content.ts"
import { edit } from "./Edit.ts"
import { generate } from "./Generate.ts"
import { readEdit, readGeneration } from "./ImageRequest.ts"
import { answer } from "./Results.ts"

/** With the tools that the caller provides: for tests, which have neither NATS nor the internet. */
export const layerWith = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const painter = yield* Painter
    const guard = yield* GuardedFetch
    const files = yield* ResultFiles
    const generations: Perform = Effect.fnUntraced(function*(call, sink) {
      const request = yield* readGeneration(call)
      const results = yield* generate(request, painter)
      yield* answer(results, request, files, sink)
      return undefined
    })
    const edits: Perform = Effect.fnUntraced(function*(call, sink) {
      const request = yield* readEdit(call)
      const results = yield* edit(request, { guard, painter })
      yield* answer(results, request, files, sink)
      return undefined
    })
    return LocalEngines.of({
      performs: new Map([
        [imageGenerations.name, generations],
        [imageEdits.name, edits],
        [generateContent.name, content({ guard, painter })],
        [streamGenerateContent.name, content({ guard, painter })]
      ])
    })
  })
)

export const layer = layerWith.pipe(Layer.provide([Painter.layer, GuardedFetch.layer, ResultFiles.layer]))
