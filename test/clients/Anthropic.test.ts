/** The messages format through the whole gateway, with Anthropic's client. */
import { assert, describe, it } from "@effect/vitest"
import { anthropics } from "../fixture/ClientMajors.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

/** A model whose answers break off. */
const shared = sharedGateway({
  providers: () => "  broken: { protocol: local, options: { fault: { kind: cut, afterTokens: 3 } } }",
  models: "  broken-chat: { workload: chat, targets: [{ provider: broken }] }\n" +
    "  known-chat: { workload: chat, targets: [{ provider: local, model: claude-opus-5 }] }"
})

const passage = "The lighthouse was built in 1871. Its keeper kept bees. The bees made heather honey."
const weather = {
  name: "get_weather",
  description: "The weather in a city",
  input_schema: { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] }
}

describe.each(Object.entries(anthropics))("anthropic %s", (_, Anthropic) => {
  const make = () => new Anthropic({ baseURL: shared().url, apiKey: shared().key, maxRetries: 0 })
  const request = {
    model: "local-chat",
    max_tokens: 200,
    messages: [{ role: "user" as const, content: `${passage} When was the lighthouse built?` }]
  }

  it("creates a message", async () => {
    const message = await make().messages.create(request)
    assert.strictEqual(message.type, "message")
    assert.strictEqual(message.role, "assistant")
    assert.strictEqual(message.stop_reason, "end_turn")
    const [block] = message.content
    assert.include(block?.type === "text" ? block.text : "", "1871")
    assert.isAbove(message.usage.input_tokens, 10)
    assert.isAbove(message.usage.output_tokens, 3)
    assert.match(message._request_id ?? "", /^req_/)
  })

  it("accepts the key as a Bearer token too", async () => {
    const client = new Anthropic({ baseURL: shared().url, authToken: shared().key, apiKey: null, maxRetries: 0 })
    assert.strictEqual((await client.messages.create(request)).stop_reason, "end_turn")
  })

  it("streams named events in order, each block opened and closed", async () => {
    const types: Array<string> = []
    let text = ""
    for await (const event of await make().messages.create({ ...request, stream: true })) {
      if (types.at(-1) !== event.type) types.push(event.type)
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text
    }
    assert.deepStrictEqual(types, [
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop"
    ])
    assert.include(text, "1871")
  })

  it("accumulates a stream into the message that create returns", async () => {
    const streamed = await make().messages.stream(request).finalMessage()
    const created = await make().messages.create(request)
    assert.deepStrictEqual(streamed.content, created.content)
    assert.strictEqual(streamed.stop_reason, created.stop_reason)
    assert.deepInclude(streamed.usage, { output_tokens: created.usage.output_tokens })
  })

  it("uses a tool, streamed and not, and answers from its result", async () => {
    const asking = {
      ...request,
      messages: [{ role: "user" as const, content: "What is the weather in Oslo?" }],
      tools: [weather],
      tool_choice: { type: "any" as const }
    }
    const created = await make().messages.create(asking)
    assert.strictEqual(created.stop_reason, "tool_use")
    const use = created.content.find((block) => block.type === "tool_use")
    assert.strictEqual(use?.name, "get_weather")
    assert.isString((use?.input as { readonly city?: unknown } | undefined)?.city)
    const streamed = await make().messages.stream(asking).finalMessage()
    assert.deepStrictEqual(
      streamed.content.find((block) => block.type === "tool_use")?.input,
      use?.input
    )
    const answered = await make().messages.create({
      ...asking,
      tool_choice: { type: "auto" },
      messages: [
        ...asking.messages,
        { role: "assistant", content: created.content },
        {
          role: "user",
          content: [{
            type: "tool_result",
            tool_use_id: use?.id ?? "",
            content: "It is 7 degrees and raining in Oslo."
          }]
        }
      ]
    })
    const [block] = answered.content
    assert.include(block?.type === "text" ? block.text : "", "7 degrees")
  })

  it("stops at a stop sequence and names it, and at max_tokens", async () => {
    const stopped = await make().messages.create({ ...request, stop_sequences: ["1871"] })
    assert.strictEqual(stopped.stop_reason, "stop_sequence")
    assert.strictEqual(stopped.stop_sequence, "1871")
    const short = await make().messages.create({ ...request, max_tokens: 2 })
    assert.strictEqual(short.stop_reason, "max_tokens")
    assert.strictEqual(short.usage.output_tokens, 2)
  })

  it("accepts a system prompt in blocks, pictures, and thinking", async () => {
    const message = await make().messages.create({
      ...request,
      max_tokens: 4_096,
      system: [{ type: "text", text: "Answer briefly.", cache_control: { type: "ephemeral" } }],
      thinking: { type: "enabled", budget_tokens: 1_024 },
      messages: [{
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
          { type: "text", text: "What is in this picture?" }
        ]
      }]
    })
    assert.strictEqual(message.stop_reason, "end_turn")
  })

  it("fails if an answer breaks off, and never returns a part of it as complete", async () => {
    const error = await make().messages.stream({ ...request, model: "broken-chat" }).finalMessage()
      .catch((error: unknown) => error)
    assert.instanceOf(error, Anthropic.APIError)
    assert.include((error as Error).message, "upstream_error")
    // before the first byte, the error has a status
    const refused = await make().messages.create({ ...request, model: "broken-chat" }).catch((error: unknown) => error)
    assert.strictEqual((refused as { readonly status: number }).status, 502)
  })

  it("gives each error its class, the envelope's type and the request's id", async () => {
    const bad = await make().messages.create({ ...request, max_tokens: 0 }).catch((error: unknown) => error)
    assert.instanceOf(bad, Anthropic.BadRequestError)
    const { error, requestID } = bad as unknown as {
      readonly error: { readonly error: object }
      readonly requestID: string
    }
    assert.deepInclude(error.error, { type: "invalid_request_error", param: "max_tokens" })
    assert.match(requestID, /^req_/)
    const stranger = new Anthropic({ baseURL: shared().url, apiKey: "sk-gw-nobody", maxRetries: 0 })
    assert.instanceOf(
      await stranger.messages.create(request).catch((error: unknown) => error),
      Anthropic.AuthenticationError
    )
    const missing = await make().messages.create({ ...request, model: "none" }).catch((error: unknown) => error)
    assert.instanceOf(missing, Anthropic.NotFoundError)
  })

  it("counts the tokens that a message is billed", async () => {
    const { max_tokens: _, ...counted } = { ...request, tools: [weather], system: "Be brief." }
    const { input_tokens } = await make().messages.countTokens(counted)
    const { usage } = await make().messages.create({ ...counted, max_tokens: 20 })
    assert.strictEqual(input_tokens, usage.input_tokens)
    // its provider cannot count, so the gateway estimates
    const estimated = await make().messages.countTokens({ ...counted, model: "free-chat" })
    assert.isAbove(estimated.input_tokens, 0)
  })

  it("lists the catalogue's models, in pages of the size that it asks for", async () => {
    const all = (await make().models.list({ limit: 1_000 })).data.map(({ id }) => id)
    assert.includeMembers(all, ["local-chat", "known-chat", "broken-chat"])
    const paged: Array<string> = []
    for await (const { id } of make().models.list({ limit: 2 })) paged.push(id)
    assert.deepStrictEqual(paged, all)
    const before = await make().models.list({ limit: 2, before_id: all[3] ?? "" })
    assert.deepStrictEqual([before.data.map(({ id }) => id), before.has_more], [all.slice(1, 3), true])
    const wrong = await make().models.list({ after_id: "none" }).then(() => undefined, (error: unknown) => error)
    assert.instanceOf(wrong, Anthropic.BadRequestError)
    assert.match(wrong.message, /after_id.* names no model/)
  })

  it("retrieves a model with what is known about it", async () => {
    assert.deepInclude(await make().models.retrieve("known-chat") as object, {
      type: "model",
      id: "known-chat",
      display_name: "known-chat",
      max_input_tokens: 1_000_000,
      max_tokens: 128_000,
      input_modalities: ["text", "image", "file"]
    })
    const unknown = await make().models.retrieve("local-chat")
    assert.deepStrictEqual([unknown.max_input_tokens, unknown.max_tokens], [null, null])
    const missing = await make().models.retrieve("none").catch((error: unknown) => error)
    assert.instanceOf(missing, Anthropic.NotFoundError)
  })
})

describe("the version header", () => {
  const send = (headers: Record<string, string>) =>
    fetch(`${shared().url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": shared().key, "content-type": "application/json", ...headers },
      body: JSON.stringify({ model: "local-chat", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] })
    })

  it("is required under one of its two names, and may be any text", async () => {
    assert.strictEqual((await send({ "vendor-version": "2023-06-01" })).status, 200)
    assert.strictEqual((await send({ "anthropic-version": "2026-10-21" })).status, 200)
    assert.strictEqual((await send({ "vendor-version": "latest" })).status, 200)
    for (const headers of [{}, { "vendor-version": "" }]) {
      const answer = await send(headers)
      assert.strictEqual(answer.status, 400)
      const { error, type } = await answer.json() as { type: string; error: { param: string } }
      assert.deepStrictEqual([type, error.param], ["error", "vendor-version"])
    }
  })
})
