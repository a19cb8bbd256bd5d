/** The Gemini format through the whole gateway, with Google's client. */
import { assert, describe, it } from "@effect/vitest"
import { ApiError, FunctionCallingConfigMode } from "@google/genai"
import sharp from "sharp"
import { googleGenAis } from "../fixture/ClientMajors.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  services: ["images"],
  providers: () => "  broken: { protocol: local, options: { fault: { kind: cut, afterTokens: 3 } } }",
  models: "  org/local-chat: { workload: chat, targets: [{ provider: local }] }\n" +
    "  broken-chat: { workload: chat, targets: [{ provider: broken }] }\n" +
    "  known-chat: { workload: chat, targets: [{ provider: local, model: gemini-2.5-pro }] }"
})

const passage = "The lighthouse was built in 1871. Its keeper kept bees. When was the lighthouse built?"

describe.each(Object.entries(googleGenAis))("google genai %s", (_, GoogleGenAi) => {
  const make = (apiKey = shared().key) =>
    new GoogleGenAi({ apiKey, vertexai: false, httpOptions: { baseUrl: shared().url } }).models

  it("generates content", async () => {
    const answer = await make().generateContent({ model: "local-chat", contents: passage })
    assert.include(answer.text ?? "", "1871")
    assert.strictEqual(answer.candidates?.[0]?.finishReason, "STOP")
    const { candidatesTokenCount = 0, promptTokenCount = 0, totalTokenCount } = answer.usageMetadata ?? {}
    assert.strictEqual(totalTokenCount, promptTokenCount + candidatesTokenCount)
    assert.isAbove(promptTokenCount, 10)
  })

  it("finds a model with a slash in its name", async () => {
    const answer = await make().generateContent({ model: "org/local-chat", contents: passage })
    assert.include(answer.text ?? "", "1871")
  })

  it("streams the same text in pieces, with a finish reason at the end", async () => {
    let text = ""
    let pieces = 0
    let finishReason: string | undefined
    for await (const chunk of await make().generateContentStream({ model: "local-chat", contents: passage })) {
      text += chunk.text ?? ""
      pieces++
      finishReason = chunk.candidates?.[0]?.finishReason ?? finishReason
    }
    const whole = await make().generateContent({ model: "local-chat", contents: passage })
    assert.strictEqual(text, whole.text)
    assert.isAbove(pieces, 3)
    assert.strictEqual(finishReason, "STOP")
  })

  it("obeys stop sequences, the token limit and a schema", async () => {
    const limited = await make().generateContent({
      model: "local-chat",
      contents: passage,
      config: { maxOutputTokens: 2 }
    })
    assert.strictEqual(limited.candidates?.[0]?.finishReason, "MAX_TOKENS")
    const stopped = await make().generateContent({
      model: "local-chat",
      contents: passage,
      config: { stopSequences: ["1871"] }
    })
    assert.notInclude(stopped.text ?? "", "1871")
    const structured = await make().generateContent({
      model: "local-chat",
      contents: passage,
      config: {
        responseMimeType: "application/json",
        responseJsonSchema: { type: "object", properties: { year: { type: "integer" } }, required: ["year"] }
      }
    })
    assert.isNumber((JSON.parse(structured.text ?? "") as { readonly year: unknown }).year)
  })

  it("calls a function", async () => {
    const answer = await make().generateContent({
      model: "local-chat",
      contents: "What is the weather in Oslo?",
      config: {
        tools: [{
          functionDeclarations: [{
            name: "get_weather",
            parametersJsonSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
          }]
        }],
        toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } }
      }
    })
    const [call] = answer.functionCalls ?? []
    assert.strictEqual(call?.name, "get_weather")
    assert.isString(call?.args?.["city"])
  })

  it("paints a picture of the requested size and shape, with a description", async () => {
    const config = { responseModalities: ["TEXT", "IMAGE"], imageConfig: { aspectRatio: "16:9", imageSize: "512" } }
    const model = "local-image"
    const answer = await make().generateContent({ model, contents: "A lighthouse by the sea", config })
    const parts = answer.candidates?.[0]?.content?.parts ?? []
    assert.isString(parts.find((part) => part.text !== undefined)?.text)
    const { data = "", mimeType } = parts.find((part) => part.inlineData !== undefined)?.inlineData ?? {}
    assert.strictEqual(mimeType, "image/png")
    const { format, height, width } = await sharp(Buffer.from(data, "base64")).metadata()
    assert.deepStrictEqual([format, width, height], ["png", 512, 288])
    const only = await make().generateContent({
      model,
      contents: "A lighthouse by the sea",
      config: { ...config, responseModalities: ["IMAGE"] }
    })
    assert.deepStrictEqual(only.candidates?.[0]?.content?.parts?.map((part) => Object.keys(part)), [["inlineData"]])
  })

  it("edits a given picture", async () => {
    const red = await sharp({ create: { width: 64, height: 48, channels: 3, background: "red" } }).png().toBuffer()
    const stream = await make().generateContentStream({
      model: "local-image",
      contents: [{
        role: "user",
        parts: [{ text: "invert" }, { inlineData: { mimeType: "image/png", data: red.toString("base64") } }]
      }]
    })
    let data = ""
    for await (const chunk of stream) data += chunk.data ?? ""
    const { channels } = await sharp(Buffer.from(data, "base64")).stats()
    assert.deepStrictEqual(channels.slice(0, 3).map(({ mean }) => Math.round(mean)), [0, 255, 255])
  })

  it("fails if a stream breaks off", async () => {
    const read = async () => {
      let text = ""
      for await (const chunk of await make().generateContentStream({ model: "broken-chat", contents: passage })) {
        text += chunk.text ?? ""
      }
      return text
    }
    const error = await read().then(() => undefined, (error: unknown) => error)
    assert.strictEqual((error as Error | undefined)?.name, ApiError.name)
    assert.strictEqual((error as ApiError).status, 502)
  })

  it("counts the tokens that content is billed", async () => {
    const { totalTokens } = await make().countTokens({ model: "org/local-chat", contents: passage })
    const { usageMetadata } = await make().generateContent({ model: "org/local-chat", contents: passage })
    assert.strictEqual(totalTokens, usageMetadata?.promptTokenCount)
  })

  it("lists the catalogue's models, in pages of the size that it asks for", async () => {
    const names = async (pageSize: number) => {
      const names: Array<string> = []
      for await (const { name = "" } of await make().list({ config: { pageSize } })) names.push(name)
      return names
    }
    const all = await names(1_000)
    assert.includeMembers(all, ["models/local-chat", "models/org/local-chat"])
    assert.deepStrictEqual(await names(2), all)
    const error = await make().list({ config: { pageSize: 0 } }).then(() => undefined, (error: unknown) => error)
    assert.strictEqual((error as ApiError).status, 400)
  })

  it("gets a model with what is known about it", async () => {
    assert.deepInclude(await make().get({ model: "known-chat" }), {
      name: "models/known-chat",
      displayName: "known-chat",
      inputTokenLimit: 1_048_576,
      outputTokenLimit: 65_536,
      supportedActions: ["countTokens", "generateContent", "streamGenerateContent"],
      thinking: true
    })
    assert.strictEqual((await make().get({ model: "org/local-chat" })).name, "models/org/local-chat")
  })

  it("gives errors their status and message", async () => {
    const status = async (run: Promise<unknown>) => {
      const error = await run.then(() => undefined, (error: unknown) => error)
      assert.strictEqual((error as Error).name, ApiError.name)
      return (error as ApiError).status
    }
    const request = { model: "local-chat", contents: passage }
    assert.strictEqual(await status(make().generateContent({ ...request, config: { maxOutputTokens: 0 } })), 400)
    assert.strictEqual(await status(make("sk-gw-nobody").generateContent(request)), 401)
    assert.strictEqual(await status(make().generateContent({ ...request, model: "none" })), 404)
  })
})
