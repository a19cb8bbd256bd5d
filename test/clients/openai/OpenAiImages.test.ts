/**
 * Pictures through the whole gateway: with OpenAI's client, with the AI SDK, and in messages from a
 * plain client, all given only base URL and key.
 */
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { generateImage } from "ai"
import { randomBytes } from "node:crypto"
import { toFile } from "openai"
import sharp from "sharp"
import { openais } from "../../fixture/ClientMajors.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  workers: 0,
  services: ["images"],
  models: `
  relayed-image: { workload: images, targets: [{ provider: paid, model: upstream-image }] }`
})

/** The time of an answer by its header, in whole seconds since the epoch. */
const timeOf = ({ headers }: Response): number => Date.parse(headers.get("date") ?? "") / 1_000

const model = "local-image"
const size = "128x128" as "1024x1024"

/** A PNG of a single colour. */
const sheet = (red: number, green: number, blue: number): Promise<Buffer> =>
  sharp({ create: { width: 120, height: 80, channels: 3, background: { r: red, g: green, b: blue } } }).png().toBuffer()

const fromBase64 = (text: string | undefined): Buffer => Buffer.from(text ?? "", "base64")

const meanOf = async (file: Uint8Array): Promise<ReadonlyArray<number>> =>
  (await sharp(file).stats()).channels.slice(0, 3).map(({ mean }) => Math.round(mean))

const post = (path: string, body: unknown): Promise<Response> =>
  fetch(`${shared().url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
    body: JSON.stringify(body)
  })

interface Answer {
  readonly created: number
  readonly data: ReadonlyArray<{ readonly url?: string; readonly b64_json?: string; readonly revised_prompt?: string }>
}

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })

  it("generates pictures in base64", async () => {
    const before = timeOf(await fetch(shared().url))
    const { data: answer, response } = await make().images
      .generate({ model, prompt: "a castle at sunset", size, n: 2 }).withResponse()
    assert.isAtLeast(answer.created, before)
    assert.isAtMost(answer.created, timeOf(response) + 1)
    assert.lengthOf(answer.data ?? [], 2)
    for (const { b64_json, revised_prompt, url } of answer.data ?? []) {
      assert.deepInclude(await sharp(fromBase64(b64_json)).metadata(), { format: "png", width: 128, height: 128 })
      assert.include(revised_prompt, "a castle")
      assert.isUndefined(url)
    }
    assert.notStrictEqual(answer.data?.[0]?.b64_json, answer.data?.[1]?.b64_json)
  })

  it("generates pictures as URLs", async () => {
    const request = { model, prompt: "a lighthouse", size, n: 2 } as const
    const inBase64 = await make().images.generate(request)
    const answer = await make().images.generate({ ...request, response_format: "url" })
    for (const [at, { b64_json, url }] of (answer.data ?? []).entries()) {
      assert.isUndefined(b64_json)
      const picture = await fetch(url ?? "")
      assert.strictEqual(picture.status, 200)
      assert.strictEqual(picture.headers.get("content-type"), "image/png")
      const bytes = Buffer.from(await picture.arrayBuffer())
      assert.deepStrictEqual(bytes, fromBase64(inBase64.data?.[at]?.b64_json))
    }
  })

  it("edits a picture", async () => {
    const image = await toFile(await sheet(200, 40, 30), "red.png", { type: "image/png" })
    const answer = await make().images.edit({ model, image, prompt: "Invert the colours" })
    const bytes = fromBase64(answer.data?.[0]?.b64_json)
    assert.deepStrictEqual(await meanOf(bytes), [55, 215, 225])
    assert.include(answer.data?.[0]?.revised_prompt, "nverted the colours")
  })

  it("edits two pictures, with a mask and all options", async () => {
    const files = await Promise.all([sheet(255, 0, 0), sheet(0, 0, 255)])
    const image = await Promise.all(files.map((file, at) => toFile(file, `${at}.png`, { type: "image/png" })))
    const answer = await make().images.edit({ model, image, prompt: "Put them side by side" })
    const bytes = fromBase64(answer.data?.[0]?.b64_json)
    assert.deepInclude(await sharp(bytes).metadata(), { width: 240, height: 80 })
    assert.deepStrictEqual(await meanOf(bytes), [128, 0, 128])

    const hole = await sharp({
      create: { width: 120, height: 80, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } }
    }).png()
      .toBuffer()
    const [first] = image
    const mask = await toFile(hole, "mask.png", { type: "image/png" })
    const more = { mask, n: 2, size, response_format: "url" } as const
    const masked = await make().images.edit({ model, image: first!, prompt: "Make it grayscale", ...more })
    assert.lengthOf(masked.data ?? [], 2)
    const picture = await fetch(masked.data?.[0]?.url ?? "")
    const [red, green, blue] = await meanOf(Buffer.from(await picture.arrayBuffer()))
    assert.isTrue(red === green && green === blue)
  })

  it("gets the name of a wrong field", async () => {
    const wrong = { model, prompt: "a", size: "10x10" as "1024x1024" }
    const error = await make().images.generate(wrong).catch((error: unknown) => error)
    assert.instanceOf(error, OpenAI.BadRequestError)
    assert.strictEqual(error.param, "size")
    const text = await toFile(Buffer.from("no picture"), "a.png", { type: "image/png" })
    const other = await make().images.edit({ model, image: text, prompt: "blur" }).catch((error: unknown) => error)
    assert.instanceOf(other, OpenAI.BadRequestError)
    assert.strictEqual(other.param, "image")
    const streamed = await make().images.generate({ model, prompt: "a", stream: true }).catch((error: unknown) => error)
    assert.instanceOf(streamed, OpenAI.BadRequestError)
    assert.strictEqual(streamed.param, "stream")
    const unknown = await make().images.generate({ model: "unheard-of", prompt: "a" }).catch((error: unknown) => error)
    assert.instanceOf(unknown, OpenAI.NotFoundError)
  })
})

describe("the AI SDK", () => {
  const models = {
    "@ai-sdk/openai": () => createOpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key }).image(model),
    "@ai-sdk/openai-compatible": () =>
      createOpenAICompatible({ name: "gateway", baseURL: `${shared().url}/v1`, apiKey: shared().key }).imageModel(model)
  }

  it.each(Object.entries(models))("generates with %s", async (_, make) => {
    const { images } = await generateImage({
      model: make(),
      prompt: "flowers in a meadow",
      n: 2,
      size: "128x96",
      maxRetries: 0
    })
    assert.lengthOf(images, 2)
    for (const { mediaType, uint8Array } of images) {
      assert.strictEqual(mediaType, "image/png")
      assert.deepInclude(await sharp(uint8Array).metadata(), { width: 128, height: 96 })
    }
  })

  it.each(Object.entries(models))("edits with %s", async (_, make) => {
    const images = await Promise.all([sheet(200, 40, 30), sheet(200, 40, 30)])
    const prompt = { text: "Invert the colours", images }
    const { image } = await generateImage({ model: make(), prompt, maxRetries: 0 })
    assert.deepStrictEqual(await meanOf(image.uint8Array), [55, 215, 225])
    assert.deepInclude(await sharp(image.uint8Array).metadata(), { width: 240, height: 80 })
  })
})

describe("messages", () => {
  it("generate a picture of the requested size, as the parameters say", async () => {
    const body = (parameters: object) => ({
      model,
      input: { messages: [{ role: "user", content: [{ text: "a boat on the sea under clouds at noon" }] }] },
      parameters: { negative_prompt: "", prompt_extend: false, watermark: false, size: "160*96", ...parameters }
    })
    const painted = async (parameters: object = {}) => {
      const response = await post("/v1/images/generations", body(parameters))
      assert.strictEqual(response.status, 200)
      const { data } = (await response.json()) as Answer
      const warnings = response.headers.get("x-translation-warnings")
      return { file: fromBase64(data[0]?.b64_json), said: data[0]?.revised_prompt ?? "", warnings }
    }
    const plain = await painted()
    assert.deepInclude(await sharp(plain.file).metadata(), { width: 160, height: 96 })
    assert.deepStrictEqual(await painted(), plain)
    const without = await painted({ negative_prompt: "boat, clouds" })
    assert.include(plain.said, "a boat on the sea")
    assert.notInclude(without.said, "boat")
    assert.notDeepEqual(without.file, plain.file)
    const marked = await painted({ watermark: true })
    assert.notDeepEqual(marked.file, plain.file)
    assert.isNull(plain.warnings)
    // the painter does not extend prompts, and says so
    assert.strictEqual((await painted({ prompt_extend: true })).warnings, "parameters.prompt_extend")
  })

  it("edit pictures", async () => {
    const image = `data:image/png;base64,${(await sheet(200, 40, 30)).toString("base64")}`
    const response = await post("/v1/images/edits", {
      model,
      input: {
        messages: [{ role: "user", content: [{ image }, { image }, { text: "Stack them and invert the colours" }] }]
      },
      parameters: { n: 2, size: "96*64", watermark: false, prompt_extend: false, negative_prompt: "" }
    })
    assert.strictEqual(response.status, 200)
    const { data } = (await response.json()) as Answer
    assert.lengthOf(data, 2)
    assert.deepStrictEqual(await meanOf(fromBase64(data[0]?.b64_json)), [55, 215, 225])
    assert.deepInclude(await sharp(fromBase64(data[0]?.b64_json)).metadata(), { width: 96, height: 64 })
  })

  it("with a picture on the gateway's own machine are rejected", async () => {
    const content = [{ image: `${shared().url}/openapi.json` }, { text: "blur" }]
    const response = await post("/v1/images/edits", { model, input: { messages: [{ role: "user", content }] } })
    assert.strictEqual(response.status, 400)
    const { error } = (await response.json()) as {
      readonly error: { readonly param: string; readonly message: string }
    }
    assert.strictEqual(error.param, "input.messages[0].content[0].image")
    assert.notInclude(error.message, "127.0.0.1")
  })

  it("of several megabytes are edited", async () => {
    const noise = randomBytes(1_400 * 1_000 * 3)
    const file = await sharp(noise, { raw: { width: 1_400, height: 1_000, channels: 3 } }).png().toBuffer()
    assert.isAbove(file.length, 3_000_000)
    const content = [{ image: file.toString("base64") }, { text: "mirror it" }]
    const response = await post("/v1/images/edits", { model, input: { messages: [{ role: "user", content }] } })
    const { data } = (await response.json()) as Answer
    const [there, back] = await Promise.all([
      sharp(file).flop().removeAlpha().raw().toBuffer(),
      sharp(fromBase64(data[0]?.b64_json)).removeAlpha().raw().toBuffer()
    ])
    assert.isTrue(there.equals(back))
  })
})

describe("a picture's URL", () => {
  const addressOf = async () => {
    const response = await post("/v1/images/generations", { model, prompt: "a", size: "64x64", response_format: "url" })
    const { data } = (await response.json()) as Answer
    return new URL(data[0]?.url ?? "")
  }
  const refusal = async (url: URL) => {
    const response = await fetch(url)
    const { error } = (await response.json()) as { readonly error: { readonly type: string; readonly code: string } }
    return { status: response.status, ...error }
  }

  it("needs no key, and reveals nothing if it was not issued", async () => {
    const url = await addressOf()
    const served = await fetch(url)
    await served.arrayBuffer()
    assert.strictEqual(served.status, 200)
    assert.strictEqual(served.headers.get("x-content-type-options"), "nosniff")
    assert.match(served.headers.get("x-request-id") ?? "", /^req_/)
    assert.isAtMost(Number(url.searchParams.get("expires")) - timeOf(served), 3_602)

    // where earlier versions have put it
    const former = new URL(url)
    former.pathname = url.pathname.replace("/v1/results/", "/v1/files/")
    assert.notStrictEqual(former.href, url.href)
    const servedThere = await fetch(former)
    await servedThere.arrayBuffer()
    assert.strictEqual(servedThere.status, 200)

    const forged = { status: 403, type: "permission_error", code: "invalid_signature" }
    const changes: ReadonlyArray<(url: URL) => void> = [
      ({ searchParams }) => searchParams.set("signature", "x".repeat(43)),
      ({ searchParams }) => searchParams.delete("signature"),
      ({ searchParams }) => searchParams.set("expires", String(Number(searchParams.get("expires")) + 1)),
      ({ searchParams }) => searchParams.delete("expires"),
      (url) => {
        url.pathname = url.pathname.replace(/.(?=\.png$)/, (digit) => digit === "0" ? "1" : "0")
      },
      (url) => {
        url.pathname = "/v1/results/..%2f..%2fetc%2fpasswd"
      }
    ]
    for (const change of changes) {
      const other = new URL(url)
      change(other)
      assert.deepInclude(await refusal(other), forged, other.href)
    }
  })
})

describe("a form", () => {
  it("with a missing or wrong boundary is rejected with that reason", async () => {
    const form = new FormData()
    form.append("model", model)
    form.append("prompt", "blur")
    const body = await new Response(form).arrayBuffer()
    for (const type of ["multipart/form-data", "multipart/form-data; boundary=other"]) {
      const headers = { "authorization": `Bearer ${shared().key}`, "content-type": type }
      const response = await fetch(`${shared().url}/v1/images/edits`, { method: "POST", headers, body })
      assert.strictEqual(response.status, 400)
      const { error } = (await response.json()) as { readonly error: object }
      assert.deepInclude(error, {
        message: "The request body is not a valid form. Check the boundary in the Content-Type header.",
        code: "invalid_form"
      })
    }
  })
})

describe("an OpenAI-compatible provider", () => {
  it("receives the form of an edit unchanged, except for its own name of the model", async () => {
    const file = await sheet(1, 2, 3)
    const form = new FormData()
    form.append("prompt", "model")
    form.append("model", "relayed-image")
    form.append("image[]", new File([new Uint8Array(file)], "model.png", { type: "image/png" }))
    form.append("unheard_of", "1")
    const answered = {
      created: 1,
      data: [{ b64_json: "AAAA" }],
      usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 }
    }
    const gateway = shared()
    gateway.provider.behaveOnce({
      kind: "raw",
      pieces: [JSON.stringify(answered)],
      headers: { "content-type": "application/json" },
      status: 200
    })
    const { received, result } = await receivedBy(gateway, () =>
      fetch(`${gateway.url}/v1/images/edits`, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.key}` },
        body: form
      }))
    const response = await result
    assert.strictEqual(response.status, 200)
    assert.deepStrictEqual(await response.json(), answered)
    assert.strictEqual(received.path, "/v1/images/edits")
    const type = received.headers["content-type"] ?? ""
    const seen = await new Response(new Uint8Array(received.body), { headers: { "content-type": type } }).formData()
    assert.deepStrictEqual(
      [...seen.entries()].map(([name, value]) => [name, value instanceof File ? value.name : value]),
      [["prompt", "model"], ["model", "upstream-image"], ["image[]", "model.png"], ["unheard_of", "1"]]
    )
    const image = seen.get("image[]") as File
    assert.deepStrictEqual(Buffer.from(await image.arrayBuffer()), file)
  })

  it("receives a generation unchanged, except for its own name of the model", async () => {
    const gateway = shared()
    gateway.provider.behaveOnce({
      kind: "raw",
      pieces: ["{\"created\":1,\"data\":[]}"],
      headers: { "content-type": "application/json" },
      status: 200
    })
    const sent = { model: "relayed-image", prompt: "a", quality: "high", n: 1 }
    const { received, result } = await receivedBy(gateway, () => post("/v1/images/generations", sent))
    assert.strictEqual(await (await result).text(), "{\"created\":1,\"data\":[]}")
    assert.deepStrictEqual(received.json, { ...sent, model: "upstream-image" })
  })
})
