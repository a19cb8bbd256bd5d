/** Validation of video requests, field by field. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { first, formatPath } from "../../../shared/contract/SchemaErrors.ts"
import { extentOf, VideoGenerationRequest } from "../../../shared/contract/operations/VideoGenerations.ts"

const decode = Schema.decodeUnknownResult(VideoGenerationRequest)

const right = { model: "m", prompt: "a boat on the sea" }

const refusal = (value: unknown): string | undefined => {
  const result = decode(value)
  if (Result.isSuccess(result)) return undefined
  const { message, path } = first(result.failure.issue, value)
  return `${formatPath(path)}: ${message}`
}

describe("a video request accepts", () => {
  const rights: ReadonlyArray<readonly [string, object]> = [
    ["only the required fields", {}],
    ["the reference request", { duration: 5, width: 1280, height: 720 }],
    ["the shortest", { duration: 1, fps: 1 }],
    ["the longest", { duration: 20 }],
    ["the smallest", { width: 64, height: 64 }],
    ["the largest", { width: 1920, height: 1080, duration: 12 }],
    ["the smoothest", { fps: 60 }],
    ["a fraction of a second", { duration: 1.5 }],
    ["one video", { n: 1 }],
    ["both names of the only format", { response_format: "url" }],
    ["the largest seed", { seed: Number.MAX_SAFE_INTEGER }],
    ["an image", { image: "https://example.com/a.png" }],
    ["metadata of all kinds", {
      metadata: { negative_prompt: "birds", style: "night", quality_level: "high", cfg: 7 }
    }],
    ["unknown fields", { camera: "still" }],
    [
      "null for optional fields",
      Object.fromEntries(
        [
          ...["image", "duration", "width", "height", "fps", "seed", "n", "response_format", "user", "metadata"]
        ].map((name) => [name, null])
      )
    ]
  ]
  for (const [title, fields] of rights) {
    it(title, () => assert.isUndefined(refusal({ ...right, ...fields })))
  }
})

describe("a video request rejects", () => {
  const wrongs: ReadonlyArray<readonly [string, object, RegExp]> = [
    ["no model", { model: undefined }, /^model: is required$/],
    ["an empty model", { model: "" }, /^model: /],
    ["no prompt", { prompt: undefined }, /^prompt: is required$/],
    ["an empty prompt", { prompt: "" }, /^prompt: /],
    ["a prompt that is too long", { prompt: "x".repeat(32_001) }, /^prompt: /],
    ["an empty image", { image: "" }, /^image: /],
    ["an image that is not a string", { image: 1 }, /^image: /],
    ["too short", { duration: 0.9 }, /^duration: /],
    ["too long", { duration: 20.1 }, /^duration: /],
    ["a duration that is not a number", { duration: "4" }, /^duration: /],
    ["too narrow", { width: 62 }, /^width: /],
    ["too wide", { width: 1922 }, /^width: /],
    ["an odd width", { width: 641 }, /^width: must be an even number from 64 to 1920$/],
    ["too low", { height: 62 }, /^height: /],
    ["too high", { height: 1922 }, /^height: /],
    ["an odd height", { height: 361 }, /^height: must be an even number from 64 to 1920$/],
    ["a fraction of a pixel", { height: 360.5 }, /^height: /],
    ["no frames", { fps: 0 }, /^fps: /],
    ["too many frames", { fps: 61 }, /^fps: /],
    ["a fractional frame rate", { fps: 23.976 }, /^fps: /],
    [
      "more pixels than a task may have",
      { width: 1920, height: 1080, fps: 60, duration: 20 },
      /^duration: must be at most 4.8 seconds at 1920x1080 and 60 frames per second$/
    ],
    ["several videos", { n: 2 }, /^n: /],
    ["no video", { n: 0 }, /^n: /],
    ["a negative seed", { seed: -1 }, /^seed: /],
    ["a fractional seed", { seed: 1.5 }, /^seed: /],
    ["another format", { response_format: "b64_json" }, /^response_format: .*"url".*"mp4"/],
    ["a user that is not a string", { user: 1 }, /^user: /],
    ["metadata that is not an object", { metadata: "style" }, /^metadata: /],
    ["a negative prompt that is not a string", { metadata: { negative_prompt: 1 } }, /^metadata.negative_prompt: /],
    ["a style that is not a string", { metadata: { style: {} } }, /^metadata.style: /],
    ["a quality that is not a string", { metadata: { quality_level: 1 } }, /^metadata.quality_level: /]
  ]
  for (const [title, fields, expected] of wrongs) {
    it(title, () => {
      const present = Object.fromEntries(
        Object.entries({ ...right, ...fields }).filter(([, field]) => field !== undefined)
      )
      assert.match(refusal(present) ?? "accepted", expected)
    })
  }
})

it("the frames of a video are whole and at least one", () => {
  assert.deepStrictEqual(extentOf({}), { width: 640, height: 360, fps: 24, duration: 4, frames: 96 })
  assert.strictEqual(extentOf({ duration: 1.01, fps: 24 }).frames, 24)
  assert.strictEqual(extentOf({ duration: 1, fps: 1 }).frames, 1)
})
