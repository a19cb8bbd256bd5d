/** Responses with OpenAI's client: the built-in engine, a relay, and what other dialects do not have. */
import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { openais } from "../../fixture/ClientMajors.ts"
import { apis, chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

type Create = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Events = ReadonlyArray<OpenAI.Responses.ResponseStreamEvent>
type Json = Readonly<Record<string, unknown>>

const client = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
const create = (request: Create) => client().responses.create({ store: false, ...request })
const stream = async (request: Create): Promise<Events> =>
  Array.fromAsync(await client().responses.create({ store: false, ...request, stream: true }))

const errorOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => assert.fail("no error"), (error: unknown) => error)
  assert.instanceOf(error, OpenAI.APIError)
  const { code, param, status } = error
  return { status, param, code }
}

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const weather = { type: "function", name: "get_weather", parameters, strict: false } as const

/** The types of events, those that repeat once. */
const typesOf = (events: Events) => events.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1])

const text = [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
  "response.completed"
]

describe("the built-in engine", () => {
  const model = "local-chat"

  it("repeats a function's strictness, which is OpenAI's default where the client left it out", async () => {
    const { strict, ...unsaid } = weather
    const loose = { ...unsaid, name: "get_time", strict }
    const { tools } = await create({ model, input: "Hello", tools: [unsaid as typeof weather, loose] })
    assert.deepStrictEqual(tools.map((tool) => tool.type === "function" && tool.strict), [true, false])
  })

  it("answers a text", async () => {
    const response = await create({
      model,
      input: "Say: The bees dance.",
      instructions: "Be brief.",
      metadata: { a: "b" }
    })
    assert.match(response.id, /^resp_[0-9a-f]{32}$/)
    assert.strictEqual(response.output_text, "The bees dance.")
    assert.deepInclude(response as object, {
      object: "response",
      status: "completed",
      model,
      error: null,
      store: false
    })
    assert.deepInclude(response as object, { instructions: "Be brief.", metadata: { a: "b" }, tool_choice: "auto" })
    const { input_tokens: input = 0, output_tokens: output = 0, total_tokens: total } = response.usage ?? {}
    assert.isTrue(input > 0 && output > 0 && total === input + output)
  })

  it("streams numbered events, which end with the same response", async () => {
    const events = await stream({ model, input: "Say: The bees dance." })
    assert.deepStrictEqual(typesOf(events), text)
    assert.deepStrictEqual(events.map(({ sequence_number }) => sequence_number), [...events.keys()])
    const last = events.at(-1)
    assert(last?.type === "response.completed")
    const [item] = last.response.output
    assert(item?.type === "message")
    assert.deepStrictEqual(item.content[0], {
      type: "output_text",
      text: "The bees dance.",
      annotations: [],
      logprobs: []
    })
    const first = events[0]
    assert(first?.type === "response.created")
    assert.strictEqual(first.response.id, last.response.id)
  })

  it("calls a function and reads its result", async () => {
    const input = [{ role: "user" as const, content: "What is the weather in Oslo?" }]
    const asked = await create({ model, input, tools: [weather] })
    const [call] = asked.output
    assert(call?.type === "function_call")
    assert.deepInclude(call, { name: "get_weather", status: "completed" })
    const output = { type: "function_call_output" as const, call_id: call.call_id, output: "It has 7 degrees." }
    const answered = await create({ model, input: [...input, call, output], tools: [weather] })
    assert.include(answered.output_text, "7 degrees")
  })

  it("ends at the token limit", async () => {
    const response = await create({ model, input: "Say: one two three four five six.", max_output_tokens: 3 })
    assert.deepInclude(response, { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })
    const [item] = response.output
    assert(item?.type === "message")
    assert.strictEqual(item.status, "incomplete")
    const events = await stream({ model, input: "Say: one two three four five six.", max_output_tokens: 3 })
    assert.strictEqual(events.at(-1)?.type, "response.incomplete")
  })
})

describe("a provider that has the API", () => {
  const model = "on-responses"

  it("gets the request as it is, stores nothing, and returns encrypted reasoning", async () => {
    shared().provider.say({ text: "Hello" })
    const tools = [{ type: "web_search" as const }, { type: "custom" as const, name: "note" }]
    const { received, result } = await receivedBy(
      shared(),
      () => create({ model, input: "Hi", tools, store: true, include: ["web_search_call.results"] })
    )
    const { id, model: answered } = await result
    assert.deepStrictEqual(received.json, {
      input: "Hi",
      tools,
      model: "upstream-model",
      store: false,
      include: ["web_search_call.results", "reasoning.encrypted_content"]
    })
    assert.strictEqual(answered, model)
    assert.match(id, /^resp_[0-9a-f]{32}$/)
  })

  it("streams through, with the gateway's id in every response", async () => {
    shared().provider.say({ reasoning: "Hm.", text: "Bees dance." })
    const events = await stream({ model, input: "Hi" })
    const responses = events.flatMap((event) => "response" in event ? [event.response] : [])
    assert.lengthOf(responses, 3)
    assert.lengthOf([...new Set(responses.map(({ id }) => id))], 1)
    assert.match(responses[0]!.id, /^resp_[0-9a-f]{32}$/)
    assert.deepStrictEqual([...new Set(responses.map(({ model }) => model))], [model])
    assert.strictEqual(
      events.map((event) => event.type === "response.output_text.delta" ? event.delta : "").join(""),
      "Bees dance."
    )
  })
})

describe("a provider of another API", () => {
  const model = "on-anthropic"

  it("streams reasoning, text and calls as items, one after another", async () => {
    shared().provider.say({
      reasoning: "Hm.",
      text: "Let me see.",
      toolCalls: [{ name: "get_weather", arguments: "{\"city\":\"Oslo\"}" }]
    })
    const include = ["reasoning.encrypted_content" as const]
    const events = await stream({ model, input: "Hi", tools: [weather], include })
    assert.deepStrictEqual(typesOf(events), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
      ...text.slice(2, -1),
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed"
    ])
    assert.deepStrictEqual(events.map(({ sequence_number }) => sequence_number), [...events.keys()])
    const done = events.flatMap((event) => event.type === "response.output_item.done" ? [event.item] : [])
    const last = events.at(-1)
    assert(last?.type === "response.completed")
    assert.deepStrictEqual(last.response.output, done)
    assert.deepStrictEqual(done.map(({ type }) => type), ["reasoning", "message", "function_call"])
    assert.hasAllKeys(done[0], ["id", "type", "summary", "encrypted_content"])
  })

  it("gets functions for custom tools and namespaces, whose calls come back as the client knows them", async () => {
    const tools: Create["tools"] = [
      {
        type: "custom",
        name: "apply_patch",
        description: "Changes files.",
        format: { type: "grammar", syntax: "lark", definition: "start: WORD" }
      },
      {
        type: "namespace",
        name: "mcp__files",
        description: "Files",
        tools: [{ type: "function", name: "read", parameters }]
      }
    ]
    shared().provider.say({
      toolCalls: [
        { name: "apply_patch", arguments: "{\"input\":\"*** Begin\"}" },
        { name: "mcp__files__read", arguments: "{\"city\":\"Oslo\"}" }
      ]
    })
    const { received, result } = await receivedBy(shared(), () => stream({ model, input: "Change it", tools }))
    const events = await result
    const sent = (received.json as { readonly tools: ReadonlyArray<Json> }).tools
    assert.deepStrictEqual(sent.map(({ name }) => name), ["apply_patch", "mcp__files__read"])
    assert.deepInclude(sent[0]?.["input_schema"] as Json, { required: ["input"] })
    assert.include(String(sent[0]?.["description"]), "start: WORD")
    const last = events.at(-1)
    assert(last?.type === "response.completed")
    const { output } = last.response
    const [custom, namespaced] = output
    assert(custom?.type === "custom_tool_call" && namespaced?.type === "function_call")
    assert.deepInclude(custom as object, { name: "apply_patch", input: "*** Begin" })
    assert.deepInclude(namespaced, { name: "read", namespace: "mcp__files", arguments: "{\"city\":\"Oslo\"}" })
    assert.include(typesOf(events), "response.custom_tool_call_input.done")

    shared().provider.say({ text: "Done." })
    const results = output.flatMap((item): ReadonlyArray<OpenAI.Responses.ResponseInputItem> =>
      item.type === "custom_tool_call"
        ? [{ type: "custom_tool_call_output" as const, call_id: item.call_id, output: "changed" }]
        : item.type === "function_call"
        ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "read" }]
        : []
    )
    const next = await receivedBy(
      shared(),
      () =>
        create({
          model,
          input: [{ role: "user", content: "Change it" }, ...output as OpenAI.Responses.ResponseInput, ...results],
          tools
        })
    )
    await next.result
    const { messages } = next.received.json as {
      readonly messages: ReadonlyArray<{ readonly content: ReadonlyArray<Json> }>
    }
    assert.deepStrictEqual(messages[1]?.content.map(({ input, name }) => ({ name, input })), [
      { name: "apply_patch", input: { input: "*** Begin" } },
      { name: "mcp__files__read", input: { city: "Oslo" } }
    ])
    assert.lengthOf(messages[2]?.content ?? [], 2)
  })

  it("gets no tools that only another provider has, which a warning names", async () => {
    shared().provider.say({ text: "Hello" })
    const request = { model, input: "Hi", tools: [weather, { type: "web_search" as const }], store: false }
    const { received, result } = await receivedBy(shared(), () => client().responses.create(request).withResponse())
    const { response } = await result
    assert.lengthOf((received.json as { readonly tools: ReadonlyArray<Json> }).tools, 1)
    assert.include(response.headers.get("x-translation-warnings"), "tools[1] is a tool that the provider")
    const forced = { ...request, tool_choice: { type: "web_search_preview" as const } }
    assert.deepStrictEqual(await errorOf(create(forced)), {
      status: 400,
      param: "tool_choice",
      code: "not_translatable"
    })
    const strict = client().responses.create(request, { headers: { "x-translation": "strict" } })
    assert.deepStrictEqual(await errorOf(strict), { status: 400, param: "tools[1]", code: "not_translatable" })
  })

  it("gets only the allowed tools", async () => {
    shared().provider.say({ text: "Hello" })
    const { received, result } = await receivedBy(shared(), () =>
      create({
        model,
        input: "Hi",
        tools: [weather, { ...weather, name: "get_time" }],
        tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "get_time" }] }
      }))
    await result
    const sent = received.json as { readonly tools: ReadonlyArray<Json>; readonly tool_choice: Json }
    assert.deepStrictEqual(sent.tools.map(({ name }) => name), ["get_time"])
    assert.deepInclude(sent.tool_choice, { type: "any" })
  })

  it("names its error by the code that tells clients not to retry", async () => {
    const error = { message: "prompt is too long: 200001 tokens > 200000 maximum", type: "invalid_request_error" }
    shared().provider.behaveOnce({ kind: "status", status: 400, error })
    const refused = await errorOf(stream({ model, input: "Hi" }))
    assert.deepInclude(refused, { status: 400, code: "context_length_exceeded" })
  })

  it("ends a stream that breaks off with a failed response", async () => {
    shared().provider.say({ text: "one two three four five six" })
    shared().provider.behaveOnce({ kind: "cut", after: 6 })
    const response = await fetch(`${shared().url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, input: "Hi", stream: true })
    })
    const frames = (await response.text()).split("\n\n").filter((frame) => frame !== "")
    const last = frames.at(-1) ?? ""
    assert.match(last, /^event: response\.failed\n/)
    const data = JSON.parse(last.replace(/^.*\ndata: /, "")) as Json & { readonly response: Json }
    assert.deepInclude(data.response, { object: "response", status: "failed" })
    assert.deepInclude(data.response["error"] as Json, { code: "server_error" })
  })
})

describe.each(Object.entries(openais))("parse of openai %s", (_, Sdk) => {
  it.each(["local-chat", ...apis.map((api) => `on-${api}`)])("gets what follows a schema from %s", async (model) => {
    shared().provider.say({ text: "{\"city\":\"Oslo\"}" })
    const schema = { ...parameters, additionalProperties: false }
    const { output_parsed } = await new Sdk({ baseURL: `${shared().url}/v1`, apiKey: shared().key }).responses.parse({
      model,
      store: false,
      input: "Oslo",
      text: { format: { type: "json_schema", name: "place", schema, strict: true } }
    })
    assert.hasAllKeys(output_parsed, ["city"])
  })
})

describe("what is not available", () => {
  it("is refused", async () => {
    const background = create({ model: "local-chat", input: "Hi", background: true })
    assert.deepInclude(await errorOf(background), { status: 400, param: "background" })
  })
})

describe("a compaction", () => {
  const story: Create["input"] = [
    { role: "user", content: "Tell me about the lighthouse." },
    { role: "assistant", content: "The lighthouse was built in 1871. Its keeper kept bees." },
    { type: "function_call", call_id: "call_1", name: "get_weather", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: "It rains." }
  ]

  it.each(["on-anthropic", "on-gemini", "on-openai"])(
    "is one summarising call to %s, which any other model can read",
    async (model) => {
      shared().provider.say({ text: "The lighthouse is from 1871.", usage: { input: 50, output: 7 } })
      const { received, result } = await receivedBy(shared(), () => client().responses.compact({ model, input: story }))
      const compacted = await result
      assert.include(JSON.stringify(received.json), "The assistant called get_weather")
      assert.deepStrictEqual(compacted.output.map(({ type }) => type), ["message", "compaction"])
      assert.deepInclude(compacted.usage, { input_tokens: 50, output_tokens: 7 })
      for (const other of ["on-responses", "on-openai", "on-gemini"]) {
        const next = await receivedBy(shared(), () => create({ model: other, input: compacted.output as Array<never> }))
        await next.result
        assert.include(JSON.stringify(next.received.json), "The lighthouse is from 1871.")
      }
    }
  )

  it.each(["on-anthropic", "local-chat"])("of %s is the only item of an answer to a trigger", async (model) => {
    shared().provider.say({ text: "The lighthouse is from 1871." })
    const input = [...story, { type: "compaction_trigger" as const }]
    const { output, status } = await create({ model, input })
    assert.strictEqual(status, "completed")
    assert.deepStrictEqual(output.map(({ type }) => type), ["compaction"])
    const events = await stream({ model, input })
    assert.deepStrictEqual(typesOf(events), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.output_item.done",
      "response.completed"
    ])
  })
})
