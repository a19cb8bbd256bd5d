/** Edits pictures by an instruction, and reports the changes. */
import { Effect } from "effect"
import * as ExactJson from "../../shared/bounds/ExactJson.ts"
import { type InternalError, InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Pixels } from "../../shared/pictures/InputPicture.ts"
import { sharp } from "../../shared/pictures/PixelFormats.ts"
import { describe, writeMachineMark } from "../../shared/painter/Painting.ts"
import type { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import type { Picture } from "../../shared/provider/dialects/images/ImageModel.ts"
import type { ImageRequest } from "../../shared/provider/dialects/images/ImageRequest.ts"
import { abilities, readInstruction } from "./Operations.ts"
import { encode, load, longestSide, open, paint, take, toCanvas, toPixels } from "./Pixels.ts"

const clip = (text: string): string => text.length > 100 ? `${text.slice(0, 100).toWellFormed()}…` : text

/** Maximum number of changes in one instruction: each processes all pixels. */
const maxSteps = 50

/** Matches instructions to combine several pictures, which the engine does in any case. */
const joining = /\b(?:side by side|combin\w*|merg\w*|join\w*|next to|together)\b/i

/**
 * Joins the pictures of a request side by side and applies its instruction to the result. With a mask, it uses only the
 * first picture. The engine has no variations: all `n` pictures are the same.
 */
export const edit = Effect.fn("Edit.edit")(function*(
  request: ImageRequest,
  guard: GuardedFetch["Service"]
): Effect.fn.Return<ReadonlyArray<Picture>, InvalidRequest | InternalError> {
  const { images, n, negativePrompt = "", prompt, promptParam, seed = 0, size } = request
  const unwanted = new Set(readInstruction(negativePrompt).steps.map(({ operation }) => operation))
  const read = readInstruction(prompt)
  const steps = read.steps.filter(({ operation }) => !unwanted.has(operation))
  if (steps.length > maxSteps) {
    return yield* InvalidRequest.at(promptParam, `must ask for at most ${maxSteps} changes, not for ${steps.length}`)
  }
  const isFilling = steps.length === 0 && request.mask !== undefined
  const isExtra = (clause: string): boolean => !isFilling && (images.length === 1 || !joining.test(clause))
  const beyond = read.beyond.filter(isExtra)
  if (beyond.length > 0 || (steps.length === 0 && !isFilling && images.length === 1)) {
    return yield* InvalidRequest.at(
      promptParam,
      (beyond.length > 0 ? `asks to "${clip(beyond.join(", "))}", but ` : "") +
        `must name changes of the whole picture that this built-in engine, which is not a model, can make: ${abilities}; with ` +
        "a mask, what to paint into it; several pictures are joined side by side"
    )
  }
  const longest = Math.floor(longestSide / Math.sqrt(images.length))
  const loaded = yield* Effect.forEach(images, (image) => load(image, guard, longest))
  const mask = request.mask === undefined ? undefined : yield* load(request.mask, guard)

  const done: Array<string> = []
  const [first, ...others] = loaded.map(({ pixels }) => pixels) as [Pixels, ...ReadonlyArray<Pixels>]
  const original = mask === undefined && others.length > 0 ? yield* join([first, ...others]) : first
  if (others.length > 0) {
    done.push(mask === undefined ? `joined ${images.length} pictures side by side` : "used the first picture only")
  }
  let result = original
  if (isFilling) {
    result = toPixels(
      yield* paint({
        ...{ prompt, negativePrompt, seed: ExactJson.toNumber(seed) },
        ...{ width: original.width, height: original.height }
      })
    )
    done.push(`filled with ${describe({ prompt, negativePrompt }).replace(/^A/u, "a")}`)
  }
  for (const { apply, said } of steps) {
    result = yield* fit(yield* take(apply(open(result), result)))
    done.push(said)
  }
  if (mask !== undefined) {
    result = yield* within(original, result, mask)
    done.push("only where the mask lets it")
  }
  if (size !== undefined && (result.width !== size.width || result.height !== size.height)) {
    result = yield* take(open(result).resize(size.width, size.height, { fit: "cover" }))
    done.push(`fitted into ${size.width}x${size.height}`)
  }
  if (request.watermark === true) {
    writeMachineMark(toCanvas(result))
    done.push("marked as made by a machine")
  }
  const revisedPrompt = report(done, read.unclear.filter(isExtra))
  const picture = { content: yield* encode(result, request), revisedPrompt }
  return Array.from({ length: n }, () => picture)
})

/** The settings without effect on an edit that paints nothing. */
export const unusedIn = ({ mask, negativePrompt, pathOf, prompt, seed }: ImageRequest): ReadonlyArray<string> => {
  if (mask !== undefined && readInstruction(prompt).steps.length === 0) return []
  const removesNothing = negativePrompt !== undefined && readInstruction(negativePrompt).steps.length === 0
  return [
    ...(seed === undefined ? [] : [pathOf("seed")]),
    ...(removesNothing ? [pathOf("negative_prompt")] : [])
  ]
}

/** Scales down a picture that became too large, for example by a rotation. */
const fit = (pixels: Pixels): Effect.Effect<Pixels, InternalError> =>
  Math.max(pixels.width, pixels.height) <= longestSide
    ? Effect.succeed(pixels)
    : take(open(pixels).resize(longestSide, longestSide, { fit: "inside" }))

/** Joins pictures side by side, each in a cell with the shape of the first. */
const join = Effect.fnUntraced(function*(pictures: readonly [Pixels, ...ReadonlyArray<Pixels>]) {
  const scale = Math.min(1, longestSide / (pictures[0].width * pictures.length))
  const width = Math.max(1, Math.round(pictures[0].width * scale))
  const height = Math.max(1, Math.round(pictures[0].height * scale))
  const cells = yield* Effect.forEach(pictures, (picture, at) =>
    Effect.map(
      take(open(picture).resize(width, height, { fit: "contain", background: "#ffffff" })),
      ({ data }) => ({ input: data, raw: { width, height, channels: 4 as const }, left: at * width, top: 0 })
    ))
  const size = { width: width * pictures.length, height, channels: 4 as const }
  return yield* take(sharp({ create: { ...size, background: "#ffffff" } }).composite(cells))
})

/** The changed picture where the mask is transparent or, without transparency, white; elsewhere the original. */
const within = Effect.fnUntraced(function*(
  original: Pixels,
  changed: Pixels,
  mask: { readonly pixels: Pixels; readonly hasAlpha: boolean }
) {
  const { height, width } = original
  const { data: cover } = yield* take(open(mask.pixels).resize(width, height, { fit: "fill" }))
  const { data: piece } = yield* take(open(changed).resize(width, height, { fit: "fill" }))
  for (let at = 3; at < piece.length; at += 4) {
    piece[at] = piece[at]! * (mask.hasAlpha ? 255 - cover[at]! : cover[at - 3]!) / 255
    if (at % (width * 64 * 4) === 3) yield* Effect.yieldNow
  }
  return yield* take(open(original).composite([{ input: piece, raw: { width, height, channels: 4 } }]))
})

const report = (done: ReadonlyArray<string>, unclear: ReadonlyArray<string>): string => {
  const sentence = `${done.join("; ")}.`.replace(/^./u, (first) => first.toUpperCase())
  return unclear.length === 0 ? sentence : `${sentence} Not understood, and left out: ${unclear.join("; ")}.`
}
