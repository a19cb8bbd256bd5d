/** Validation of speech requests, field by field. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import {
  audioFormats,
  AudioSpeechRequest,
  countCharacters,
  voices
} from "../../../shared/contract/operations/audio/Speech.ts"
import { first, formatPath } from "../../../shared/contract/SchemaErrors.ts"

const decode = Schema.decodeUnknownResult(AudioSpeechRequest)

const right = { model: "m", input: "Hello.", voice: "alloy" }

const refusal = (value: unknown): string | undefined => {
  const result = decode(value)
  if (Result.isSuccess(result)) return undefined
  const { message, path } = first(result.failure.issue, value)
  return `${formatPath(path)}: ${message}`
}

describe("a speech request accepts", () => {
  const rights: ReadonlyArray<readonly [string, object]> = [
    ["only the required fields", {}],
    ...voices.map((voice) => [`the voice ${voice}`, { voice }] as const),
    ["a voice of another provider", { voice: "coral" }],
    ["a custom voice", { voice: { id: "voice_1" } }],
    ...audioFormats.map((response_format) => [`the format ${response_format}`, { response_format }] as const),
    ["the slowest", { speed: 0.25 }],
    ["the fastest", { speed: 4 }],
    ["null for optional fields", { response_format: null, speed: null, stream_format: null }],
    ["audio as the stream format", { stream_format: "audio" }],
    ["4,096 characters", { input: "x".repeat(4_096) }],
    ["4,096 characters of two UTF-16 units each", { input: "🙂".repeat(4_096) }],
    ["unknown fields", { instructions: "cheerful" }]
  ]
  for (const [title, fields] of rights) {
    it(title, () => assert.isUndefined(refusal({ ...right, ...fields })))
  }
})

describe("a speech request rejects", () => {
  const wrongs: ReadonlyArray<readonly [string, object, RegExp]> = [
    ["no model", { model: undefined }, /^model: /],
    ["an empty model", { model: "" }, /^model: /],
    ["no input", { input: undefined }, /^input: /],
    ["an empty input", { input: "" }, /^input: /],
    ["an input that is not a string", { input: ["Hello."] }, /^input: /],
    ["4,097 characters", { input: "x".repeat(4_097) }, /^input: must be a string of 1 to 4096 characters$/],
    ["4,097 emoji", { input: "🙂".repeat(4_097) }, /^input: must be a string of 1 to 4096 characters$/],
    ["a million characters", { input: "x".repeat(1_000_000) }, /^input: must be a string of 1 to 4096 characters$/],
    ["no voice", { voice: undefined }, /^voice: /],
    ["null for the voice", { voice: null }, /^voice: /],
    ["an empty voice", { voice: "" }, /^voice: /],
    ["a custom voice without an id", { voice: { name: "voice_1" } }, /^voice/],
    ["another format", { response_format: "ogg" }, /^response_format: .*"mp3".*"pcm"/],
    ["too slow", { speed: 0.24 }, /^speed: /],
    ["too fast", { speed: 4.01 }, /^speed: /],
    ["a speed that is not a number", { speed: "1" }, /^speed: /],
    ["server-sent events", { stream_format: "sse" }, /^stream_format: /]
  ]
  for (const [title, fields, expected] of wrongs) {
    it(title, () => {
      const { ...value } = { ...right, ...fields }
      const present = Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined))
      assert.match(refusal(present) ?? "accepted", expected)
    })
  }
})

it("the length of an input is counted in code points", () => {
  for (const text of ["", "abc", "ä🙂字", "👩‍👩‍👧", "\ud83d", "\ud83d🙂\ude42"]) {
    assert.strictEqual(countCharacters(text), [...text].length)
  }
})
