/** Changes pictures as an instruction says, and reports what was done. */
import { Effect } from "effect"
import { type InternalError, InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Pixels } from "../../shared/files/InputPicture.ts"
import { sharp } from "../../shared/files/PixelFormats.ts"
import { Canvas } from "../../shared/painter/Canvas.ts"
import { describe, writeMark } from "../../shared/painter/Painting.ts"
import type { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import type { Picture } from "../../shared/provider/dialects/images/ImageModel.ts"
import { paint } from "./Generate.ts"
import type { LocalRequest } from "./LocalRequest.ts"
import { abilities, readInstruction, variation } from "./Operations.ts"
import { encode, load, type Loaded, open, take } from "./Pixels.ts"

/** The most changes that one instruction may ask for: each goes over all pixels of every picture. */
const maxSteps = 50

/** The longest side that a change may lead to. */
const longestSide = 4096

/** Words about how several pictures are put together. */
const combining = /\b(?:side by side|combin\w*|merge\w*|grid|collage|stack\w*|next to|together|above|below|beneath)\b/i

interface Arrangement {
  readonly columns: number
  readonly said: string
}

const arrangementOf = (instruction: string, count: number): Arrangement => {
  const together = `put ${count} pictures together,`
  if (/\b(?:grid|collage)\b/i.test(instruction)) {
    return { columns: Math.ceil(Math.sqrt(count)), said: `${together} in a grid` }
  }
  return /\b(?:stack\w*|vertical(?:ly)?|above|below|beneath)\b/i.test(instruction)
    ? { columns: 1, said: `${together} one below the other` }
    : { columns: count, said: `${together} side by side` }
}

/** The pictures of a request, each changed as its instruction says, as files. */
export const edit = Effect.fn("Edit.edit")(function*(
  request: LocalRequest,
  guard: GuardedFetch["Service"]
): Effect.fn.Return<ReadonlyArray<Picture>, InvalidRequest | InternalError> {
  const { negativePrompt, prompt, promptParam, size } = request
  const unwanted = new Set(readInstruction(negativePrompt).steps.map(({ operation }) => operation))
  const read = readInstruction(prompt)
  const steps = read.steps.filter(({ operation }) => !unwanted.has(operation))
  if (steps.length > maxSteps) {
    const what = `must ask for at most ${maxSteps} changes, not for ${steps.length}`
    return yield* InvalidRequest.at(promptParam, what)
  }
  const isSeveral = request.images.length > 1
  const isFilling = steps.length === 0 && request.mask !== undefined
  if (steps.length === 0 && !isFilling && !(isSeveral && combining.test(prompt))) {
    return yield* InvalidRequest.at(
      promptParam,
      `must name a change that this built-in engine can make, which is no model: ${abilities}; with a mask, what to ` +
        "paint into it; with several pictures, side by side, stacked or in a grid"
    )
  }
  const images = yield* Effect.forEach(
    request.images,
    (image) => Effect.map(load(image, guard, request.images.length), ({ pixels }) => pixels)
  )
  const mask = request.mask === undefined ? undefined : yield* load(request.mask, guard)
  const unclear = isFilling ? [] : read.unclear.filter((clause) => !(isSeveral && combining.test(clause)))

  return yield* Effect.forEach(
    Array.from({ length: request.n }, (_, index) => index),
    Effect.fnUntraced(function*(index) {
      const done: Array<string> = []
      const arrangement = arrangementOf(prompt, images.length)
      const [first] = images as [Pixels]
      const original = mask === undefined && isSeveral ? yield* arrange(images, first, arrangement.columns) : first
      if (mask === undefined && isSeveral) done.push(arrangement.said)

      let result = original
      if (isFilling) {
        result = yield* paint(request, original, index, false)
        done.push(`filled with ${describe({ ...request, ...original }).replace(/^A/u, "a")}`)
      }
      for (const { apply, said } of isFilling ? [] : [...steps, ...variation(index)]) {
        result = yield* fit(yield* take(apply(open(result), result)))
        done.push(said)
      }
      if (mask !== undefined) {
        result = yield* within(original, result, mask)
        done.push("only where the mask lets it")
        if (isSeveral) {
          result = yield* arrange([result, ...images.slice(1)], result, arrangement.columns)
          done.push(arrangement.said)
        }
      }
      if (size !== undefined && (result.width !== size.width || result.height !== size.height)) {
        result = yield* take(open(result).resize(size.width, size.height, { fit: "cover" }))
        done.push(`fitted into ${size.width}x${size.height}`)
      }
      if (request.watermark) {
        const { buffer, byteLength, byteOffset } = result.data
        writeMark(
          new Canvas(result.width, result.height, new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength))
        )
        done.push("marked as made by a machine")
      }
      return { content: yield* encode(result, request), revisedPrompt: report(done, unclear) }
    })
  )
})

/** Scales a picture down that has become too large, as one that is turned does. */
const fit = (pixels: Pixels): Effect.Effect<Pixels, InternalError> =>
  Math.max(pixels.width, pixels.height) <= longestSide
    ? Effect.succeed(pixels)
    : take(open(pixels).resize(longestSide, longestSide, { fit: "inside" }))

/** Several pictures as one, in cells of the shape of the first. */
const arrange = Effect.fnUntraced(function*(images: ReadonlyArray<Pixels>, first: Pixels, columns: number) {
  const rows = Math.ceil(images.length / columns)
  const scale = Math.min(1, longestSide / (first.width * columns), longestSide / (first.height * rows))
  const [width, height] = [first.width, first.height].map((side) => Math.max(1, Math.round(side * scale))) as [
    number,
    number
  ]
  const pieces = yield* Effect.forEach(
    images,
    (image, at) =>
      Effect.map(take(open(image).resize(width, height, { fit: "contain", background: "#ffffff" })), ({ data }) => ({
        input: data,
        raw: { width, height, channels: 4 as const },
        left: (at % columns) * width,
        top: Math.floor(at / columns) * height
      }))
  )
  return yield* take(
    sharp({ create: { width: width * columns, height: height * rows, channels: 4, background: "#ffffff" } })
      .composite(pieces)
  )
})

/** The changed picture where the mask is transparent or, without transparency, white; elsewhere the original. */
const within = Effect.fnUntraced(function*(original: Pixels, changed: Pixels, { hasAlpha, pixels }: Loaded) {
  const { height, width } = original
  const fitted = yield* take(open(pixels).resize(width, height, { fit: "fill" }))
  const { data } = yield* take(open(changed).resize(width, height, { fit: "fill" }))
  const piece = Buffer.from(data)
  for (let at = 3; at < piece.length; at += 4) {
    const open = hasAlpha ? 255 - fitted.data[at]! : fitted.data[at - 3]!
    piece[at] = piece[at]! * open / 255
    if (at % (width * 64 * 4) === 3) yield* Effect.yieldNow
  }
  return yield* take(open(original).composite([{ input: piece, raw: { width, height, channels: 4 } }]))
})

const report = (done: ReadonlyArray<string>, unclear: ReadonlyArray<string>): string => {
  const what = `${done.join("; ")}.`
  const sentence = what.charAt(0).toUpperCase() + what.slice(1)
  return unclear.length === 0 ? sentence : `${sentence} Not understood, and left out: ${unclear.join("; ")}.`
}
