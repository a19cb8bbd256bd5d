/** Compaction through the whole gateway with OpenAI's client: its content, and where clients can send it back. */
import { assert, describe, it } from "@effect/vitest"
import type OpenAi7 from "openai"
import { openais } from "../../fixture/ClientMajors.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway()

const model = "local-chat"

type Items = Array<OpenAi7.Responses.ResponseInputItem>

const story: Items = [
  { role: "user", content: "Tell me about the lighthouse." },
  {
    role: "assistant",
    content: "The lighthouse was built in 1871. Its keeper, Anna Holm, kept bees. The bees made heather honey. " +
      "A storm took the roof in 1904. The lamp burned whale oil at first. Ships saw it from thirty miles away."
  },
  { role: "user", content: [{ type: "input_text", text: "And today?" }] },
  { type: "message", role: "assistant", content: "Today the lighthouse is a museum. Tickets cost nine euros." }
]

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const make = (key = shared().key) => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })
  const compact = (input: Items | string, more: Partial<OpenAi7.Responses.ResponseCompactParams> = {}) =>
    make().responses.compact({ model, input, ...more })

  /** The sealed item of an answer. */
  const sealedOf = ({ output }: OpenAi7.Responses.CompactedResponse) => {
    const last = output.at(-1)
    if (last?.type !== "compaction") return assert.fail(`the last item is a ${last?.type}`)
    return last
  }
  /** An item as a chat message, which OpenAI's types do not know. */
  const asMessage = (item: object) => item as unknown as OpenAi7.ChatCompletionMessageParam
  const refusalOf = async (promise: Promise<unknown>) => {
    const error = await promise.catch((error: unknown) => error)
    assert.instanceOf(error, OpenAI.APIError)
    const { code, param, status, type } = error
    return { status, type, param, code }
  }
  /** What a provider receives in place of the first of these items. */
  const readBack = async (...items: ReadonlyArray<object>) => {
    const messages = [...items.map(asMessage), { role: "user" as const, content: "And then?" }]
    const { received, result } = await receivedBy(
      shared(),
      () => make().chat.completions.create({ model: "free-chat", messages })
    )
    await result
    const sent = received.json as {
      readonly messages: ReadonlyArray<{ readonly role: string; readonly content: string }>
    }
    return sent.messages.find(({ role }) => role === "system")?.content
  }

  it("keeps the user's messages and seals the rest", async () => {
    const answer = await compact(story)
    assert.match(answer.id, /^resp_[0-9a-f]{32}$/)
    assert.strictEqual(answer.object, "response.compaction")
    assert.isAbove(answer.created_at, 1_700_000_000)
    assert.deepStrictEqual(answer.output.map(({ type }) => type), ["message", "message", "compaction"])
    const [first, second] = answer.output.slice(0, 2).map(({ id: _id, ...rest }) => rest as object)
    const message = { type: "message", role: "user", status: "completed" }
    assert.deepStrictEqual(first, {
      ...message,
      content: [{ type: "input_text", text: "Tell me about the lighthouse." }]
    })
    assert.deepStrictEqual(second, { ...message, content: [{ type: "input_text", text: "And today?" }] })
    assert.notInclude(JSON.stringify(answer), "museum")
    assert.isNull((answer as { readonly error?: unknown }).error)
  })

  it("counts usage under the names of both formats", async () => {
    const { usage } = await compact(story)
    assert.isTrue(usage.input_tokens > 60 && usage.output_tokens > 20)
    assert.deepInclude(usage as object, {
      prompt_tokens: usage.input_tokens,
      completion_tokens: usage.output_tokens,
      total_tokens: usage.input_tokens + usage.output_tokens
    })
    assert.strictEqual(usage.input_tokens_details.cached_tokens, 0)
  })

  it("compacts a string, chat messages, and an empty list", async () => {
    assert.deepStrictEqual((await compact("Just this.")).output.map(({ type }) => type), ["message", "compaction"])
    assert.deepStrictEqual((await make().responses.compact({ model })).output.map(({ type }) => type), ["compaction"])
    const chat = [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "What is the weather?" }, { type: "image_url", image_url: {} }] },
      {
        role: "assistant",
        tool_calls: [{ id: "1", type: "function", function: { name: "weather", arguments: "{}" } }]
      },
      { role: "tool", tool_call_id: "1", content: "{\"sky\":\"clear and blue\",\"temperature\":21}" }
    ]
    const answer = await compact(chat as unknown as Items)
    assert.deepStrictEqual((answer.output[0] as { readonly content?: unknown }).content, [
      { type: "input_text", text: "What is the weather?" },
      { type: "image_url", image_url: {} }
    ])
    assert.include(await readBack(sealedOf(answer)), "clear and blue")
  })

  it("is accepted in a chat as the earlier conversation", async () => {
    const { output } = await compact(story)
    assert.include(await readBack(...output), "Anna Holm, kept bees")
    const messages = [...output.map(asMessage), { role: "user" as const, content: "And then?" }]
    const answer = await make().chat.completions.create({ model, messages })
    assert.include(answer.choices[0]?.message.content, "And then?")
  })

  it("is accepted in a compaction, which replaces it", async () => {
    const first = await compact(story)
    const second = await compact([...first.output as Items, { role: "user", content: "Thank you for the story." }])
    assert.deepStrictEqual(second.output.map(({ type }) => type), ["message", "message", "message", "compaction"])
    assert.deepStrictEqual(second.output.slice(0, 2), first.output.slice(0, 2))
    assert.include(await readBack(sealedOf(second)), "Anna Holm, kept bees")
  })

  it("can be referenced by its id, with or without more to compact", async () => {
    const first = await compact(story)
    const more = await compact("Thank you for the story.", { previous_response_id: first.id })
    assert.deepStrictEqual(more.output.slice(0, 2), first.output.slice(0, 2))
    assert.deepInclude(more.output[2] as object, {
      role: "user",
      content: [{ type: "input_text", text: "Thank you for the story." }]
    })
    assert.include(await readBack(sealedOf(more)), "Anna Holm, kept bees")
    const same = await make().responses.compact({ model, previous_response_id: first.id })
    assert.deepStrictEqual(same.output.slice(0, 2), first.output.slice(0, 2))
  })

  it("keeps what the instructions name", async () => {
    const facts = Array.from({ length: 40 }, (_, year) => `In ${1900 + year} the harbour saw ${year + 3} ships.`)
    const long: Items = [
      { role: "assistant", content: [...facts, "The password of the vault is swordfish.", ...facts].join(" ") }
    ]
    assert.notInclude(await readBack(sealedOf(await compact(long))), "swordfish")
    const steered = await compact(long, { instructions: "Keep everything about the vault and its password." })
    assert.include(await readBack(sealedOf(steered)), "swordfish")
  })

  it("is rejected with the field's name if it was changed, in chat and compaction", async () => {
    const { id, encrypted_content, type } = sealedOf(await compact(story))
    const middle = Math.floor(encrypted_content.length / 2)
    const flip = (at: number) => {
      const other = encrypted_content[at] === "A" ? "B" : "A"
      return encrypted_content.slice(0, at) + other + encrypted_content.slice(at + 1)
    }
    const last = encrypted_content.length - 1
    for (const changed of [flip(0), flip(7), flip(20), flip(middle), flip(last), encrypted_content.slice(0, -4)]) {
      const item = { id, type, encrypted_content: changed }
      const refused = { status: 400, type: "invalid_request_error", code: "invalid_compaction" }
      assert.deepStrictEqual(await refusalOf(compact([...story, item])), {
        ...refused,
        param: "input[4].encrypted_content"
      })
      assert.deepStrictEqual(
        await refusalOf(make().chat.completions.create({ model, messages: [asMessage(item)], stream: true })),
        { ...refused, param: "messages[0].encrypted_content" }
      )
    }
    const empty = make().chat.completions.create({ model, messages: [asMessage({ type: "compaction" })] })
    assert.deepInclude(await refusalOf(empty), { status: 400, param: "messages[0].encrypted_content" })
  })

  it("is valid for its own key only, as item and as id", async () => {
    const answer = await compact(story)
    const stranger = make(await shared().createKey("2099-01-01"))
    const item = sealedOf(answer)
    assert.deepInclude(await refusalOf(stranger.responses.compact({ model, input: [item] })), {
      status: 400,
      param: "input[0].encrypted_content"
    })
    assert.deepInclude(
      await refusalOf(stranger.chat.completions.create({ model, messages: [asMessage(item)] })),
      { status: 400, param: "messages[0].encrypted_content" }
    )
    const notFound = { status: 404, type: "not_found_error", param: "previous_response_id", code: "not_found" }
    for (const previous_response_id of [answer.id, "resp_unheard-of", `resp_${"0".repeat(32)}`]) {
      assert.deepStrictEqual(await refusalOf(stranger.responses.compact({ model, previous_response_id })), notFound)
    }
  })

  it("is opened before the provider sees it, and translated to its dialect", async () => {
    const picture = { type: "input_image" as const, image_url: "https://example.com/a.png", detail: "low" as const }
    const { output } = await compact([...story, { role: "user", content: [picture] }])
    const question = { role: "user" as const, content: "What did the keeper keep?" }
    const { received, result } = await receivedBy(
      shared(),
      () => make().chat.completions.create({ model: "free-chat", messages: [...output.map(asMessage), question] })
    )
    assert.strictEqual((await result).choices[0]?.message.content, question.content)
    const { messages } = received.json as { readonly messages: ReadonlyArray<{ readonly content: string }> }
    assert.deepStrictEqual(messages.toSpliced(3, 1) as unknown, [
      { role: "user", content: [{ type: "text", text: "Tell me about the lighthouse." }] },
      { role: "user", content: [{ type: "text", text: "And today?" }] },
      { role: "user", content: [{ type: "image_url", image_url: { url: picture.image_url, detail: "low" } }] },
      question
    ])
    assert.deepInclude(messages[3] as object, { role: "system" })
    assert.include(messages[3]?.content, "Anna Holm, kept bees.")
  })

  it("leaves items sealed by others unchanged for a provider", async () => {
    const foreign = { type: "compaction", id: "cmp_foreign", encrypted_content: "gAAAAABforeign==" }
    const body = `{"model": "free-chat", "messages": [${JSON.stringify(foreign)},  {"role":"user","content":"Hi"} ]}`
    const { received, result } = await receivedBy(shared(), () => shared().request(body))
    await result
    assert.strictEqual(received.body.toString(), body)
  })

  it("keeps items sealed by others, and warns that they were not read", async () => {
    const foreign = { type: "compaction" as const, id: "cmp_foreign", encrypted_content: "gAAAAABforeign==" }
    const { data, response } = await compact([foreign, ...story]).withResponse()
    assert.deepStrictEqual(data.output[0], foreign)
    assert.deepStrictEqual(data.output.map(({ type }) => type), ["compaction", "message", "message", "compaction"])
    assert.strictEqual(response.headers.get("x-translation-warnings"), "input[0] was sealed by another service")
    const chat = make().chat.completions.create({
      model,
      messages: [asMessage(foreign), { role: "user", content: "Hi" }]
    })
    const { response: answered } = await chat.withResponse()
    assert.strictEqual(answered.headers.get("x-translation-warnings"), "messages[0] was sealed by another service")
  })
})
