/** State of the responses API with OpenAI's client: continue, refer to, get, delete and list what is stored. */
import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { chatProviders, keyOf } from "../../fixture/gateway/ChatProviders.ts"
import { plain } from "../../fixture/gateway/Gateway.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { unseal } from "../../fixture/provider/dialects/OpenAiResponses.ts"

/** Two accounts at a provider, whose requests differ in the model. */
const accounts = {
  provider: `  second: { protocol: openai, baseUrl: "ROOT/v1", options: { apis: [responses] }, ` +
    `apiKey: "\${PROVIDER_SECRET_OF_OPENAI}", ${plain} }`,
  model: "  on-two: { workload: chat, targets: [{ provider: to-responses, model: of-first }, " +
    "{ provider: second, model: of-second, priority: 1 }] }"
}

const shared = sharedGateway(chatProviders(accounts))

type Create = OpenAI.Responses.ResponseCreateParamsNonStreaming
type Json = Readonly<Record<string, unknown>>

const client = (key = shared().key) => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })
const create = (request: Create, key = shared().key) => client(key).responses.create(request)

const errorOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => assert.fail("no error"), (error: unknown) => error)
  assert.instanceOf(error, OpenAI.APIError)
  const { code, param, status } = error
  return { status, param, code }
}

const notFound = { status: 404, param: "response_id", code: "not_found" }
const noPrevious = { status: 400, param: "previous_response_id", code: "previous_response_not_found" }
const unheard = `resp_${"0".repeat(32)}`

/** What the provider gets of a conversation: the text of each turn. */
const turnsOf = (json: unknown): ReadonlyArray<unknown> => {
  const { input, messages = input } = json as { readonly input?: unknown; readonly messages?: unknown }
  if (typeof messages === "string") return [messages]
  return (messages as ReadonlyArray<Json>).map(({ content, type }) => {
    const [part] = Array.isArray(content) ? content as ReadonlyArray<Json> : [{ text: content ?? type }]
    return part?.["text"]
  })
}

describe.each(["on-responses", "on-openai", "on-anthropic"])("%s", (model) => {
  it("gets the whole conversation of a request that names the response before", async () => {
    let previous: string | null = null
    const said: Array<string> = []
    for (const turn of ["one", "two", "three"]) {
      shared().provider.say({ text: `Re: ${turn}` })
      said.push(turn)
      const { received, result } = await receivedBy(
        shared(),
        () => create({ model, input: turn, previous_response_id: previous, stream: false })
      )
      const response = await result
      assert.deepStrictEqual(turnsOf(received.json), said)
      assert.isNotOk((received.json as Json)["previous_response_id"])
      assert.deepInclude(response as object, { store: true, previous_response_id: previous, status: "completed" })
      assert.deepStrictEqual(
        await client().responses.retrieve(response.id) as object,
        JSON.parse(JSON.stringify(response))
      )
      said.push(response.output_text)
      previous = response.id
    }
  })

  it("continues a stored response with one that is not to be stored", async () => {
    const { id: previous } = await create({ model, input: "Hello" })
    const unkept = await create({ model, input: "Speak.", store: false, previous_response_id: previous })
    assert.deepInclude(unkept as object, { store: false, previous_response_id: previous })
    assert.deepStrictEqual(await errorOf(client().responses.retrieve(unkept.id)), notFound)
  })

  it("gets what a request refers to by id", async () => {
    shared().provider.say({ text: "The bees dance." })
    const first = await create({ model, input: "What do bees do?" })
    const references = first.output.map(({ id }) => ({ type: "item_reference" as const, id: id ?? "" }))
    const { received, result } = await receivedBy(
      shared(),
      () =>
        create({ model, input: [{ role: "user", content: "What?" }, ...references, { role: "user", content: "Why?" }] })
    )
    await result
    assert.deepStrictEqual(turnsOf(received.json), ["What?", "The bees dance.", "Why?"])
    // what the conversation has already is not repeated
    const again = await receivedBy(
      shared(),
      () => create({ model, input: [...references, { role: "user", content: "Why?" }], previous_response_id: first.id })
    )
    await again.result
    assert.deepStrictEqual(turnsOf(again.received.json), ["What do bees do?", "The bees dance.", "Why?"])
  })

  it("stores a stream before its last event", async () => {
    shared().provider.say({ text: "In parts." })
    const { id: previous } = await create({ model, input: "Hello" })
    const request = { model, input: "Speak.", stream: true, previous_response_id: previous } as const
    const shown: Array<unknown> = []
    for await (const event of await client().responses.create(request)) {
      if ("response" in event) shown.push(event.response)
      if (event.type !== "response.completed") continue
      assert.lengthOf(shown, 3)
      for (const each of shown) assert.deepInclude(each, { store: true, previous_response_id: previous })
      const stored = await client().responses.retrieve(event.response.id)
      assert.deepStrictEqual(
        stored as object,
        JSON.parse(JSON.stringify({ ...event.response, output_text: "In parts." }))
      )
      return
    }
    assert.fail("the stream has no end")
  })

  it("does not store an answer that breaks off", async () => {
    shared().provider.say({ text: "An answer of several words." })
    shared().provider.behaveOnce({ kind: "cut", after: 6 })
    const ids = new Set<string>()
    const types: Array<string> = []
    const read = async () => {
      for await (const event of await client().responses.create({ model, input: "Speak.", stream: true })) {
        types.push(event.type)
        if ("response" in event) ids.add(event.response.id)
      }
    }
    await read().catch((error: unknown) => assert.instanceOf(error, OpenAI.APIError))
    assert.include(types, "response.output_text.delta")
    assert.notInclude(types, "response.completed")
    const [id = "", ...others] = ids
    assert.isEmpty(others)
    assert.deepStrictEqual(await errorOf(client().responses.retrieve(id)), notFound)
    assert.deepStrictEqual(await errorOf(create({ model, input: "And?", previous_response_id: id })), noPrevious)
    // nor an answer that breaks off before its body is complete
    shared().provider.behaveOnce({ kind: "truncate", after: 0, bytes: 20 })
    const { status } = await errorOf(create({ model, input: "Speak." }))
    assert.strictEqual(status, 502)
  })
})

describe("a conversation with a model of two accounts", () => {
  it("goes on where its latest reasoning was made, and without the reasoning of the other account", async () => {
    const { provider: fake } = shared()
    fake.say({ reasoning: "Hm.", text: "So." })
    let previous: string | null = null
    const turn = async () => {
      const input = [{ role: "user" as const, content: "Why?" }]
      const request = { model: "on-two", input, previous_response_id: previous }
      const { data, response } = await client().responses.create(request).withResponse()
      previous = data.id
      const { input: items, model } = fake.requests.at(-1)!.json as {
        readonly input: ReadonlyArray<Json>
        readonly model: string
      }
      const reasoning = items.filter(({ type }) => type === "reasoning")
      return {
        model,
        accounts: reasoning.map((item) => unseal(String(item["encrypted_content"]))?.account),
        warnings: response.headers.get("x-translation-warnings")
      }
    }
    const [first, second] = [keyOf("responses"), keyOf("openai")]
    assert.deepStrictEqual(await turn(), { model: "of-first", accounts: [], warnings: null })
    assert.deepStrictEqual(await turn(), { model: "of-first", accounts: [first], warnings: null })
    fake.behaveInTurn("of-first", { kind: "status", status: 500 })
    const both = "input[1] comes from another provider; input[4] comes from another provider"
    assert.deepStrictEqual(await turn(), { model: "of-second", accounts: [], warnings: both })
    assert.deepStrictEqual(await turn(), { model: "of-second", accounts: [second], warnings: both })
  })
})

describe("a stored response", () => {
  const model = "local-chat"

  it("is unknown to other keys, if it was not to be stored, and once it is deleted", async () => {
    const { id, output } = await create({ model, input: "Say: mine" })
    const stranger = await shared().createKey("2099-01-01")
    const reference = [{ type: "item_reference" as const, id: output[0]?.id ?? "" }]
    assert.deepStrictEqual(await errorOf(client(stranger).responses.retrieve(id)), notFound)
    assert.deepStrictEqual(await errorOf(client(stranger).responses.delete(id)), notFound)
    assert.deepStrictEqual(await errorOf(client(stranger).responses.inputItems.list(id)), notFound)
    assert.deepStrictEqual(await errorOf(create({ model, input: "?", previous_response_id: id }, stranger)), noPrevious)
    assert.deepInclude(await errorOf(create({ model, input: reference }, stranger)), {
      status: 404,
      param: "input[0].id"
    })

    const unkept = await create({ model, input: "Say: gone", store: false })
    assert.isFalse((unkept as object as Json)["store"])
    for (const unknown of [unkept.id, unheard, "resp_1", "compact"]) {
      assert.deepStrictEqual(await errorOf(client().responses.retrieve(unknown)), notFound)
      assert.deepStrictEqual(await errorOf(create({ model, input: "?", previous_response_id: unknown })), noPrevious)
    }
    const lost = [{ type: "reasoning" as const, id: "rs_unknown", summary: [] }, {
      role: "user" as const,
      content: "?"
    }]
    assert.deepInclude(await errorOf(create({ model, input: lost })), { status: 404, param: "input[0].id" })

    await client().responses.delete(id)
    assert.deepStrictEqual(await errorOf(client().responses.retrieve(id)), notFound)
    assert.deepStrictEqual(await errorOf(client().responses.delete(id)), notFound)
    assert.deepStrictEqual(await errorOf(create({ model, input: "?", previous_response_id: id })), noPrevious)
  })

  it("lists its input, page by page in either order", async () => {
    const first = await create({ model, input: "Say: one" })
    const { id } = await create({
      model,
      input: [{ role: "user", content: "Say: two", type: "message" }, { role: "user", content: "Say: three" }],
      previous_response_id: first.id
    })
    const list = (query: OpenAI.Responses.InputItemListParams) =>
      Array.fromAsync(client().responses.inputItems.list(id, query), (item) => (item as object as Json)["content"])
    const textsOf = async (query: OpenAI.Responses.InputItemListParams) =>
      (await list(query)).map((content) => (content as ReadonlyArray<Json>)[0]?.["text"])
    const all = ["Say: one", "one", "Say: two", "Say: three"]
    assert.deepStrictEqual(await textsOf({ order: "asc" }), all)
    assert.deepStrictEqual(await textsOf({}), all.toReversed())
    for (const limit of [1, 2, 3, 101]) assert.deepStrictEqual(await textsOf({ order: "asc", limit }), all)
    const page = await client().responses.inputItems.list(id, { limit: 1 })
    assert.isTrue(page.has_more)
    assert.lengthOf(page.data, 1)
    for (const [query, param] of [[{ limit: 0 }, "limit"], [{ after: "no" }, "after"]] as const) {
      assert.deepInclude(await errorOf(client().responses.inputItems.list(id, query)), { status: 400, param })
    }
    const streamed = client().responses.retrieve(id, { stream: true })
    assert.deepInclude(await errorOf(streamed), { status: 400, param: "stream" })
  })

  it("is counted with what continues it", async () => {
    const counted = async (request: OpenAI.Responses.InputTokenCountParams, key?: string) =>
      (await client(key).responses.inputTokens.count({ model, ...request })).input_tokens
    const { id, usage } = await create({ model, input: "Say: The lighthouse was built in 1871." })
    assert.strictEqual(await counted({ input: "Say: The lighthouse was built in 1871." }), usage?.input_tokens)
    const next = { input: "Say: and then?", previous_response_id: id }
    const tokens = await counted(next)
    assert.isAbove(tokens, usage?.total_tokens ?? Infinity)
    assert.strictEqual((await create({ model, ...next })).usage?.input_tokens, tokens)
    const stranger = await shared().createKey("2099-01-01")
    assert.deepStrictEqual(await errorOf(counted(next, stranger)), noPrevious)
    assert.deepStrictEqual(await errorOf(counted({ ...next, previous_response_id: unheard })), noPrevious)
    const { received, result } = await receivedBy(shared(), () => counted({ ...next, model: "on-responses" }))
    assert.isAbove(await result, 0)
    assert.deepStrictEqual([received.path, turnsOf(received.json)], [
      "/v1/responses/input_tokens",
      ["Say: The lighthouse was built in 1871.", "The lighthouse was built in 1871.", "Say: and then?"]
    ])
  })

  it("is continued by a compaction", async () => {
    const { id } = await create({ model, input: "The lighthouse was built in 1871." })
    const { output } = await client().responses.compact({ model, previous_response_id: id })
    assert.deepStrictEqual(output.map(({ type }) => type), ["message", "compaction"])
    const next = await create({ model, input: "Say: and then?", previous_response_id: id })
    assert.strictEqual(next.output_text, "and then?")
  })
})
