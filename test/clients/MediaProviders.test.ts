/** Media providers of other dialects than the clients', through the whole gateway and with the official clients. */
import { createOpenAI } from "@ai-sdk/openai"
import { assert, describe, it } from "@effect/vitest"
import { generateImage } from "ai"
import { CohereClient, CohereClientV2 } from "cohere-ai"
import OpenAI from "openai"
import { pictureKind } from "../../shared/provider/call/PictureKind.ts"
import { openais } from "../fixture/ClientMajors.ts"
import { providerKey } from "../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const target = (provider: string, model: string) => `[{ provider: ${provider}, model: ${model} }]`

const shared = sharedGateway({
  workers: 0,
  services: ["embeddings", "images", "rerank", "speech"],
  providers: (baseUrl) => {
    const { origin } = new URL(baseUrl)
    const key = `apiKey: ${providerKey}`
    return [
      `  aliyun: { protocol: dashscope, baseUrl: "${origin}", ${key} }`,
      `  cohere: { protocol: cohere, baseUrl: "${origin}", ${key} }`,
      `  sdk: { protocol: ai-sdk, baseUrl: "${baseUrl}", ${key}, options: { package: "@ai-sdk/openai" } }`
    ].join("\n")
  },
  models: [
    `  qwen-image: { workload: images, targets: ${target("aliyun", "qwen-image-plus")} }`,
    `  sdk-image: { workload: images, targets: ${target("sdk", "gpt-image-1")} }`,
    `  cohere-embedding: { workload: embeddings, targets: ${target("cohere", "embed-v4.0")} }`,
    `  cohere-rerank: { workload: rerank, targets: ${target("cohere", "rerank-v3.5")} }`,
    `  sdk-speech: { workload: speech, targets: ${target("sdk", "tts-1")} }`
  ].join("\n")
})

const openai = (Client = OpenAI) => new Client({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })

const isPng = (base64: string | undefined) => pictureKind(Buffer.from(base64 ?? "", "base64")) === "png"

describe("pictures", () => {
  for (const model of ["qwen-image", "sdk-image"]) {
    it(`of ${model} reach OpenAI's client and the AI SDK`, async () => {
      const { data = [] } = await openai().images.generate({ model, prompt: "a boat", n: 2, size: "256x256" })
      assert.lengthOf(data, 2)
      for (const { b64_json } of data) assert.isTrue(isPng(b64_json))
      const sdk = createOpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key })
      const { image } = await generateImage({ model: sdk.image(model), prompt: "a boat", size: "256x256" })
      assert.isTrue(isPng(image.base64))
    })

    it(`of ${model} are edited, uploaded as files`, async () => {
      const { data = [] } = await openai().images.generate({ model, prompt: "a boat" })
      const image = new File([Buffer.from(data[0]?.b64_json ?? "", "base64")], "boat.png", { type: "image/png" })
      const edited = await openai().images.edit({ model, prompt: "make it blue", image: [image, image] })
      assert.isTrue(isPng(edited.data?.[0]?.b64_json))
    })

    it(`of ${model} are requested in messages, and returned as URLs`, async () => {
      const answer = await fetch(`${shared().url}/v1/images/generations`, {
        method: "POST",
        headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model,
          input: { messages: [{ role: "user", content: [{ text: "a boat" }] }] },
          parameters: { size: "256*256", response_format: "url", prompt_extend: false, watermark: false }
        })
      })
      assert.strictEqual(answer.status, 200)
      const { data } = await answer.json() as { readonly data: ReadonlyArray<{ readonly url: string }> }
      // the provider has a private address, so the gateway stores its picture
      assert.isTrue(data[0]?.url.startsWith(`${shared().url}/v1/results/`), data[0]?.url)
      const file = await fetch(data[0]?.url ?? "")
      assert.strictEqual(pictureKind(new Uint8Array(await file.arrayBuffer())), "png")
    })
  }

  it("rejected by a provider keep its status and message", async () => {
    for (const model of ["qwen-image", "sdk-image"]) {
      shared().provider.behaveOnce({ kind: "status", status: 400, error: { message: "no boats today" } })
      const error = await openai().images.generate({ model, prompt: "a boat" }).catch((error: unknown) => error)
      assert.instanceOf(error, OpenAI.BadRequestError)
      assert.include((error as Error).message, "no boats today")
    }
  })
})

describe("embeddings by Cohere", () => {
  it("reach OpenAI's clients, in base64 and as numbers", async () => {
    const model = "cohere-embedding"
    const input = ["one", "two"]
    const numbers = await openai().embeddings.create({ model, input, encoding_format: "float", dimensions: 32 })
    assert.deepStrictEqual(numbers.data.map(({ embedding }) => embedding.length), [32, 32])
    assert.isAbove(numbers.usage.total_tokens, 0)
    for (const Client of Object.values(openais)) {
      const { data, model: named } = await openai(Client).embeddings.create({ model, input, dimensions: 32 })
      assert.deepStrictEqual(data.map(({ embedding }) => embedding), numbers.data.map(({ embedding }) => embedding))
      assert.strictEqual(named, model)
    }
  })
})

describe("reranking by Cohere", () => {
  it("reaches both versions of Cohere's client", async () => {
    const request = { model: "cohere-rerank", query: "bees", documents: ["a lighthouse", "bees in a hive"] }
    for (const Client of [CohereClient, CohereClientV2]) {
      const { id, meta, results } = await new Client({ environment: shared().url, token: shared().key }).rerank(request)
      assert.deepStrictEqual(results.map(({ index }) => index), [1, 0])
      assert.match(id ?? "", /^rerank-/)
      assert.strictEqual(meta?.billedUnits?.searchUnits, 1)
    }
  })
})

describe("speech by a package of the AI SDK", () => {
  it("reaches OpenAI's client", async () => {
    const answer = await openai().audio.speech.create({ model: "sdk-speech", input: "Hello", voice: "nova" })
    assert.strictEqual(answer.headers.get("content-type"), "audio/mpeg")
    assert.isAbove((await answer.arrayBuffer()).byteLength, 1_000)
  })
})
