/** Streams of pictures and of speech, as OpenAI's and other servers send them, pass through with their usage. */
import { assert, describe, it } from "@effect/vitest"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  services: ["images", "speech"],
  models: `  painter: { workload: images, targets: [{ provider: free, model: gpt-image-1.5 }] }
  speaker: { workload: speech, targets: [{ provider: free, model: gpt-4o-mini-tts }] }
`
})

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
const named = (data: { readonly type: string; readonly [field: string]: unknown }) =>
  `event: ${data.type}\n${event(data)}`
const picture = "iVBORw0KGgo=".repeat(20_000)
const usage = { input_tokens: 10, output_tokens: 1_000, total_tokens: 1_010 }

// the events of the types in openai 7.55: ImageGenStreamEvent, ImageEditStreamEvent, SpeechCreateParams.stream_format
const partial = { type: "image_generation.partial_image", b64_json: picture, partial_image_index: 0 }
const completed = { type: "image_generation.completed", b64_json: picture, usage }
const delta = { type: "speech.audio.delta", audio: "UklGRg==" }
const done = { type: "speech.audio.done", usage }

type Ask = () => Promise<Response>
const post = (path: string, body: object): Ask => () => shared().request(body, { path })
const generation = post("/v1/images/generations", { model: "painter", prompt: "a", stream: true, partial_images: 1 })
const edit: Ask = () => {
  const form = new FormData()
  const fields = { model: "painter", prompt: "a", stream: "true", image: new File(["x"], "a.png") }
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  const headers = { authorization: `Bearer ${shared().key}` }
  return fetch(`${shared().url}/v1/images/edits`, { method: "POST", body: form, headers })
}
const speech = post("/v1/audio/speech", { model: "speaker", input: "Hi", voice: "nova", stream_format: "sse" })

const streams: ReadonlyArray<readonly [what: string, ask: Ask, pieces: ReadonlyArray<string>]> = [
  ["a picture", generation, [named(partial), named(completed)]],
  ["a picture in other pieces", generation, [
    event(partial) + event(completed).slice(0, 99),
    event(completed).slice(99)
  ]],
  ["two pictures", generation, [named(completed), named(completed)]],
  ["an edit", edit, [
    named({ ...partial, type: "image_edit.partial_image" }),
    named({ ...completed, type: "image_edit.completed" })
  ]],
  ["a picture without usage", generation, [named({ type: completed.type, b64_json: picture })]],
  ["a picture, then the end of chats", generation, [named(completed), "data: [DONE]\n\n"]],
  ["speech", speech, [event(delta), event(delta), event(done)]],
  ["speech without usage", speech, [event(delta), event({ type: done.type })]]
]

describe("a stream of", () => {
  it.for(streams)("%s passes as it is", async ([_, ask, pieces]) => {
    const gateway = shared()
    gateway.provider.behaveOnce({ kind: "raw", pieces, headers: { "content-type": "text/event-stream" } })
    const { received, result } = await receivedBy(gateway, ask)
    const response = await result
    assert.deepStrictEqual([response.status, response.headers.get("content-type")], [200, "text/event-stream"])
    assert.strictEqual(await response.text(), pieces.join(""))
    // OpenAI rejects it for pictures and speech
    assert.notInclude(Buffer.from(received.body).toString("latin1"), "stream_options")
  })

  const broken: ReadonlyArray<readonly [what: string, ask: Ask, pieces: ReadonlyArray<string>]> = [
    ["a picture that breaks off", generation, [named(partial)]],
    ["a picture that fails", generation, [named(partial), event({ type: "error", error: { message: "no" } })]],
    ["speech that breaks off", speech, [event(delta)]]
  ]
  it.for(broken)("%s ends with an error", async ([_, ask, pieces]) => {
    shared().provider.behaveOnce({ kind: "raw", pieces, headers: { "content-type": "text/event-stream" } })
    assert.include(await (await ask()).text(), "upstream_error")
  })

  const unsupported: ReadonlyArray<readonly [param: string, ask: Ask]> = [
    ["stream", post("/v1/images/generations", { model: "local-image", prompt: "a", stream: true })],
    ["stream", post("/v1/images/edits", { model: "painter", prompt: "a", image: "AAAA", stream: true })],
    [
      "stream_format",
      post("/v1/audio/speech", { model: "local-speech", input: "Hi", voice: "nova", stream_format: "sse" })
    ]
  ]
  it.for(unsupported)("none where the provider has none: %s is named", async ([param, ask]) => {
    const response = await ask()
    assert.strictEqual(response.status, 400)
    assert.strictEqual((await response.json() as { readonly error: { readonly param: string } }).error.param, param)
  })
})
