/** The built-in engine for image edits: instructions take effect, as measured on pixels. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import sharp from "sharp"
import { load } from "../../../services/images/Pixels.ts"
import type { InvalidRequest } from "../../../shared/contract/JobError.ts"
import { GuardedFetch } from "../../../shared/provider/transport/GuardedFetch.ts"
import {
  decodePicture,
  editImages,
  engine,
  type Picture,
  type Rgb,
  stripes,
  toDataUrl
} from "../../fixture/calls/ImagesEngine.ts"
import { pictureBomb } from "../../fixture/PictureBomb.ts"

const red: Rgb = [200, 40, 30]
const green: Rgb = [40, 180, 60]
const blue: Rgb = [30, 60, 210]
const gray: Rgb = [120, 120, 120]

/** The picture edited from red, green and blue stripes, and the engine's description. */
const editStripes = (prompt: string, more: object = {}) =>
  Effect.gen(function*() {
    const image = toDataUrl(yield* stripes(300, 200, [red, green, blue]))
    const [result] = yield* editImages({ prompt, image, ...more })
    const picture = yield* decodePicture(result!.bytes)
    return { picture, said: result!.said }
  })

const near = (actual: ReadonlyArray<number>, expected: ReadonlyArray<number>, tolerance = 12) => {
  for (const [at, value] of expected.entries()) {
    assert.closeTo(actual[at] ?? Number.NaN, value, tolerance, `${actual.join()} is not ${expected.join()}`)
  }
}

const isGray = ([r, g, b]: readonly [number, number, number, number]): boolean =>
  Math.max(r, g, b) - Math.min(r, g, b) < 4

/** The mean difference between neighbouring pixels, which blurring lowers and sharpening raises. */
const roughness = ({ data, height, width }: Picture): number => {
  let sum = 0
  for (let row = 0; row < height; row++) {
    for (let column = 1; column < width; column++) {
      const at = (row * width + column) * 4
      sum += Math.abs((data[at] ?? 0) - (data[at - 4] ?? 0))
    }
  }
  return sum / (width * height)
}

const left = 1 / 6
const middle = 1 / 2
const right = 5 / 6

layer(engine, { excludeTestServices: true })((it) => {
  describe("an instruction about colours", () => {
    it.effect("makes the picture gray", () =>
      Effect.gen(function*() {
        for (const words of ["make it grayscale", "Turn this into a black and white photo"]) {
          const { picture, said } = yield* editStripes(words)
          for (const x of [left, middle, right]) assert.isTrue(isGray(picture.at(x, 0.5)), words)
          assert.include(said, "grayscale")
        }
      }))

    it.effect("inverts and tints", () =>
      Effect.gen(function*() {
        near((yield* editStripes("invert the colors")).picture.at(left, 0.5), [55, 215, 225])
        const tinted = (yield* editStripes("tint it blue")).picture
        const plain = (yield* editStripes("rotate by 360 degrees")).picture
        assert.isAbove(tinted.mean[2], plain.mean[2] + 20)
        const other = (yield* editStripes("tint it orange")).picture
        assert.isAbove(other.mean[0], plain.mean[0] + 20)
      }))

    it.effect("brightens and darkens by the stated amount", () =>
      Effect.gen(function*() {
        near((yield* editStripes("increase the brightness by 20%")).picture.at(left, 0.5), [240, 48, 36], 4)
        near((yield* editStripes("darken by 50 percent")).picture.at(left, 0.5), [100, 20, 15], 4)
        near((yield* editStripes("reduce the brightness by 50%")).picture.at(left, 0.5), [100, 20, 15], 4)
        const some = (yield* editStripes("brighten it")).picture.mean[0]
        const little = (yield* editStripes("brighten it slightly")).picture.mean[0]
        const much = (yield* editStripes("make it much brighter")).picture.mean[0]
        assert.isTrue(little < some && some < much)
      }))
  })

  describe("an instruction about shape", () => {
    it.effect("mirrors and flips", () =>
      Effect.gen(function*() {
        near((yield* editStripes("mirror it")).picture.at(left, 0.5), blue, 2)
        near((yield* editStripes("flip horizontally")).picture.at(right, 0.5), red, 2)
        const vertical = (yield* editStripes("flip it vertically")).picture
        near(vertical.at(left, 0.5), red, 2)
      }))

    it.effect("rotates: a quarter turn to the right moves the left side to the top", () =>
      Effect.gen(function*() {
        const { picture, said } = yield* editStripes("rotate 90 degrees clockwise")
        assert.deepStrictEqual([picture.width, picture.height], [200, 300])
        near(picture.at(0.5, left), red, 2)
        assert.include(said, "90 degrees")
        near((yield* editStripes("rotate it to the left")).picture.at(0.5, left), blue, 2)
        near((yield* editStripes("turn it upside down")).picture.at(left, 0.5), blue, 2)
        const odd = (yield* editStripes("rotate by 30°")).picture
        assert.isAbove(odd.width, 300)
        assert.strictEqual(odd.at(0, 0)[3], 0)
      }))

    it.effect("resizes and crops", () =>
      Effect.gen(function*() {
        const size = ({ picture: { height, width } }: { readonly picture: Picture }) => [width, height]
        assert.deepStrictEqual(size(yield* editStripes("resize to 120x90")), [120, 90])
        assert.deepStrictEqual(size(yield* editStripes("scale to 50%")), [150, 100])
        assert.deepStrictEqual(size(yield* editStripes("double the size")), [600, 400])
        assert.deepStrictEqual(size(yield* editStripes("crop to 100 x 80")), [100, 80])
        assert.deepStrictEqual(size(yield* editStripes("crop to a square")), [200, 200])
        const half = yield* editStripes("crop the left half")
        assert.deepStrictEqual(size(half), [150, 200])
        near(half.picture.at(0.1, 0.5), red, 2)
        near(half.picture.at(0.9, 0.5), green, 2)
      }))
  })

  describe("an instruction about detail", () => {
    it.effect("blurs", () =>
      Effect.gen(function*() {
        const noisy = Buffer.alloc(160 * 120 * 3)
        for (let at = 0; at < noisy.length; at++) noisy[at] = (at * 7919) % 251
        const image = toDataUrl(
          yield* Effect.promise(() =>
            sharp(noisy, { raw: { width: 160, height: 120, channels: 3 } }).blur(1).png().toBuffer()
          )
        )
        const rough = (prompt: string) =>
          Effect.gen(function*() {
            const [result] = yield* editImages({ prompt, image })
            return roughness(yield* decodePicture(result!.bytes))
          })
        const plain = yield* rough("rotate by 360 degrees")
        const little = yield* rough("blur it slightly")
        const much = yield* rough("blur it very much")
        assert.isTrue(much < little && little < plain, `${much} ${little} ${plain}`)
      }))
  })

  describe("an instruction as a whole", () => {
    it.effect("is followed step by step in the order of its words", () =>
      Effect.gen(function*() {
        const { picture, said } = yield* editStripes(
          "Crop the left half, rotate it by 90 degrees and then make it black and white."
        )
        assert.deepStrictEqual([picture.width, picture.height], [200, 150])
        assert.isTrue(isGray(picture.at(0.5, 0.1)))
        assert.match(said, /cropped.*rotated.*grayscale/i)
        const other = (yield* editStripes("rotate it by 90 degrees, then crop the left half")).picture
        assert.deepStrictEqual([other.width, other.height], [100, 300])
      }))

    it.effect("omits what it excludes", () =>
      Effect.gen(function*() {
        const { picture, said } = yield* editStripes("mirror it but do not blur")
        near(picture.at(left, 0.5), blue, 2)
        assert.notInclude(said, "blur")
        const { said: without } = yield* editStripes("mirror it, blur it", { negative_prompt: "blur" })
        assert.notInclude(without, "blurred")
        assert.match(without, /mirrored/i)
      }))

    it.effect("is followed as far as it is understood, and the answer names the rest", () =>
      Effect.gen(function*() {
        const { said } = yield* editStripes("make it gray scale, exaggerate the melancholy")
        assert.include(said, "grayscale")
        assert.include(said, "left out: exaggerate the melancholy")
      }))

    it.effect("is rejected if none of it is understood, with a list of supported edits", () =>
      Effect.gen(function*() {
        for (const prompt of ["exaggerate the melancholy", "do not blur"]) {
          const error = yield* Effect.flip(editStripes(prompt))
          assert.strictEqual((error as InvalidRequest).param, "prompt")
          assert.match(error.message, /not a model, can make: grayscale, invert, blur, .*tint.*side by side/)
        }
      }))

    it.effect("is rejected if it asks for what needs a model, even beside supported edits", () =>
      Effect.gen(function*() {
        for (
          const [prompt, beyond] of [
            ["Add a hat", "add a hat"],
            ["Please remove the boat and blur it.", "please remove the boat"],
            ["make it gray, then make the hat red", "make the hat red"],
            ["blur the background", "blur the background"]
          ] as const
        ) {
          const error = yield* Effect.flip(editStripes(prompt))
          assert.strictEqual((error as InvalidRequest).param, "prompt")
          assert.match(error.message, /not a model, can make: grayscale, invert, blur, .*tint/)
          assert.include(error.message, `asks to "${beyond}"`)
        }
      }))

    it.effect("gives n equal pictures", () =>
      Effect.gen(function*() {
        const image = toDataUrl(yield* stripes(120, 80, [red, green, blue]))
        const once = yield* editImages({ prompt: "make it gray", image, n: 3 })
        const again = yield* editImages({ prompt: "make it gray", image, n: 3 })
        assert.deepStrictEqual(again, once)
        assert.lengthOf(once, 3)
        assert.strictEqual(new Set(once.map(({ bytes }) => bytes.toString("base64"))).size, 1)
      }))
  })

  describe("an edit request", () => {
    it.effect("may set a size, a watermark and a format", () =>
      Effect.gen(function*() {
        const sized = (yield* editStripes("mirror it", { size: "128x128" })).picture
        assert.deepStrictEqual([sized.width, sized.height], [128, 128])
        const plain = (yield* editStripes("mirror it")).picture
        const { picture, said } = yield* editStripes("mirror it", { watermark: true })
        assert.notDeepEqual(picture.data, plain.data)
        assert.deepStrictEqual(picture.at(0.2, 0.2), plain.at(0.2, 0.2))
        assert.match(said, /marked/)
        const image = toDataUrl(yield* stripes(64, 64, [red]))
        for (const format of ["jpeg", "webp", "png"] as const) {
          const [result] = yield* editImages({ prompt: "invert", image, output_format: format })
          assert.strictEqual((yield* Effect.promise(() => sharp(result!.bytes).metadata())).format, format)
        }
      }))

    it.effect("may set a mask, which protects opaque areas", () =>
      Effect.gen(function*() {
        // the left half is transparent
        const opacity = Buffer.alloc(300 * 200 * 4)
        for (let at = 0; at < 300 * 200; at++) opacity[at * 4 + 3] = at % 300 < 150 ? 0 : 255
        const mask = toDataUrl(
          yield* Effect.promise(() =>
            sharp(opacity, { raw: { width: 300, height: 200, channels: 4 } }).png().toBuffer()
          )
        )
        const { picture, said } = yield* editStripes("invert", { mask })
        near(picture.at(left, 0.5), [55, 215, 225])
        near(picture.at(right, 0.5), blue, 0)
        assert.match(said, /mask/)
        // words that name no edit are painted into the transparent part
        const filled = yield* editStripes("a starry night over the sea", { mask })
        near(filled.picture.at(right, 0.5), blue, 0)
        assert.isAbove(Math.abs(filled.picture.at(left, 0.1)[0] - red[0]), 60)
        assert.include(filled.said, "a starry night over the sea")
        // in a mask without transparency, white areas change
        const white = toDataUrl(yield* stripes(300, 200, [[0, 0, 0], [255, 255, 255]]))
        const other = (yield* editStripes("invert", { mask: white })).picture
        near(other.at(left, 0.5), red, 0)
        near(other.at(right, 0.5), [225, 195, 45])
      }))

    it.effect("is rejected if a picture in any field has too many pixels", () =>
      Effect.gen(function*() {
        const bomb = toDataUrl(pictureBomb(16_000, 16_000))
        const image = toDataUrl(yield* stripes(8, 8, [red]))
        const size = "must have at most 64,000,000 pixels: 16,000 × 16,000 are 256,000,000"
        for (
          const [param, request] of [
            ["image", { image: bomb }],
            ["image[1]", { image: [image, bomb] }],
            ["mask", { image, mask: bomb }]
          ] as const
        ) {
          const error = yield* Effect.flip(editImages({ prompt: "make it gray", ...request }))
          assert.deepInclude(error, {
            _tag: "InvalidRequest",
            param,
            message: `${param}: ${size}`,
            code: "invalid_image"
          })
        }
      }))

    it.effect("may have several pictures, which are joined side by side", () =>
      Effect.gen(function*() {
        const image = [
          toDataUrl(yield* stripes(100, 100, [red])),
          toDataUrl(yield* stripes(100, 100, [blue])),
          toDataUrl(yield* stripes(100, 50, [green]))
        ]
        const put = (body: object) =>
          Effect.gen(function*() {
            const [result] = yield* editImages({ image, ...body })
            return { picture: yield* decodePicture(result!.bytes), said: result!.said }
          })
        const row = yield* put({ prompt: "combine them" })
        assert.deepStrictEqual([row.picture.width, row.picture.height], [300, 100])
        near(row.picture.at(0.1, 0.5), red, 2)
        near(row.picture.at(0.5, 0.5), blue, 2)
        near(row.picture.at(0.9, 0.5), green, 2)
        // every cell has the first picture's proportions
        near(row.picture.at(0.9, 0.1), [255, 255, 255], 2)
        assert.strictEqual(row.said, "Joined 3 pictures side by side.")
        const changed = yield* put({ prompt: "put them together and make it gray" })
        assert.isTrue(isGray(changed.picture.at(0.5, 0.2)))
        const masked = yield* put({ prompt: "invert", mask: toDataUrl(yield* stripes(9, 9, [[255, 255, 255]])) })
        assert.deepStrictEqual([masked.picture.width, masked.picture.height], [100, 100])
        assert.match(masked.said, /^Used the first picture only; inverted/)
      }))

    it.effect("may have many large pictures, which together become no larger than one may be", () =>
      Effect.gen(function*() {
        const guard = yield* GuardedFetch
        const flat = sharp({ create: { width: 4096, height: 2048, channels: 3, background: "#204060" } })
        const content = (yield* Effect.promise(() => flat.png().toBuffer())).toString("base64")
        for (const longest of [undefined, 1024]) {
          const { pixels: { data, height, width } } = yield* load({ content, param: "image" }, guard, longest)
          assert.deepStrictEqual([width, height], [longest ?? 4096, (longest ?? 4096) / 2])
          assert.lengthOf(data, width * height * 4)
        }
        const image = Array.from({ length: 4 }, () => content)
        const [result] = yield* editImages({ prompt: "combine them", image, output_format: "jpeg" })
        const { height, width } = yield* decodePicture(result!.bytes)
        assert.deepStrictEqual([width, height], [4096, 512])
      }).pipe(Effect.provide(GuardedFetch.layer)))

    it.effect("may use messages or a form instead of a prompt", () =>
      Effect.gen(function*() {
        const file = yield* stripes(300, 200, [red, green, blue])
        const content = [{ image: toDataUrl(file) }, { text: "mirror it" }]
        const [fromMessages] = yield* editImages({
          input: { messages: [{ role: "user", content }] },
          parameters: { size: "96*64" }
        })
        const form = new FormData()
        for (const [name, value] of Object.entries({ model: "local-image", prompt: "mirror it", size: "96x64" })) {
          form.append(name, value)
        }
        form.append("image", new File([new Uint8Array(file)], "stripes.png", { type: "image/png" }))
        const [fromForm] = yield* editImages(form)
        assert.deepStrictEqual(fromForm, fromMessages)
        near((yield* decodePicture(fromForm!.bytes)).at(left, 0.5), blue, 8)
      }))

    it.effect("may have pictures of every format, which are rotated as their camera was held", () =>
      Effect.gen(function*() {
        const png = yield* stripes(90, 60, [red, green, blue])
        for (const format of ["png", "jpeg", "webp", "gif", "avif", "tiff"] as const) {
          const bytes = yield* Effect.promise(() => sharp(png).toFormat(format).toBuffer())
          const [result] = yield* editImages({ prompt: "mirror it", image: bytes.toString("base64") })
          near((yield* decodePicture(result!.bytes)).at(left, 0.5), blue, 25)
        }
        const gray8 = yield* Effect.promise(() => sharp(png).grayscale().png().toBuffer())
        const [plain] = yield* editImages({ prompt: "invert", image: gray8.toString("base64") })
        const [value] = (yield* decodePicture(gray8)).at(left, 0.5)
        near((yield* decodePicture(plain!.bytes)).at(left, 0.5), [255 - value, 255 - value, 255 - value], 1)
        const cmyk = yield* Effect.promise(() => sharp(png).toColourspace("cmyk").jpeg().toBuffer())
        const [printed] = yield* editImages({ prompt: "mirror it", image: cmyk.toString("base64") })
        const [r, , b] = (yield* decodePicture(printed!.bytes)).at(left, 0.5)
        assert.isAbove(b, r)
        const turned = yield* Effect.promise(() => sharp(png).withMetadata({ orientation: 6 }).jpeg().toBuffer())
        const [result] = yield* editImages({ prompt: "flip it top to bottom", image: turned.toString("base64") })
        const picture = yield* decodePicture(result!.bytes)
        assert.deepStrictEqual([picture.width, picture.height], [60, 90])
        near(picture.at(0.5, right), red, 25)
      }))
  })

  describe("an invalid edit request", () => {
    it.effect("is rejected with the path of the invalid field", () =>
      Effect.gen(function*() {
        const good = toDataUrl(yield* stripes(64, 64, [gray]))
        const svg = toDataUrl(
          Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"),
          "image/svg+xml"
        )
        const refused = (body: object) =>
          Effect.map(Effect.flip(editImages(body)), (error) => (error as InvalidRequest).param)
        assert.strictEqual(yield* refused({ prompt: "blur", image: "no picture!" }), "image")
        assert.strictEqual(yield* refused({ prompt: "blur", image: toDataUrl(Buffer.from("text")) }), "image")
        // less than a byte in base64, and an empty file
        assert.strictEqual(yield* refused({ prompt: "blur", image: "A" }), "image")
        const form = new FormData()
        for (const [name, value] of [["model", "local-image"], ["prompt", "blur"], ["mask", good]] as const) {
          form.set(name, value)
        }
        form.set("image", new File([], "nothing.png", { type: "image/png" }))
        assert.strictEqual(yield* refused(form), "image")
        assert.strictEqual(yield* refused({ prompt: "blur", image: svg }), "image")
        assert.strictEqual(yield* refused({ prompt: "blur", image: [good, "http://127.0.0.1/a.png"] }), "image[1]")
        assert.strictEqual(yield* refused({ prompt: "blur", image: good, mask: "%%%" }), "mask")
        assert.strictEqual(yield* refused({ prompt: "blur", image: good, size: "4096x64" }), "size")
        const tooMuch = Array.from({ length: 51 }, () => "blur").join(", ")
        assert.strictEqual(yield* refused({ prompt: tooMuch, image: good }), "prompt")
        const content = [{ text: "blur" }, { image: "http://10.0.0.1/a.png" }]
        assert.strictEqual(
          yield* refused({ input: { messages: [{ role: "user", content }] } }),
          "input.messages[0].content[1].image"
        )
      }))
  })
})
