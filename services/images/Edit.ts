/** Changes pictures as an instruction says, and tells what was done. */
import { createCanvas } from "@napi-rs/canvas"
import { Effect } from "effect"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { Size } from "../../shared/contract/ImageGenerations.ts"
import { type InternalError, InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Painter } from "../../shared/painter/Painter.ts"
import { drawWatermark } from "../../shared/painter/Watermark.ts"
import type { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { arrange } from "./Arrange.ts"
import type { Picture } from "../../shared/provider/images/ImageModel.ts"
import type { LocalRequest } from "./LocalRequest.ts"
import { arrangementOf, describe, type Operation, readInstruction } from "./Instruction.ts"
import { ownFault } from "./OwnFault.ts"
import { apply } from "./PixelOperations.ts"
import { encode, load, type Loaded, open, type Pixels, take } from "./Pixels.ts"

export interface EditTools {
  readonly guard: GuardedFetch["Service"]
  readonly painter: Painter["Service"]
}

/** The most changes that one instruction may ask for: each goes over all pixels of every picture. */
const maxOperations = 50

/** What is added to a prompt that may be extended. */
const enhancement: ReadonlyArray<Operation> = [
  { kind: "contrast", factor: 1.08 },
  { kind: "saturation", factor: 1.12 }
]

/** So that no two pictures of a request are alike: every next one is a little brighter or darker. */
const variation = (index: number): ReadonlyArray<Operation> =>
  index === 0 ? [] : [{ kind: "brightness", factor: 1 + (index % 2 === 0 ? -0.05 : 0.06) * Math.ceil(index / 2) }]

/** Clauses about how pictures are put together are no operations on one. */
const combining =
  /\b(side by side|combin\w*|merge\w*|blend\w*|grid|collage|stack\w*|next to|together|above|below|inset|corner)\b/

/** The pictures of a request, each changed as its instruction says, as files. */
export const edit = Effect.fn("Edit.edit")(function*(
  request: LocalRequest,
  { guard, painter }: EditTools
): Effect.fn.Return<ReadonlyArray<Picture>, InvalidRequest | InternalError> {
  const images = yield* Effect.forEach(
    request.images,
    (image) => Effect.map(load(image, guard, request.images.length), ({ pixels }) => pixels)
  )
  const mask = request.mask === undefined ? undefined : yield* load(request.mask, guard)
  const [first, ...others] = images
  if (first === undefined) return yield* Effect.die(new Error("there is no picture"))
  const arrangement = arrangementOf(request.prompt)
  const { notUnderstood, operations } = readInstruction(request.prompt, request.negativePrompt)
  if (operations.length > maxOperations) {
    const what = `must ask for at most ${maxOperations} changes, not for ${operations.length}`
    return yield* InvalidRequest.at(request.promptParam, what)
  }
  const unclear = others.length > 0 ? notUnderstood.filter((clause) => !combining.test(clause)) : notUnderstood
  const isClear = operations.length > 0 || (others.length > 0 && unclear.length === 0)

  return yield* Effect.forEach(
    Array.from({ length: request.n }, (_, index) => index),
    (index) =>
      Effect.gen(function*() {
        const done: Array<string> = []
        const paint = (prompt: string, { height, width }: Size, overlay: boolean) => {
          const seed = request.seed + index
          const { negativePrompt } = request
          return painter.paint({ prompt, negativePrompt, width, height, seed, overlay }).pipe(
            ownFault("a picture could not be painted over")
          )
        }
        const all = [
          ...operations,
          ...(isClear || mask !== undefined ? [] : [{ kind: "grade", prompt: request.prompt } as const]),
          ...(request.extend ? enhancement : []),
          ...variation(index)
        ]
        const change = Effect.fnUntraced(function*(pixels: Pixels) {
          let changed = pixels
          for (const operation of all) {
            changed = yield* apply(changed, operation, paint)
            done.push(describe(operation))
          }
          return changed
        })

        let result: Pixels
        if (mask === undefined) {
          const arranged = yield* arrange([first, ...others], arrangement)
          if (arranged.how !== undefined) done.push(arranged.how)
          result = yield* change(arranged.pixels)
        } else {
          // a mask that comes with words that are no operations asks for a picture of them in its place
          const filled = isClear
            ? first
            : yield* Effect.flatMap(paint(request.prompt, first, false), (png) => take(sharp(png)))
          if (!isClear) {
            done.push(
              `painted ${painter.describe({ prompt: request.prompt, ...first, seed: request.seed }).description}`
            )
          }
          result = yield* within(first, yield* change(filled), mask)
          done.push("only where the mask lets it")
          const arranged = yield* arrange([result, ...others], arrangement)
          if (arranged.how !== undefined) done.push(arranged.how)
          result = arranged.pixels
        }
        if (
          request.size !== undefined && (request.size.width !== result.width || request.size.height !== result.height)
        ) {
          result = yield* take(open(result).resize(request.size.width, request.size.height, { fit: "cover" }))
          done.push(`fitted into ${request.size.width}x${request.size.height}`)
        }
        if (request.watermark) {
          result = yield* marked(result)
          done.push("marked as made by a machine")
        }
        return { content: yield* encode(open(result), request), revisedPrompt: report(done, isClear, unclear) }
      })
  )
})

/** The changed picture where the mask is transparent or, without transparency, white; elsewhere the original. */
const within = Effect.fnUntraced(function*(original: Pixels, changed: Pixels, { hasAlpha, pixels }: Loaded) {
  const { height, width } = original
  const mask = open(pixels)
  const editable = yield* Effect.promise(() =>
    (hasAlpha ? mask.extractChannel(3).negate() : mask.removeAlpha().grayscale().extractChannel(0))
      .resize(width, height, { fit: "fill" }).raw().toBuffer()
  )
  const stencil = yield* take(
    sharp({ create: { width, height, channels: 3, background: "#000000" } })
      .joinChannel(editable, { raw: { width, height, channels: 1 } })
  )
  const raw = { width, height, channels: 4 } as const
  const cut = yield* take(open(changed).resize(width, height, { fit: "fill" }))
  const piece = yield* take(open(cut).composite([{ input: stencil.data, raw, blend: "dest-in" }]))
  return yield* take(open(original).composite([{ input: piece.data, raw }]))
})

/** The mark is drawn on a strip of its own, for the whole picture may be large. */
const marked = ({ data, height, width }: Pixels): Effect.Effect<Pixels, InternalError> => {
  const strip = Math.min(height, Math.ceil(height * 0.2))
  const context = createCanvas(width, strip).getContext("2d")
  context.translate(0, strip - height)
  drawWatermark(context, width, height)
  const { data: mark } = context.getImageData(0, 0, width, strip)
  const input = Buffer.from(mark.buffer, mark.byteOffset, mark.byteLength)
  return take(
    open({ data, height, width }).composite([
      { input, raw: { width, height: strip, channels: 4 }, left: 0, top: height - strip }
    ])
  )
}

const report = (done: ReadonlyArray<string>, isClear: boolean, unclear: ReadonlyArray<string>): string => {
  const what = `${done.join("; ")}.`
  const sentence = what.charAt(0).toUpperCase() + what.slice(1)
  if (!isClear) return `The instruction names no operation of this engine. ${sentence}`
  return unclear.length === 0 ? sentence : `${sentence} Not understood, and left out: ${unclear.join("; ")}.`
}
