/** Picture files from clients: checked by their headers before any pixel is decoded. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as PictureFile from "../../../shared/pictures/PictureFile.ts"
import { stripes } from "../../fixture/calls/ImagesEngine.ts"
import { pictureBomb } from "../../fixture/PictureBomb.ts"

const tooLarge = "must have at most 64,000,000 pixels: 16,000 × 16,000 are 256,000,000"

describe("a picture file", () => {
  it.effect("of 16,000 × 16,000 pixels is rejected because of its size", () =>
    Effect.gen(function*() {
      const bomb = pictureBomb(16_000, 16_000)
      assert.isBelow(bomb.length, 64 * 1024)
      assert.strictEqual(yield* Effect.flip(PictureFile.open(bomb)), tooLarge)
      // only the header is read, so the pixels may be missing
      assert.strictEqual(yield* Effect.flip(PictureFile.open(bomb.subarray(0, 100))), tooLarge)
    }))

  it.effect("with the maximum number of pixels is opened, and with one row more rejected", () =>
    Effect.gen(function*() {
      const { metadata } = yield* PictureFile.open(pictureBomb(8_000, 8_000))
      assert.deepStrictEqual([metadata.width, metadata.height], [8_000, 8_000])
      assert.strictEqual(
        yield* Effect.flip(PictureFile.open(pictureBomb(8_000, 8_001))),
        "must have at most 64,000,000 pixels: 8,000 × 8,001 are 64,008,000"
      )
    }))

  it.effect("in an unknown format is rejected as such", () =>
    Effect.gen(function*() {
      const svg = Buffer.from("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>")
      const png = yield* stripes(8, 8, [[1, 2, 3]])
      for (const bytes of [svg, Buffer.from("hello"), png.subarray(0, 20)]) {
        assert.match(
          yield* Effect.flip(PictureFile.open(bytes)),
          /^must be a PNG, JPEG, WebP, GIF, AVIF or TIFF image$/
        )
      }
    }))
})
