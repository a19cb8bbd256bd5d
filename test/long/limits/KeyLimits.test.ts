/** A key's limits hold and are used up over all ingress processes; its models and its budget. */
import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { chat, outcomeOf, startStream } from "../../fixture/client/ChatClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { failureOf } from "../../fixture/general/Failure.ts"
import { echo } from "../../fixture/provider/answers/Answer.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { usageProcess } from "../../fixture/nats/UsageEvents.ts"

/** The length of a minute in these tests, in milliseconds: a real one in `npm run limits-check`. */
const windowMs = Number(process.env["LIMITS_WINDOW_MS"] ?? 6_000)

const shared = sharedGateway({
  ingresses: 4,
  services: ["embeddings"],
  environment: { GATEWAY_LIMIT_WINDOW_MS: String(windowMs) },
  models: `
  free-embedding: { workload: embeddings, targets: [{ provider: free }] }
  dear-chat: { workload: chat, targets: [{ provider: paid }], price: { perRequest: 0.4 } }`
})

const ask = (key: string, ingress = 0, body: object = chat("free-chat"), signal?: AbortSignal) =>
  fetch(`${shared().ingresses[ingress]!.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal })
  })

interface Served {
  readonly asked: number
  readonly answered: number
}

/** Repeats a request, waiting as long as each answer says. */
const keepAsking = async (key: string, ingress: number, untilMs: number, served: Array<Served>): Promise<void> => {
  while (performance.now() < untilMs) {
    const asked = performance.now()
    const response = await ask(key, ingress)
    await response.body?.cancel()
    if (response.status === 200) {
      served.push({ asked, answered: performance.now() })
      continue
    }
    assert.strictEqual(response.status, 429)
    const waitMs = Number(response.headers.get("retry-after-ms"))
    assert.isAbove(waitMs, 0)
    await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, untilMs - performance.now())))
  }
}

describe("a key's limit", { timeout: 60_000 + 4 * windowMs }, () => {
  it("of requests per minute holds in every window, over four ingress processes under load", async () => {
    const limit = 100
    const { key } = await shared().createKeyWith({ requestsPerMinute: limit })
    const served: Array<Served> = []
    const windows = 3
    const until = performance.now() + windows * windowMs
    await Promise.all(Array.from({ length: 16 }, (_, client) => keepAsking(key, client % 4, until, served)))

    // a request both sent and answered within a window was admitted in it
    const within = (from: number) =>
      served.filter(({ answered, asked }) => asked >= from && answered <= from + windowMs).length
    const most = Math.max(...served.map(({ asked }) => within(asked)))
    console.log(`${served.length} in ${windows} windows, at most ${most} in one`)
    assert.isAtMost(most, limit)
    assert.isAtLeast(served.length, 0.95 * limit * windows)
  })

  it("of concurrent requests holds over four ingress processes, and is freed at their end or a disconnect", async () => {
    const { key } = await shared().createKeyWith({ concurrentRequests: 3 })
    const { provider } = shared()
    const before = provider.requests.length
    const reached = () => provider.requests.length - before
    provider.behave({ kind: "hold", after: 2 })
    try {
      const hangingUp = new AbortController()
      const stream = chat("free-chat", { stream: true })
      const answers = await Promise.all([
        ask(key, 0, stream, hangingUp.signal),
        ask(key, 1, stream),
        ask(key, 2, stream)
      ])
      assert.deepStrictEqual(answers.map(({ status }) => status), [200, 200, 200])
      const streams = await Promise.all(answers.map((answer) => startStream(Promise.resolve(answer))))
      for (const ingress of [0, 1, 2, 3]) {
        assert.deepInclude(await outcomeOf(ask(key, ingress, stream)), {
          kind: "refused",
          status: 429,
          code: "rate_limit_exceeded"
        })
      }
      assert.strictEqual(reached(), 3)

      hangingUp.abort()
      const other = await eventually(() => ask(key, 3, stream), ({ status }) => status === 200)
      assert.strictEqual(reached(), 4)
      provider.behave({ kind: "answer" })
      provider.release()
      for (const { outcome } of streams.slice(1)) assert.deepStrictEqual(await outcome(), { kind: "whole" })
      assert.deepStrictEqual(await outcomeOf(other), { kind: "whole" })
      const all = await Promise.all(
        [0, 1, 2].map((ingress) => eventually(() => outcomeOf(ask(key, ingress)), ({ kind }) => kind === "whole"))
      )
      assert.lengthOf(all, 3)
    } finally {
      provider.behave({ kind: "answer" })
      provider.release()
    }
  })

  it("of tokens per minute counts the tokens used instead of those reserved, once they are known", async () => {
    const { key } = await shared().createKeyWith({ tokensPerMinute: 1000 })
    // each reserves more than 500 tokens and uses 10
    for (let times = 0; times < 10; times++) {
      const response = await ask(key)
      assert.strictEqual(response.status, 200)
      await response.json()
    }
    const big = chat("free-chat", { max_tokens: 900 })
    assert.deepInclude(await outcomeOf(ask(key, 0, big)), { kind: "refused", code: "rate_limit_exceeded" })
    // tokens reserved at one ingress and not used are available at another before the window ends
    await eventually(() => outcomeOf(ask(key, 1)), ({ kind }) => kind === "whole")
  })

  it("of tokens per minute counts an estimate of the tokens used if the provider reports none", async () => {
    const { provider } = shared()
    const { key } = await shared().createKeyWith({ tokensPerMinute: 1_000 })
    provider.say({ text: "word ".repeat(600), usage: { input: 0, output: 0 } })
    try {
      assert.deepStrictEqual(await outcomeOf(ask(key)), { kind: "whole" })
      assert.deepInclude(await outcomeOf(ask(key)), { kind: "refused", code: "rate_limit_exceeded" })
    } finally {
      provider.say(echo)
    }
  })

  const stated = [
    ["/v1/chat/completions", chat("free-chat", { n: 5, max_tokens: 500 })],
    ["/v1/chat/completions", chat("free-chat", { max_completion_tokens: 5, max_tokens: 2_500 })],
    ["/v1/chat/completions", chat("free-chat", { n: 5 })],
    ["/v1/completions", { model: "free-chat", prompt: "one", best_of: 5, max_tokens: 500 }],
    ["/v1/completions", { model: "free-chat", prompt: ["one", "two", "three", "four", "five"], max_tokens: 500 }],
    ["/v1/messages", chat("free-chat", { max_tokens: 1_300, thinking: { type: "enabled", budget_tokens: 1_200 } })],
    [
      "/v1beta/models/free-chat:generateContent",
      { contents: [{ parts: [{ text: "one" }] }], generationConfig: { candidateCount: 5, maxOutputTokens: 500 } }
    ],
    ["/v1/embeddings", { model: "free-embedding", input: Array.from({ length: 1_000 }, () => "ten bytes.") }]
  ] as const

  it.each(stated)("of tokens per minute reserves what a request states: %s %j", async (path, body) => {
    const { provider } = shared()
    const { key } = await shared().createKeyWith({ tokensPerMinute: 3000 })
    const leaving = new AbortController()
    const before = provider.requests.length
    const model = { model: "model" in body ? body.model : "free-chat" }
    provider.behave({ kind: "silent" }, model)
    try {
      const headers = { authorization: `Bearer ${key}`, "anthropic-version": "2023-06-01" }
      const ingress = shared().ingresses[1]!
      const first = shared().request(body, { path, headers, ingress, signal: leaving.signal })
      const left = failureOf(first, Error)
      await provider.until(() => provider.requests.length > before)
      assert.deepInclude(await outcomeOf(ask(key, 2, chat("free-chat"), AbortSignal.timeout(30_000))), {
        kind: "refused",
        status: 429,
        code: "rate_limit_exceeded"
      })
      leaving.abort()
      await left
    } finally {
      provider.behave({ kind: "answer" }, model)
      provider.release()
    }
  })

  it("of tokens per minute rejects a request that states more than the limit, and names its field", async () => {
    const { provider } = shared()
    const { key } = await shared().createKeyWith({ tokensPerMinute: 3000 })
    const before = provider.requests.length
    const openai = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key })
    const messages = [{ role: "user" as const, content: "one" }]
    const refused = await failureOf(
      openai.chat.completions.create({ model: "free-chat", messages, max_tokens: 1_000, n: 4 }),
      OpenAI.BadRequestError
    )
    assert.deepInclude(refused, { code: "token_limit_exceeded", param: "max_tokens" })
    assert.include(
      refused.message,
      "'max_tokens' and 'n' allow 4000 tokens, but the API key is limited to 3000 tokens per minute"
    )
    const anthropic = new Anthropic({ baseURL: shared().url, apiKey: key })
    const long = anthropic.messages.create({ model: "free-chat", max_tokens: 3_001, messages })
    assert.include((await failureOf(long, Anthropic.BadRequestError)).message, "'max_tokens' allows 3001 tokens")
    assert.strictEqual(provider.requests.length, before)
    // the key is unused, and an estimate alone rejects nothing
    assert.strictEqual((await ask(key, 0, chat("free-chat", { n: 100 }))).status, 200)
  })

  it("of tokens per minute holds for many concurrent requests with several answers each", async () => {
    const [limit, words, n] = [3_000, 290, 3]
    const { provider } = shared()
    const { key } = await shared().createKeyWith({ tokensPerMinute: limit })
    const used: Array<Served & { readonly tokens: number }> = []
    const body = chat("free-chat", { max_tokens: words, n })
    provider.say("word ".repeat(words))
    provider.behave({ kind: "silent", forMs: 100 })
    const keepUsing = async (ingress: number, until: number) => {
      while (performance.now() < until) {
        const asked = performance.now()
        const response = await ask(key, ingress, body)
        if (response.status === 200) {
          const { usage } = (await response.json()) as { readonly usage: { readonly total_tokens: number } }
          used.push({ asked, answered: performance.now(), tokens: usage.total_tokens })
          continue
        }
        await response.body?.cancel()
        assert.strictEqual(response.status, 429)
        const waitMs = Number(response.headers.get("retry-after-ms"))
        await new Promise((resolve) => setTimeout(resolve, Math.max(10, Math.min(waitMs, until - performance.now()))))
      }
    }
    try {
      const until = performance.now() + 2 * windowMs
      await Promise.all(Array.from({ length: 40 }, (_, client) => keepUsing(client % 4, until)))
    } finally {
      provider.say(echo)
      provider.behave({ kind: "answer" })
    }
    const within = (from: number) =>
      used.filter(({ answered, asked }) => asked >= from && answered <= from + windowMs)
        .reduce((sum, { tokens }) => sum + tokens, 0)
    const most = Math.max(...used.map(({ asked }) => within(asked)))
    const one = Math.max(...used.map(({ tokens }) => tokens))
    console.log(`${used.length} requests of ${one} tokens, at most ${most} tokens in one window`)
    assert.isAtLeast(one, n * words)
    assert.isAtMost(most, limit + one)
    assert.isAtLeast(used.length, 4)
  })

  it("is in the headers of every answer, as official clients show them", async () => {
    const { id, key } = await shared().createKeyWith({ requestsPerMinute: 3, tokensPerMinute: 5_000 })
    const openai = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })
    const messages = [{ role: "user" as const, content: "one two three four five" }]
    const { data, response } = await openai.chat.completions.create({ model: "free-chat", messages }).withResponse()
    const of = (headers: Headers, name: string) => headers.get(name) ?? ""
    assert.strictEqual(of(response.headers, "x-ratelimit-limit-requests"), "3")
    assert.strictEqual(of(response.headers, "x-ratelimit-remaining-requests"), "2")
    assert.match(of(response.headers, "x-ratelimit-reset-requests"), /^(\d+s|\d+m\d+s)$/)
    assert.strictEqual(of(response.headers, "x-ratelimit-limit-tokens"), "5000")
    assert.strictEqual(
      of(response.headers, "x-ratelimit-remaining-tokens"),
      String(5_000 - (data.usage?.total_tokens ?? 0))
    )
    assert.isNull(response.headers.get("anthropic-ratelimit-requests-limit"))

    const anthropic = new Anthropic({ baseURL: shared().url, apiKey: key, maxRetries: 0 })
    const asked = { model: "free-chat", max_tokens: 100, messages }
    const message = await anthropic.messages.create(asked).withResponse()
    assert.strictEqual(of(message.response.headers, "anthropic-ratelimit-requests-limit"), "3")
    assert.strictEqual(of(message.response.headers, "anthropic-ratelimit-requests-remaining"), "1")
    const resetAt = Date.parse(of(message.response.headers, "anthropic-ratelimit-requests-reset"))
    const now = Date.parse(of(message.response.headers, "date"))
    assert.isAbove(resetAt, now)
    assert.isAtMost(resetAt, now + windowMs + 2_000)

    // a request rejected for another reason uses nothing
    const mistaken = await ask(key, 0, { model: "free-chat" })
    assert.strictEqual(mistaken.status, 400)
    assert.strictEqual(of(mistaken.headers, "x-ratelimit-remaining-requests"), "1")

    await openai.chat.completions.create({ model: "free-chat", messages })
    const refused = await failureOf(
      openai.chat.completions.create({ model: "free-chat", messages }),
      OpenAI.RateLimitError
    )
    assert.strictEqual(refused.code, "rate_limit_exceeded")
    assert.strictEqual(refused.type, "rate_limit_error")
    assert.include(refused.message, "limit of 3 requests per minute")
    assert.strictEqual(of(refused.headers, "x-ratelimit-remaining-requests"), "0")
    const retryMs = Number(of(refused.headers, "retry-after-ms"))
    assert.isAbove(retryMs, 0)
    assert.isAtMost(retryMs, windowMs + 1_000)
    assert.strictEqual(of(refused.headers, "retry-after"), String(Math.ceil(retryMs / 1_000)))
    // the client waits as told and is served
    const patient = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 3 })
    await patient.chat.completions.create({ model: "free-chat", messages })

    // a limit that is removed stops applying at once
    await shared().admin("keys", "edit", id, "--requests-per-minute", "none", "--tokens-per-minute", "none")
    const free = await eventually(
      () => ask(key),
      ({ headers }) => headers.get("x-ratelimit-limit-requests") === null
    )
    assert.strictEqual(free.status, 200)
  })
})

describe("a key", { timeout: 60_000 }, () => {
  it("may use only its models, and sees no others", async () => {
    const { key } = await shared().createKeyWith({ allowedModels: ["free-chat", "local-*"] })
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })
    const { data } = await client.models.list()
    assert.deepStrictEqual(data.map((model) => model.id).filter((model) => !model.startsWith("local-")), ["free-chat"])
    assert.isAbove(data.length, 1)
    assert.strictEqual((await ask(key)).status, 200)
    assert.strictEqual((await ask(key, 0, chat("local-chat"))).status, 200)
    const error = await failureOf(
      client.chat.completions.create({ model: "paid-chat", messages: [{ role: "user", content: "one" }] }),
      OpenAI.PermissionDeniedError
    )
    assert.deepInclude(error, { code: "model_not_allowed", type: "permission_error", param: "model" })
  })

  it("may spend its budget, and with its last request a little more", () =>
    Effect.runPromise(Effect.scoped(Effect.gen(function*() {
      yield* usageProcess(shared().nats, UsageCounters.layer)
      yield* Effect.promise(async () => {
        const { id, key } = await shared().createKeyWith({ monthlyBudgetUsd: 1 })
        const dear = chat("dear-chat")
        const before = shared().provider.requests.length
        // before it is spent, what is left may be reserved
        const refused = await eventually(
          () => ask(key, 1, dear),
          ({ headers }) => headers.get("x-should-retry") === "false"
        )
        assert.strictEqual(refused.status, 429)
        assert.strictEqual(shared().provider.requests.length - before, 3)
        assert.isAbove(Number(refused.headers.get("retry-after")), 0)
        assert.deepInclude(((await refused.json()) as { readonly error: object }).error, {
          code: "insufficient_quota",
          type: "rate_limit_error"
        })
        for (const ingress of [0, 2, 3]) {
          await eventually(() => ask(key, ingress, dear), ({ status }) => status === 429)
        }
        await shared().admin("keys", "edit", id, "--budget", "1000")
        await eventually(() => ask(key, 0, dear), ({ status }) => status === 200)
      })
    }))))
})
