/** The built-in engine for image generations: sizes, numbers, formats and descriptions. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import sharp from "sharp"
import type { InvalidRequest } from "../../../shared/contract/JobError.ts"
import { decodePicture, engine, generateImages, requestImages } from "../../fixture/calls/ImagesEngine.ts"

const small = { size: "96x64" }

layer(engine, { excludeTestServices: true })((it) => {
  it.effect("paints a PNG of the requested size", () =>
    Effect.gen(function*() {
      for (const [size, width, height] of [["96x64", 96, 64], ["64*128", 64, 128], [undefined, 1024, 1024]] as const) {
        const [picture] = yield* generateImages({ prompt: "a meadow", ...(size === undefined ? {} : { size }) })
        const metadata = yield* Effect.promise(() => sharp(picture!.bytes).metadata())
        assert.deepInclude(metadata, { format: "png", width, height })
      }
    }))

  it.effect("paints JPEG and WebP", () =>
    Effect.gen(function*() {
      for (const format of ["jpeg", "webp"] as const) {
        const [fine] = yield* generateImages({
          prompt: "a meadow",
          ...small,
          output_format: format,
          output_compression: 95
        })
        const [coarse] = yield* generateImages({
          prompt: "a meadow",
          ...small,
          output_format: format,
          output_compression: 5
        })
        assert.strictEqual((yield* Effect.promise(() => sharp(fine!.bytes).metadata())).format, format)
        assert.isBelow(coarse!.bytes.length, fine!.bytes.length)
      }
    }))

  it.effect("gives n different pictures, the same ones each time", () =>
    Effect.gen(function*() {
      const request = { prompt: "a castle on a hill", ...small, n: 10, seed: 42 }
      const once = yield* generateImages(request)
      assert.strictEqual(new Set(once.map(({ bytes }) => bytes.toString("base64"))).size, 10)
      assert.deepStrictEqual(yield* generateImages(request), once)
      const [other] = yield* generateImages({ ...request, n: 1, seed: 43_000 })
      assert.notDeepEqual(other?.bytes, once[0]?.bytes)
    }))

  it.effect("paints the same picture for messages and a prompt", () =>
    Effect.gen(function*() {
      const parameters = { size: "96*64", seed: 3, negative_prompt: "clouds", watermark: true }
      const messages = [{ role: "user", content: [{ text: "mountains by a lake" }] }]
      const fromMessages = yield* generateImages({ input: { messages }, parameters })
      const fromPrompt = yield* generateImages({ prompt: "mountains by a lake", ...parameters })
      assert.deepStrictEqual(fromMessages, fromPrompt)
      assert.match(fromPrompt[0]!.said, /^A placeholder by the built-in painter, .*“mountains by a lake”\.$/)
    }))

  it.effect("omits subjects of the negative prompt", () =>
    Effect.gen(function*() {
      const [shown] = yield* generateImages({ prompt: "the sea at sunset", ...small })
      const [without] = yield* generateImages({ prompt: "the sea at sunset", ...small, negative_prompt: "sunset" })
      assert.include(shown!.said, "the sea at sunset")
      assert.notInclude(without!.said, "sunset")
      const [orange, blue] = [yield* decodePicture(shown!.bytes), yield* decodePicture(without!.bytes)]
      assert.isAbove(orange.mean[0], blue.mean[0])
    }))

  it.effect("returns URLs on request", () =>
    Effect.gen(function*() {
      const [picture] = yield* requestImages({
        prompt: "a meadow",
        ...small,
        response_format: "url",
        output_format: "webp"
      })
      assert.strictEqual(picture?.url, "http://files.test/picture.webp")
      assert.isUndefined(picture?.b64_json)
    }))

  it.effect("names the field of an unsupported request", () =>
    Effect.gen(function*() {
      const refused = (body: object) =>
        Effect.map(Effect.flip(generateImages(body)), (error) => (error as InvalidRequest).param)
      const messages = [{ role: "user", content: [{ text: "a" }, { image: "AAAA" }] }]
      assert.strictEqual(yield* refused({ prompt: "a", size: "2049x64" }), "size")
      assert.strictEqual(yield* refused({ input: { messages: [messages[0]] } }), "input.messages[0].content[1].image")
      const text = [{ role: "user", content: [{ text: "a" }] }]
      assert.strictEqual(
        yield* refused({ input: { messages: text }, parameters: { size: "64*4000" } }),
        "parameters.size"
      )
    }))

  it.effect("stops painting when interrupted", () =>
    Effect.gen(function*() {
      const fiber = yield* Effect.forkChild(generateImages({ prompt: "a city at night", size: "1024x1024", n: 10 }))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      const [picture] = yield* generateImages({ prompt: "a meadow", ...small })
      assert.isAbove(picture!.bytes.length, 1_000)
    }))
})
