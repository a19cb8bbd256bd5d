/** Speech through the whole gateway, with OpenAI's client and with the AI SDK. */
import { createOpenAI } from "@ai-sdk/openai"
import { assert, describe, it } from "@effect/vitest"
import { generateSpeech } from "ai"
import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import OpenAi7 from "openai"
import { afterAll } from "vitest"
import { audioFormats, voices } from "../../../shared/contract/operations/audio/Speech.ts"
import { openais } from "../../fixture/ClientMajors.ts"
import { readAudioFile } from "../../fixture/media/AudioFile.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { pitch, samplesOf } from "../../fixture/media/Sound.ts"

/** A speech provider: it records its requests, and sends the second half of its answer when released. */
const upstream = createServer()
upstream.listen(0, "127.0.0.1")
await once(upstream, "listening")
afterAll(() => {
  upstream.closeAllConnections()
  upstream.close()
})

const shared = sharedGateway({
  workers: 0,
  services: ["speech"],
  environment: { THEIR_KEY: "their-key" },
  providers: () => `
  elsewhere: { protocol: openai, baseUrl: "http://127.0.0.1:${
    (upstream.address() as AddressInfo).port
  }/v1", apiKey: "\${THEIR_KEY}" }
  nobody: { protocol: local, options: { language: xx } }
  unwell: { protocol: local, options: { language: "--help" } }`,
  models: `
  tts-elsewhere: { workload: speech, targets: [{ provider: elsewhere, model: tts-1 }] }
  tts-nobody: { workload: speech, targets: [{ provider: nobody }] }
  tts-spare: { workload: speech, targets: [{ provider: nobody }, { provider: local, priority: 1 }] }
  tts-unwell: { workload: speech, targets: [{ provider: unwell }] }`
})

const model = "local-speech"
const input = "The quick brown fox jumps over the lazy dog."
const story = "It was the best of times, it was the worst of times. It was the age of wisdom! Was it foolishness? "
  .repeat(50).slice(0, 4_096)

const expected = {
  mp3: { type: "audio/mpeg", container: "MP3", codec: "mp3" },
  opus: { type: "audio/ogg", container: "Ogg", codec: "opus" },
  aac: { type: "audio/aac", container: "ADTS", codec: "aac" },
  flac: { type: "audio/flac", container: "FLAC", codec: "flac" },
  wav: { type: "audio/wav", container: "WAVE", codec: "pcm-s16" },
  pcm: { type: "audio/pcm" }
} as const

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 }).audio.speech

  const pcm = async (more: object = {}) => {
    const answer = await make().create({ model, input, voice: "alloy", response_format: "pcm", ...more })
    return samplesOf(await answer.bytes())
  }

  for (const format of audioFormats) {
    it(`gets ${format}`, async () => {
      const answer = await make().create({ model, input, voice: "nova", response_format: format })
      const { type, ...file } = expected[format]
      assert.strictEqual(answer.headers.get("content-type"), type)
      assert.match(answer.headers.get("x-request-id") ?? "", /./)
      const bytes = await answer.bytes()
      if (format === "pcm") return assert.closeTo(bytes.length / 48_000, 2.5, 0.5)
      const read = await readAudioFile(bytes)
      assert.deepInclude(read, file)
      assert.closeTo(read.duration, 2.5, 0.5)
    })
  }

  it("gets mp3 by default", async () => {
    const answer = await make().create({ model, input, voice: "echo" })
    assert.strictEqual(answer.headers.get("content-type"), "audio/mpeg")
    assert.strictEqual((await readAudioFile(await answer.bytes())).codec, "mp3")
  })

  it("hears six voices", async () => {
    const pitches = await Promise.all(voices.map(async (voice) => pitch(await pcm({ voice }), 24_000)))
    const [lowest = 0, ...higher] = pitches.toSorted((a, b) => a - b)
    assert.isAbove(lowest, 60)
    higher.reduce((below, hertz) => {
      assert.isAbove(hertz / below, 1.05)
      return hertz
    }, lowest)
  })

  it("hears faster and slower speech", async () => {
    const [usual, slow, fast] = await Promise.all([pcm(), pcm({ speed: 0.5 }), pcm({ speed: 2 })])
    assert.closeTo(slow.length / usual.length, 2, 0.5)
    assert.closeTo(fast.length / usual.length, 0.5, 0.15)
    const limited = await make().create({ model, input, voice: "alloy", response_format: "pcm", speed: 4 })
    assert.strictEqual(limited.headers.get("x-translation-warnings"), "speed is limited to 0.46 to 2.57")
    await limited.arrayBuffer()
  })

  it("hears the beginning while the rest is synthesised", async () => {
    const answer = await make().create({ model, input: story, voice: "onyx", response_format: "pcm", speed: 0.25 })
    const reader = answer.body?.getReader()
    const { value } = await reader?.read() ?? {}
    assert.isAbove(value?.length ?? 0, 0)
    // minutes of sound exceed what the gateway buffers: most of it cannot exist yet
    await reader?.cancel()
  })

  it("hears 4,096 characters to the end", async () => {
    assert.closeTo((await pcm({ input: story, voice: "onyx", speed: 2 })).length / 24_000, 115, 25)
  })
})

/** The formats that identify themselves. */
const files = ["mp3", "opus", "aac", "flac", "wav"] as const

it("ten concurrent clients each get what they asked for", async () => {
  const client = new OpenAi7({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
  const say = async (number: number) => {
    const voice = voices[number % voices.length] ?? "alloy"
    const response_format = files[number % files.length] ?? "mp3"
    const text = "one ".repeat(2 + number)
    const answer = await client.audio.speech.create({ model, input: text, voice, response_format })
    assert.strictEqual(answer.headers.get("content-type"), expected[response_format].type)
    return { bytes: await answer.bytes(), codec: expected[response_format].codec }
  }
  const durationOf = async ({ bytes, codec: named }: Awaited<ReturnType<typeof say>>) => {
    const { codec, duration } = await readAudioFile(bytes)
    assert.strictEqual(codec, named)
    return duration
  }
  const numbers = Array.from({ length: 10 }, (_, number) => number)
  // read only when all have come: it blocks this process, in which other clients may still have to send their requests
  const durations = await Promise.all((await Promise.all(numbers.map(say))).map(durationOf))
  // each text is longer than the one before, so that an answer to another text has another length
  for (const number of [0, 3, 6, 9]) assert.closeTo(await durationOf(await say(number)), durations[number] ?? 0, 0.1)
})

describe("a wrong request", () => {
  const wrongs: ReadonlyArray<readonly [field: string, value: unknown]> = [
    ["model", ""],
    ["input", ""],
    ["input", 5],
    ["input", "x".repeat(4_097)],
    ["input", "🙂".repeat(4_097)],
    ["voice", "coral"],
    ["voice", { id: "voice_1" }],
    ["voice", undefined],
    ["response_format", "ogg"],
    ["speed", 0.2],
    ["speed", 4.5],
    ["speed", "fast"],
    ["stream_format", "sse"]
  ]
  for (const [field, value] of wrongs) {
    it(`is rejected for ${field}: ${(JSON.stringify(value) ?? "left out").slice(0, 30)}`, async () => {
      const client = new OpenAi7({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
      const body = { model, input, voice: "alloy", [field]: value } as OpenAi7.Audio.SpeechCreateParams
      const error: unknown = await client.audio.speech.create(body).catch((error: unknown) => error)
      assert.instanceOf(error, OpenAi7.BadRequestError)
      assert.deepInclude(error, { status: 400, param: field, type: "invalid_request_error" })
    })
  }

  const client = () => new OpenAi7({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 }).audio.speech

  it("for a model of another workload is answered with 404", async () => {
    const error: unknown = await client().create({ model: "local-chat", input, voice: "alloy" }).catch((error) => error)
    assert.instanceOf(error, OpenAi7.NotFoundError)
  })

  it("for an engine that cannot speak is answered with 502", async () => {
    const error: unknown = await client().create({ model: "tts-nobody", input, voice: "alloy" }).catch((error) => error)
    assert.instanceOf(error, OpenAi7.InternalServerError)
    assert.deepInclude(error, { status: 502, code: "upstream_error" })
  })

  it("is answered with 500 if the catalogue names no valid language", async () => {
    const error: unknown = await client().create({ model: "tts-unwell", input, voice: "alloy" }).catch((error) => error)
    assert.deepInclude(error, { status: 500 })
  })

  it("is served by another target if the first one cannot", async () => {
    const answer = await client().create({ model: "tts-spare", input, voice: "alloy", response_format: "pcm" })
    assert.isAbove((await answer.bytes()).length, 48_000)
  })
})

describe("AI SDK", () => {
  const speech = () => createOpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key }).speech(model)

  for (const format of audioFormats) {
    it(`gets ${format}`, async () => {
      const { audio, warnings } = await generateSpeech({
        model: speech(),
        text: input,
        voice: "fable",
        outputFormat: format,
        speed: 1.5,
        maxRetries: 0
      })
      assert.isEmpty(warnings)
      if (format === "pcm") return assert.closeTo(audio.uint8Array.length / 48_000, 1.7, 0.4)
      const { codec, duration } = await readAudioFile(audio.uint8Array)
      assert.strictEqual(codec, expected[format].codec)
      assert.closeTo(duration, 1.7, 0.4)
    })
  }

  it("gets an error that names the field", async () => {
    const error: unknown = await generateSpeech({ model: speech(), text: input, voice: "coral", maxRetries: 0 })
      .catch((error: unknown) => error)
    assert.deepInclude(error, { name: "AI_APICallError", statusCode: 400 })
    assert.match(String(error), /voice: must be one of alloy, /)
  })
})

it("relays a provider's sound as it arrives, byte for byte", async () => {
  const [beginning, end] = [Buffer.from([0xff, 0xf3, 0x00, 0x80]), Buffer.from([0x0d, 0x0a, 0xfe])]
  const asked = once(upstream, "request")
  const answering = fetch(`${shared().url}/v1/audio/speech`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "tts-elsewhere", input, voice: "alloy", instructions: "Cheerfully." })
  })
  const [request, response] = await asked
  const sent: Array<Buffer> = []
  for await (const chunk of request as IncomingMessage) sent.push(chunk)
  assert.deepStrictEqual(JSON.parse(Buffer.concat(sent).toString()), {
    model: "tts-1",
    input,
    voice: "alloy",
    instructions: "Cheerfully."
  })
  assert.deepInclude(request, { url: "/v1/audio/speech" })
  assert.strictEqual(request.headers.authorization, "Bearer their-key")
  response.writeHead(200, { "content-type": "audio/mpeg" })
  response.write(beginning)
  const answer = await answering
  assert.strictEqual(answer.headers.get("content-type"), "audio/mpeg")
  const reader = answer.body?.getReader()
  assert.deepStrictEqual(Buffer.from((await reader?.read())?.value ?? []), beginning)
  response.end(end)
  assert.deepStrictEqual(Buffer.from((await reader?.read())?.value ?? []), end)
  assert.isTrue((await reader?.read())?.done)
})
