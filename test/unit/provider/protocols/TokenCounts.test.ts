/** Token counts: by the provider in any dialect, and otherwise by the tokenizer of the model's family. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterEach, beforeEach } from "vitest"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import { countTokens, messagesCount, responsesCount } from "../../../../shared/contract/operations/TokenCounts.ts"
import * as Signature from "../../../../shared/provider/dialects/conversation/Signature.ts"
import { accountOf } from "../../../../shared/provider/transport/Endpoint.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"

let provider: FakeProvider
beforeEach(async () => {
  provider = await FakeProvider.start()
})
afterEach(() => provider.stop())

const text = "The lighthouse was built in 1871."
const words = text.split(" ").length
const tools = [{ name: "get_weather", description: "The weather", input_schema: { type: "object" } }]
const asMessages = { model: "m", messages: [{ role: "user", content: text }] }
const asContents = { contents: [{ role: "user", parts: [{ text }] }] }
const requests = [
  { name: "messages", operation: messagesCount, body: { ...asMessages, tools, system: "Be brief." }, input: words + 2 },
  {
    name: "items",
    operation: responsesCount,
    body: {
      model: "m",
      input: [{ role: "user", content: text }],
      instructions: "Be brief.",
      tools: [{ type: "function", name: "get_weather", parameters: { type: "object" } }]
    },
    input: words + 2
  },
  { name: "contents", operation: countTokens, body: asContents, input: words },
  {
    name: "a whole generateContent request",
    operation: countTokens,
    body: {
      generateContentRequest: {
        ...asContents,
        model: "models/m",
        systemInstruction: { parts: [{ text: "Be brief." }] },
        generationConfig: { temperature: 1, maxOutputTokens: 5 }
      }
    },
    input: words + 2
  }
] as const

const providers = {
  anthropic: { protocol: "anthropic", baseUrl: "" },
  gemini: { protocol: "gemini", baseUrl: "/v1beta" },
  openai: { protocol: "openai", baseUrl: "/v1" },
  responses: { protocol: "openai", baseUrl: "/v1", options: { apis: ["chatCompletions", "responses"] } }
} as const satisfies Record<string, Provider>
type Name = keyof typeof providers

const catalogued = (name: Name): Provider => ({
  ...providers[name],
  baseUrl: `${provider.root}${providers[name].baseUrl}`
})

const count = (name: Name, { body, operation }: typeof requests[number], upstreamModel = "m-1") =>
  Effect.map(
    callProvider({
      operation,
      model: "m",
      upstreamModel,
      name: "provider",
      provider: catalogued(name),
      body
    }),
    ({ bytes, head, usage }) => ({
      answer: JSON.parse(bytes.toString()) as Record<string, unknown>,
      estimated: head?.headers["x-gateway-token-count"],
      usage
    })
  )

/** A count in the client's format. */
const counted = ({ operation }: typeof requests[number], tokens: number) => {
  if (operation === countTokens) return { totalTokens: tokens }
  return operation === messagesCount
    ? { input_tokens: tokens }
    : { object: "response.input_tokens", input_tokens: tokens }
}

const tokensIn = ({ input_tokens, totalTokens = input_tokens }: Record<string, unknown>) => Number(totalTokens)

describe("a count of tokens", () => {
  for (const request of requests) {
    for (const name of ["anthropic", "gemini", "responses"] as const) {
      it.effect(`of ${request.name} is made by ${name}, and has no usage`, () =>
        Effect.gen(function*() {
          const { answer, estimated, usage } = yield* count(name, request)
          assert.deepStrictEqual(answer, counted(request, request.input))
          assert.deepStrictEqual([estimated, usage], [undefined, undefined])
          assert.lengthOf(provider.requests, 1)
          assert.match(
            provider.requests[0]?.path ?? "",
            /\/count_tokens$|\/models\/m-1:countTokens$|\/responses\/input_tokens$/
          )
        }))
    }

    it.effect(`of ${request.name} is estimated if the provider's server lacks the route`, () =>
      Effect.gen(function*() {
        provider.behave({ kind: "status", status: 404 })
        const { answer, estimated } = yield* count("responses", request, "gpt-5")
        assert.isAbove(tokensIn(answer), 9)
        assert.strictEqual(estimated, "estimated")
        assert.lengthOf(provider.requests, 1)
      }))

    it.effect(`of ${request.name} is estimated by a tokenizer where the provider has none`, () =>
      Effect.gen(function*() {
        const { answer, estimated, usage } = yield* count("openai", request, "openai/gpt-5-mini")
        const tokens = tokensIn(answer)
        assert.deepStrictEqual(answer, counted(request, tokens))
        // nine of the text, and some of the template, the instructions and the tools
        assert.isAbove(tokens, 9)
        assert.isBelow(tokens, 60)
        assert.deepStrictEqual([estimated, usage], ["estimated", undefined])
        assert.isEmpty(provider.requests)
      }))

    // Claude Code sends paid requests to find the number if this fails
    for (const model of ["qwen-3", "llama-4-maverick", "deepseek-chat", "mistral-large-3", "our-own-model"]) {
      it.effect(`of ${request.name} is estimated for ${model}, too`, () =>
        Effect.gen(function*() {
          const { answer, estimated } = yield* count("openai", request, model)
          assert.isAbove(tokensIn(answer), 9)
          assert.isBelow(tokensIn(answer), 60)
          assert.strictEqual(estimated, "estimated")
          assert.isEmpty(provider.requests)
        }))
    }
  }

  it.effect("of a whole request in snake_case names the provider's model", () =>
    Effect.gen(function*() {
      const whole = { model: "models/m", contents: [{ role: "user", parts: [{ text }] }] }
      yield* count("gemini", { ...requests[2], body: { generate_content_request: whole } } as never)
      assert.deepStrictEqual(JSON.parse(String(provider.requests[0]?.body)), {
        generate_content_request: { ...whole, model: "models/m-1" }
      })
    }))

  it.effect("of pictures and files includes them", () =>
    Effect.gen(function*() {
      const content = (parts: ReadonlyArray<object>) => ({
        name: "messages",
        operation: messagesCount,
        body: { model: "m", messages: [{ role: "user", content: [{ type: "text", text }, ...parts] }] }
      } as never)
      const tokensOf = (parts: ReadonlyArray<object>) =>
        Effect.map(count("openai", content(parts), "gpt-5"), ({ answer }) => tokensIn(answer))
      const plain = yield* tokensOf([])
      const picture = { type: "image", source: { type: "url", url: "https://pictures.test/one.png" } }
      assert.isAbove(yield* tokensOf([picture]), plain + 1_000)
      const source = { type: "base64", media_type: "application/pdf", data: "A".repeat(40_000) }
      assert.strictEqual(yield* tokensOf([{ type: "document", source }]), plain + 10_000)
    }))

  it.effect("has the provider's own reasoning without marks, and no other's", () =>
    Effect.gen(function*() {
      const reasoning = (signature: Signature.Signature) => ({
        type: "reasoning",
        summary: [],
        encrypted_content: Signature.toClient(signature, "responses")
      })
      const own = accountOf({ name: "provider", provider: catalogued("responses"), model: "m-1" }, undefined)
      const input = [
        { role: "user", content: text },
        reasoning({ origin: "responses", account: own, value: "own" }),
        reasoning({ origin: "responses", account: "0123456789ab", value: "foreign" })
      ]
      yield* count("responses", { ...requests[1], body: { model: "m", input } } as never)
      assert.deepStrictEqual(JSON.parse(String(provider.requests[0]?.body)), {
        model: "m-1",
        input: [input[0], { type: "reasoning", summary: [], encrypted_content: "own" }]
      })
    }))

  it.effect("of documents and reasoning includes their text", () =>
    Effect.gen(function*() {
      const long = `${text} `.repeat(500)
      const tokensOf = (...messages: ReadonlyArray<object>) =>
        Effect.map(
          count(
            "openai",
            { name: "messages", operation: messagesCount, body: { model: "m", messages } } as never,
            "gpt-5"
          ),
          ({ answer }) => tokensIn(answer)
        )
      const written = yield* tokensOf({ role: "user", content: [{ type: "text", text: long }] })
      assert.isAbove(written, 500 * words)
      const source = { type: "text", media_type: "text/plain", data: long }
      assert.strictEqual(yield* tokensOf({ role: "user", content: [{ type: "document", source }] }), written)
      const question = { role: "user", content: [{ type: "text", text }] }
      const said = { type: "text", text }
      const thought = (origin: "openai" | "anthropic") => ({
        type: "thinking",
        thinking: long,
        signature: Signature.toClient({ origin, value: "sealed" }, "anthropic")
      })
      const after = (...thoughts: ReadonlyArray<object>) =>
        tokensOf(question, { role: "assistant", content: [...thoughts, said] }, question)
      const plain = yield* after()
      assert.isAbove(yield* after(thought("openai")), plain + 500 * words)
      // this provider does not get it
      assert.strictEqual(yield* after(thought("anthropic")), plain)
    }))

  it.effect("names a lost field by its path", () =>
    Effect.gen(function*() {
      const hosted = { ...asContents, tools: [{ codeExecution: { a: 1 } }] }
      const error = yield* Effect.flip(
        count("anthropic", { ...requests[2], body: { generateContentRequest: hosted } } as never)
      )
      assert.include(error.message, "generateContentRequest.tools[0].codeExecution: ")
    }))
})
