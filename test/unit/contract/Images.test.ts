/**
 * Validation of image requests, field by field, in each form: with a prompt, with messages, as a form. A request with one
 * invalid field gets 400 with that field in `param`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Headers } from "effect/http"
import * as IncomingBody from "../../../services/ingress/request/IncomingBody.ts"
import { imageEdits } from "../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations, parseSize } from "../../../shared/contract/operations/ImageGenerations.ts"
import { formOf, formReader, reader } from "../../../shared/provider/call/RequestBody.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"

/** The decoding in ingress, and then that of a worker that does not pass the request on. */
const decodeJson = (operation: Operation, body: object) => {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  return Effect.result(
    Effect.andThen(
      IncomingBody.decode(operation, Headers.empty, bytes),
      Effect.asVoid(reader(operation.request)({ body: bytes }))
    )
  )
}

const decodeForm = (fields: Readonly<Record<string, unknown>>) =>
  Effect.gen(function*() {
    const form = new FormData()
    for (const [name, values] of Object.entries(fields)) {
      for (const value of [values].flat()) {
        if (value !== undefined) form.append(name, value instanceof File ? value : String(value))
      }
    }
    const response = new Response(form)
    const bytes = new Uint8Array(yield* Effect.promise(() => response.arrayBuffer()))
    const headers = Headers.fromInput({ "content-type": response.headers.get("content-type") ?? "" })
    const call = { body: bytes, contentType: headers["content-type"] ?? "" }
    return yield* Effect.result(
      Effect.andThen(
        IncomingBody.decode(imageEdits, headers, bytes),
        Effect.asVoid(Effect.flatMap(formOf(call), formReader(imageEdits.form)))
      )
    )
  })

const content = [{ image: "https://example.com/a.png" }, { text: "a" }]
const messages = [{ role: "user", content }]
const file = new File(["x"], "a.png", { type: "image/png" })

type Decode = (settings: Readonly<Record<string, unknown>>) => ReturnType<typeof decodeJson>

/** Each form of the requests, and the prefix of its settings in `param`. */
const forms: ReadonlyArray<readonly [title: string, prefix: string, decode: Decode]> = [
  ["a generation with a prompt", "", (more) => decodeJson(imageGenerations, { model: "m", prompt: "a", ...more })],
  [
    "a generation with messages",
    "parameters.",
    (parameters) =>
      decodeJson(imageGenerations, {
        model: "m",
        input: { messages: [{ role: "user", content: [{ text: "a" }] }] },
        parameters
      })
  ],
  ["an edit with a prompt", "", (more) => decodeJson(imageEdits, { model: "m", prompt: "a", image: "AAAA", ...more })],
  [
    "an edit with messages",
    "parameters.",
    (parameters) => decodeJson(imageEdits, { model: "m", input: { messages }, parameters })
  ],
  ["an edit as a form", "", (more) => decodeForm({ model: "m", prompt: "a", image: file, ...more })]
]

const right: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  n: [1, 10],
  size: ["64x64", "64*64", "1024x1024", "1280*720", "4096x4096", "auto"],
  seed: [0, 7, Number.MAX_SAFE_INTEGER],
  negative_prompt: ["", "clouds"],
  prompt_extend: [true, false],
  watermark: [true, false],
  response_format: ["b64_json", "url"],
  output_format: ["png", "jpeg", "webp"],
  output_compression: [0, 100]
}

const wrong: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  n: [0, 11, -1, 1.5, "two"],
  size: [
    "",
    "1024",
    "63x64",
    "64x63",
    "4097x64",
    "64x4097",
    "0*0",
    "-64x64",
    "64 x 64",
    "64X64",
    "1e3x64",
    "large",
    1024
  ],
  seed: [-1, 1.5, "x"],
  negative_prompt: ["x".repeat(4_001)],
  prompt_extend: ["maybe", 2],
  watermark: ["maybe", 2],
  response_format: ["base64", ""],
  output_format: ["gif", "svg"],
  output_compression: [-1, 101, 1.5]
}

const paramOf = (result: Effect.Success<ReturnType<typeof decodeJson>>): string | null =>
  Result.isFailure(result) ? result.failure.param : "accepted"

describe.each(forms)("%s", (_title, prefix, decode) => {
  const cases = (table: typeof right) =>
    Object.entries(table).flatMap(([name, values]) => values.map((value) => [name, value] as const))

  it.effect("is accepted", () =>
    Effect.gen(function*() {
      assert.strictEqual(paramOf(yield* decode({})), "accepted")
    }))

  it.effect.each(cases(right))("accepts %s %j", ([name, value]) =>
    Effect.gen(function*() {
      assert.strictEqual(paramOf(yield* decode({ [name]: value })), "accepted")
    }))

  it.effect.each(cases(wrong))("names %s if it is %j", ([name, value]) =>
    Effect.gen(function*() {
      assert.strictEqual(paramOf(yield* decode({ [name]: value })), `${prefix}${name}`)
    }))
})

describe("streaming of an image", () => {
  it.effect.each([["stream", true], ["partial_images", 2]] as const)(
    "is rejected: %s %j",
    ([name, value]) =>
      Effect.gen(function*() {
        for (const operation of [imageGenerations, imageEdits]) {
          const body = { model: "m", prompt: "a", image: "AAAA" }
          assert.strictEqual(paramOf(yield* decodeJson(operation, { ...body, [name]: value })), name)
          const not = { ...body, stream: false, partial_images: 0 }
          assert.strictEqual(paramOf(yield* decodeJson(operation, not)), "accepted")
        }
        assert.strictEqual(paramOf(yield* decodeForm({ model: "m", prompt: "a", image: file, [name]: value })), name)
      })
  )
})

describe("an image generation", () => {
  const refused: ReadonlyArray<readonly [param: string, body: object]> = [
    ["model", { prompt: "a" }],
    ["model", { model: "", prompt: "a" }],
    ["prompt", { model: "m" }],
    ["prompt", { model: "m", prompt: "" }],
    ["prompt", { model: "m", prompt: ["a"] }],
    ["prompt", { model: "m", prompt: "x".repeat(32_001) }],
    ["prompt", { model: "m", prompt: "a", input: { messages } }],
    ["input", { model: "m", input: "a" }],
    ["input.messages", { model: "m", input: {} }],
    ["input.messages", { model: "m", input: { messages: [] } }],
    ["input.messages[0].role", { model: "m", input: { messages: [{ role: "tool", content }] } }],
    ["input.messages[0].content", { model: "m", input: { messages: [{ role: "user" }] } }],
    ["input.messages[0].content", { model: "m", input: { messages: [{ role: "user", content: [] }] } }],
    ["input.messages[0].content", { model: "m", input: { messages: [{ role: "user", content: "a" }] } }],
    ["input.messages[0].content[0]", { model: "m", input: { messages: [{ role: "user", content: [{}] }] } }],
    [
      "input.messages[0].content[1]",
      { model: "m", input: { messages: [{ role: "user", content: [{ text: "a" }, { text: "b", image: "AAAA" }] }] } }
    ],
    ["input.messages[0].content[0].text", {
      model: "m",
      input: { messages: [{ role: "user", content: [{ text: 5 }] }] }
    }],
    // a system message is not a prompt
    ["input.messages", { model: "m", input: { messages: [{ role: "system", content: [{ text: "a" }] }] } }],
    ["parameters", { model: "m", prompt: "a", parameters: 5 }]
  ]
  it.effect.each(refused)("is rejected with param %s: %j", ([param, body]) =>
    Effect.gen(function*() {
      assert.strictEqual(paramOf(yield* decodeJson(imageGenerations, body)), param)
    }))

  it.effect("accepts null for optional fields, and unknown fields", () =>
    Effect.gen(function*() {
      const nothing = Object.fromEntries(Object.keys(right).map((name) => [name, null]))
      const body = {
        model: "m",
        prompt: "a",
        ...nothing,
        parameters: nothing,
        input: null,
        stream: null,
        quality: "hd",
        style: 5
      }
      assert.strictEqual(paramOf(yield* decodeJson(imageGenerations, body)), "accepted")
    }))
})

describe("an image edit", () => {
  const refused: ReadonlyArray<readonly [param: string, body: object]> = [
    ["prompt", { model: "m", image: "AAAA" }],
    ["image", { model: "m", prompt: "a" }],
    ["image", { model: "m", prompt: "a", image: "" }],
    ["image", { model: "m", prompt: "a", image: [] }],
    ["image", { model: "m", prompt: "a", image: 5 }],
    ["image[1]", { model: "m", prompt: "a", image: ["AAAA", 5] }],
    ["image", { model: "m", prompt: "a", image: Array(17).fill("AAAA") }],
    ["mask", { model: "m", prompt: "a", image: "AAAA", mask: 5 }],
    ["input.messages", { model: "m", input: { messages: [{ role: "user", content: [{ text: "a" }] }] } }],
    ["input.messages", { model: "m", input: { messages: [{ role: "user", content: [{ image: "AAAA" }] }] } }]
  ]
  it.effect.each(refused)("is rejected with param %s: %j", ([param, body]) =>
    Effect.gen(function*() {
      assert.strictEqual(paramOf(yield* decodeJson(imageEdits, body)), param)
    }))

  const forms: ReadonlyArray<readonly [param: string, fields: Readonly<Record<string, unknown>>]> = [
    ["accepted", { "image[]": [file, file], image: undefined }],
    ["accepted", { image: [file, file] }],
    ["accepted", { image: "https://example.com/a.png", mask: file }],
    ["model", { model: undefined }],
    ["model", { model: file }],
    ["model", { model: ["m", "n"] }],
    ["prompt", { prompt: undefined }],
    ["prompt", { prompt: "" }],
    ["image", { image: undefined }],
    ["image", { image: "" }],
    ["image", { image: Array.from({ length: 17 }, () => file) }],
    ["mask", { mask: "" }]
  ]
  it.effect.each(forms)("as a form: %s", ([param, fields]) =>
    Effect.gen(function*() {
      assert.strictEqual(paramOf(yield* decodeForm({ model: "m", prompt: "a", image: file, ...fields })), param)
    }))
})

describe("an image size", () => {
  it("is decoded in both notations", () => {
    assert.deepStrictEqual(parseSize("640x480"), { width: 640, height: 480 })
    assert.deepStrictEqual(parseSize("640*480"), { width: 640, height: 480 })
    assert.isUndefined(parseSize("auto"))
  })
})
