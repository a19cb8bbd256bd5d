/**
 * Every official chat client with every kind of provider behind the gateway, streaming and not: text, parallel tools and their
 * results, reasoning and its signatures, pictures. Checks what each client gets and what each provider receives.
 */
import type Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import type { Content, GoogleGenAI } from "@google/genai"
import OpenAI from "openai"
import { anthropics, googleGenAis, openais } from "../fixture/ClientMajors.ts"
import type { Received } from "../fixture/provider/FakeProvider.ts"
import { unseal } from "../fixture/provider/dialects/OpenAiResponses.ts"
import { type Api, apis, chatProviders, keyOf } from "../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mN4tkAEAAQKAZvHkf7HAAAAAElFTkSuQmCC"
const schema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] }
const tools = [{ name: "get_weather", description: "The weather in a city" }, {
  name: "get_time",
  description: "The time"
}]
const toolCalls = [
  { name: "get_weather", arguments: "{\"city\":\"Oslo\"}" },
  { name: "get_time", arguments: "{\"city\":\"Lima, Perú\"}" }
]
const results = ["7 degrees", "noon"]

interface Question {
  readonly text: string
  readonly image?: boolean
  readonly tools?: boolean
  readonly reasoning?: boolean
}

/** A client's result, independent of its dialect. */
interface Got {
  readonly model: string | undefined
  readonly text: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly args: unknown }>
  readonly finish: "stop" | "length" | "tool_calls" | "content_filter" | undefined
  readonly tokens: readonly [input: number | undefined, output: number | undefined]
}

interface Client {
  readonly own: Api
  /** Asks once; with `results`, continues with the results of the called tools. */
  readonly ask: (model: string, question: Question, streams: boolean, results?: ReadonlyArray<string>) => Promise<Got>
}

// OpenAI

const openai = (Sdk: typeof OpenAI): Client["ask"] => async (model, question, streams, results) => {
  const client = new Sdk({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
  const request = {
    model,
    messages: [{
      role: "user" as const,
      content: [
        { type: "text" as const, text: question.text },
        ...(question.image === true
          ? [{ type: "image_url" as const, image_url: { url: `data:image/png;base64,${png}` } }]
          : [])
      ]
    }] as Array<OpenAI.ChatCompletionMessageParam>,
    ...(question.tools === true
      ? { tools: tools.map((tool) => ({ type: "function" as const, function: { ...tool, parameters: schema } })) }
      : {}),
    ...(question.reasoning === true ? { reasoning_effort: "low" as const } : {})
  }
  const once = async () => {
    if (!streams) return { completion: await client.chat.completions.create(request), reasoning: undefined }
    let reasoning = ""
    const details: Array<unknown> = []
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } })
    for await (const chunk of stream) {
      const delta = chunk.choices[0]?.delta as {
        readonly reasoning_content?: string
        readonly reasoning_details?: ReadonlyArray<unknown>
      } | undefined
      reasoning += delta?.reasoning_content ?? ""
      details.push(...delta?.reasoning_details ?? [])
    }
    const completion = await stream.finalChatCompletion()
    // the helper keeps only the last piece of fields it does not know
    Object.assign(completion.choices[0]?.message ?? {}, details.length === 0 ? {} : { reasoning_details: details })
    return { completion, reasoning }
  }
  let { completion, reasoning } = await once()
  if (results !== undefined) {
    const { message } = completion.choices[0]!
    request.messages.push(message)
    for (const [index, call] of (message.tool_calls ?? []).entries()) {
      request.messages.push({ role: "tool", tool_call_id: call.id, content: results[index] ?? "" })
    }
    ;({ completion, reasoning } = await once())
  }
  const choice = completion.choices[0]!
  const whole = (choice.message as { readonly reasoning_content?: string }).reasoning_content
  return {
    model: completion.model,
    text: choice.message.content ?? "",
    reasoning: reasoning ?? whole ?? "",
    calls: (choice.message.tool_calls ?? []).flatMap((call) =>
      call.type === "function"
        ? [{ name: call.function.name, args: JSON.parse(call.function.arguments) as unknown }]
        : []
    ),
    finish: choice.finish_reason as Got["finish"],
    tokens: [completion.usage?.prompt_tokens, completion.usage?.completion_tokens]
  }
}

const responses = (Sdk: typeof OpenAI): Client["ask"] => async (model, question, streams, results) => {
  const client = new Sdk({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
  const input: Array<OpenAI.Responses.ResponseInputItem> = [{
    role: "user",
    content: [
      { type: "input_text", text: question.text },
      ...(question.image === true
        ? [{ type: "input_image" as const, image_url: `data:image/png;base64,${png}`, detail: "auto" as const }]
        : [])
    ]
  }]
  const request = {
    model,
    input,
    store: false,
    include: ["reasoning.encrypted_content" as const],
    ...(question.tools === true
      ? { tools: tools.map((tool) => ({ type: "function" as const, ...tool, parameters: schema, strict: false })) }
      : {}),
    ...(question.reasoning === true ? { reasoning: { effort: "low" as const } } : {})
  }
  const once = () => streams ? client.responses.stream(request).finalResponse() : client.responses.create(request)
  let response: OpenAI.Responses.Response = await once()
  const callsOf = ({ output }: OpenAI.Responses.Response) => output.filter((item) => item.type === "function_call")
  if (results !== undefined) {
    input.push(
      ...response.output as Array<OpenAI.Responses.ResponseInputItem>,
      ...callsOf(response).map(({ call_id }, index) => ({
        type: "function_call_output" as const,
        call_id,
        output: results[index] ?? ""
      }))
    )
    response = await once()
  }
  const calls = callsOf(response)
  const reason = response.incomplete_details?.reason
  return {
    model: response.model,
    text: response.output_text,
    reasoning: response.output.flatMap((item) => item.type === "reasoning" ? item.summary : [])
      .map(({ text }) => text).join(""),
    calls: calls.map((call) => ({ name: call.name, args: JSON.parse(call.arguments) as unknown })),
    finish: reason === "content_filter" ? reason : calls.length > 0 ? "tool_calls" : "stop",
    tokens: [response.usage?.input_tokens, response.usage?.output_tokens]
  }
}

// Anthropic

const finishes = {
  end_turn: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter"
} as const

const anthropic = (Sdk: typeof Anthropic): Client["ask"] => async (model, question, streams, results) => {
  const client = new Sdk({ baseURL: shared().url, apiKey: shared().key, maxRetries: 0 })
  const request = {
    model,
    max_tokens: 4_096,
    messages: [{
      role: "user" as const,
      content: [
        { type: "text" as const, text: question.text },
        ...(question.image === true
          ? [{
            type: "image" as const,
            source: { type: "base64" as const, media_type: "image/png" as const, data: png }
          }]
          : [])
      ]
    }] as Array<Anthropic.MessageParam>,
    ...(question.tools === true ? { tools: tools.map((tool) => ({ ...tool, input_schema: schema })) } : {}),
    ...(question.reasoning === true ? { thinking: { type: "enabled" as const, budget_tokens: 2_048 } } : {})
  }
  const once = () => streams ? client.messages.stream(request).finalMessage() : client.messages.create(request)
  let message = await once()
  if (results !== undefined) {
    const used = message.content.flatMap((block) => block.type === "tool_use" ? [block.id] : [])
    request.messages.push(
      { role: "assistant", content: message.content },
      {
        role: "user",
        content: used.map((id, index) => ({
          type: "tool_result",
          tool_use_id: id,
          content: results[index] ?? ""
        }))
      }
    )
    message = await once()
  }
  const { content, usage } = message
  return {
    model: message.model,
    text: content.map((block) => block.type === "text" ? block.text : "").join(""),
    reasoning: content.map((block) => block.type === "thinking" ? block.thinking : "").join(""),
    calls: content.flatMap((block) => block.type === "tool_use" ? [{ name: block.name, args: block.input }] : []),
    finish: finishes[message.stop_reason as keyof typeof finishes],
    tokens: [
      usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
      usage.output_tokens
    ]
  }
}

// Google

const gemini = (Sdk: typeof GoogleGenAI): Client["ask"] => async (model, question, streams, results) => {
  const { models } = new Sdk({
    apiKey: shared().key,
    vertexai: false,
    httpOptions: { baseUrl: shared().url }
  })
  const contents: Array<Content> = [{
    role: "user",
    parts: [
      { text: question.text },
      ...(question.image === true ? [{ inlineData: { mimeType: "image/png", data: png } }] : [])
    ]
  }]
  const request = {
    model,
    contents,
    config: {
      ...(question.tools === true
        ? { tools: [{ functionDeclarations: tools.map((tool) => ({ ...tool, parametersJsonSchema: schema })) }] }
        : {}),
      ...(question.reasoning === true ? { thinkingConfig: { includeThoughts: true, thinkingBudget: 2_048 } } : {})
    }
  }
  const once = async () => {
    const answers = streams
      ? await Array.fromAsync(await models.generateContentStream(request))
      : [await models.generateContent(request)]
    return { answers, parts: answers.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []) }
  }
  let { answers, parts } = await once()
  if (results !== undefined) {
    const calls = parts.flatMap(({ functionCall }) => functionCall === undefined ? [] : [functionCall])
    contents.push({ role: "model", parts }, {
      role: "user",
      parts: calls.map(({ id, name }, index) => ({
        functionResponse: {
          ...(id === undefined ? {} : { id }),
          name: name ?? "",
          response: { output: results[index] }
        }
      }))
    })
    ;({ answers, parts } = await once())
  }
  const said = (thought: boolean) =>
    parts.map((part) => (part.thought ?? false) === thought ? part.text ?? "" : "").join("")
  const calls = parts.flatMap(({ functionCall }) =>
    functionCall === undefined ? [] : [{ name: functionCall.name ?? "", args: functionCall.args }]
  )
  const finish = answers.findLast(({ candidates }) => candidates?.[0]?.finishReason !== undefined)?.candidates?.[0]
    ?.finishReason
  const { candidatesTokenCount = 0, promptTokenCount, thoughtsTokenCount = 0 } = answers.at(-1)?.usageMetadata ?? {}
  return {
    model: answers.at(-1)?.modelVersion,
    text: said(false),
    reasoning: said(true),
    calls,
    finish: finish === "SAFETY" ? "content_filter" : calls.length > 0 ? "tool_calls" : "stop",
    tokens: [promptTokenCount, candidatesTokenCount + thoughtsTokenCount]
  }
}

/** A client of each major version. */
const clientsOf = <A>(
  name: (major: string) => string,
  majors: Readonly<Record<string, A>>,
  own: Api,
  ask: (sdk: A) => Client["ask"]
): ReadonlyArray<readonly [string, Client]> =>
  Object.entries(majors).map(([major, sdk]) => [name(major), { own, ask: ask(sdk) }])

const clients = [
  ...clientsOf((major) => `openai ${major}`, openais, "openai", openai),
  ...clientsOf((major) => `openai ${major}, responses`, openais, "responses", responses),
  ...clientsOf((major) => `anthropic ${major}`, anthropics, "anthropic", anthropic),
  ...clientsOf((major) => `google genai ${major}`, googleGenAis, "gemini", gemini)
]

// What the providers receive

type Json = { readonly [key: string]: unknown }
interface Body extends Json {
  readonly input: string | ReadonlyArray<Json>
  readonly messages: ReadonlyArray<Json & { readonly role: string; readonly content: string | ReadonlyArray<Json> }>
  readonly contents: ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<Json> }>
}

/** A provider's request, independent of its dialect. */
interface Asked {
  readonly path: string
  /** The header that authenticates. */
  readonly key: unknown
  readonly model: unknown
  readonly texts: ReadonlyArray<unknown>
  readonly images: ReadonlyArray<unknown>
  readonly tools: ReadonlyArray<unknown>
  readonly results: ReadonlyArray<unknown>
  readonly signatures: ReadonlyArray<unknown>
  readonly reasons: boolean
}

const paths: { readonly [A in Api]: (streams: boolean) => string } = {
  responses: () => "/v1/responses",
  openai: () => "/v1/chat/completions",
  anthropic: () => "/v1/messages",
  gemini: (streams) => `/v1beta/models/upstream-model:${streams ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  cohere: () => "/v2/chat"
}

const partsOf = (content: string | ReadonlyArray<Json> | null | undefined): ReadonlyArray<Json> =>
  typeof content === "string" ? [{ type: "text", text: content }] : content ?? []

const at = (value: unknown, ...path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Json | undefined)?.[key], value)

const askedOf: { readonly [A in Api]: (body: Body) => Omit<Asked, "path" | "key"> } = {
  responses: (body) => {
    const items = typeof body.input === "string" ? [{ content: body.input }] : body.input
    const parts = items.flatMap((item: Json) => partsOf(item["content"] as string | ReadonlyArray<Json>))
    assert.deepInclude(body, { store: false, include: ["reasoning.encrypted_content"] })
    return {
      model: body["model"],
      texts: parts.flatMap((part) => "text" in part ? [part["text"]] : []),
      images: parts.flatMap((part) => part["type"] === "input_image" ? [part["image_url"]] : [])
        .map((url) => String(url).replace("data:image/png;base64,", "")),
      tools: ((body["tools"] ?? []) as ReadonlyArray<Json>).map((tool) => tool["name"]),
      results: items.flatMap((item: Json) => item["type"] === "function_call_output" ? [item["output"]] : []),
      signatures: items.flatMap((item: Json) =>
        item["type"] === "reasoning" ? [unseal(String(item["encrypted_content"]))?.text] : []
      ),
      reasons: at(body, "reasoning", "effort") === "low"
    }
  },
  openai: (body) => {
    const parts = body.messages.flatMap((message) => message.role === "tool" ? [] : partsOf(message.content))
    return {
      model: body["model"],
      texts: parts.flatMap((part) => part["type"] === "text" ? [part["text"]] : []),
      images: parts.flatMap((part) => part["type"] === "image_url" ? [at(part, "image_url", "url")] : [])
        .map((url) => String(url).replace("data:image/png;base64,", "")),
      tools: ((body["tools"] ?? []) as ReadonlyArray<Json>).map((tool) => at(tool, "function", "name")),
      results: body.messages.flatMap((message) => message.role === "tool" ? [message.content] : []),
      signatures: body.messages.flatMap((message) =>
        message["reasoning_content"] === undefined ? [] : [message["reasoning_content"]]
      ),
      reasons: body["reasoning_effort"] === "low"
    }
  },
  anthropic: (body) => {
    const blocks = body.messages.flatMap(({ content }) => partsOf(content))
    return {
      model: body["model"],
      texts: blocks.flatMap((block) => block["type"] === "text" ? [block["text"]] : []),
      images: blocks.flatMap((block) => block["type"] === "image" ? [at(block, "source", "data")] : []),
      tools: ((body["tools"] ?? []) as ReadonlyArray<Json>).map((tool) => tool["name"]),
      results: blocks.flatMap((block) =>
        block["type"] === "tool_result"
          ? [partsOf(block["content"] as string | ReadonlyArray<Json>).map((part) => part["text"]).join("")]
          : []
      ),
      signatures: blocks.flatMap((block) => block["type"] === "thinking" ? [block["signature"]] : []),
      reasons: body["thinking"] !== undefined
    }
  },
  gemini: (body) => {
    // the pieces of a stream are separate parts, which clients return unchanged
    const parts = body.contents.flatMap(({ parts }) => parts)
    const said = body.contents.flatMap(({ parts }) =>
      parts.some((part) => "text" in part && part["thought"] !== true)
        ? [parts.map((part) => part["thought"] === true ? "" : part["text"] ?? "").join("")]
        : []
    )
    return {
      // only the path names it
      model: "upstream-model",
      texts: said,
      images: parts.flatMap((part) => "inlineData" in part ? [at(part, "inlineData", "data")] : []),
      tools: ((body["tools"] ?? []) as ReadonlyArray<Json>).flatMap((tool) =>
        (tool["functionDeclarations"] as ReadonlyArray<Json>).map(({ name }) => name)
      ),
      results: parts.flatMap((part) =>
        "functionResponse" in part ? [at(part, "functionResponse", "response", "output")] : []
      ),
      signatures: parts.flatMap((part) => "thoughtSignature" in part ? [part["thoughtSignature"]] : []),
      reasons: at(body, "generationConfig", "thinkingConfig") !== undefined
    }
  },
  cohere: (body) => {
    const said = body.messages.flatMap((message) =>
      message.role === "tool" ? [] : [{ type: "text", text: message["tool_plan"] }, ...partsOf(message.content)]
    )
    return {
      ...askedOf.openai(body),
      texts: said.flatMap((part: Json) => part["type"] === "text" && part["text"] ? [part["text"]] : []),
      signatures: said.flatMap((part: Json) => part["type"] === "thinking" ? [part["thinking"]] : []),
      reasons: at(body, "thinking", "type") === "enabled"
    }
  }
}

const sentKey = ({ headers }: Received, provider: Api): unknown => {
  assert.notInclude(JSON.stringify(headers), shared().key)
  switch (provider) {
    case "openai":
    case "responses":
    case "cohere":
      return headers.authorization?.replace("Bearer ", "")
    case "anthropic":
      assert.match(String(headers["anthropic-version"]), /^\d{4}-\d{2}-\d{2}$/)
      return headers["x-api-key"]
    case "gemini":
      return headers["x-goog-api-key"]
  }
}

const asked = (received: Received, provider: Api): Asked => ({
  path: received.path,
  key: sentKey(received, provider),
  ...askedOf[provider](received.json as Body)
})

/** Asks, and returns the client's result and the provider's request. */
const exchange = async (client: Client, provider: Api, question: Question, streams: boolean) => {
  const { received, result } = await receivedBy(shared(), () => client.ask(`on-${provider}`, question, streams))
  return { got: await result, asked: asked(received, provider) }
}

const nothing: Asked = {
  path: "",
  key: "",
  model: "upstream-model",
  texts: [],
  images: [],
  tools: [],
  results: [],
  signatures: [],
  reasons: false
}

/** Providers of the others get back the text. */
const signed = { anthropic: true, gemini: true }

const tokens = [120, 34] as const
const usage = { input: 120, output: 34 }

describe.each(clients)("%s", (_, client) => {
  describe.each(apis)("with a provider of %s", (provider) => {
    describe.each([false, true])("streaming: %s", (streams) => {
      const whom = { path: paths[provider](streams), key: keyOf(provider) }
      const whole: Got = {
        model: `on-${provider}`,
        text: "",
        reasoning: "",
        calls: [],
        finish: "stop",
        tokens
      }

      it("gets the text", async () => {
        shared().provider.say({ text: "Bees dance 🐝,\n\n  they \"point\" at the sun.", usage })
        const { asked, got } = await exchange(client, provider, { text: "How do bees talk?" }, streams)
        assert.deepStrictEqual(asked, { ...nothing, ...whom, texts: ["How do bees talk?"] })
        assert.deepStrictEqual(got, { ...whole, text: "Bees dance 🐝,\n\n  they \"point\" at the sun." })
      })

      it("sends a picture", async () => {
        shared().provider.say({ text: "A pixel.", usage })
        const { asked, got } = await exchange(client, provider, { text: "What is this?", image: true }, streams)
        assert.deepStrictEqual(asked, { ...nothing, ...whom, texts: ["What is this?"], images: [png] })
        assert.deepStrictEqual(got, { ...whole, text: "A pixel." })
      })

      it("gets two tool calls at once", async () => {
        shared().provider.say({ text: "Let me see.", toolCalls, usage })
        const { asked, got } = await exchange(client, provider, { text: "And now?", tools: true }, streams)
        const names = ["get_weather", "get_time"]
        assert.deepStrictEqual(asked, { ...nothing, ...whom, texts: ["And now?"], tools: names })
        assert.deepStrictEqual(got, {
          ...whole,
          text: "Let me see.",
          calls: [{ name: "get_weather", args: { city: "Oslo" } }, { name: "get_time", args: { city: "Lima, Perú" } }],
          finish: "tool_calls"
        })
      })

      it("gets the reasoning", async () => {
        shared().provider.say({ reasoning: "Hm, they dance.", text: "They dance.", usage: { ...usage, reasoning: 20 } })
        const { asked, got } = await exchange(client, provider, { text: "How?", reasoning: true }, streams)
        assert.deepStrictEqual(asked, {
          ...nothing,
          ...whom,
          texts: ["How?"],
          reasons: client.own !== provider || asked.reasons
        })
        assert.deepStrictEqual(got, { ...whole, text: "They dance.", reasoning: "Hm, they dance." })
      })

      it("continues with the tools' results, and returns the provider's signature to it", async () => {
        const { provider: fake } = shared()
        fake.say(({ messages }) =>
          messages.at(-1)?.role === "tool"
            ? { text: "It is noon in Lima.", usage }
            : { reasoning: "Hm.", text: "Let me see.", toolCalls, usage }
        )
        const before = fake.requests.length
        const got = await client.ask(
          `on-${provider}`,
          { text: "And now?", tools: true, reasoning: true },
          streams,
          results
        )
        assert.deepStrictEqual(got, { ...whole, text: "It is noon in Lima." })
        assert.lengthOf(fake.requests, before + 2)
        const second = asked(fake.requests[before + 1]!, provider)
        assert.deepStrictEqual(second.results, results)
        assert.strictEqual(second.texts.join(" / "), "And now? / Let me see.")
        // OpenAI-compatible providers and Cohere do not sign their reasoning, and the fake's encrypted reasoning is its text
        assert.deepStrictEqual([...new Set(second.signatures)], [provider in signed ? "RXNpZ25hdHVyZQ==" : "Hm."])
      })

      it("gets the finish reason for the token limit and for the content filter", async () => {
        shared().provider.say({ text: "Once upon", finishReason: "content_filter", usage })
        const { got } = await exchange(client, provider, { text: "Tell" }, streams)
        assert.deepStrictEqual(got, { ...whole, text: "Once upon", finish: "content_filter" })
      })
    })
  })
})

describe("openai 7, completions", () => {
  const client = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })

  it.each(apis.filter((provider) => provider !== "openai"))("with a provider of %s", async (provider) => {
    shared().provider.say({ reasoning: "Hm.", text: "a time.", usage })
    const request = { model: `on-${provider}`, prompt: "Once upon", max_tokens: 20, temperature: 0.5, echo: true }
    const { received, result } = await receivedBy(shared(), () => client().completions.create(request))
    const { choices, model, usage: used } = await result
    assert.deepStrictEqual(choices.map(({ finish_reason, text }) => ({ finish_reason, text })), [
      { finish_reason: "stop", text: "Once upona time." }
    ])
    assert.strictEqual(model, `on-${provider}`)
    assert.deepStrictEqual([used?.prompt_tokens, used?.completion_tokens], [...tokens])
    assert.deepStrictEqual(asked(received, provider), {
      ...nothing,
      path: paths[provider](false),
      key: keyOf(provider),
      texts: ["Once upon"]
    })
    let streamed = ""
    for await (const chunk of await client().completions.create({ ...request, stream: true })) {
      streamed += chunk.choices[0]?.text ?? ""
    }
    assert.strictEqual(streamed, "Once upona time.")
  })
})
