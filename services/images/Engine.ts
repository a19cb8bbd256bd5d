/** Offers the built-in painter of placeholders and a few picture operations to the `local` protocol. */
import { Effect, Layer } from "effect"
import { generateContent, streamGenerateContent } from "../../shared/contract/operations/GenerateContent.ts"
import { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import type { ImageModel, Picture } from "../../shared/provider/dialects/images/ImageModel.ts"
import * as Images from "../../shared/provider/dialects/images/Images.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import { ResultStore } from "../../shared/provider/call/ResultStore.ts"
import { edit } from "./Edit.ts"
import { generate } from "./Generate.ts"
import { settle } from "./LocalRequest.ts"

/** Their answers tell the usage in tokens. */
const countsTokens: ReadonlyArray<string> = [generateContent.name, streamGenerateContent.name]

const model = (guard: GuardedFetch["Service"]): ImageModel =>
  Effect.fnUntraced(function*({ operation }, request) {
    const local = yield* settle(request)
    const pictures = yield* local.images.length > 0 ? edit(local, guard) : generate(local)
    return {
      pictures,
      usage: countsTokens.includes(operation.name) ? yield* counted(local.prompt, pictures) : undefined,
      warnings: request.extend === true ? [request.pathOf("prompt_extend")] : []
    }
  })

const counted = Effect.fnUntraced(function*(prompt: string, pictures: ReadonlyArray<Picture>) {
  const { countAll } = yield* loadTokenizer
  return {
    inputTokens: yield* countAll([prompt]),
    outputTokens: yield* countAll(pictures.map(({ revisedPrompt = "" }) => revisedPrompt))
  }
})

export const layer = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const guard = yield* GuardedFetch
    const results = yield* ResultStore
    return LocalEngines.of({ performs: Images.performs(model(guard), { guard, results }) })
  })
)
