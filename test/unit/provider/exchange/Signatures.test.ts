/** Reasoning goes back only to the account that made it, relayed and translated, streamed and whole. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { responses } from "../../../../shared/contract/operations/Responses.ts"
import * as Signature from "../../../../shared/provider/dialects/conversation/Signature.ts"
import * as SignatureMarks from "../../../../shared/provider/dialects/conversation/SignatureMarks.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { unseal } from "../../../fixture/provider/dialects/OpenAiResponses.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"

type Item = Readonly<Record<string, unknown>>

interface Asked {
  readonly key: string
  readonly operation?: Operation
  readonly headers?: Readonly<Record<string, string>>
}

const include = ["reasoning.encrypted_content"]

/** Asks one account of a provider. */
const ask = (fake: FakeProvider, body: object, { headers = {}, key, operation = responses }: Asked) =>
  Effect.map(
    callProvider({
      operation,
      name: `secret-name-${key}`,
      model: "m",
      key,
      headers,
      provider: { protocol: "openai", baseUrl: fake.baseUrl, apiKey: keyReference, options: { apis: ["responses"] } },
      body: { model: "m", ...body }
    }),
    ({ bytes, head }) => ({ text: bytes.toString(), head })
  )

const eventsIn = (text: string): ReadonlyArray<Item> =>
  text.split("\n").flatMap((line) => line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as Item] : [])

const outputOf = (response: unknown) => (response as { readonly output: ReadonlyArray<Item> }).output

const lastInput = (fake: FakeProvider) => (fake.requests.at(-1)!.json as { readonly input: ReadonlyArray<Item> }).input

const question = { type: "message", role: "user", content: "Why?" }

/** The items of an answer with reasoning, from the account `a`, after checks of how its client sees it. */
const answered = Effect.fnUntraced(function*(fake: FakeProvider, stream: boolean) {
  fake.say({ reasoning: "Hm.", text: "Because.", toolCalls: [{ name: "look", arguments: "{}" }] })
  const tools = [{ type: "function", name: "look", parameters: {} }]
  const { text } = yield* ask(fake, { input: [question], include, tools, stream }, { key: "a" })
  assert.notInclude(text, "secret-name")
  const events = stream ? eventsIn(text) : []
  const output = outputOf(stream ? events.at(-1)?.["response"] : JSON.parse(text))
  const done = events.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item as Item)
  if (stream) assert.deepStrictEqual(done, output)
  assert.deepStrictEqual(output.map(({ type }) => type), ["reasoning", "message", "function_call"])
  const result = { type: "function_call_output", call_id: output[2]?.["call_id"], output: "Nothing." }
  return { output, next: [question, ...output, result, question] }
})

const foreign = "input[1] comes from another provider"

describe.each([false, true])("a relayed answer, streamed: %s", (stream) => {
  it.live("comes back to its account as that made it", () =>
    Effect.gen(function*() {
      const fake = yield* FakeProvider.make()
      const { next, output } = yield* answered(fake, stream)
      const { head } = yield* ask(fake, { input: next, stream }, { key: "a" })
      assert.notProperty(head?.headers, "x-translation-warnings")
      const [, reasoning, ...others] = lastInput(fake)
      assert.deepStrictEqual(unseal(String(reasoning?.["encrypted_content"])), { account: "a", text: "Hm." })
      assert.deepStrictEqual(
        [{ ...reasoning, encrypted_content: output[0]?.["encrypted_content"] }, ...others],
        next.slice(1)
      )
    }))

  it.live("reaches another account without reasoning and the ids after it, with a warning", () =>
    Effect.gen(function*() {
      const fake = yield* FakeProvider.make()
      const { next } = yield* answered(fake, stream)
      const { head } = yield* ask(fake, { input: next, stream }, { key: "b" })
      assert.strictEqual(head?.headers["x-translation-warnings"], foreign)
      const [, , ...others] = next
      assert.deepStrictEqual(lastInput(fake), [question, ...others.map(({ id: _, ...item }: Item) => item)])
    }))

  it.live("is refused for another account if the client wants nothing left out", () =>
    Effect.gen(function*() {
      const fake = yield* FakeProvider.make()
      const { next } = yield* answered(fake, stream)
      const asked = { key: "b", headers: { "x-translation": "strict" } }
      const result = yield* Effect.result(ask(fake, { input: next, stream }, asked))
      assert(Result.isFailure(result))
      assert.deepInclude(result.failure, { _tag: "InvalidRequest", param: "input[1]", code: "not_translatable" })
    }))
})

describe("reasoning that the client has from a provider itself", () => {
  it.live("goes to every account as it is", () =>
    Effect.gen(function*() {
      const fake = yield* FakeProvider.make()
      const { next } = yield* answered(fake, false)
      yield* ask(fake, { input: next }, { key: "a" })
      const own = lastInput(fake)
      yield* ask(fake, { input: own }, { key: "a" })
      assert.deepStrictEqual(lastInput(fake), own)
      const refused = yield* Effect.result(ask(fake, { input: own }, { key: "b" }))
      assert(Result.isFailure(refused))
      assert.deepInclude(refused.failure, { _tag: "ProviderRejected", code: "invalid_encrypted_content" })
    }))
})

describe("a translated answer", () => {
  it.live("comes back to its account, and reaches another without reasoning, from a client of chat completions", () =>
    Effect.gen(function*() {
      const fake = yield* FakeProvider.make()
      fake.say({ reasoning: "Hm.", text: "Because." })
      const asked = (key: string) => ({ key, operation: chatCompletions })
      const user = { role: "user", content: "Why?" }
      const { text } = yield* ask(fake, { messages: [user] }, asked("a"))
      const [{ message }] = (JSON.parse(text) as { readonly choices: [{ readonly message: object }] }).choices
      const next = { messages: [user, message, user] }
      yield* ask(fake, next, asked("a"))
      assert.deepStrictEqual(unseal(String(lastInput(fake)[1]?.["encrypted_content"])), { account: "a", text: "Hm." })
      const { head } = yield* ask(fake, next, asked("b"))
      assert.include(head?.headers["x-translation-warnings"], "comes from another provider")
      assert.deepStrictEqual(lastInput(fake).map(({ type }) => type), ["message", "message", "message"])
    }))

  it.live("comes back in a stream to a client of messages", () =>
    Effect.gen(function*() {
      const fake = yield* FakeProvider.make()
      fake.say({ reasoning: "Hm.", text: "Because." })
      const user = { role: "user", content: "Why?" }
      const body = { max_tokens: 9, messages: [user], stream: true }
      const { text } = yield* ask(fake, body, { key: "a", operation: messages })
      const deltas = eventsIn(text).map(({ delta }) => delta as Item | undefined)
      const signature = deltas.find((delta) => delta?.["type"] === "signature_delta")?.["signature"]
      const thinking = { role: "assistant", content: [{ type: "thinking", thinking: "Hm.", signature }] }
      const next = { max_tokens: 9, messages: [user, thinking, user] }
      yield* ask(fake, next, { key: "a", operation: messages })
      assert.deepStrictEqual(unseal(String(lastInput(fake)[1]?.["encrypted_content"])), { account: "a", text: "Hm." })
    }))
})

const account = "0123456789ab"
const mark = Signature.markOf(account)

describe("a signature", () => {
  it.each(Signature.origins)("of %s is the same after a client had it", (origin) => {
    for (const dialect of Signature.origins) {
      for (const made of [{ origin, value: "c2ln" }, { origin, value: "c2ln", account }]) {
        assert.deepInclude(Signature.fromClient(Signature.toClient(made, dialect), dialect), made)
      }
    }
  })

  it("of Anthropic is not bound to an account", () => {
    const made = { origin: "anthropic", value: "c2ln" } as const
    assert.deepStrictEqual(Signature.madeBy(() => account, made), made)
  })

  it("is read without its account from what earlier gateways gave to clients", () => {
    const wrapped = Buffer.from("gw-sig{\"origin\":\"gemini\",\"value\":\"c2ln\"}").toString("base64")
    assert.deepInclude(Signature.fromClient(wrapped, "openai"), { origin: "gemini", value: "c2ln" })
  })
})

describe("the marks in bytes", () => {
  const item = (value: string, space = "") => `{"encrypted_content"${space}:${space}"${value}","text":"ü"}`

  it("precede each value, wherever the bytes are divided", () => {
    const text = `[${item("one")},${item("two", " ")},${item("")},{"text":"\\"encrypted_content\\": \\"no\\""}]`
    const expected = text.replace("\"one", `"${mark}one`).replace("\"two", `"${mark}two`)
    const bytes = Buffer.from(text)
    for (let size = 1; size <= bytes.length; size++) {
      const rewrite = SignatureMarks.marker("encrypted_content", () => account)
      const pieces = Array.from(
        { length: Math.ceil(bytes.length / size) },
        (_, index) => rewrite(bytes.subarray(index * size, (index + 1) * size))
      )
      assert.strictEqual(Buffer.concat(pieces).toString(), expected, `pieces of ${size}`)
    }
  })

  it("leave every other byte as it was", () => {
    const marked = Buffer.from(`{ "input" : [ ${item(`${mark}one`, " ")}, {"text":"\\"${mark}"} ],"n":1.0 }`)
    assert.isTrue(SignatureMarks.holdsOnlyOf(marked, account))
    const expected = `{ "input" : [ ${item("one", " ")}, {"text":"\\"${mark}"} ],"n":1.0 }`
    assert.strictEqual(Buffer.from(SignatureMarks.withoutMarks(marked)).toString(), expected)
    for (
      const value of [Signature.markOf("a".repeat(12)), Signature.toClient({ origin: "gemini", value: "" }, "openai")]
    ) {
      assert.isFalse(SignatureMarks.holdsOnlyOf(Buffer.from(item(value)), account))
    }
  })
})

describe("a compaction of another account", () => {
  it("stays, so that its provider refuses it: without it the conversation has no beginning", () => {
    const losses = { warn: () => assert.fail("a warning") } as never
    const item = { type: "compaction", encrypted_content: `${Signature.markOf("a".repeat(12))}sealed` }
    assert.deepStrictEqual(Signature.toRelayed([item], "input", "responses", { account, losses }), [
      { type: "compaction", encrypted_content: "sealed" }
    ])
  })
})
