/** The built-in embedding engine: properties of its vectors. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Engine from "../../../services/embeddings/Engine.ts"
import { embeddings, engineEmbeddings } from "../../../shared/contract/operations/embeddings/Embeddings.ts"
import { callLocally } from "../../fixture/calls/LocalCall.ts"
import type { Answered } from "../../fixture/calls/ProtocolCall.ts"

interface Answer {
  readonly object: string
  readonly model: string
  readonly data: ReadonlyArray<{ readonly object: string; readonly index: number; readonly embedding: unknown }>
  readonly usage: object
}

const read = ({ bytes }: Answered) => JSON.parse(bytes.toString()) as Answer

const call = (body: object, operation: typeof embeddings | typeof engineEmbeddings = embeddings) =>
  callLocally(Engine.layer, operation, "local-embedding", { model: "local-embedding", ...body })

const vectorsOf = (input: string | ReadonlyArray<string>, more: object = {}) =>
  Effect.map(
    call({ input, ...more }),
    (answer) => read(answer).data.map(({ embedding }) => embedding as ReadonlyArray<number>)
  )

const cosine = (a: ReadonlyArray<number> = [], b: ReadonlyArray<number> = []): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? Number.NaN), 0)

const fromBase64 = (text: unknown): ReadonlyArray<number> => {
  const bytes = Buffer.from(String(text), "base64")
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4))
}

describe("a vector", () => {
  it.effect("is closer to a similar text's vector than to an unrelated text's, at any length", () =>
    Effect.gen(function*() {
      const triples = [
        ["The cat sat on the mat", "A cat is sitting on a mat", "Stock prices fell sharply on Monday"],
        ["How do I reset my password?", "Steps to change a forgotten password", "Apple pie with cinnamon"],
        ["running shoes", "shoes for runners", "quarterly invoices"],
        ["東京の天気", "今日の東京は天気がいい", "株価が急落した"]
      ]
      for (const dimensions of [128, 1_536, 4_096]) {
        for (const triple of triples) {
          const [text, similar, unrelated] = yield* vectorsOf(triple, { dimensions })
          assert.isAbove(cosine(text, similar), cosine(text, unrelated) + 0.2, `${triple[0]} at ${dimensions}`)
        }
      }
    }))

  it.effect("has the requested length, by default 1,536, and the norm 1", () =>
    Effect.gen(function*() {
      for (const dimensions of [undefined, 1, 2, 7, 256, 4_096]) {
        for (const vector of yield* vectorsOf(["a text", "!?", " ", "word ".repeat(10_000)], { dimensions })) {
          assert.lengthOf(vector, dimensions ?? 1_536)
          assert.approximately(cosine(vector, vector), 1, 1e-5)
        }
      }
    }))

  it.effect("is the same for a text alone or among others", () =>
    Effect.gen(function*() {
      const [alone] = yield* vectorsOf("the same text")
      const [, among] = yield* vectorsOf(["another", "the same text", "a third"])
      assert.deepStrictEqual(among, alone)
    }))

  it.effect("is the same in base64 as in numbers, to 32 bits", () =>
    Effect.gen(function*() {
      const [numbers = []] = yield* vectorsOf("some text", { dimensions: 20 })
      const encoded = yield* call({ input: "some text", dimensions: 20, encoding_format: "base64" })
      assert.deepStrictEqual(fromBase64(read(encoded).data[0]?.embedding), numbers.map(Math.fround))
    }))
})

describe("an embeddings answer", () => {
  it.effect("has the vectors in the order of the texts, and the client's model name", () =>
    Effect.gen(function*() {
      const input = Array.from({ length: 100 }, (_, number) => `text ${number}`)
      const answer = yield* call({ input, dimensions: 8 })
      const { data, model, object } = read(answer)
      assert.deepInclude(answer.head, { status: 200, contentType: "application/json" })
      assert.deepStrictEqual([object, model], ["list", "local-embedding"])
      assert.deepStrictEqual(data.map(({ index }) => index), [...input.keys()])
      assert.deepStrictEqual(data[42]?.embedding, (yield* vectorsOf("text 42", { dimensions: 8 }))[0])
    }))

  it.effect("counts the tokens of all texts", () =>
    Effect.gen(function*() {
      const answer = yield* call({ input: ["hello world", "hello"] })
      assert.deepStrictEqual(read(answer).usage, { prompt_tokens: 3, total_tokens: 3 })
      assert.deepStrictEqual(answer.usage, { inputTokens: 3, outputTokens: 0 })
    }))

  it.effect("is the same if only the path names the model", () =>
    Effect.gen(function*() {
      const answer = yield* call({ model: undefined, input: "a", dimensions: 2 }, engineEmbeddings)
      assert.strictEqual(read(answer).model, "local-embedding")
    }))
})
