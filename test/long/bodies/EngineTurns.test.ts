/** The largest requests to the built-in engines leave time to answer pings: ingress considers a worker dead that is silent for too long. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { summarise } from "../../../services/chat/Summary.ts"
import * as Embedder from "../../../services/embeddings/Engine.ts"
import * as Reranker from "../../../services/rerank/Engine.ts"
import { embeddings } from "../../../shared/contract/operations/embeddings/Embeddings.ts"
import { rerank } from "../../../shared/contract/operations/Rerank.ts"
import { editImages, engine as painter, generateImages, stripes, toDataUrl } from "../../fixture/calls/ImagesEngine.ts"
import { callLocally, longestTurn, longestTurnMs } from "../../fixture/calls/LocalCall.ts"

/** Fails if a turn of the event loop takes too long. */
const inShortTurns = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(longestTurn(effect), ({ milliseconds, result }) => {
    assert.isBelow(milliseconds, longestTurnMs)
    return result
  })

const sentence = "Nobody expects a sentence in a test to say anything that is worth the reading, and none does. "

describe("the embeddings worker answers pings", () => {
  const embed = (input: string | ReadonlyArray<string>, encoding_format = "float") =>
    callLocally(Embedder.layer, embeddings, "local-embedding", { model: "local-embedding", input, encoding_format })

  it.live.each(["float", "base64"])("while it computes 2,048 vectors as %s", (encoding) =>
    Effect.gen(function*() {
      const input = Array.from({ length: 2_048 }, (_, number) => `${number} ${sentence.repeat(5)}`)
      yield* embed("first")
      const { bytes } = yield* inShortTurns(embed(input, encoding))
      assert.lengthOf((JSON.parse(bytes.toString()) as { readonly data: ReadonlyArray<unknown> }).data, 2_048)
    }))

  it.live("while it reads a text of four million characters", () =>
    Effect.gen(function*() {
      const { usage } = yield* inShortTurns(embed(sentence.repeat(43_000)))
      assert.isAbove(usage?.inputTokens ?? 0, 500_000)
    }))
})

describe("the rerank worker answers pings", () => {
  const rank = (query: string, documents: ReadonlyArray<string>, more: object) =>
    Effect.map(
      callLocally(Reranker.layer, rerank, "local-rerank", { model: "local-rerank", query, documents, ...more }),
      ({ bytes }) =>
        (JSON.parse(bytes.toString()) as { readonly results: ReadonlyArray<{ readonly index: number }> }).results
    )

  const many = (filling: string) => Array.from({ length: 10_000 }, (_, number) => `${number} ${filling}`)

  it.live.each([["short ones", ""], ["long ones", sentence.repeat(6)]] as const)(
    "while it ranks 10,000 documents: %s",
    ([, filling]) =>
      Effect.gen(function*() {
        yield* rank("first", ["document"], {})
        const results = yield* inShortTurns(rank("4711", many(filling), { return_documents: true, top_n: 9_999 }))
        assert.lengthOf(results, 9_999)
        assert.strictEqual(results[0]?.index, 4_711)
      })
  )

  it.live("while it searches 10,000 documents for a thousand words", () =>
    Effect.gen(function*() {
      const query = Array.from({ length: 1_000 }, (_, number) => number).join(" ")
      assert.lengthOf(yield* inShortTurns(rank(query, many(query.slice(0, 500)), { top_n: 1 })), 1)
    }))
})

it.live("the chat worker answers pings while it summarises a million characters", () =>
  Effect.gen(function*() {
    const text = Array.from({ length: 24_000 }, (_, at) => `Report ${at} mentions ${at * 7} crates of fish.`).join(" ")
    const summary = yield* inShortTurns(summarise([{ origin: "assistant", text }], "reports on crates"))
    assert.lengthOf(summary.split("\n"), 61)
  }))

describe("the images worker answers pings", () => {
  it.live("while it paints", () =>
    Effect.gen(function*() {
      const [picture] = yield* inShortTurns(generateImages({ prompt: "a city at night", size: "2048x2048" }))
      assert.isAbove(picture!.bytes.length, 10_000)
    }).pipe(Effect.provide(painter)))

  it.live("while it reads an instruction of white space", () =>
    Effect.gen(function*() {
      const image = toDataUrl(yield* stripes(30, 20, [[200, 40, 30], [0, 200, 0], [0, 0, 200]]))
      const [picture] = yield* inShortTurns(editImages({ prompt: `invert${" ".repeat(31_000)}`, image }))
      assert.strictEqual(picture?.said, "Inverted the colours.")
    }).pipe(Effect.provide(painter)))

  it.live("while it edits a large picture in many steps", () =>
    Effect.gen(function*() {
      const image = toDataUrl(yield* stripes(1_600, 1_200, [[200, 40, 30], [0, 200, 0], [0, 0, 200]]))
      const prompt = "blur, rotate by 10 degrees, tint it blue, brighten it, double the size"
      yield* inShortTurns(editImages({ prompt, image, watermark: true }))
    }).pipe(Effect.provide(painter)))
})
