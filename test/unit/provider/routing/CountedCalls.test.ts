/** A provider's limits count each call of a request that makes several. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Catalogue, parse } from "../../../../shared/catalogue/Catalogue.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { completions } from "../../../../shared/contract/operations/Completions.ts"
import { embed } from "../../../../shared/contract/operations/embeddings/Embed.ts"
import { batchEmbedContents, embedContent } from "../../../../shared/contract/operations/embeddings/EmbedContent.ts"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import { generateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../../shared/contract/operations/ImageGenerations.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import type { Operation, Workload } from "../../../../shared/contract/Operation.ts"
import { Limits } from "../../../../shared/limits/Limits.ts"
import type { Calls } from "../../../../shared/provider/call/Calls.ts"
import type { Call } from "../../../../shared/provider/call/Protocol.ts"
import { LocalEngines } from "../../../../shared/provider/protocols/local/Local.ts"
import { protocols } from "../../../../shared/provider/protocols/protocols.ts"
import { Providers } from "../../../../shared/provider/routing/Providers.ts"
import { SharedLimits } from "../../../../shared/provider/routing/SharedLimits.ts"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import { idleSink } from "../../../fixture/calls/IdleSink.ts"
import { results } from "../../../fixture/calls/ProtocolCall.ts"
import { answerTo, png } from "../../../fixture/fields/ProviderAnswers.ts"
import * as RecordingPackage from "../../../fixture/fields/RecordingPackage.ts"
import { secretsIn } from "../../../fixture/ProviderKey.ts"

/** Providers that answer each call after a second, and their calls. */
class Provided {
  /** When each call was made. */
  readonly at: Array<number> = []
  running = 0
  mostAtOnce = 0

  readonly services = Layer.mergeAll(
    Layer.succeed(
      Upstream,
      Upstream.of({
        exchange: ({ address, body }, makeReceiver) =>
          Effect.gen({ self: this }, function*() {
            this.at.push(yield* Clock.currentTimeMillis)
            this.mostAtOnce = Math.max(this.mostAtOnce, ++this.running)
            yield* Effect.sleep("1 second")
            this.running--
            const { bytes, contentType } = answerTo(address.path.split("?", 1)[0]!, Buffer.from(body ?? []).toString())
            const unused = () => undefined
            const receiver = makeReceiver({ pause: unused, resume: unused, fail: unused, noteContent: unused })
            receiver.onHead(200, { "content-type": contentType })
            receiver.onData(bytes)
          })
      })
    ),
    Layer.succeed(LocalEngines, { performs: new Map() }),
    GuardedFetch.layer,
    secretsIn({}),
    results
  )
}

const texts = (count: number) => Array.from({ length: count }, (_, index) => `text ${index}`)
const hello = [{ role: "user", content: "Hello" }]
const said = [{ role: "user", parts: [{ text: "Hello" }] }]
const form = new FormData()
form.set("model", "m")
form.set("prompt", "Paint it")
form.set("n", "10")
form.set("image", new File([png], "picture.png", { type: "image/png" }))

const recording = RecordingPackage.install()

describe("the calls of a request are counted as they are made:", () => {
  const all = (count: number): Calls => ({ all: count, atOnce: count })
  type Protocol = Call["endpoint"]["provider"]["protocol"]
  const cases: ReadonlyArray<readonly [Protocol, Operation, what: string, body: object, Calls, Workload?]> = [
    ["anthropic", chatCompletions, "one choice", { messages: hello }, all(1)],
    ["anthropic", chatCompletions, "three choices", { messages: hello, n: 3 }, all(3)],
    ["anthropic", completions, "two choices for each of three prompts", { prompt: texts(3), n: 2 }, all(6)],
    ["anthropic", generateContent, "four candidates", {
      contents: said,
      generationConfig: { candidateCount: 4 }
    }, all(4)],
    ["anthropic", messages, "a relayed request", { max_tokens: 9, messages: hello }, all(1)],
    ["gemini", chatCompletions, "choices in one answer", { messages: hello, n: 3 }, all(1)],
    ["gemini", completions, "choices in one answer for each of two prompts", { prompt: texts(2), n: 3 }, all(2)],
    ["openai", chatCompletions, "relayed choices", { messages: hello, n: 3 }, all(1)],
    ["openai", completions, "relayed prompts", { prompt: texts(3), n: 2 }, all(1)],
    ["cohere", chatCompletions, "three choices", { messages: hello, n: 3 }, all(3)],
    ["gemini", embeddings, "one text", { input: "a" }, all(1)],
    ["gemini", embeddings, "a list of texts", { input: texts(250) }, all(3)],
    ["gemini", embed, "a list of Cohere's texts", { input_type: "classification", texts: texts(201) }, all(3)],
    ["gemini", batchEmbedContents, "a relayed batch", {
      requests: texts(50).map((text) => ({ model: "m", content: { parts: [{ text }] } }))
    }, all(1)],
    ["cohere", embeddings, "many texts", { input: texts(2048) }, { all: 22, atOnce: 4 }],
    ["cohere", batchEmbedContents, "a batch", {
      requests: texts(100).map((text) => ({ model: "m", content: { parts: [{ text }] } }))
    }, all(2)],
    ["cohere", embedContent, "one content", { content: { parts: [{ text: "a" }] } }, all(1)],
    ["cohere", embed, "relayed texts", { input_type: "classification", texts: texts(96) }, all(1)],
    ["openai", embeddings, "relayed texts", { input: texts(2048) }, all(1)],
    ["ai-sdk", chatCompletions, "three choices", { messages: hello, n: 3 }, all(3)],
    ["ai-sdk", completions, "two choices for each of three prompts", { prompt: texts(3), n: 2 }, { all: 6, atOnce: 2 }],
    ["ai-sdk", embeddings, "many texts", { input: texts(520) }, { all: 6, atOnce: 4 }],
    ["ai-sdk", imageGenerations, "ten pictures", { prompt: "Paint", n: 10 }, { all: 4, atOnce: 4 }],
    ["ai-sdk", imageEdits, "ten pictures of a form", form, { all: 4, atOnce: 4 }],
    [
      "ai-sdk",
      generateContent,
      "two pictures",
      {
        contents: said,
        generationConfig: { candidateCount: 2 }
      },
      all(1),
      "images"
    ]
  ]

  it.effect.each(cases)(
    "%s, %o, %s",
    ([protocol, operation, _, body, expected, workload = operation.workloads[0]]) =>
      Effect.gen(function*() {
        const provided = new Provided()
        const { counts, performs } = yield* Effect.provide(protocols, provided.services)
        const encoded = body instanceof FormData
          ? new Response(body)
          : new Response(JSON.stringify({ model: "m", ...body }))
        const call: Call = {
          operation,
          model: "m",
          answersAs: "m",
          workload,
          tenant: "t",
          contentType: body instanceof FormData ? encoded.headers.get("content-type") ?? "" : "application/json",
          body: new Uint8Array(yield* Effect.promise(() => encoded.arrayBuffer())),
          endpoint: {
            name: "p",
            provider: {
              protocol,
              baseUrl: "https://provider.test",
              ...(protocol === "ai-sdk" ? { options: { package: recording } } : {})
            },
            model: "m"
          }
        }
        const counted = yield* counts[protocol](call)
        assert.deepStrictEqual(counted, expected)
        RecordingPackage.calls.splice(0)
        const fiber = yield* Effect.forkChild(performs[protocol](call, idleSink()))
        while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
        yield* Fiber.join(fiber)
        assert.strictEqual(provided.at.length + RecordingPackage.calls.length, expected.all)
        if (protocol !== "ai-sdk") assert.strictEqual(provided.mostAtOnce, expected.atOnce)
      })
  )
})

describe("a limit of the catalogue counts all calls of a request:", () => {
  /** Makes this number of requests at the same time, and lets them end. */
  const run = Effect.fnUntraced(
    function*(limits: string, count: number, request: { operation: Operation; body: object }) {
      const snapshot = yield* parse(
        "gateway.yaml",
        `providers: { p: { protocol: anthropic, baseUrl: "https://provider.test", limits: ${limits} } }\n` +
          "models: { m: { workload: chat, targets: [{ provider: p }] } }"
      )
      const provided = new Provided()
      const built = yield* Layer.build(Providers.layer.pipe(Layer.provide([
        Layer.succeed(Catalogue, { current: () => snapshot }),
        provided.services,
        Layer.effect(SharedLimits, Limits).pipe(Layer.provide(Limits.layerMemory)),
        ConfigProvider.layer(ConfigProvider.fromUnknown({}))
      ])))
      const now = yield* Clock.currentTimeMillis
      const fibers = yield* Effect.forEach(texts(count), () =>
        Effect.forkChild(
          Context.get(built, Providers).perform({
            ...request,
            model: "m",
            tenant: "key",
            contentType: "application/json",
            body: Buffer.from(JSON.stringify({ model: "m", ...request.body })),
            deadline: now + 300_000,
            queuedMs: 0
          }, idleSink())
        ))
      for (let second = 0; second < 200; second++) yield* TestClock.adjust("1 second")
      yield* Fiber.joinAll(fibers)
      return provided
    },
    Effect.orDie
  )

  const choices = (n: number) => ({ operation: chatCompletions, body: { messages: hello, n } })

  it.effect("those that run concurrently", () =>
    Effect.gen(function*() {
      const { at, mostAtOnce } = yield* run("{ concurrency: 4 }", 6, choices(2))
      assert.lengthOf(at, 12)
      assert.strictEqual(mostAtOnce, 4)
    }))

  it.effect("those of each minute", () =>
    Effect.gen(function*() {
      const { at } = yield* run("{ requestsPerMinute: 6 }", 4, choices(3))
      assert.lengthOf(at, 12)
      for (const from of at) assert.isAtMost(at.filter((each) => each >= from && each < from + 60_000).length, 6)
    }))

  it.effect("but a request with more calls than the limit is made, alone", () =>
    Effect.gen(function*() {
      for (const limits of ["{ concurrency: 4 }", "{ requestsPerMinute: 4 }"]) {
        const { at, mostAtOnce } = yield* run(limits, 2, choices(8))
        assert.lengthOf(at, 16)
        assert.strictEqual(mostAtOnce, 8)
      }
    }))
})
