/** Chat through the whole gateway with OpenAI's client, given only base URL and key. */
import { assert, describe, it } from "@effect/vitest"
import { openais } from "../../fixture/ClientMajors.ts"
import { plain } from "../../fixture/gateway/Gateway.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const text = "The quick brown fox jumps over the lazy dog"
const chat = (model = "free-chat") => ({ model, messages: [{ role: "user" as const, content: text }] })

const weather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  }
}

/** Longer than a test: only an abort ends a call to a patient provider. */
const patience = "timeouts: { firstByteMs: 300000, idleMs: 300000 }"

const shared = sharedGateway({
  providers: (baseUrl) => `
  free-and-patient: { protocol: openai, baseUrl: "${baseUrl}", idempotent: true, ${patience}, ${plain} }
  paid-and-patient: { protocol: openai, baseUrl: "${baseUrl}", idempotent: false, ${patience}, ${plain} }`,
  models: `
  free-and-patient: { workload: chat, targets: [{ provider: free-and-patient }] }
  paid-and-patient: { workload: chat, targets: [{ provider: paid-and-patient }] }
  known-chat: { workload: chat, contextWindow: 100000, targets: [{ provider: local, model: gpt-5 }] }`
})

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = () => {
    const gateway = shared()
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key })
    return { gateway, client, completions: client.chat.completions }
  }

  it("moderates texts and pictures, and says if a model cannot", async () => {
    const { client } = make()
    const model = "omni-moderation-latest"
    const { model: named, results } = await client.moderations.create({ model, input: ["bees", "violence"] })
    assert.strictEqual(named, model)
    assert.deepStrictEqual(results.map(({ categories, flagged }) => [flagged, categories.violence]), [
      [false, false],
      [true, true]
    ])
    const parts = [
      { type: "text" as const, text: "No violence" },
      { type: "image_url" as const, image_url: { url: "https://example.com/bee.png" } }
    ]
    const { results: [whole] } = await client.moderations.create({ model, input: parts })
    assert.isTrue(whole?.flagged)
    const refused = await client.moderations.create({ model: "local-chat", input: "bees" }).catch((error: unknown) =>
      error
    )
    assert.deepInclude(refused, { status: 400, code: "operation_not_supported", param: "model" })
    assert.include(String(refused), "no built-in engine does, so use a model of a provider")
  })

  describe("create", () => {
    it("answers, with the id of the request", async () => {
      const answer = await make().completions.create(chat())
      assert.strictEqual(answer.choices[0]?.message.content, text)
      assert.strictEqual(answer.choices[0]?.finish_reason, "stop")
      assert.strictEqual(answer.model, "free-chat")
      assert.deepInclude(answer.usage, { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 })
      assert.match(answer._request_id ?? "", /^req_[0-9a-f-]{36}$/)
    })

    it("returns the requested number of choices", async () => {
      const answer = await make().completions.create({ ...chat(), n: 2 })
      assert.deepStrictEqual(answer.choices.map(({ index, message }) => [index, message.content]), [[0, text], [
        1,
        text
      ]])
    })

    it("calls a tool", async () => {
      const answer = await make().completions.create({ ...chat(), tools: [weather], tool_choice: "required" })
      assert.strictEqual(answer.choices[0]?.finish_reason, "tool_calls")
      const [call] = answer.choices[0]?.message.tool_calls ?? []
      assert.deepInclude(call, { type: "function" })
      assert.deepInclude(call, { function: { name: "get_weather", arguments: JSON.stringify({ city: text }) } })
    })

    it("gets JSON for a schema from the built-in engine", async () => {
      const answer = await make().completions.parse({
        model: "local-chat",
        messages: [{ role: "user", content: "Anna is 30 years old and lives in Paris." }],
        response_format: {
          type: "json_schema",
          json_schema: {
            name: "person",
            strict: true,
            schema: {
              type: "object",
              properties: { name: { type: "string" }, age: { type: "integer" } },
              required: ["name", "age"],
              additionalProperties: false
            }
          }
        }
      })
      const parsed = answer.choices[0]?.message.parsed as unknown as Record<string, unknown>
      assert.hasAllKeys(parsed, ["name", "age"])
      assert.isString(parsed["name"])
      assert.isTrue(Number.isInteger(parsed["age"]))
      assert.strictEqual(answer.model, "local-chat")
    })
  })

  describe("create with stream", () => {
    it("streams the text, chunk by chunk and to its end", async () => {
      const stream = await make().completions.create({ ...chat(), stream: true })
      const chunks = await Array.fromAsync(stream)
      assert.strictEqual(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), text)
      assert.isAbove(chunks.length, 9)
      assert.strictEqual(chunks[0]?.choices[0]?.delta.role, "assistant")
      assert.strictEqual(chunks.at(-1)?.choices[0]?.finish_reason, "stop")
      assert.isTrue(chunks.every(({ usage }) => usage === undefined || usage === null), "usage that was not requested")
    })

    it("ends with the usage if requested", async () => {
      const stream = await make().completions.create({
        ...chat(),
        stream: true,
        stream_options: { include_usage: true }
      })
      const chunks = await Array.fromAsync(stream)
      assert.isNull(chunks[0]?.usage)
      assert.deepStrictEqual(chunks.at(-1)?.choices, [])
      assert.deepInclude(chunks.at(-1)?.usage, { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 })
    })

    it("relays each chunk as soon as the provider sends it", async () => {
      const { completions, gateway } = make()
      gateway.provider.behaveOnce({ kind: "hold", after: 2 })
      const { received, result } = await receivedBy(gateway, () => completions.create({ ...chat(), stream: true }))
      const chunks = (await result)[Symbol.asyncIterator]()
      await chunks.next()
      const { value } = await chunks.next()
      assert.strictEqual(value?.choices[0]?.delta.content, "The ")
      assert.isUndefined(received.outcome, "the provider has not ended its answer yet")
      received.release()
      while ((await chunks.next()).done !== true) { /* to the end */ }
    })

    it("streams from the built-in engine", async () => {
      const stream = await make().completions.create({
        ...chat("local-chat"),
        stream: true,
        stream_options: { include_usage: true }
      })
      const chunks = await Array.fromAsync(stream)
      assert.isAbove(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("").length, 0)
      assert.strictEqual(chunks.at(-2)?.choices[0]?.finish_reason, "stop")
      assert.isAbove(chunks.at(-1)?.usage?.completion_tokens ?? 0, 0)
    })
  })

  // The helper throws if a choice has no role or finish_reason, or a tool call has no name.
  describe("the stream helper", () => {
    it.for(["free-chat", "alias-chat", "local-chat"])("accumulates text from %s", async (model) => {
      const stream = make().completions.stream({ ...chat(model), n: 2 })
      const whole = await stream.finalChatCompletion()
      assert.strictEqual(whole.model, model)
      assert.lengthOf(whole.choices, 2)
      for (const { finish_reason: reason, message } of whole.choices) {
        assert.strictEqual(reason, "stop")
        assert.isNotEmpty(message.content)
        if (model !== "local-chat") assert.strictEqual(message.content, text)
      }
    })

    it.for(["free-chat", "alias-chat", "local-chat"])("accumulates tool calls from %s", async (model) => {
      const stream = make().completions.stream({
        model,
        messages: [{ role: "user", content: "What is the weather in Paris?" }],
        tools: [weather],
        tool_choice: "required",
        n: 2
      })
      const whole = await stream.finalChatCompletion()
      assert.lengthOf(whole.choices, 2)
      for (const { finish_reason: reason, message } of whole.choices) {
        assert.strictEqual(reason, "tool_calls")
        const call = message.tool_calls?.[0]
        assert.strictEqual(call?.type, "function")
        if (call?.type !== "function") return
        assert.strictEqual(call.function.name, "get_weather")
        assert.isString((JSON.parse(call.function.arguments) as { city: unknown }).city)
        assert.isNotEmpty(call.id)
      }
    })

    it("runs tools and continues with their results", async () => {
      const asked: Array<string> = []
      const runner = make().completions.runTools({
        ...chat(),
        tools: [{
          ...weather,
          function: {
            ...weather.function,
            description: "The weather of a city",
            parse: (input: string) => JSON.parse(input) as { city: string },
            function: ({ city }: { city: string }) => {
              asked.push(city)
              return "sunny, 21 degrees"
            }
          }
        }]
      })
      assert.strictEqual(await runner.finalContent(), "sunny, 21 degrees")
      assert.deepStrictEqual(asked, [text])
    })
  })

  describe("models", () => {
    it("lists the catalogue's models", async () => {
      const models = await Array.fromAsync(make().client.models.list())
      assert.includeMembers(models.map(({ id }) => id), ["free-chat", "paid-chat", "alias-chat", "local-chat"])
      for (const model of models) assert.deepInclude(model, { object: "model", owned_by: "model-gateway" })
    })

    it("retrieves one by its name", async () => {
      assert.deepInclude(await make().client.models.retrieve("free-chat"), { id: "free-chat", object: "model" })
    })

    it("says what is known about one, by its settings and by the model at its first target", async () => {
      assert.deepInclude(await make().client.models.retrieve("known-chat") as object, {
        context_length: 100_000,
        max_output_length: 128_000,
        input_modalities: ["text", "image", "file"],
        output_modalities: ["text"],
        supported_features: ["tools", "reasoning"],
        pricing: { prompt: "0.00000125", completion: "0.00001", input_cache_read: "0.000000125" }
      })
    })

    it("gives Codex a list of cards, without any: it rejects incomplete ones", async () => {
      const list = await make().client.get<{ models: unknown; data: unknown }>("/models?client_version=0.169.0")
      assert.deepStrictEqual(list.models, [])
      assert.notProperty(await make().client.get("/models"), "models")
    })
  })

  describe("an abort", () => {
    it.for(["free-and-patient", "paid-and-patient"])("of a stream from %s reaches the provider", async (model) => {
      const { completions, gateway } = make()
      gateway.provider.behaveOnce({ kind: "endless" })
      const { received, result } = await receivedBy(gateway, () => completions.create({ ...chat(model), stream: true }))
      const stream = await result
      for await (const _ of stream) stream.controller.abort()
      assert.strictEqual(await received.closed, "aborted")
    })

    it.for(["free-and-patient", "paid-and-patient"])(
      "of a stalled stream from %s reaches the provider",
      async (model) => {
        const { completions, gateway } = make()
        gateway.provider.behaveOnce({ kind: "hold", after: 2 })
        const { received, result } = await receivedBy(
          gateway,
          () => completions.create({ ...chat(model), stream: true })
        )
        const stream = await result
        await stream[Symbol.asyncIterator]().next()
        stream.controller.abort()
        assert.strictEqual(await received.closed, "aborted")
      }
    )

    it.for(["free-and-patient", "paid-and-patient"])("before the answer of %s reaches the provider", async (model) => {
      const { completions, gateway } = make()
      gateway.provider.behaveOnce({ kind: "silent" })
      const abort = new AbortController()
      const { received, result } = await receivedBy(
        gateway,
        () => completions.create(chat(model), { signal: abort.signal }).then(() => undefined, (error: unknown) => error)
      )
      abort.abort()
      assert.instanceOf(await result, OpenAI.APIUserAbortError)
      assert.strictEqual(await received.closed, "aborted")
    })
  })
})
