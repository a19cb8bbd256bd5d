/** How clients name a model and send their key: what the list says, and which error they get. */
import { assert, describe, it } from "@effect/vitest"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  models:
    `  gpt-4o-2024-08-06: { workload: chat, targets: [{ provider: free }], inputModalities: [text, image], outputModalities: [text] }
  claude-sonnet-4-5-20250929: { workload: chat, targets: [{ provider: free }] }
  odd-2024-99-01: { workload: chat, targets: [{ provider: free }] }
`
})

interface Answer {
  readonly data: ReadonlyArray<
    Readonly<Record<string, unknown>> & { readonly architecture?: { readonly modality: string } }
  >
  readonly error: { readonly code: string | number; readonly message: string }
}

const ask = async (path: string, headers: Record<string, string> = {}, body?: object) => {
  const response = await fetch(`${shared().url}${path}`, {
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
  })
  return { status: response.status, json: await response.json() as Answer & Readonly<Record<string, unknown>> }
}

describe("the list of models", () => {
  // types: Together's API, https://docs.together.ai/reference/models; architecture: OpenRouter's, https://openrouter.ai/docs/api-reference
  const listed: ReadonlyArray<readonly [id: string, type: string, modality: string | undefined, created: number]> = [
    ["free-chat", "chat", "text->text", 1_677_610_602],
    ["local-image", "image", "text->image", 1_677_610_602],
    ["local-video", "video", "text->video", 1_677_610_602],
    ["local-embedding", "embedding", "text->embeddings", 1_677_610_602],
    ["local-rerank", "rerank", "text->rerank", 1_677_610_602],
    ["whisper-1", "audio", undefined, 1_677_610_602],
    // date -u -d 2024-08-06 +%s
    ["gpt-4o-2024-08-06", "chat", "text+image->text", 1_722_902_400],
    ["claude-sonnet-4-5-20250929", "chat", "text+image+file->text", 1_759_104_000],
    ["odd-2024-99-01", "chat", "text->text", 1_677_610_602]
  ]

  it.for(listed)("says what %s is for, and when it was made", async ([id, type, modality, created]) => {
    const { json } = await ask("/v1/models", { authorization: `Bearer ${shared().key}` })
    const model = json.data.find((model) => model.id === id)
    assert.deepInclude(model ?? {}, { id, object: "model", type, created })
    assert.strictEqual(model?.architecture?.modality, modality)
  })

  it("keeps the types of Anthropic's form", async () => {
    const headers = { "x-api-key": shared().key, "anthropic-version": "2023-06-01" }
    const { json } = await ask("/v1/models/claude-sonnet-4-5-20250929", headers)
    assert.deepInclude(json, { type: "model", created_at: "2025-09-29T00:00:00Z" })
  })
})

describe("a model's name", () => {
  const content = { contents: [{ parts: [{ text: "Hi" }] }] }
  const chat = { messages: [{ role: "user", content: "Hi" }] }
  const wrong: ReadonlyArray<readonly [path: string, body: object, code: string | number, words: string]> = [
    ["/v1/chat/completions", { model: "nothing", ...chat }, "model_not_found", "'nothing' does not exist"],
    ["/v1/chat/completions", { model: "local-embedding", ...chat }, "model_not_supported", "workload 'embeddings'"],
    ["/v1/embeddings", { model: "free-chat", input: "Hi" }, "model_not_supported", "workload 'chat'"],
    [
      "/v1/rerank",
      { model: "local-image", query: "a", documents: ["b"] },
      "model_not_supported",
      "does not serve 'rerank'"
    ],
    ["/v1/messages", { model: "local-rerank", max_tokens: 1, ...chat }, "model_not_supported", "workload 'rerank'"],
    ["/v1beta/models/local-speech:generateContent", content, 404, "workload 'speech'"],
    ["/v1beta/models/nothing:generateContent", content, 404, "'nothing' does not exist"]
  ]

  it.for(wrong)("%s %j fails with %s", async ([path, body, code, words]) => {
    const { json, status } = await ask(
      path,
      { authorization: `Bearer ${shared().key}`, "anthropic-version": "2023-06-01" },
      body
    )
    assert.strictEqual(status, 404)
    assert.strictEqual(json.error.code, code)
    assert.include(json.error.message, words)
  })
})

describe("a key", () => {
  const gemini = "/v1beta/models/local-chat:generateContent"
  const body = { contents: [{ parts: [{ text: "Hi" }] }] }
  const query = () => `key=${shared().key}`
  // https://ai.google.dev/api: `x-goog-api-key`, and `?key=` in Google's older examples
  const accepted: ReadonlyArray<
    readonly [what: string, path: () => string, headers: () => Record<string, string>, body?: object]
  > = [
    ["in Google's header", () => gemini, () => ({ "x-goog-api-key": shared().key }), body],
    ["as a bearer", () => gemini, () => ({ authorization: `Bearer ${shared().key}` }), body],
    ["in the URL", () => `${gemini}?${query()}`, () => ({}), body],
    [
      "in the URL, after another parameter",
      () => `/v1beta/models/local-chat:countTokens?alt=json&${query()}`,
      () => ({}),
      body
    ],
    ["in the URL of a list", () => `/v1beta/models?pageSize=1&${query()}`, () => ({})]
  ]

  it.for(accepted)("%s is accepted", async ([_, path, headers, body]) => {
    assert.strictEqual((await ask(path(), headers(), body)).status, 200)
  })

  const missing: ReadonlyArray<readonly [path: string, ways: ReadonlyArray<string>]> = [
    ["/v1/chat/completions", ["'Authorization: Bearer <key>'"]],
    ["/v1/messages", ["'Authorization: Bearer <key>'", "'x-api-key: <key>'"]],
    [gemini, ["'Authorization: Bearer <key>'", "'x-goog-api-key: <key>'", "'?key=<key>' in the URL"]],
    ["/v1/embeddings", ["'Authorization: Bearer <key>'"]],
    ["/v1beta/models/local-chat:countTokens?key=", ["'?key=<key>' in the URL"]]
  ]
  it.for(missing)("that is missing at %s: the error names all ways", async ([path, ways]) => {
    const { json, status } = await ask(path, {}, {})
    assert.strictEqual(status, 401)
    for (const way of ways) assert.include(json.error.message, way)
    if (!path.startsWith("/v1beta")) assert.notInclude(json.error.message, "?key")
  })

  it("in a URL is accepted nowhere else", async () => {
    const answer = await ask(`/v1/chat/completions?${query()}`, {}, { model: "local-chat", messages: [] })
    assert.strictEqual(answer.status, 401)
  })

  it("in a URL is neither logged nor repeated in an error", async () => {
    const gateway = shared()
    const secret = "sk-gw-in-the-url"
    for (
      const path of [
        `${gemini}?key=${secret}`,
        `/v1beta/nowhere?key=${secret}`,
        `${gemini}?key=${secret}&key=${secret}`
      ]
    ) {
      const { json } = await ask(path, {}, body)
      assert.notInclude(JSON.stringify(json), secret)
    }
    assert.notInclude(gateway.log, secret)
  })
})
