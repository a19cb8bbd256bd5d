/** Answers and events that are too large to parse are complete, metered by what they report, and pass unchanged. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { transcriptions } from "../../../../shared/contract/operations/audio/Transcriptions.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { embed } from "../../../../shared/contract/operations/embeddings/Embed.ts"
import { streamGenerateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import { sound } from "../../../fixture/client/Requests.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"

const protocols = {
  openai: "/v1",
  cohere: "",
  gemini: "/v1beta"
} as const satisfies Partial<Record<Provider["protocol"], string>>

/** Relays an answer, and checks that it passes unchanged. Returns its usage. */
const relay = Effect.fnUntraced(
  function*(protocol: keyof typeof protocols, operation: Operation, body: object, contentType: string, answer: string) {
    const provider = yield* FakeProvider.make()
    provider.behaveOnce({ kind: "raw", pieces: [answer], headers: { "content-type": contentType } })
    const options = protocol === "openai" ? { options: { apis: ["chatCompletions", "responses"] } } : {}
    const { bytes, usage } = yield* callProvider({
      operation,
      body,
      name: "large",
      model: "m",
      provider: { protocol, baseUrl: `http://127.0.0.1:${provider.port}${protocols[protocol]}`, ...options }
    })
    assert.strictEqual(bytes.toString().replace(/"resp_\w+"/g, "\"resp_1\""), answer)
    return usage
  },
  Effect.scoped
)

const json = (answer: object) => ["application/json", JSON.stringify(answer)] as const
const stream = (...events: ReadonlyArray<{ readonly [name: string]: unknown }>) =>
  [
    "text/event-stream",
    events.map((event) => {
      const name = event.type === undefined ? "" : `event: ${event.type}\n`
      return `${name}data: ${JSON.stringify(event)}\n\n`
    }).join("")
  ] as const

const picture = "iVBORw0KGgo".repeat(50_000)
const words = "The hive is a city of bees. "

describe("a large answer", () => {
  it.live.each([[32, 1_024], [96, 1_536]] as const)(
    "of %i vectors of %i numbers has them",
    ([texts, dimensions]) =>
      Effect.gen(function*() {
        const float = Array.from({ length: texts }, () => Array.from({ length: dimensions }, Math.random))
        const meta = { billed_units: { input_tokens: 77 } }
        const request = { model: "m", input_type: "search_document", texts: Array(texts).fill("bees") }
        const answer = json({ id: "1", embeddings: { float }, texts: request.texts, meta })
        const usage = yield* relay("cohere", embed, request, ...answer)
        assert.deepStrictEqual(usage, { inputTokens: 77, outputTokens: 0 })
      })
  )

  it.live("without vectors is a failure", () =>
    Effect.gen(function*() {
      const request = { model: "m", input_type: "search_document", texts: ["bees"] }
      const error = yield* Effect.flip(relay("cohere", embed, request, ...json({ embeddings: picture })))
      assert.deepInclude(error, { _tag: "ProviderFailed", reason: "error" })
    }))

  it.live("has the text of an hour", () =>
    Effect.gen(function*() {
      const segments = Array.from(
        { length: 2_000 },
        (_, id) => ({ id, start: id, end: id + 1, text: words, tokens: [1] })
      )
      const usage = yield* relay(
        "openai",
        transcriptions,
        { model: "m", file: sound, response_format: "verbose_json" },
        ...json({ task: "transcribe", duration: 3_600.5, text: words.repeat(4_000), segments })
      )
      assert.deepStrictEqual(usage, { inputTokens: 0, outputTokens: 0, seconds: 3_600.5 })
    }))
})

describe("a large event", () => {
  it.live("with a whole response reports its usage", () =>
    Effect.gen(function*() {
      const response = { id: "resp_1", object: "response", status: "in_progress", model: "m", output: [] }
      const delta = { type: "response.output_text.delta", output_index: 1, content_index: 0, delta: "A hive." }
      const output = [
        { type: "image_generation_call", id: "ig_1", status: "completed", result: picture },
        { type: "message", role: "assistant", content: [{ type: "output_text", text: "A hive.", annotations: [] }] }
      ]
      const reported = {
        input_tokens: 70,
        input_tokens_details: { cached_tokens: 60 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 5 },
        total_tokens: 79
      }
      const usage = yield* relay(
        "openai",
        responses,
        { model: "m", input: "Paint a hive.", stream: true },
        ...stream(
          { type: "response.created", response },
          delta,
          { type: "response.completed", response: { ...response, status: "completed", output, usage: reported } }
        )
      )
      assert.deepStrictEqual(usage, { inputTokens: 70, outputTokens: 9, cachedTokens: 60, reasoningTokens: 5 })
    }))

  it.live("with a picture and the reason for the end ends an answer of Gemini", () =>
    Effect.gen(function*() {
      const parts = [{ text: "A hive." }, { inlineData: { mimeType: "image/png", data: picture } }]
      const usage = yield* relay(
        "gemini",
        streamGenerateContent,
        { contents: [{ role: "user", parts: [{ text: "Paint a hive." }] }] },
        ...stream({
          candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }],
          usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1_290, totalTokenCount: 1_295 },
          modelVersion: "m"
        })
      )
      assert.deepInclude(usage, { inputTokens: 5, outputTokens: 1_290 })
    }))

  it.live("with a picture and the reason for the end ends a chat completion", () =>
    Effect.gen(function*() {
      const images = [{ type: "image_url", image_url: { url: `data:image/png;base64,${picture}` } }]
      const usage = yield* relay(
        "openai",
        chatCompletions,
        { model: "m", messages: [{ role: "user", content: "Paint a hive." }], stream: true },
        ...stream({
          id: "1",
          choices: [{ index: 0, delta: { role: "assistant", content: "A hive.", images }, finish_reason: "stop" }],
          usage: { prompt_tokens: 5, completion_tokens: 1_290, total_tokens: 1_295 }
        })
      )
      assert.deepInclude(usage, { inputTokens: 5, outputTokens: 1_290 })
    }))
})
