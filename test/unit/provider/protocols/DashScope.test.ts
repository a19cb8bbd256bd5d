/** The dashscope protocol against a server that answers as DashScope does: what it is sent, and what becomes of its answer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { generateContent, GenerateContentAnswer } from "../../../../shared/contract/operations/GenerateContent.ts"
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

/** What it answers with, pictures being named by their addresses. */
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
  /** The root of its addresses. */
  readonly root: string
  readonly picture: Buffer
  readonly ask: (operation: Operation, body: unknown) => Effect.Effect<Answered, JobError>
  /** The last request that was posted. */
  readonly posted: () => unknown
}

/** A provider that has one picture, of red, at any address that does not say otherwise. */
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

describe("a request for a picture", () => {
  it.live("in messages goes out as it came, and the picture comes back in base64", () =>
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
        // the key is for the API alone
        assert.strictEqual(get?.path, "/result.png")
        assert.notProperty(get?.headers ?? {}, "authorization")
      })
    ))

  it.live("fails where the answer gives an address that no client should open", () =>
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

  it.live("is answered with what there is beside what is null", () =>
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

  it.live("by a prompt is brought into messages", () =>
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

  it.live("of generated content is brought into messages too", () =>
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

  it.live("is answered with the provider's address where one is asked for, unless it is the provider's own host", () =>
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

describe("a change to pictures", () => {
  it.live("in messages keeps addresses, and gives base64 its type", () =>
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

  it.live("of a form is brought into messages with its files", () =>
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

  it.live("with a mask is refused, for the model would change what it is not to", () =>
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

describe("an answer that is none", () => {
  const prompt = { model: "painter", prompt: "a boat" }

  it.live("of 4xx is the client's, with its code and without the key", () =>
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
    it.live(`of ${status} ${code} is ${JSON.stringify(expected)}`, () =>
      bench(({ ask, provider }) =>
        Effect.gen(function*() {
          const pieces = [JSON.stringify({ code, message: "no", request_id: "r" })]
          provider.behaveOnce({ kind: "raw", status, pieces, headers: json })
          assert.deepInclude(yield* Effect.flip(ask(imageGenerations, prompt)), expected)
        })
      ))
  }

  it.live("leads nowhere but to the provider and the internet", () =>
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
        // what is there is no picture
        provider.behave({ kind: "raw", pieces: ["<html>"], headers: { "content-type": "image/png" } })
        provider.behaveOnce({ kind: "raw", pieces: [answerOf([`${root}/a.png`])], headers: json })
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, prompt)), { reason: "malformed" })
      }).pipe(Effect.scoped)
    ))
})
