/** Validation of video requests, field by field: by the API, and by the built-in engine. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { first, formatPath } from "../../../shared/contract/SchemaErrors.ts"
import { extentOf, LocalVideoRequest } from "../../../shared/contract/operations/LocalVideo.ts"
import { VideoGenerationRequest } from "../../../shared/contract/operations/VideoGenerations.ts"

const right = { model: "m", prompt: "a boat on the sea" }

const refusalBy = (schema: Schema.Codec<unknown, unknown>) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (value: unknown): string | undefined => {
    const result = decode(value)
    if (Result.isSuccess(result)) return undefined
    const { message, path } = first(result.failure.issue, value)
    return `${formatPath(path)}: ${message}`
  }
}
const refusal = refusalBy(VideoGenerationRequest)
const refusalByEngine = refusalBy(LocalVideoRequest)

const base64 = (text: string) => Buffer.from(text, "latin1").toString("base64")
const png = base64("\x89PNG\r\n\x1a\n\0\0\0\rIHDR and more")

describe("a video request accepts", () => {
  const rights: ReadonlyArray<readonly [string, object]> = [
    ["only the required fields", {}],
    ["the reference request", { duration: 5, width: 1280, height: 720 }],
    ["what only some providers make", { width: 3840, height: 2160, duration: 30, fps: 120, seed: -1 }],
    ["a fraction of a second", { duration: 0.5 }],
    ["several videos", { n: 4 }],
    ["a format that only a provider knows", { response_format: "webm" }],
    ["the largest seed", { seed: Number.MAX_SAFE_INTEGER }],
    ["the URL of an image", { image: "https://example.com/a.png" }],
    ["a data URL", { image: `data:image/png;base64,${png}` }],
    ["base64", { image: png }],
    ["base64 of the other alphabet with a line break at its end", { image: `${base64("\xff\xd8\xff")}_-\n` }],
    ...["RIFF1234WEBP", "GIF89a", "BM", "II*\0", "\0\0\0 ftypavif"].map((head) =>
      [`an image that starts with ${JSON.stringify(head)}`, { image: base64(head) }] as const
    ),
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
    ["an image that is not base64", { image: "no base64!" }, /^image: must be an http\(s\) URL, a data URL or base64$/],
    ["an image with characters after its end", { image: `${png}=x` }, /^image: must be an http/],
    ["a data URL without data", { image: "data:image/png;base64," }, /^image: must be a picture/],
    [
      "a data URL that is not base64",
      { image: "data:image/png,abc" },
      /^image: must be a data URL of a picture in base64$/
    ],
    [
      "a data URL of another type",
      { image: `data:text/plain;base64,${png}` },
      /^image: must be a data URL of a picture/
    ],
    ["a file that is no picture", { image: base64("<svg/>") }, /^image: must be a picture, such as PNG, JPEG or WebP/],
    ["a URL of no server", { image: "http://" }, /^image: must be a valid URL$/],
    ["a URL of another protocol", { image: "file:///etc/passwd" }, /^image: must be an http/],
    ["no duration", { duration: 0 }, /^duration: /],
    ["a duration whose usage makes no sense", { duration: 3_601 }, /^duration: /],
    ["a duration that is not a number", { duration: "4" }, /^duration: /],
    ["no width", { width: 0 }, /^width: /],
    ["a side of any length", { height: 16_385 }, /^height: /],
    ["a fraction of a pixel", { height: 360.5 }, /^height: /],
    ["no frames", { fps: 0 }, /^fps: /],
    ["any number of frames", { fps: 241 }, /^fps: /],
    ["a fractional frame rate", { fps: 23.976 }, /^fps: /],
    ["any number of videos", { n: 101 }, /^n: /],
    ["no video", { n: 0 }, /^n: /],
    ["a fractional seed", { seed: 1.5 }, /^seed: /],
    ["an empty format", { response_format: "" }, /^response_format: /],
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

describe("the built-in engine accepts", () => {
  for (
    const [title, fields] of [
      ["the shortest", { duration: 1, fps: 1 }],
      ["the longest", { duration: 20 }],
      ["the smallest", { width: 64, height: 64 }],
      ["the largest", { width: 1920, height: 1080, duration: 12 }],
      ["the smoothest", { fps: 60 }],
      ["both names of its format", { response_format: "mp4" }],
      ["null for optional fields", { duration: null, seed: null, response_format: null, metadata: null }]
    ] as const
  ) {
    it(title, () => assert.isUndefined(refusalByEngine({ ...right, ...fields })))
  }
})

describe("the built-in engine rejects", () => {
  for (
    const [title, fields, expected] of [
      ["too short", { duration: 0.9 }, /^duration: /],
      ["too long", { duration: 20.1 }, /^duration: /],
      ["too narrow", { width: 62 }, /^width: /],
      ["too wide", { width: 1922 }, /^width: /],
      ["an odd width", { width: 641 }, /^width: must be an even number from 64 to 1920$/],
      ["too low", { height: 62 }, /^height: /],
      ["too high", { height: 1922 }, /^height: /],
      ["too many frames", { fps: 61 }, /^fps: /],
      [
        "more pixels than a task may have",
        { width: 1920, height: 1080, fps: 60, duration: 20 },
        /^duration: must be at most 4.8 seconds at 1920x1080 and 60 frames per second$/
      ],
      ["a negative seed", { seed: -1 }, /^seed: /],
      ["another format", { response_format: "b64_json" }, /^response_format: .*"url".*"mp4"/],
      ["an unknown quality", { metadata: { quality_level: "divine" } }, /^metadata.quality_level: .*"high"/]
    ] as const
  ) {
    it(title, () => assert.match(refusalByEngine({ ...right, ...fields }) ?? "accepted", expected))
  }
})

it("the frames of a video are whole and at least one", () => {
  assert.deepStrictEqual(extentOf({}), { width: 640, height: 360, fps: 24, duration: 4, frames: 96 })
  assert.strictEqual(extentOf({ duration: 1.01, fps: 24 }).frames, 24)
  assert.strictEqual(extentOf({ duration: 1, fps: 1 }).frames, 1)
})
