/** Conversion of vectors from numbers, if the provider ignores the requested base64. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import { rewrite } from "../../../../shared/provider/protocols/openai/Base64Vectors.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"

const base64 = (vector: ReadonlyArray<number>) => Buffer.from(Float32Array.from(vector).buffer).toString("base64")

/** The rewritten text, given in pieces of `size` bytes. */
const rewritten = (text: string, size: number): string => {
  const bytes = Buffer.from(text)
  const next = rewrite()
  const pieces: Array<Uint8Array> = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(next(bytes.subarray(at, at + size)))
  return Buffer.concat(pieces).toString()
}

const sizes = [1, 2, 3, 7, 11, 12, 13, 64, 10_000]

describe("an answer in pieces of any size", () => {
  it("has its vectors in base64, and everything else unchanged", () => {
    const text =
      "{\"object\":\"list\", \"data\" : [ {\"object\":\"embedding\",\"index\":0,\"embedding\":[0.5,-1e-3, 2]},\n" +
      "{\"embedding\" :\t[ 1\n, 3 ] ,\"object\":\"embedding\"}, {\"embedding\":[]}],\"ü\":\"\\\"embedding\\\":[1]\"}"
    const expected = text
      .replace("[0.5,-1e-3, 2]", `"${base64([0.5, -1e-3, 2])}"`)
      .replace("[ 1\n, 3 ]", `"${base64([1, 3])}"`)
      .replace("[]}", "\"\"}")
    for (const size of sizes) assert.strictEqual(rewritten(text, size), expected, String(size))
  })

  it("is unchanged if it has base64 already, or anything but vectors of numbers", () => {
    for (
      const text of [
        `{"data":[{"object":"embedding","embedding":"AAAAPwAAgL8="},{"embedding":"embedding"}]}`,
        `{"data":[{"embedding":[[1,2],[3]]},{"embedding":["a"]},{"embedding":null},{"embedding":{"a":[1]}}]}`,
        `{"embeddings":[1],"x":["embedding",[1]],"embedding_":[2]}`,
        `{"embedding":[${"1,".repeat(600_000)}1]}`
      ]
    ) {
      for (const size of text.length > 1_000 ? [65_536] : sizes) assert.strictEqual(rewritten(text, size), text)
    }
  })
})

describe("a provider that answers with numbers instead of base64", () => {
  const ask = (vectors: ReadonlyArray<ReadonlyArray<number>>, body: object) =>
    Effect.gen(function*() {
      const provider = yield* FakeProvider.make()
      const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding }))
      const text = JSON.stringify({ object: "list", data, model: "upstream", usage: { prompt_tokens: 2 } })
      const pieces = Array.from({ length: Math.ceil(text.length / 50_000) }, (_, at) =>
        text.slice(at * 50_000, (at + 1) * 50_000))
      provider.behaveOnce({ kind: "raw", pieces, headers: { "content-type": "application/json" } })
      const answer = yield* callProvider({
        operation: embeddings,
        body: { model: "alias", input: "one", ...body },
        name: "openai",
        model: "alias",
        upstreamModel: "upstream",
        provider: { protocol: "openai", baseUrl: provider.baseUrl }
      })
      return { text, usage: answer.usage, said: answer.bytes.toString() }
    }).pipe(Effect.scoped)

  const read = (text: string) =>
    JSON.parse(text) as { readonly model: string; readonly data: ReadonlyArray<{ readonly embedding: unknown }> }

  it.live("gives the client base64, for any size of answer", () =>
    Effect.gen(function*() {
      for (const count of [1, 60]) {
        const vectors = Array.from({ length: count }, () => Array.from({ length: 1_536 }, Math.random))
        const { said, usage } = yield* ask(vectors, { encoding_format: "base64" })
        const { data, model } = read(said)
        assert.deepStrictEqual(data.map(({ embedding }) => embedding), vectors.map(base64))
        assert.strictEqual(model, "alias")
        assert.deepStrictEqual(usage, { inputTokens: 2, outputTokens: 0 })
      }
    }))

  it.live("is relayed unchanged if the client did not request base64", () =>
    Effect.gen(function*() {
      for (const body of [{}, { encoding_format: "float" }, { encoding_format: null }]) {
        const { said, text } = yield* ask([[0.1, 1]], body)
        assert.strictEqual(said, text.replace("\"upstream\"", "\"alias\""))
      }
    }))
})
