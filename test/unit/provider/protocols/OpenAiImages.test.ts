/** Image requests of other dialects, translated to the OpenAI dialect; requests of that dialect, relayed unchanged. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { generateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../../shared/contract/operations/ImageGenerations.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { stripes, toDataUrl } from "../../../fixture/calls/ImagesEngine.ts"
import { type Answered, callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"

type Ask = (operation: Operation, body: unknown, onCut?: (usage: Usage) => void) => Effect.Effect<Answered, JobError>

const bench = <A, E>(test: (provider: FakeProvider, ask: Ask) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const provider = yield* FakeProvider.make({ apiKey: "secret" })
    return yield* test(provider, (operation, body, onCut = () => undefined) =>
      callProvider({
        operation,
        body,
        onCut,
        workload: "images",
        name: "openai",
        model: "alias",
        upstreamModel: "gpt-image",
        key: "secret",
        provider: { protocol: "openai", baseUrl: provider.baseUrl, apiKey: keyReference }
      }))
  }).pipe(Effect.scoped)

const dataOf = ({ bytes }: Answered) =>
  (JSON.parse(bytes.toString()) as { readonly data: ReadonlyArray<Record<string, string>> }).data

const messages = (...content: ReadonlyArray<object>) => ({ messages: [{ role: "user", content }] })

const message = {
  model: "alias",
  input: messages({ text: "a boat" }),
  parameters: { negative_prompt: "fog", prompt_extend: true, watermark: false, size: "128*64", n: 2, quality: "low" },
  user: "u-1"
}

/** URLs that no client may receive. */
const hostile = [
  "javascript:alert(1)",
  " JavaScript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "file:///etc/passwd",
  "http://pictures.example/a.png",
  "//pictures.example/a.png",
  "a.png"
] as const

const refusal = {
  _tag: "ProviderFailed",
  reason: "malformed",
  message: "The provider 'openai' sent a malformed answer: the URL of an image is " +
    "neither a data URL nor https, nor of the provider's own origin"
} as const

describe("generations by messages", () => {
  it.live("are translated to a prompt, with warnings for unsupported fields", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const answer = yield* ask(imageGenerations, message)
        assert.deepStrictEqual(provider.requests[0]?.json, {
          model: "gpt-image",
          prompt: "a boat",
          n: 2,
          size: "128x64",
          quality: "low",
          user: "u-1"
        })
        assert.strictEqual(provider.requests[0]?.path, "/v1/images/generations")
        assert.deepStrictEqual(dataOf(answer).map((item) => Object.keys(item)), [["b64_json"], ["b64_json"]])
        assert.strictEqual(
          answer.head?.headers["x-translation-warnings"],
          "parameters.negative_prompt; parameters.prompt_extend; parameters.watermark"
        )
        assert.deepInclude(answer.usage, { images: 2, outputTokens: 2 })
      })
    ))

  it.live("return base64 or a URL as the client requests, whatever the provider returns", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const picture = yield* stripes(8, 8, [[200, 0, 0]])
        const elsewhere = "https://pictures.example/a.png"
        const wants = (response_format: string) => ({ ...message, parameters: { response_format } })
        const json = { "content-type": "application/json" }
        const answer = (item: object) =>
          provider.behaveOnce({ kind: "raw", pieces: [JSON.stringify({ created: 1, data: [item] })], headers: json })
        answer({ url: elsewhere, revised_prompt: "a red boat" })
        assert.deepStrictEqual(
          dataOf(yield* ask(imageGenerations, wants("url"))),
          [
            { revised_prompt: "a red boat", url: elsewhere }
          ].map(({ revised_prompt, url }) => ({ url, revised_prompt }))
        )
        answer({ b64_json: picture.toString("base64") })
        assert.deepStrictEqual(dataOf(yield* ask(imageGenerations, wants("url"))), [
          { url: "http://files.test/picture.png" }
        ])
        provider.behave({ kind: "raw", pieces: [picture] })
        answer({ url: `${provider.root}/a.png` })
        assert.deepStrictEqual(dataOf(yield* ask(imageGenerations, wants("b64_json"))), [
          { b64_json: picture.toString("base64") }
        ])
        answer({})
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, message)), { reason: "malformed" })
        for (const url of hostile) {
          answer({ url })
          assert.deepInclude(yield* Effect.flip(ask(imageGenerations, wants("url"))), refusal, url)
        }
      })
    ))

  it.live("work by generateContent too", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const { bytes } = yield* ask(generateContent, { contents: [{ parts: [{ text: "a boat" }] }] })
        const { candidates } = JSON.parse(bytes.toString())
        assert.strictEqual(candidates[0].content.parts[0].inlineData.mimeType, "image/png")
        assert.deepStrictEqual(provider.requests[0]?.json, { model: "gpt-image", prompt: "a boat" })
      })
    ))

  it.live("need no explicit modality, and are rejected for an unsupported one", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const contents = [{ parts: [{ text: "a boat" }] }]
        const of = (responseModalities: ReadonlyArray<string>) =>
          ask(generateContent, { contents, generationConfig: { responseModalities } })
        const { candidates } = JSON.parse((yield* of([])).bytes.toString())
        assert.lengthOf(candidates[0].content.parts, 1)
        assert.deepInclude(yield* Effect.flip(of(["AUDIO"])), {
          _tag: "InvalidRequest",
          param: "generationConfig.responseModalities"
        })
        const inSnakeCase = { contents, generation_config: { response_modalities: ["AUDIO"] } }
        assert.deepInclude(yield* Effect.flip(ask(generateContent, inSnakeCase)), {
          _tag: "InvalidRequest",
          param: "generationConfig.responseModalities"
        })
        assert.lengthOf(provider.requests, 1)
      })
    ))

  it.live("by generateContent have as few pictures as by the other operations", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const data = (yield* stripes(8, 8, [[200, 0, 0]])).toString("base64")
        const contents = (pictures: number) => [{
          parts: [
            { text: "a boat" },
            ...Array.from({ length: pictures }, () => ({ inlineData: { mimeType: "image/png", data } }))
          ]
        }]
        yield* ask(generateContent, { contents: contents(16), generationConfig: { candidateCount: 10 } })
        assert.deepInclude(yield* Effect.flip(ask(generateContent, { contents: contents(17) })), {
          _tag: "InvalidRequest",
          param: "contents"
        })
        const many = { contents: contents(0), generationConfig: { candidateCount: 11 } }
        assert.deepInclude(yield* Effect.flip(ask(generateContent, many)), {
          _tag: "InvalidRequest",
          param: "generationConfig.candidateCount"
        })
        assert.lengthOf(provider.requests, 1)
      })
    ))

  it.live("fail with the provider's message if the provider rejects them", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "status", status: 400, error: { message: "no boats", param: "prompt", code: "c" } })
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, message)), {
          _tag: "ProviderRejected",
          message: "no boats",
          param: "prompt"
        })
        // with a status that differs from the error's own
        const error = { message: "no boats", type: "invalid_request_error", param: "prompt", code: "c" }
        const headers = { "content-type": "application/json" }
        provider.behaveOnce({ kind: "raw", pieces: [JSON.stringify({ error })], headers })
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, message)), {
          _tag: "ProviderRejected",
          message: "no boats",
          param: "prompt"
        })
      })
    ))
})

describe("edits as JSON", () => {
  for (const form of ["messages", "prompt"]) {
    it.live(`by ${form} are sent as a form`, () =>
      bench((provider, ask) =>
        Effect.gen(function*() {
          const picture = yield* stripes(8, 8, [[200, 0, 0]])
          const other = yield* stripes(8, 8, [[0, 0, 200]])
          const [image, base64] = [toDataUrl(picture), other.toString("base64")]
          const body = form === "messages"
            ? { input: messages({ image }, { image: base64 }, { text: "mix" }), parameters: { size: "64*64" } }
            : { image: [image, base64], prompt: "mix", size: "64x64", mask: image }
          const answer = yield* ask(imageEdits, { model: "alias", ...body })
          assert.lengthOf(dataOf(answer), 1)
          const [received] = provider.requests
          const sent = yield* Effect.promise(() =>
            new Response(Uint8Array.from(received!.body), {
              headers: { "content-type": received?.headers["content-type"] ?? "" }
            }).formData()
          )
          assert.deepStrictEqual([sent.get("model"), sent.get("prompt"), sent.get("size")], [
            "gpt-image",
            "mix",
            "64x64"
          ])
          const files = sent.getAll("image[]").filter((file) => file instanceof File)
          assert.deepStrictEqual(files.map(({ type }) => type), ["image/png", "image/png"])
          const bytes = yield* Effect.promise(() => Promise.all(files.map((file) => file.bytes())))
          assert.deepStrictEqual(bytes.map((bytes) => Buffer.from(bytes)), [picture, other])
          assert.strictEqual(sent.has("mask"), form === "prompt")
        })
      ))
  }

  it.live("send no fields that the client sets to null", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const image = toDataUrl(yield* stripes(8, 8, [[200, 0, 0]]))
        yield* ask(imageEdits, { model: "alias", prompt: "mix", image, quality: null, n: null, style: "ink" })
        const sent = provider.requests[0]?.body.toString("latin1") ?? ""
        assert.deepStrictEqual(Array.from(sent.matchAll(/name="(\w+)"/g), ([, name]) => name), [
          "style",
          "model",
          "prompt",
          "image"
        ])
      })
    ))

  it.live("and edits by a form with pictures as text are sent with files", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const picture = yield* stripes(8, 8, [[200, 0, 0]])
        const file = new File([Uint8Array.from(picture)], "a.png")
        for (
          const [image, mask] of [[toDataUrl(picture), undefined], [file, picture.toString("base64")]] as const
        ) {
          const form = new FormData()
          form.set("model", "alias")
          form.set("prompt", "mix")
          form.set("image", image)
          if (mask !== undefined) form.set("mask", mask)
          assert.lengthOf(dataOf(yield* ask(imageEdits, form)), 1)
          const sent = provider.requests.at(-1)?.body.toString("latin1") ?? ""
          const parts = sent.split(picture.toString("latin1")).length - 1
          assert.strictEqual(parts, mask === undefined ? 1 : 2)
        }
      })
    ))

  it.live("with an invalid picture are rejected before any call", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        for (const image of ["AAAA", "http://127.0.0.1:1/a.png", "http://169.254.169.254/"]) {
          const failure = yield* Effect.flip(ask(imageEdits, { model: "alias", prompt: "mix", image }))
          assert.deepInclude(failure, { _tag: "InvalidRequest", param: "image", code: "invalid_image" }, image)
        }
        assert.isEmpty(provider.requests)
      })
    ))
})

describe("requests of the OpenAI dialect", () => {
  it.live("are relayed byte for byte", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const request = { model: "alias", prompt: "a boat", size: "64x64", unheard_of: 1 }
        yield* ask(imageGenerations, request)
        assert.deepStrictEqual(provider.requests[0]?.json, { ...request, model: "gpt-image" })
      })
    ))

  it.live("have no URL on the provider's own host in their answers", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const picture = yield* stripes(8, 8, [[200, 0, 0]])
        const elsewhere = { url: "https://pictures.example/a.png" }
        const answer = { created: 1, data: [{ url: `${provider.root}/a.png`, own: 1 }, elsewhere], id: "x" }
        const form = new FormData()
        for (const [name, value] of [["model", "alias"], ["prompt", "mix"], ["response_format", "url"]] as const) {
          form.set(name, value)
        }
        form.set("image", new File([Uint8Array.from(picture)], "a.png"))
        const inBase64 = { own: 1, b64_json: picture.toString("base64") }
        const kept = { own: 1, url: "http://files.test/picture.png" }
        for (
          const [operation, body, item] of [
            [imageGenerations, { model: "alias", prompt: "a boat" }, inBase64],
            [imageGenerations, { model: "alias", prompt: "a boat", response_format: "url" }, kept],
            [imageEdits, form, kept]
          ] as const
        ) {
          provider.behave({ kind: "raw", pieces: [picture] })
          provider.behaveOnce({
            kind: "raw",
            pieces: [JSON.stringify(answer)],
            headers: { "content-type": "application/json" }
          })
          const { bytes, usage } = yield* ask(operation, body)
          assert.deepStrictEqual(JSON.parse(bytes.toString()), { ...answer, data: [item, elsewhere] })
          assert.deepInclude(usage, { images: 2 })
        }
      })
    ))

  it.live("fail if the answer has an unsafe URL", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const headers = { "content-type": "application/json" }
        const answers = (...data: ReadonlyArray<object>) =>
          provider.behaveOnce({ kind: "raw", pieces: [JSON.stringify({ created: 1, data })], headers })
        const generated = Effect.suspend(() => ask(imageGenerations, { model: "alias", prompt: "a boat" }))
        for (const url of hostile) {
          answers({ url: "https://pictures.example/a.png" }, { url, revised_prompt: "a boat" })
          assert.deepInclude(yield* Effect.flip(generated), refusal, url)
          // far enough behind that the answer has started
          answers({ b64_json: "A".repeat(3_000_000) }, { url })
          assert.deepInclude(yield* Effect.flip(generated), refusal, url)
        }
        const fine = [
          { url: "https://pictures.example/a.png" },
          { url: toDataUrl(yield* stripes(8, 8, [[200, 0, 0]])) },
          { b64_json: "AAAA", url: "", revised_prompt: "url: javascript:" },
          { b64_json: "AAAA", url: null }
        ]
        answers(...fine)
        assert.deepStrictEqual(dataOf(yield* generated) as unknown, fine)
      })
    ))

  it.live("fail if the URL of the answer has no picture", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const answer = { created: 1, data: [{ url: `${provider.root}/a.png` }] }
        provider.behave({ kind: "raw", pieces: ["<html>"], headers: { "content-type": "text/html" } })
        provider.behaveOnce({
          kind: "raw",
          pieces: [JSON.stringify(answer)],
          headers: { "content-type": "application/json" }
        })
        const error = yield* Effect.flip(ask(imageGenerations, { model: "alias", prompt: "a boat" }))
        assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" })
      })
    ))

  it.live("are answered unchanged, for any size of answer", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        for (const size of [10, 70_000, 3_000_000]) {
          const text = JSON.stringify({ created: 1, data: [{ b64_json: "A".repeat(size) }], usage: null })
          const pieces = Array.from(
            { length: Math.ceil(text.length / 40_000) },
            (_, at) => text.slice(at * 40_000, (at + 1) * 40_000)
          )
          provider.behaveOnce({ kind: "raw", pieces, headers: { "content-type": "application/json" } })
          const { bytes, head } = yield* ask(imageGenerations, { model: "alias", prompt: "a boat" })
          assert.strictEqual(bytes.toString(), text)
          assert.strictEqual(head?.status, 200)
        }
      })
    ))
})

describe("pictures that the client does not get", () => {
  const cases = [
    ["of a relayed answer", imageGenerations, { model: "alias", prompt: "a boat" }],
    ["of a translated answer", imageGenerations, message],
    ["of generated content", generateContent, { contents: [{ parts: [{ text: "a boat" }] }] }]
  ] as const

  it.live.each(cases)("%s are metered", ([, operation, body]) =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10 }
        const headers = { "content-type": "application/json" }
        const answers = (url: string) =>
          provider.behaveOnce({
            kind: "raw",
            pieces: [JSON.stringify({ created: 1, data: [{ url }, { url }], usage })],
            headers
          })
        provider.behave({ kind: "raw", pieces: ["<html>"], headers: { "content-type": "text/html" } })
        for (const url of [`${provider.root}/a.png`, hostile[0]]) {
          answers(url)
          const cut: Array<Usage> = []
          const failure = yield* Effect.flip(ask(operation, body, (usage) => cut.push(usage)))
          assert.deepInclude(failure, { _tag: "ProviderFailed", reason: "malformed" }, url)
          assert.lengthOf(cut, 1, url)
          assert.deepInclude(cut[0], { inputTokens: 7, outputTokens: 3, images: 2 }, url)
        }
      })
    ))
})
