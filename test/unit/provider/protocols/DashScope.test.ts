/** The dashscope protocol against a server that answers like DashScope: its requests, and what becomes of its answers. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { generateContent, GenerateContentAnswer } from "../../../../shared/contract/operations/GenerateContent.ts"
import * as ExactJson from "../../../../shared/bounds/ExactJson.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations, ImageResult } from "../../../../shared/contract/operations/ImageGenerations.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { stripes, toDataUrl } from "../../../fixture/calls/ImagesEngine.ts"
import { type Answered, callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"

const key = "sk-dashscope-secret"
const path = "/api/v1/services/aigc/multimodal-generation/generation"

/** An answer with pictures, given by their URLs. */
const answerOf = (pictures: ReadonlyArray<string>, text?: string) =>
  JSON.stringify({
    output: {
      choices: [{
        finish_reason: "stop",
        message: {
          role: "assistant",
          content: [...pictures.map((image) => ({ image })), ...(text === undefined ? [] : [{ text }])]
        }
      }]
    },
    usage: { width: 1328, height: 1328, image_count: pictures.length },
    request_id: "7a270c86-db58-9faf-b403-xxxxxx"
  })

const json = { "content-type": "application/json" }

interface Bench {
  readonly provider: FakeProvider
  /** The root of its URLs. */
  readonly root: string
  readonly picture: Buffer
  readonly ask: (operation: Operation, body: unknown) => Effect.Effect<Answered, JobError>
  /** The last POST request. */
  readonly posted: () => unknown
}

/** A provider with a red picture at every URL without a behaviour of its own. */
const bench = <A, E>(test: (bench: Bench) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const provider = yield* FakeProvider.make()
    const picture = yield* stripes(8, 8, [[200, 0, 0]])
    const root = `http://127.0.0.1:${provider.port}`
    provider.behave({ kind: "raw", pieces: [picture], headers: { "content-type": "image/png" } })
    return yield* test({
      provider,
      root,
      picture,
      ask: (operation, body) =>
        callProvider({
          operation,
          body,
          workload: "images",
          name: "aliyun",
          model: "painter",
          upstreamModel: "qwen-image-plus",
          key,
          provider: { protocol: "dashscope", baseUrl: root, apiKey: keyReference }
        }),
      posted: () => provider.requests.findLast(({ method }) => method === "POST")?.json
    })
  }).pipe(Effect.scoped)

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(ImageResult))
const decodeContent = Schema.decodeUnknownSync(Schema.fromJsonString(GenerateContentAnswer))
const dataOf = ({ bytes }: Answered) => decode(bytes.toString()).data

const messages = {
  model: "painter",
  input: { messages: [{ role: "user", content: [{ text: "a boat" }] }] },
  parameters: {
    negative_prompt: "fog",
    prompt_extend: true,
    watermark: false,
    size: "1328*1328",
    response_format: "b64_json",
    ref_strength: 0.5
  }
}

describe("an image generation", () => {
  it.live("by messages is relayed unchanged, and the picture returns in base64", () =>
    bench(({ ask, picture, posted, provider, root }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/result.png`], "a red boat")], headers: json })
        const answer = yield* ask(imageGenerations, messages)
        assert.deepStrictEqual(posted(), {
          model: "qwen-image-plus",
          input: messages.input,
          parameters: {
            negative_prompt: "fog",
            prompt_extend: true,
            watermark: false,
            size: "1328*1328",
            ref_strength: 0.5
          }
        })
        assert.deepStrictEqual(dataOf(answer), [{ b64_json: picture.toString("base64"), revised_prompt: "a red boat" }])
        assert.deepStrictEqual(answer.usage, { inputTokens: 0, outputTokens: 0, images: 1 })
        const [post, get] = provider.requests
        assert.strictEqual(post?.path, path)
        assert.strictEqual(post?.headers.authorization, `Bearer ${key}`)
        // only the API gets the key
        assert.strictEqual(get?.path, "/result.png")
        assert.notProperty(get?.headers ?? {}, "authorization")
      })
    ))

  it.live("fails if the answer has an unsafe URL", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        for (const url of ["javascript:alert(1)", "http://pictures.example/a.png", "file:///etc/passwd"]) {
          provider.behaveOnce({ kind: "raw", pieces: [answerOf([url])], headers: json })
          const parameters = { ...messages.parameters, response_format: "url" }
          const error = yield* Effect.flip(ask(imageGenerations, { ...messages, parameters }))
          assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" }, url)
          assert.match(error.message, /neither a data URL nor https, nor of the provider's own origin/)
        }
      })
    ))

  it.live("ignores null parts of the answer", () =>
    bench(({ ask, picture, provider }) =>
      Effect.gen(function*() {
        const content = [{ image: toDataUrl(picture), text: null }, { image: null, text: "a red boat" }, { text: null }]
        const pieces = [JSON.stringify({ output: { choices: [{ message: { content } }] } })]
        provider.behaveOnce({ kind: "raw", pieces, headers: json })
        assert.deepStrictEqual(dataOf(yield* ask(imageGenerations, messages)), [
          { b64_json: picture.toString("base64"), revised_prompt: "a red boat" }
        ])
      })
    ))

  it.live("by a prompt is translated to messages", () =>
    bench(({ ask, posted, provider, root }) =>
      Effect.gen(function*() {
        const pictures = [`${root}/1.png`, `${root}/2.png`]
        provider.behaveOnce({ kind: "raw", pieces: [answerOf(pictures)], headers: json })
        const answer = yield* ask(imageGenerations, {
          model: "painter",
          prompt: "a boat",
          n: 2,
          size: "1024x768",
          seed: 7,
          output_format: "webp",
          user: "u-1",
          style: "vivid"
        })
        assert.deepStrictEqual(posted(), {
          model: "qwen-image-plus",
          input: { messages: [{ role: "user", content: [{ text: "a boat" }] }] },
          parameters: { n: 2, size: "1024*768", seed: 7, style: "vivid" }
        })
        assert.lengthOf(dataOf(answer), 2)
        assert.strictEqual(answer.usage?.images, 2)
        assert.strictEqual(answer.head?.headers["x-translation-warnings"], "output_format; user")
      })
    ))

  it.live("by generateContent is translated to messages", () =>
    bench(({ ask, picture, posted, provider, root }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/1.png`])], headers: json })
        const { bytes } = yield* ask(generateContent, {
          contents: [{ parts: [{ text: "a boat" }] }],
          generationConfig: { imageConfig: { aspectRatio: "16:9", imageSize: "1K" } }
        })
        assert.deepInclude(posted(), { parameters: { size: "1024*576" } })
        const content = decodeContent(bytes.toString())
        assert.deepStrictEqual(content.candidates[0]?.content.parts, [
          { inlineData: { mimeType: "image/png", data: picture.toString("base64") } }
        ])
      })
    ))

  it.live("returns the provider's URL on request, except one on the provider's own host", () =>
    bench(({ ask, provider, root }) =>
      Effect.gen(function*() {
        const elsewhere = "https://dashscope-result.oss-cn.aliyuncs.com/a.png?Expires=1"
        for (
          const [at, given] of [[elsewhere, elsewhere], [`${root}/a.png`, "http://files.test/picture.png"]] as const
        ) {
          provider.behaveOnce({ kind: "raw", pieces: [answerOf([at])], headers: json })
          const answer = yield* ask(imageGenerations, { model: "painter", prompt: "a boat", response_format: "url" })
          assert.deepStrictEqual(dataOf(answer), [{ url: given }])
        }
      })
    ))
})

describe("a seed of a picture", () => {
  // integers of 64 bits, as clients in Go, Java and Python draw them; JavaScript's numbers hold 53
  const seeds = ["7", "9007199254740993", "725653563933458432", "725653563933458433", "9223372036854775807"]
  const forms: ReadonlyArray<readonly [Operation, (seed: unknown) => object]> = [
    [imageGenerations, (seed) => ({ model: "painter", prompt: "a boat", seed })],
    [imageGenerations, (seed) => ({ ...messages, parameters: { seed } })],
    [imageEdits, (seed) => ({ model: "painter", prompt: "a boat", image: "https://example.com/a.png", seed })],
    [generateContent, (seed) => ({ contents: [{ parts: [{ text: "a boat" }] }], generationConfig: { seed } })]
  ]
  it.live.each(seeds)(
    "keeps all digits of %s in every form",
    (digits) =>
      bench(({ ask, provider, root }) =>
        Effect.forEach(forms, ([operation, bodyOf]) =>
          Effect.gen(function*() {
            provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/1.png`])], headers: json })
            yield* ask(operation, bodyOf(ExactJson.fromBigInt(BigInt(digits))))
            const sent = provider.requests.findLast(({ method }) => method === "POST")
            assert.include(Buffer.from(sent?.body ?? []).toString(), `"seed":${digits}`)
          }))
      )
  )
})

describe("an image edit", () => {
  it.live("by messages keeps URLs, and gives base64 data a media type", () =>
    bench(({ ask, picture, posted, provider, root }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/1.png`])], headers: json })
        const content = (image: string) => [{ image: "https://pictures.example/a.png" }, { image }, { text: "mix" }]
        yield* ask(imageEdits, {
          model: "painter",
          input: { messages: [{ role: "user", content: content(picture.toString("base64")) }] },
          parameters: { n: 2 }
        })
        assert.deepStrictEqual(posted(), {
          model: "qwen-image-plus",
          input: { messages: [{ role: "user", content: content(toDataUrl(picture)) }] },
          parameters: { n: 2 }
        })
      })
    ))

  it.live("has each of several equal pictures", () =>
    bench(({ ask, picture, posted, provider, root }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/1.png`])], headers: json })
        const image = toDataUrl(picture)
        yield* ask(imageEdits, { model: "painter", prompt: "mix", image: [image, image] })
        const content = [{ image }, { image }, { text: "mix" }]
        assert.deepInclude(posted(), { input: { messages: [{ role: "user", content }] } })
      })
    ))

  it.live("by a form is translated to messages with its files", () =>
    bench(({ ask, picture, posted, provider, root }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/1.png`])], headers: json })
        const form = new FormData()
        form.set("model", "painter")
        form.set("prompt", "make it blue")
        form.set("size", "512x512")
        form.append("image[]", new File([Uint8Array.from(picture)], "a.png", { type: "image/png" }))
        const answer = yield* ask(imageEdits, form)
        assert.deepStrictEqual(posted(), {
          model: "qwen-image-plus",
          input: { messages: [{ role: "user", content: [{ image: toDataUrl(picture) }, { text: "make it blue" }] }] },
          parameters: { size: "512*512" }
        })
        assert.lengthOf(dataOf(answer), 1)
      })
    ))

  it.live("with a mask is rejected, because the model would ignore the mask", () =>
    bench(({ ask, picture, provider }) =>
      Effect.gen(function*() {
        const image = toDataUrl(picture)
        const error = yield* Effect.flip(
          ask(imageEdits, { model: "painter", prompt: "blue", image, mask: image })
        )
        assert.deepInclude(error, { _tag: "InvalidRequest", param: "mask" })
        assert.isEmpty(provider.requests)
      })
    ))
})

describe("a failed answer", () => {
  const prompt = { model: "painter", prompt: "a boat" }

  it.live("with status 4xx is the client's error, with its code and without the key", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        const said = { code: "DataInspectionFailed", message: `Not with ${key}`, request_id: "r" }
        provider.behaveOnce({ kind: "raw", status: 400, pieces: [JSON.stringify(said)], headers: json })
        const error = yield* Effect.flip(ask(imageGenerations, prompt))
        assert.deepInclude(error, {
          _tag: "ProviderRejected",
          status: 400,
          code: "DataInspectionFailed",
          message: "Not with [redacted]"
        })
      })
    ))

  const others: ReadonlyArray<readonly [status: number, code: string, expected: object]> = [
    [401, "InvalidApiKey", { _tag: "ProviderFailed", reason: "credentials" }],
    [400, "Arrearage", { _tag: "ProviderFailed", reason: "credit" }],
    [429, "Throttling.RateQuota", { _tag: "ProviderRateLimited" }],
    [500, "InternalError", { _tag: "ProviderFailed", reason: "status", status: 500 }],
    [200, "", { _tag: "ProviderFailed", reason: "malformed" }]
  ]
  for (const [status, code, expected] of others) {
    it.live(`with status ${status} ${code} is ${JSON.stringify(expected)}`, () =>
      bench(({ ask, provider }) =>
        Effect.gen(function*() {
          const pieces = [JSON.stringify({ code, message: "no", request_id: "r" })]
          provider.behaveOnce({ kind: "raw", status, pieces, headers: json })
          assert.deepInclude(yield* Effect.flip(ask(imageGenerations, prompt)), expected)
        })
      ))
  }

  it.live("never makes the gateway fetch from a private network", () =>
    bench(({ ask, picture, provider, root }) =>
      Effect.gen(function*() {
        const other = yield* FakeProvider.make()
        other.behave({ kind: "raw", pieces: [picture] })
        for (
          const at of [`http://127.0.0.1:${other.port}/a.png`, "https://169.254.169.254/latest", "file:///etc/passwd"]
        ) {
          provider.behaveOnce({ kind: "raw", pieces: [answerOf([at])], headers: json })
          const error = yield* Effect.flip(ask(imageGenerations, prompt))
          assert.deepInclude(error, { _tag: "ProviderFailed", reason: at.startsWith("https") ? "result" : "malformed" })
        }
        assert.isEmpty(other.requests)
        // not a picture
        provider.behave({ kind: "raw", pieces: ["<html>"], headers: { "content-type": "image/png" } })
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/a.png`])], headers: json })
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, prompt)), { reason: "malformed" })
      }).pipe(Effect.scoped)
    ))
})
