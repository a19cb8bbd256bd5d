/** The built-in rerank engine: its ranking, and a responsive worker under load. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Engine from "../../../services/rerank/Engine.ts"
import { rerank, RerankResponse } from "../../../shared/contract/operations/Rerank.ts"
import { callLocally } from "../../fixture/calls/LocalCall.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(RerankResponse))

const perform = (query: string, documents: unknown, more: object = {}) =>
  callLocally(Engine.layer, rerank, "local-rerank", { model: "local-rerank", query, documents, ...more })
const call = (query: string, documents: unknown, more: object = {}) =>
  Effect.map(perform(query, documents, more), ({ bytes, usage }) => ({ ...decode(bytes.toString()), usage }))

const corpus = [
  "The Seine flows through Paris and into the English Channel.",
  "Paris is the capital and most populous city of France.",
  "Bread is made of flour, water, salt and yeast.",
  "Berlin is the capital of Germany.",
  "The capital letters of a heading are set in bold.",
  "A password can be changed in the settings of an account.",
  "Whoever has forgotten a password asks for a link to reset it.",
  "Wheat prices rose by four percent last year.",
  "Lighthouses warn ships of rocks.",
  "The keeper of the lighthouse kept bees, and sold their honey."
]

describe("the ranking", () => {
  const bestOf = (query: string, count: number) =>
    Effect.map(call(query, corpus, { top_n: count }), ({ results }) => results.map(({ index }) => index))

  it.effect("starts with the document that answers the query", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* bestOf("What is the capital of France?", 2), [1, 3])
      assert.deepStrictEqual(yield* bestOf("which river is in Paris, the Seine?", 2), [0, 1])
      assert.deepStrictEqual(yield* bestOf("reset a forgotten password", 2), [6, 5])
      assert.deepStrictEqual(yield* bestOf("the price of wheat", 1), [7])
      assert.deepStrictEqual(yield* bestOf("Who kept the bees of the lighthouse?", 2), [9, 8])
    }))

  it.effect("weights a rare word higher than a frequent one", () =>
    Effect.gen(function*() {
      const documents = ["model train model", "model car", "model boat", "model of a zeppelin"]
      assert.strictEqual((yield* call("zeppelin model", documents)).results[0]?.index, 3)
    }))

  it.effect("keeps the order of equally relevant documents", () =>
    Effect.gen(function*() {
      const { results } = yield* call("nothing", ["same", "same", "same"])
      assert.deepStrictEqual(results.map(({ index }) => index), [0, 1, 2])
    }))

  it.effect("works for scripts without spaces", () =>
    Effect.gen(function*() {
      const { results } = yield* call("東京の天気", ["株価が急落した", "今日の東京は天気がいい", "パンの作り方"])
      assert.strictEqual(results[0]?.index, 1)
    }))
})

describe("a rerank answer", () => {
  it.effect("has every document once, with falling scores from 0 to 1", () =>
    Effect.gen(function*() {
      for (
        const query of ["What is the capital of France?", "password password password", "!", "the of and", corpus[0]!]
      ) {
        const { results } = yield* call(query, [...corpus, "", "!?", corpus[0]])
        assert.deepStrictEqual(results.map(({ index }) => index).toSorted((a, b) => a - b), [...Array(13).keys()])
        // the schema checks the range
        const scores = results.map(({ relevance_score }) => relevance_score)
        assert.deepStrictEqual(scores, scores.toSorted((a, b) => b - a))
      }
    }))

  it.effect("has a high score for the query's own text and a low score for an unrelated text", () =>
    Effect.gen(function*() {
      const { results } = yield* call(corpus[6]!, corpus)
      assert.strictEqual(results[0]?.index, 6)
      assert.isAbove(results[0]?.relevance_score ?? 0, 0.95)
      assert.isBelow(results.at(-1)?.relevance_score ?? 1, 0.1)
    }))

  it.effect("contains documents only on request, always as objects", () =>
    Effect.gen(function*() {
      const documents = ["one", { text: "two", title: "more" }]
      const without = yield* call("two", documents)
      assert.isTrue(without.results.every((result) => !("document" in result)))
      const { results } = yield* call("two", documents, { return_documents: true })
      assert.deepStrictEqual(results.map(({ document }) => document), [{ text: "two", title: "more" }, { text: "one" }])
    }))

  it.effect("ranks an object by its text, by all its fields if it has none, or by the fields that the client names", () =>
    Effect.gen(function*() {
      const documents: ReadonlyArray<Readonly<Record<string, unknown>>> = [
        { text: "bread", title: "Honey" },
        { title: "Hives", body: "Bees make honey", year: 1871, tags: ["apiary"], note: null },
        { title: "Lighthouses" }
      ]
      const best = (query: string, more: object = {}) =>
        Effect.map(call(query, documents, { top_n: 1, return_documents: true, ...more }), ({ results }) => results[0])
      const second = { index: 1, document: documents[1]! }
      for (const query of ["honey", "apiary", "1871"]) assert.deepInclude(yield* best(query), second)
      assert.deepInclude(yield* best("honey", { rank_fields: ["title"] }), { index: 0, document: documents[0]! })
      assert.deepInclude(yield* best("bees", { rank_fields: ["body", "constructor"] }), second)
    }))

  it.effect("ranks a single string as one document, and has no more results than documents", () =>
    Effect.gen(function*() {
      const { results } = yield* call("one", "one document", { top_n: 7, return_documents: true })
      assert.deepStrictEqual(results.map(({ document, index }) => [index, document]), [[0, { text: "one document" }]])
    }))

  it.effect("has a unique id and its usage", () =>
    Effect.gen(function*() {
      const [one, other] = [yield* call("a", Array(100).fill("hello")), yield* call("a", Array(101).fill("hello"))]
      assert.notStrictEqual(one.id, other.id)
      assert.strictEqual(one.meta.billed_units.search_units, 1)
      assert.strictEqual(other.meta.billed_units.search_units, 2)
      assert.deepStrictEqual(one.usage, { inputTokens: 101, outputTokens: 0, searchUnits: 1 })
    }))
})
