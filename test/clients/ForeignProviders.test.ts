/** Chat clients with providers of another dialect: errors, translation losses, and several answers at once. */
import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import type { Behaviour } from "../fixture/provider/FakeProvider.ts"
import { type Api, chatProviders, type Provider, providers } from "../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders({
  provider: "  misspelt: { protocol: anthropic, baseUrl: \"ROOT\", options: { maxtokens: 5 } }\n" +
    "  marking: { protocol: openai, baseUrl: \"ROOT/v1\", options: { cacheControl: true } }",
  model: "  misspelt: { workload: chat, targets: [{ provider: misspelt }] }\n" +
    "  marking: { workload: chat, targets: [{ provider: marking }] }"
}))

// Plain clients

interface Dialect {
  readonly own: Api
  readonly path: (model: string, streams: boolean) => string
  readonly body: (model: string, streams: boolean) => object
  /** The dialect's parameter for the token limit. */
  readonly limit: string
}

const text = "one two three four five six seven eight nine ten"

const dialects: Readonly<Record<string, Dialect>> = {
  "chat completions": {
    own: "openai",
    path: () => "/v1/chat/completions",
    body: (model, stream) => ({ model, messages: [{ role: "user", content: text }], stream }),
    limit: "max_tokens"
  },
  completions: {
    own: "openai",
    path: () => "/v1/completions",
    body: (model, stream) => ({ model, prompt: text, stream }),
    limit: "max_tokens"
  },
  messages: {
    own: "anthropic",
    path: () => "/v1/messages",
    body: (model, stream) => ({ model, max_tokens: 100, messages: [{ role: "user", content: text }], stream }),
    limit: "max_tokens"
  },
  responses: {
    own: "responses",
    path: () => "/v1/responses",
    body: (model, stream) => ({ model, input: text, stream }),
    limit: "max_output_tokens"
  },
  generateContent: {
    own: "gemini",
    path: (model, streams) =>
      `/v1beta/models/${model}:${streams ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: () => ({ contents: [{ parts: [{ text }] }] }),
    limit: "generationConfig.maxOutputTokens"
  }
}

const post = (path: string, body: object | string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${shared().url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${shared().key}`,
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      ...headers
    },
    body: typeof body === "string" ? body : JSON.stringify(body)
  })

const ask = (
  { body, path }: Dialect,
  provider: Provider,
  streams: boolean,
  more: object = {},
  headers: Readonly<Record<string, string>> = {}
) => {
  const model = `on-${provider}`
  return post(path(model, streams), { ...body(model, streams), ...more }, headers)
}

interface Envelope {
  readonly type?: string
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string | number | null
  }
}

const errorIn = async (answer: Response): Promise<Envelope["error"]> => {
  const body = await answer.text()
  assert.notInclude(body, "provider-secret")
  assert.notInclude(body, "127.0.0.1")
  return (JSON.parse(body) as Envelope).error
}

/** The data of the last frame of a stream. */
const lastOf = async (answer: Response): Promise<string> => {
  const frames = (await answer.text()).split(/\r?\n\r?\n/).filter((frame) => frame !== "")
  return /^data: ?(.*)$/m.exec(frames.at(-1) ?? "")?.[1] ?? ""
}

const foreign = Object.entries(dialects).flatMap(([name, dialect]) =>
  providers.filter((provider) => provider !== dialect.own || name === "completions" && provider !== "openai")
    .map((provider) => [name, provider, dialect] as const)
)

const own = providers.flatMap((provider) =>
  Object.entries(dialects).filter(([name, dialect]) => dialect.own === provider && name !== "completions")
    .map(([name, dialect]) => [name, provider, dialect] as const)
)

const pairs = [...foreign, ...own]

const broken: ReadonlyArray<readonly [string, Behaviour]> = [
  ["breaks off", { kind: "cut", after: 4 }],
  ["ends before it is complete", { kind: "truncate", after: 4 }],
  ["ends within a frame", { kind: "truncate", after: 4, bytes: 20 }],
  ["turns into an error", { kind: "error", after: 4 }]
]

const brokenJson: ReadonlyArray<readonly [string, Behaviour]> = [
  ["breaks off", { kind: "cut", after: 1 }],
  ["ends before it is complete", { kind: "truncate", after: 1 }],
  ["ends in garbage", { kind: "malformed", after: 0 }],
  ["is an error with status 200", { kind: "error", after: 0 }]
]

describe.each(foreign)("%s, translated from a provider of %s", (_, provider, dialect) => {
  it("gets the rest of an answer if a frame of plain text is garbage", async () => {
    shared().provider.behaveOnce({ kind: "malformed", after: 4 })
    const answer = await ask(dialect, provider, true)
    assert.strictEqual(answer.status, 200)
    assert.match(await lastOf(answer), /^\[DONE\]$|"message_stop"|"response.completed"|"finishReason":"STOP"/)
  })
})

describe.each(pairs)("%s, with a provider of %s", (_, provider, dialect) => {
  const failing = async (behaviour: Behaviour, streams = false) => {
    shared().provider.behaveOnce(behaviour)
    const answer = await ask(dialect, provider, streams)
    return { status: answer.status, headers: answer.headers, error: await errorIn(answer) }
  }

  it("gets a provider's rejection, with its message and the client's own name of the field", async () => {
    const messages = {
      openai: "max_tokens: 999 is too many",
      anthropic: "max_tokens: 999 is too many",
      gemini: "max_output_tokens: 999 is too many"
    }
    const error = { message: messages[provider], ...(provider === "openai" ? { param: "max_completion_tokens" } : {}) }
    const { error: told, status } = await failing({ kind: "status", status: 400, error })
    assert.strictEqual(status, 400)
    assert.strictEqual(told.message, messages[provider])
    // a client of the provider's own dialect gets the provider's name
    if (provider !== dialect.own) assert.strictEqual(told.param, dialect.limit)
  })

  it("does not get the provider's message about the gateway's key", async () => {
    const { error, status } = await failing({
      kind: "status",
      status: 401,
      error: { message: "provider-secret is no key of ours" }
    })
    assert.strictEqual(status, 502)
    assert.include(error.message, `The provider 'to-${provider}' refused the gateway's credentials`)
    assert.notInclude(error.message, "provider-secret")
  })

  it("gets the time to retry", async () => {
    const { error, headers, status } = await failing({ kind: "status", status: 429, retryAfterMs: 7_000 })
    assert.strictEqual(status, 429)
    assert.strictEqual(headers.get("retry-after"), "7")
    assert.strictEqual(error.type, "rate_limit_error")
  })

  it.each([500, 503, 529])("gets an error if the provider failed with %d", async (upstream) => {
    const { error, status } = await failing({ kind: "status", status: upstream })
    assert.strictEqual(status, 502)
    assert.strictEqual(error.message, `The provider 'to-${provider}' failed with status ${upstream}`)
  })

  it.each(broken)("never gets a partial answer as complete if a stream %s", async (_, behaviour) => {
    shared().provider.behaveOnce(behaviour)
    const answer = await ask(dialect, provider, true)
    assert.strictEqual(answer.status, 200)
    const error = (JSON.parse(await lastOf(answer)) as Envelope).error
    assert.include(["upstream_error", "api_error"], error.type)
    assert.match(error.message, /^The provider 'to-\w+' /)
  })

  it.each(brokenJson)("never gets a partial answer as complete if JSON %s", async (_, behaviour) => {
    assert.strictEqual((await failing(behaviour)).status, 502)
  })

  it("gets an error with a status until the first byte of the answer", async () => {
    shared().provider.behaveOnce({ kind: "truncate", after: 0 })
    assert.strictEqual((await ask(dialect, provider, true)).status, 502)
  })

  it("stops the provider's work when it disconnects", async () => {
    shared().provider.behaveOnce({ kind: "endless" })
    const { received, result } = await receivedBy(shared(), () => ask(dialect, provider, true))
    const reader = (await result).body?.getReader()
    assert.isFalse((await reader?.read())?.done)
    await reader?.cancel()
    assert.strictEqual(await received.closed, "aborted")
  })
})

describe("several answers of a provider that returns one per call", () => {
  const openai = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
  const messages = [{ role: "user" as const, content: "Say something" }]

  it("are requested all at once and merged, with their usage added up", async () => {
    const { provider } = shared()
    const before = provider.requests.length
    provider.behaveOnce({ kind: "silent" }, { kind: "silent" }, { kind: "silent" })
    provider.say({ text: "something", usage: { input: 10, output: 2 } })
    const answer = openai().chat.completions.create({ model: "on-anthropic", messages, n: 3 })
    await provider.until(() => provider.requests.length === before + 3)
    provider.release()
    const { choices, usage } = await answer
    assert.deepStrictEqual(
      choices.map(({ finish_reason, index, message }) => [index, message.content, finish_reason]),
      [
        [0, "something", "stop"],
        [1, "something", "stop"],
        [2, "something", "stop"]
      ]
    )
    assert.deepStrictEqual([usage?.prompt_tokens, usage?.completion_tokens], [30, 6])
    assert.isTrue(provider.requests.slice(before).every(({ body }) => body.equals(provider.requests[before]!.body)))
  })

  it("are streamed as they arrive, each to its end", async () => {
    shared().provider.say(({ messages }) => ({ text: `${messages.at(-1)?.text} and more` }))
    const stream = openai().chat.completions.stream({ model: "on-anthropic", messages, n: 4 })
    const { choices } = await stream.finalChatCompletion()
    assert.deepStrictEqual(
      choices.map(({ finish_reason, index, message }) => [index, message.content, finish_reason]),
      [0, 1, 2, 3].map((index) => [index, "Say something and more", "stop"])
    )
  })

  it("all fail if one fails, and the other calls are stopped", async () => {
    const { provider } = shared()
    const before = provider.requests.length
    provider.behaveOnce({ kind: "silent" }, { kind: "silent" }, { kind: "silent" })
    const answer = openai().chat.completions.create({ model: "on-anthropic", messages, n: 3 })
      .catch((error: unknown) => error)
    await provider.until(() => provider.requests.length === before + 3)
    const calls = provider.requests.slice(before)
    calls[1]!.reset()
    assert.strictEqual((await answer as { readonly status: number }).status, 502)
    assert.deepStrictEqual(await Promise.all(calls.map(({ closed }) => closed)), ["aborted", "cut", "aborted"])
  })

  it("are at most eight", async () => {
    const error = await openai().chat.completions.create({ model: "on-anthropic", messages, n: 9 })
      .catch((error: unknown) => error)
    assert.instanceOf(error, OpenAI.BadRequestError)
    assert.deepInclude(error, { param: "n", code: "not_translatable" })
  })

  it("are one call to a provider that returns several", async () => {
    shared().provider.say("something")
    const { received, result } = await receivedBy(
      shared(),
      () => openai().chat.completions.create({ model: "on-gemini", messages, n: 3 })
    )
    assert.lengthOf((await result).choices, 3)
    assert.deepNestedPropertyVal(received.json, "generationConfig.candidateCount", 3)
  })

  it("are one call per prompt", async () => {
    const { provider } = shared()
    provider.say(({ messages }) => ({ text: `${messages.at(-1)?.text} time` }))
    const { choices } = await openai().completions.create({ model: "on-anthropic", prompt: ["One", "Two"], n: 2 })
    assert.deepStrictEqual(choices.map(({ index, text }) => [index, text]), [
      [0, "One time"],
      [1, "One time"],
      [2, "Two time"],
      [3, "Two time"]
    ])
  })
})

describe("a request that its provider cannot take in full", () => {
  const chat = dialects["chat completions"]!

  it("is answered with a warning header if only hints are lost, streaming and not", async () => {
    const hints = { seed: 7, presence_penalty: 1, store: true }
    for (const streams of [false, true]) {
      const answer = await ask(chat, "anthropic", streams, hints)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(
        answer.headers.get("x-translation-warnings"),
        "store is not carried over; seed is not carried over; presence_penalty is not carried over"
      )
      await answer.text()
    }
    const answer = await ask(chat, "openai", false, hints)
    assert.isNull(answer.headers.get("x-translation-warnings"))
  })

  it("is rejected if the loss would change the meaning of the answer", async () => {
    const answer = await ask(chat, "gemini", true, { logit_bias: { 50256: -100 } })
    assert.strictEqual(answer.status, 400)
    assert.deepInclude(await errorIn(answer), {
      message: "logit_bias: cannot be carried over to the provider of this model",
      param: "logit_bias",
      code: "not_translatable"
    })
  })

  it("is always rejected for a client that asks for strictness, by providers and built-in engines", async () => {
    const strict = { "x-translation": "strict" }
    const answer = await ask(chat, "anthropic", false, { seed: 7 }, strict)
    assert.strictEqual(answer.status, 400)
    assert.deepInclude(await errorIn(answer), { message: "seed: is not carried over", param: "seed" })
    const local = await post("/v1/chat/completions", { ...chat.body("local-chat", false), store: true }, strict)
    assert.strictEqual(local.status, 400)
    assert.strictEqual((await ask(chat, "anthropic", false, {}, strict)).status, 200)
    // requests that are passed on are not translated
    assert.strictEqual((await ask(chat, "openai", false, { seed: 7, store: true }, strict)).status, 200)
    const other = await ask(chat, "anthropic", false, {}, { "x-translation": "loose" })
    assert.strictEqual(other.status, 400)
    assert.strictEqual((await errorIn(other)).param, "x-translation")
  })

  it("is rejected for a picture at a private address, for a provider that does not fetch pictures", async () => {
    const messages = [{
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: "http://127.0.0.1:1/a.png" } }
      ]
    }]
    const answer = await ask(chat, "gemini", false, { messages })
    assert.strictEqual(answer.status, 400)
    const { message, param } = JSON.parse(await answer.text()).error as Envelope["error"]
    assert.strictEqual(param, "messages[0].content[1]")
    assert.strictEqual(message, "messages[0].content[1]: does not lead to a public address")
  })

  it("is answered with 500 if the catalogue's options are wrong, which only the log names", async () => {
    const answer = await post(chat.path("misspelt", false), chat.body("misspelt", false))
    assert.strictEqual(answer.status, 500)
    assert.include(shared().log, "providers.misspelt.options.maxtokens in the catalogue")
  })
})

describe("a client that says what the provider may cache", () => {
  const key = () => ({ apiKey: shared().key, maxRetries: 0 })
  const usage = { input: 100, cached: 60, cacheWritten: 20 }

  it.each(
    [
      ["on-anthropic", 3, [20, 60, 20], []],
      ["marking", 3, [40, 60, 0], []],
      ["on-gemini", 0, [40, 60, 0], ["system[0]", "messages[0].content[0]", "tools[0]"]]
    ] as const
  )("by Anthropic's marks has them sent to %s: %d", async (model, marks, tokens, lost) => {
    shared().provider.say({ text: "Fine.", usage })
    const cache_control = { type: "ephemeral" as const, ttl: "1h" as const }
    const { received, result } = await receivedBy(
      shared(),
      () =>
        new Anthropic({ baseURL: shared().url, ...key() }).messages.create({
          model,
          max_tokens: 100,
          system: [{ type: "text", text: "Be brief.", cache_control }],
          tools: [{ name: "look", input_schema: { type: "object" }, cache_control }],
          messages: [{ role: "user", content: [{ type: "text", text, cache_control }] }]
        }).withResponse()
    )
    const { data, response } = await result
    assert.lengthOf(
      JSON.stringify(received.json).match(/"cache_control":\{"type":"ephemeral","ttl":"1h"\}/g) ?? [],
      marks
    )
    const { cache_creation_input_tokens: written, cache_read_input_tokens: read, input_tokens: fresh } = data.usage
    assert.deepStrictEqual([fresh, read, written], [...tokens])
    const warnings = response.headers.get("x-translation-warnings") ?? ""
    assert.strictEqual(warnings, lost.map((path) => `${path}.cache_control is not carried over`).join("; "))
  })

  it.each(["chat.completions", "responses"] as const)("by OpenAI's key, of %s, has Anthropic cache it", async (api) => {
    shared().provider.say({ text: "Fine.", usage })
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, ...key() })
    const request = { model: "on-anthropic", prompt_cache_key: "session-1" }
    const { received, result } = await receivedBy(shared(), async () =>
      api === "responses"
        ? (await client.responses.create({ ...request, instructions: "Be brief.", input: text }))
          .usage?.input_tokens_details.cached_tokens
        : (await client.chat.completions.create({
          ...request,
          messages: [{ role: "system", content: "Be brief." }, { role: "user", content: text }]
        })).usage?.prompt_tokens_details?.cached_tokens)
    assert.strictEqual(await result, 60)
    const cache_control = { type: "ephemeral" }
    assert.deepNestedInclude(received.json, {
      "system[0]": { type: "text", text: "Be brief.", cache_control },
      "messages[0].content[0]": { type: "text", text, cache_control }
    })
  })

  it("by OpenAI's key has it passed on to OpenAI", async () => {
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, ...key() })
    const { received, result } = await receivedBy(shared(), () =>
      client.chat.completions.create({
        model: "on-openai",
        prompt_cache_key: "session-1",
        messages: [{ role: "user", content: text }]
      }))
    await result
    assert.deepNestedInclude(received.json, { prompt_cache_key: "session-1" })
  })
})

describe("a client of the provider's own dialect", () => {
  /** Requests that parsing and printing would change. */
  const odd = {
    anthropic: (model: string) =>
      ` {"max_tokens" : 1.0e1,\r\n"model":"${model}" ,"messages":[{"role":"user","content":"\\u0068\\/ 🐝"}],"x":{"y":1.0,"y":2}}\n`,
    gemini: () => ` {"contents" : [{"parts":[{"text":"\\u0068\\/ 🐝","own":1.0}]}], "x":{"y":1.0,"y":2}}\n`
  }

  it("has its Anthropic request passed on byte for byte except for the model, with version and betas", async () => {
    const { received, result } = await receivedBy(shared(), () =>
      post("/v1/messages", odd.anthropic("on-anthropic"), {
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "fast-mode-2026-02-01,files-api-2025-04-14"
      }))
    assert.strictEqual((await result).status, 200)
    assert.strictEqual(received.body.toString(), odd.anthropic("upstream-model"))
    assert.deepInclude(received.headers, {
      "x-api-key": "provider-secret-of-anthropic",
      "anthropic-version": "2026-10-21",
      "anthropic-beta": "fast-mode-2026-02-01,files-api-2025-04-14"
    })
  })

  it("may give Anthropic's version under this API's name", async () => {
    const { received, result } = await receivedBy(shared(), () =>
      fetch(`${shared().url}/v1/messages`, {
        method: "POST",
        headers: { "x-api-key": shared().key, "content-type": "application/json", "vendor-version": "2023-06-01" },
        body: odd.anthropic("plain-anthropic")
      }))
    assert.strictEqual((await result).status, 200)
    assert.strictEqual(received.headers["anthropic-version"], "2023-06-01")
    assert.strictEqual(received.body.toString(), odd.anthropic("plain-anthropic"))
  })

  it("has its Google request passed on byte for byte, with the model in the path", async () => {
    const { received, result } = await receivedBy(
      shared(),
      () => post("/v1/models/on-gemini:streamGenerateContent?alt=sse", odd.gemini())
    )
    assert.strictEqual((await result).status, 200)
    assert.strictEqual(received.body.toString(), odd.gemini())
    assert.strictEqual(received.path, "/v1beta/models/upstream-model:streamGenerateContent?alt=sse")
    assert.strictEqual(received.headers["x-goog-api-key"], "provider-secret-of-gemini")
  })

  it("is not rejected for content that another provider signed, which is left out", async () => {
    const { provider } = shared()
    provider.say({ reasoning: "Hm.", text: "They dance." })
    const anthropic = new Anthropic({ baseURL: shared().url, apiKey: shared().key, maxRetries: 0 })
    const messages: Array<Anthropic.MessageParam> = [{ role: "user", content: "How do bees talk?" }]
    const first = await anthropic.messages.create({ model: "on-gemini", max_tokens: 100, messages })
    assert.deepStrictEqual(first.content.map(({ type }) => type), ["thinking", "text"])
    messages.push({ role: "assistant", content: first.content }, { role: "user", content: "Go on" })
    const { received, result } = await receivedBy(
      shared(),
      () => anthropic.messages.create({ model: "on-anthropic", max_tokens: 100, messages })
    )
    await result
    assert.deepStrictEqual((received.json as { readonly messages: unknown }).messages, [
      messages[0],
      { role: "assistant", content: [{ type: "text", text: "They dance." }] },
      messages[2]
    ])
  })
})
