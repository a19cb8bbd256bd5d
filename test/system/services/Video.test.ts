/** The built-in video engine's files, read with a demuxer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { Buffer } from "node:buffer"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import sharp from "sharp"
import * as Camera from "../../../services/video/Camera.ts"
import * as LocalVideo from "../../../services/video/LocalVideo.ts"
import type { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { VideoGenerationRequest } from "../../../shared/contract/operations/VideoGenerations.ts"
import { Canvas } from "../../../shared/painter/Canvas.ts"
import { GuardedFetch } from "../../../shared/provider/transport/GuardedFetch.ts"
import { LocalVideoEngine } from "../../../shared/provider/call/VideoEngine.ts"
import { pictureBomb } from "../../fixture/PictureBomb.ts"
import { inspect } from "../../fixture/media/VideoFile.ts"

type Wish = Partial<VideoGenerationRequest>

const small: Wish = { duration: 1, width: 64, height: 64, fps: 5, seed: 7 }

const callOf = (wish: Wish) => ({
  id: "task_1",
  request: { model: "local-video", prompt: "a boat on the sea at sunset", ...small, ...wish },
  endpoint: { name: "local", provider: { protocol: "local" as const }, model: "local-video" }
})

/** Only this process's own servers are fetched from. */
const fetching = GuardedFetch.layerWith({
  isAllowed: () => true,
  resolve: (_name, done) => done(null, [{ address: "127.0.0.1", family: 4 }])
})

const withEngine = <A, E>(test: (engine: LocalVideoEngine["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(LocalVideoEngine, test).pipe(
    Effect.provide(LocalVideo.layer.pipe(Layer.provide(fetching)))
  )

/** The whole video of a request. */
const videoOf = (wish: Wish, report: (progress: number) => void = () => {}) =>
  withEngine((engine) =>
    Effect.flatMap(engine.start(callOf(wish)), (task) => engine.follow(callOf(wish), task, report))
  )

const png = (background: string, width = 40, height = 30): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background } }).png().toBuffer()

/** The frames of a file without its tables, which contain the time of encoding. */
const framesOf = (file: Uint8Array): Buffer => Buffer.from(file).subarray(0, Buffer.from(file).lastIndexOf("moov"))

const same = (one: Uint8Array, other: Uint8Array): boolean => framesOf(one).equals(framesOf(other))

describe("a video of the local engine", () => {
  const extents: ReadonlyArray<
    readonly [duration: number, width: number, height: number, fps: number, frames: number]
  > = [
    [1, 64, 64, 5, 5],
    [2, 320, 180, 12, 24],
    [1.5, 130, 98, 24, 36],
    [1, 1280, 720, 3, 3],
    [3, 66, 1080, 1, 3],
    [1, 128, 64, 60, 60]
  ]
  for (const [duration, width, height, fps, frames] of extents) {
    it.live(`has ${width}x${height} pixels and ${frames} frames in ${duration} s`, () =>
      Effect.gen(function*() {
        const { bytes, format, metadata } = yield* videoOf({ duration, width, height, fps })
        const file = yield* Effect.promise(() => inspect(bytes))
        assert.approximately(file.duration, duration, 0.5 / fps)
        assert.deepStrictEqual({ ...file, duration }, { codec: "avc", width, height, duration, frames })
        assert.strictEqual(format, "mp4")
        assert.deepStrictEqual(metadata, { duration, fps, width, height, seed: 7 })
      }))
  }

  it.live("is the same for the same seed and prompt only", () =>
    Effect.gen(function*() {
      const { bytes } = yield* videoOf({})
      assert.isTrue(same((yield* videoOf({})).bytes, bytes))
      for (
        const other of [
          { seed: 8 },
          { prompt: "a forest in snow" },
          { metadata: { negative_prompt: "boat" } },
          { metadata: { style: "night" } }
        ]
      ) {
        assert.isFalse(same((yield* videoOf(other)).bytes, bytes), JSON.stringify(other))
      }
    }), 60_000)

  it.live(
    "has a seed of its own by default, and is the same if another worker continues the task",
    () =>
      withEngine((engine) =>
        Effect.gen(function*() {
          const call = callOf({ seed: null })
          const task = yield* engine.start(call)
          const first = yield* engine.follow(call, task, () => {})
          const second = yield* engine.follow(call, JSON.parse(JSON.stringify(task)), () => {})
          assert.isNumber(first.metadata.seed)
          assert.deepStrictEqual(second.metadata, first.metadata)
          assert.isTrue(same(second.bytes, first.bytes))
        })
      ),
    60_000
  )

  it.live("is sharper at a higher quality", () =>
    Effect.gen(function*() {
      const sizes = yield* Effect.forEach(["low", "standard", "high"], (quality_level) =>
        Effect.map(videoOf({ width: 320, height: 180, metadata: { quality_level } }), ({ bytes }) =>
          bytes.length))
      assert.deepStrictEqual(
        sizes,
        sizes.toSorted((a, b) =>
          a - b
        )
      )
      assert.lengthOf(new Set(sizes), 3)
    }), 60_000)

  it.live("is rejected outside the engine's bounds, by the name of the field", () =>
    Effect.gen(function*() {
      for (
        const [wish, param] of [
          [{ metadata: { quality_level: "divine" } }, "metadata.quality_level"],
          [{ width: 3840, height: 2160 }, "width"],
          [{ duration: 30 }, "duration"],
          [{ response_format: "webm" }, "response_format"]
        ] as const
      ) {
        const error = yield* Effect.flip(videoOf(wish))
        assert.strictEqual((error as InvalidRequest).param, param)
      }
    }))

  it.live("leaves the event loop free while it is made, and reports its progress", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      let turns = 0
      let next: NodeJS.Immediate
      const turn = () => {
        turns++
        next = setImmediate(turn)
      }
      turn()
      yield* videoOf({ width: 320, height: 180, duration: 2, fps: 12 }, (progress) => seen.push(progress)).pipe(
        Effect.ensuring(Effect.sync(() => clearImmediate(next)))
      )
      assert.lengthOf(seen, 24)
      // far more than one for each frame, between which the event loop would be free in any case
      assert.isAbove(turns, 2 * seen.length)
      assert.deepStrictEqual(seen, seen.toSorted((a, b) => a - b))
      assert.strictEqual(seen.at(-1), 100)
    }))

  it.live("stops being made when its reader stops", () =>
    withEngine((engine) =>
      Effect.gen(function*() {
        const call = callOf({ width: 640, height: 360, duration: 20, fps: 24 })
        let reports = 0
        const begun = Promise.withResolvers<void>()
        const fiber = yield* engine.follow(call, { seed: 7 }, () => {
          reports++
          begun.resolve()
        }).pipe(Effect.forkChild)
        yield* Effect.promise(() => begun.promise)
        yield* Fiber.interrupt(fiber)
        const then = reports
        // a report of its thread would arrive before another one has made a whole video
        yield* engine.follow(callOf({ fps: 24 }), { seed: 8 }, () => {})
        assert.strictEqual(reports, then)
      })
    ))

  it.live.skipIf(spawnSync("ffprobe", ["-version"]).error !== undefined)(
    "satisfies ffprobe",
    () =>
      Effect.gen(function*() {
        const { bytes } = yield* videoOf({ width: 130, height: 98 })
        const folder = mkdtempSync(join(tmpdir(), "video-"))
        const file = join(folder, "video.mp4")
        writeFileSync(file, bytes)
        const counting = [
          "-v",
          "error",
          "-count_frames",
          "-show_entries",
          "stream=codec_name,width,height,nb_read_frames"
        ]
        const probe = spawnSync("ffprobe", [...counting, "-of", "csv=p=0", file], { encoding: "utf8" })
        rmSync(folder, { recursive: true })
        assert.strictEqual(probe.stdout.trim() + probe.stderr, "h264,130,98,5")
      })
  )
})

describe("a video of a given picture", () => {
  it.live("is made from a data URL, from base64 and from a URL alike", () =>
    Effect.gen(function*() {
      const picture = yield* Effect.promise(() => png("#c01020"))
      const server = createServer((_request, response) => {
        response.writeHead(200, { "content-type": "image/png" }).end(picture)
      })
      yield* Effect.acquireRelease(
        Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
        () => Effect.promise(() => new Promise((resolve) => server.close(resolve)))
      )
      const { port } = server.address() as AddressInfo
      const base64 = picture.toString("base64")
      const videos = yield* Effect.forEach(
        [base64, `data:image/png;base64,${base64}`, `http://picture.example:${port}/a.png`],
        (image) => videoOf({ image })
      )
      for (const { bytes } of videos) assert.isTrue(same(bytes, videos[0]!.bytes))
      const other = (yield* Effect.promise(() => png("#1020c0"))).toString("base64")
      assert.isFalse(same((yield* videoOf({ image: other })).bytes, videos[0]!.bytes))
      assert.strictEqual((yield* Effect.promise(() => inspect(videos[0]!.bytes))).frames, 5)
    }).pipe(Effect.scoped), 60_000)

  it.live("is rejected if the picture has too many pixels", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(videoOf({ image: pictureBomb(16_000, 16_000).toString("base64") }))
      assert.deepInclude(error, {
        _tag: "InvalidRequest",
        param: "image",
        message: "image: must have at most 64,000,000 pixels: 16,000 × 16,000 are 256,000,000"
      })
    }))

  it.live("is rejected if it is not a picture", () =>
    Effect.gen(function*() {
      const svg = Buffer.from("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"/>").toString("base64")
      for (const image of ["no base64!", "AAAA", svg, `data:image/svg+xml;base64,${svg}`, "http://127.0.0.1:1/a.png"]) {
        const error = yield* Effect.flip(videoOf({ image }))
        assert.strictEqual((error as InvalidRequest).param, "image", image)
      }
    }))

  /** Red on the left, blue on the right, green below. */
  const picture = (() => {
    const canvas = new Canvas(80, 60)
    for (let y = 0; y < 60; y++) {
      canvas.fill(y, 0, 40, y < 30 ? [255, 0, 0] : [255, 255, 0])
      canvas.fill(y, 40, 80, y < 30 ? [0, 0, 255] : [0, 255, 255])
    }
    return canvas
  })()

  /** The shares of red and of green in a frame. */
  const seen = (prompt: string, seed: number, along: number) => {
    const frame = new Canvas(64, 48)
    Camera.shoot(picture, Camera.moveOf(prompt, seed), along, frame)
    const share = (channel: number) =>
      frame.data.filter((_, at) => at % 4 === channel).reduce((sum, value) => sum + value, 0) / (64 * 48 * 255)
    assert.strictEqual(share(3), 1, "the camera left the picture")
    return { red: share(0), green: share(1) }
  }

  it("pans over it from its first frame to its last, and never leaves it", () => {
    for (let seed = 0; seed < 8; seed++) {
      const shares = [0, 0.25, 0.5, 0.75, 1].map((along) => seen("a boat", seed, along).red)
      assert.isAbove(Math.max(...shares) - Math.min(...shares), 0.05, `seed ${seed}: ${shares.join(" ")}`)
    }
  })

  it.live("is the same for every seed if the prompt moves the camera", () =>
    Effect.gen(function*() {
      const frame = yield* Effect.promise(() => png("#c01020", 20, 20))
      const image = (yield* Effect.promise(() =>
        sharp(frame).extend({ top: 10, bottom: 10, left: 10, right: 10, background: "#1020c0" }).png().toBuffer()
      )).toString("base64")
      const [first, second, out] = yield* Effect.forEach(
        [{ prompt: "zoom in", seed: 1 }, { prompt: "zoom in", seed: 2 }, { prompt: "zoom out", seed: 1 }],
        (wish) =>
          videoOf({ ...wish, image })
      )
      assert.isTrue(same(first!.bytes, second!.bytes))
      assert.isFalse(same(first!.bytes, out!.bytes))
    }))

  it("pans as the prompt says, whatever the seed", () => {
    const shareOf = (prompt: string, seed: number) => Camera.moveOf(prompt, seed).share
    for (let seed = 0; seed < 8; seed++) {
      for (
        const prompt of [
          "zoom in",
          "Zoom-in on the boat",
          "a slow zoom",
          "Slowly zooming in on the boat",
          "the camera moves closer",
          "the camera moves slowly towards the boat",
          "dollies forward",
          "push in"
        ]
      ) {
        const [from, to] = shareOf(prompt, seed)
        assert.isAbove(from, to, prompt)
      }
      for (const prompt of ["zoom out", "zooming slowly out", "pull back", "camera moves away", "moves backwards"]) {
        const [from, to] = shareOf(prompt, seed)
        assert.isBelow(from, to, prompt)
      }
      const both = Camera.moveOf("zoom in while panning to the left", seed)
      assert.deepStrictEqual([both.share[0] > both.share[1], both.x, both.y], [true, [1, 0], [0.5, 0.5]])
      assert.deepStrictEqual(seen("a static shot of a boat", seed, 1), seen("a static shot of a boat", seed, 0))
      assert.isAbove(seen("pan to the left", seed, 1).red, seen("pan to the left", seed, 0).red)
      assert.isBelow(seen("pan right", seed, 1).red, seen("pan right", seed, 0).red)
      assert.isAbove(seen("tilt down", seed, 1).green, seen("tilt down", seed, 0).green)
      assert.isBelow(seen("the camera tilts up", seed, 1).green, seen("the camera tilts up", seed, 0).green)
    }
  })
})
