/** Requests as Cursor sends them with a base URL of its own: the responses format at the path of chat completions. */
import { assert, describe, it } from "@effect/vitest"
import { apis, chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

type Json = Readonly<Record<string, unknown>>

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const weather = { type: "function", name: "get_weather", description: "The weather", parameters, strict: false }
const grammar = { type: "grammar", syntax: "lark", definition: "start: \"*** Begin Patch\"" }
const patch = { type: "custom", name: "ApplyPatch", description: "Edits files", format: grammar }

const body = (model: string, more: object = {}) => ({
  model,
  input: [{ role: "user", content: [{ type: "input_text", text: "What is the weather in Oslo?" }] }],
  include: ["reasoning.encrypted_content"],
  reasoning: { effort: "medium", summary: "auto" },
  text: { verbosity: "low" },
  stream: true,
  stream_options: { include_usage: true },
  store: false,
  ...more
})

const post = async (json: object) => {
  const headers = { authorization: `Bearer ${shared().key}`, "content-type": "application/json" }
  const response = await fetch(`${shared().url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(json)
  })
  return { status: response.status, text: await response.text() }
}

interface Chunk {
  readonly object: string
  readonly choices: ReadonlyArray<{
    readonly delta: {
      readonly content?: string
      readonly tool_calls?: ReadonlyArray<{ readonly type?: string; readonly function: Json }>
    }
    readonly finish_reason: string | null
  }>
  readonly usage?: { readonly total_tokens: number } | null
}

const chunksOf = (text: string): ReadonlyArray<Chunk> => {
  const data = text.split("\n\n").filter((frame) => frame !== "").map((frame) => frame.replace(/^data: /, ""))
  assert.strictEqual(data.at(-1), "[DONE]")
  return data.slice(0, -1).map((json) => JSON.parse(json) as Chunk)
}

/** The joined values of a field of the only call. */
const callIn = (chunks: ReadonlyArray<Chunk>, field: "name" | "arguments"): string =>
  chunks.flatMap(({ choices }) => choices)
    .flatMap(({ delta }) => delta.tool_calls ?? []).map((call) => String(call.function[field] ?? "")).join("")

describe.each(apis)("Cursor, by a provider of %s", (api) => {
  const model = `on-${api}`

  it("gets chunks of a chat completion, with usage", async () => {
    shared().provider.say({ text: "It rains in Oslo." })
    const { received, result } = await receivedBy(shared(), () => post(body(model)))
    const { status, text } = await result
    assert.strictEqual(status, 200, text)
    const chunks = chunksOf(text)
    assert.isTrue(chunks.every(({ object }) => object === "chat.completion.chunk"))
    const choices = chunks.flatMap((chunk) => chunk.choices)
    assert.strictEqual(choices.map(({ delta }) => delta.content ?? "").join(""), "It rains in Oslo.")
    assert.strictEqual(choices.at(-1)?.finish_reason, "stop")
    assert.isAbove(chunks.at(-1)?.usage?.total_tokens ?? 0, 0)
    assert.include(JSON.stringify(received.json), "What is the weather in Oslo?")
    if (api === "responses") assert.strictEqual(received.path, "/v1/responses")
  })

  it("gets calls of its functions, and a whole completion without a stream", async () => {
    const call = { name: "get_weather", arguments: "{\"city\":\"Oslo\"}" }
    shared().provider.say({ toolCalls: [call] })
    const chunks = chunksOf((await post(body(model, { tools: [weather] }))).text)
    assert.deepStrictEqual([callIn(chunks, "name"), JSON.parse(callIn(chunks, "arguments"))], [call.name, {
      city: "Oslo"
    }])
    const whole = JSON.parse((await post(body(model, { tools: [weather], stream: false }))).text)
    assert.strictEqual(whole.object, "chat.completion")
    assert.deepInclude(whole.choices[0], { finish_reason: "tool_calls" })
    assert.deepInclude(whole.choices[0].message.tool_calls[0], { type: "function" })
    assert.strictEqual(whole.choices[0].message.tool_calls[0].function.name, call.name)
  })
})

describe("a custom tool", () => {
  const input = "*** Begin Patch\n*** End Patch"

  it("is called as a function with the text as arguments", async () => {
    shared().provider.say({ toolCalls: [{ name: "ApplyPatch", arguments: JSON.stringify({ input }) }] })
    const { text } = await post(body("on-anthropic", { tools: [patch] }))
    const chunks = chunksOf(text)
    assert.deepStrictEqual([callIn(chunks, "name"), callIn(chunks, "arguments")], ["ApplyPatch", input])
  })

  it("is known by its name in later requests", async () => {
    shared().provider.say({ text: "Done." })
    const history = [
      { role: "user", content: "Patch it." },
      { type: "function_call", call_id: "call_1", name: "ApplyPatch", arguments: input },
      { type: "function_call_output", call_id: "call_1", output: "ok" }
    ]
    const ask = (model: string) => receivedBy(shared(), () => post(body(model, { input: history, tools: [patch] })))
    const relayed = await ask("on-responses")
    assert.strictEqual((await relayed.result).status, 200)
    assert.deepStrictEqual((relayed.received.json as { readonly input: unknown }).input, [
      history[0],
      { type: "custom_tool_call", call_id: "call_1", name: "ApplyPatch", input },
      { type: "custom_tool_call_output", call_id: "call_1", output: "ok" }
    ])
    const translated = await ask("on-openai")
    assert.strictEqual((await translated.result).status, 200)
    assert.include(JSON.stringify(translated.received.json), JSON.stringify(JSON.stringify({ input })))
  })
})

describe("a body with items", () => {
  it("is answered by the built-in engine", async () => {
    const chunks = chunksOf((await post(body("local-chat", { input: "Say: The bees dance." }))).text)
    const text = chunks.flatMap(({ choices }) => choices).map(({ delta }) => delta.content ?? "").join("")
    assert.strictEqual(text, "The bees dance.")
  })

  it("is rejected with the name of the wrong field", async () => {
    const wrong = [
      [{ input: [{ role: "bystander", content: "?" }] }, /^input\[0\]/],
      [{ input: "?", previous_response_id: "resp_1" }, /^previous_response_id/],
      [{ input: "?", messages: [], max_tokens: 0 }, /^(?:messages|max_tokens)/]
    ] as const
    for (const [more, param] of wrong) {
      const { status, text } = await post(body("local-chat", more))
      assert.strictEqual(status, 400, text)
      assert.match((JSON.parse(text) as { readonly error: { readonly param: string } }).error.param, param)
    }
  })
})
