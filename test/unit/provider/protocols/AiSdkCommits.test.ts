/** A call through an AI SDK package is committed once for each request to its provider, and not before there is a request. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { audioSpeech } from "../../../../shared/contract/operations/audio/Speech.ts"
import { transcriptions } from "../../../../shared/contract/operations/audio/Transcriptions.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../../shared/contract/operations/ImageGenerations.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { rerank } from "../../../../shared/contract/operations/Rerank.ts"
import { Commitment } from "../../../../shared/provider/transport/Commitment.ts"
import { stripes, toDataUrl } from "../../../fixture/calls/ImagesEngine.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { sound } from "../../../fixture/client/Requests.ts"
import { type Behaviour, FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"

interface Asked {
  readonly by: "anthropic" | "cohere" | "openai"
  readonly operation: Operation
  readonly body: object
  readonly behaviour?: Behaviour
}

const paths = { anthropic: "/v1", cohere: "/v2", openai: "/v1" } as const

/** Makes a call, which may fail. Returns how often it was committed, and how many requests the provider has received. */
const counts = Effect.fnUntraced(function*({ behaviour = { kind: "answer" }, body, by, operation }: Asked) {
  const provider = yield* FakeProvider.make({ apiKey: "secret" })
  provider.behave(behaviour)
  let commits = 0
  /** How many requests had been received at each commitment. */
  const received: Array<number> = []
  const commit = Effect.sync(() => {
    commits++
    received.push(provider.requests.length)
  })
  const exit = yield* Effect.exit(
    callProvider({
      operation,
      body: { model: "alias", ...body },
      name: "sdk",
      model: "alias",
      upstreamModel: operation === transcriptions ? "whisper-1" : "upstream-model",
      key: "secret",
      provider: {
        protocol: "ai-sdk",
        baseUrl: `${provider.root}${paths[by]}`,
        apiKey: keyReference,
        options: { package: `@ai-sdk/${by}` }
      }
    }).pipe(Effect.provideService(Commitment, commit))
  )
  return { commits, received, requests: provider.requests.length, outcome: exit._tag }
}, Effect.scoped)

const user = (content: unknown) => ({ messages: [{ role: "user", content }] })

const single: ReadonlyArray<readonly [name: string, Asked]> = [
  ["chat", { by: "anthropic", operation: chatCompletions, body: user("a question") }],
  ["reranking", { by: "cohere", operation: rerank, body: { query: "bees", documents: ["a lighthouse", "bees"] } }],
  ["embeddings", { by: "openai", operation: embeddings, body: { input: ["one", "two"] } }],
  ["pictures", { by: "openai", operation: imageGenerations, body: { prompt: "a boat", size: "64x64" } }],
  ["speech", { by: "openai", operation: audioSpeech, body: { input: "Hello", voice: "nova" } }],
  ["transcription", { by: "openai", operation: transcriptions, body: { file: sound } }]
]

describe.each(single)("a call for %s", (_, asked) => {
  it.live("is committed once, before it is sent", () =>
    Effect.gen(function*() {
      const expected = { commits: 1, received: [0], requests: 1 }
      assert.deepStrictEqual(yield* counts(asked), { ...expected, outcome: "Success" })
      const behaviour = { kind: "status", status: 429 } as const
      assert.deepStrictEqual(yield* counts({ ...asked, behaviour }), { ...expected, outcome: "Failure" })
    }))
})

it.live("several requests of one call are committed each", () =>
  Effect.gen(function*() {
    const chat = yield* counts({ by: "anthropic", operation: chatCompletions, body: { ...user("a question"), n: 3 } })
    assert.deepInclude(chat, { commits: 3, requests: 3 })
    const body = { prompt: "a boat", n: 3, size: "64x64" }
    assert.deepInclude(yield* counts({ by: "openai", operation: imageGenerations, body }), { commits: 3, requests: 3 })
  }))

it.live("a call that sends nothing is not committed", () =>
  Effect.gen(function*() {
    const none = { commits: 0, requests: 0, outcome: "Failure" } as const
    const image = toDataUrl(yield* stripes(8, 8, [[200, 0, 0]]))
    const nowhere = { type: "image_url", image_url: { url: "http://127.0.0.1:1/a.png" } }
    const unsent: ReadonlyArray<Asked> = [
      // the package has no such models
      { by: "anthropic", operation: imageGenerations, body: { prompt: "a boat" } },
      { by: "anthropic", operation: embeddings, body: { input: "one" } },
      { by: "anthropic", operation: imageEdits, body: { prompt: "make it blue", image } },
      // the gateway refuses the request
      { by: "anthropic", operation: chatCompletions, body: { ...user("a question"), n: 9 } },
      { by: "anthropic", operation: chatCompletions, body: user([nowhere]) }
    ]
    for (const asked of unsent) assert.deepInclude(yield* counts(asked), none, asked.operation.name)
  }))
