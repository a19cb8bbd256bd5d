/** Speech turned into text through the whole gateway, with OpenAI's client and with the AI SDK. */
import { createOpenAI } from "@ai-sdk/openai"
import { assert, describe, it } from "@effect/vitest"
import { transcribe } from "ai"
import { openais } from "../fixture/ClientMajors.ts"
import { sound } from "../fixture/client/Requests.ts"
import { providerKey } from "../fixture/gateway/Gateway.ts"
import { receivedBy, sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  workers: 0,
  services: ["speech"],
  providers: (baseUrl) =>
    `  sdk: { protocol: ai-sdk, baseUrl: "${baseUrl}", apiKey: ${providerKey}, options: { package: "@ai-sdk/openai" } }`,
  models: `
  alias: { workload: speech, targets: [{ provider: free, model: whisper-1 }] }
  by-package: { workload: speech, targets: [{ provider: sdk, model: whisper-1 }] }`
})

const bytes = Buffer.from(sound.split(",")[1] ?? "", "base64")
const file = () => new File([bytes], "bees.wav", { type: "audio/wav" })
const text = "Bees dance in hives."

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = () => {
    shared().provider.say(text)
    return new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 }).audio
  }

  it.for(["alias", "by-package"])("gets every format by %s", async (model) => {
    const { transcriptions } = make()
    const json = await transcriptions.create({ model, file: file() })
    assert.deepInclude(json, { text, usage: { type: "duration", seconds: 1 } })
    const verbose = await transcriptions.create({
      model,
      file: file(),
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"]
    })
    assert.deepInclude(verbose, { text, duration: 1 })
    assert.deepStrictEqual(verbose.segments?.map(({ end, start, text }) => [start, end, text.trim()]), [
      [0, 1, "Bees dance"],
      [1, 2, "in hives."]
    ])
    assert.lengthOf(verbose.words ?? [], 2)
    const plain = await transcriptions.create({ model, file: file(), response_format: "text" })
    assert.strictEqual(plain, `${text}\n`)
    const srt = await transcriptions.create({ model, file: file(), response_format: "srt" })
    assert.match(srt, /^1\n00:00:00,000 --> 00:00:01,000\nBees dance/)
    const vtt = await transcriptions.create({ model, file: file(), response_format: "vtt" })
    assert.match(vtt, /^WEBVTT\n\n00:00:00\.000 --> 00:00:01\.000\nBees dance/)
  })

  it("gets a stream as it is recognised", async () => {
    const { transcriptions } = make()
    shared().provider.behaveOnce({ kind: "hold", after: 2 })
    const model = "gpt-4o-transcribe"
    const { received, result } = await receivedBy(
      shared(),
      () => transcriptions.create({ model, file: file(), stream: true })
    )
    const events = []
    for await (const event of await result) {
      events.push(event)
      if (events.length === 2) received.release()
    }
    const last = events.at(-1)
    assert.strictEqual(events.flatMap((event) => "delta" in event ? event.delta : []).join(""), text)
    assert.deepInclude(last, { type: "transcript.text.done", text })
    assert.deepInclude(last && "usage" in last ? last.usage : {}, {
      type: "tokens",
      input_tokens: 10,
      output_tokens: 4
    })
  })

  it("sends its form as it is, but for the model's name", async () => {
    const { transcriptions } = make()
    const { received, result } = await receivedBy(
      shared(),
      () =>
        transcriptions.create({
          model: "alias",
          file: file(),
          language: "en",
          chunking_strategy: { type: "server_vad" }
        })
    )
    await result
    const type = received.headers["content-type"] ?? ""
    const sent = await new Response(new Uint8Array(received.body), { headers: { "content-type": type } }).formData()
    assert.deepStrictEqual(
      [...sent].map(([name, value]) => [name, value instanceof File ? value.name : value]).toSorted(),
      [["chunking_strategy[type]", "server_vad"], ["file", "bees.wav"], ["language", "en"], ["model", "whisper-1"]]
    )
    const sentFile = sent.get("file")
    assert.deepStrictEqual(sentFile instanceof File ? Buffer.from(await sentFile.arrayBuffer()) : undefined, bytes)
  })

  it("gets a translation", async () => {
    assert.deepInclude(await make().translations.create({ model: "alias", file: file() }), { text })
    const verbose = await make().translations.create({ model: "alias", file: file(), response_format: "verbose_json" })
    assert.deepInclude<object>(verbose, { text, language: "english" })
  })

  it("gets an error that names the field", async () => {
    const wrongs = [
      // the provider of an alias judges its settings itself
      [{ model: "by-package", temperature: 2 }, "temperature", "invalid_value"],
      [{ model: "local-speech" }, "model", "operation_not_supported"],
      [{ file: "no sound!" as unknown as File }, "file", "invalid_audio"]
    ] as const
    for (const [fields, param, code] of wrongs) {
      const wrong = { model: "alias", file: file(), ...fields }
      const error = await make().transcriptions.create(wrong).catch((error: unknown) => error)
      assert.deepInclude(error, { status: 400, param, code })
    }
    const untranslated = await make().translations.create({ model: "by-package", file: file() }).catch((error) => error)
    assert.deepInclude(untranslated, { status: 400, param: "model", code: "operation_not_supported" })
  })
})

describe("AI SDK", () => {
  it.for(["alias", "by-package"])("gets text and timestamps by %s", async (model) => {
    shared().provider.say(text)
    const sdk = createOpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key })
    const transcript = await transcribe({
      model: sdk.transcription(model),
      audio: bytes,
      providerOptions: { openai: { responseFormat: "verbose_json", timestampGranularities: ["segment"] } },
      maxRetries: 0
    })
    assert.strictEqual(transcript.text, text)
    assert.strictEqual(transcript.durationInSeconds, 1)
    assert.deepStrictEqual(transcript.segments.map(({ endSecond, startSecond }) => [startSecond, endSecond]), [
      [0, 1],
      [1, 2]
    ])
  })
})

it("JSON with the sound as text means the same as a form", async () => {
  shared().provider.say(text)
  const send = (fields: object) =>
    fetch(`${shared().url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "alias", ...fields })
    })
  const { received, result } = await receivedBy(
    shared(),
    () => send({ file: sound, prompt: null, timestamp_granularities: ["word"], response_format: "verbose_json" })
  )
  const answer = await result
  assert.strictEqual(answer.status, 200)
  assert.property(await answer.json(), "words")
  const sent = received.body.toString("latin1")
  assert.include(sent, "filename=\"audio.wav\"")
  assert.notInclude(sent, "prompt")
  const missing = await send({})
  assert.strictEqual(missing.status, 400)
  assert.include(await missing.text(), "file: is required")
})
