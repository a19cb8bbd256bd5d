/** The addresses below base URLs as operators write them, with and without a version. */
import { assert, describe, it } from "@effect/vitest"
import { findInconsistencies } from "../../../../shared/catalogue/Inconsistencies.ts"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import { addressOf } from "../../../../shared/provider/transport/Endpoint.ts"

const endpoint = (baseUrl: string, protocol = "openai") => ({
  name: "p",
  model: "m",
  provider: { protocol, baseUrl } as Provider
})

describe("the address of an operation", () => {
  // the right values are the vendors' documented addresses
  it.each([
    ["https://api.anthropic.com", "/v1/messages", "/v1/messages"],
    ["https://api.anthropic.com/", "/v1/messages", "/v1/messages"],
    ["https://api.anthropic.com/v1", "/v1/messages", "/v1/messages"],
    ["https://api.anthropic.com/v1/", "/v1/messages/count_tokens", "/v1/messages/count_tokens"],
    ["https://api.moonshot.ai/anthropic", "/v1/messages", "/anthropic/v1/messages"],
    ["https://api.moonshot.ai/anthropic/v1", "/v1/messages", "/anthropic/v1/messages"],
    ["https://api.cohere.com/v2", "/v1/rerank", "/v1/rerank"],
    ["https://api.cohere.com/v1", "/v2/chat", "/v2/chat"],
    ["https://api.openai.com/v1", "/chat/completions", "/v1/chat/completions"],
    ["https://api.openai.com/v1/", "/chat/completions", "/v1/chat/completions"],
    ["https://open.bigmodel.cn/api/paas/v4", "/chat/completions", "/api/paas/v4/chat/completions"],
    [
      "https://generativelanguage.googleapis.com/v1beta",
      "/models/m:streamGenerateContent?alt=sse",
      "/v1beta/models/m:streamGenerateContent?alt=sse"
    ]
  ])("%s and %s", (baseUrl, below, path) => {
    assert.deepStrictEqual(addressOf(endpoint(baseUrl), below), { origin: new URL(baseUrl).origin, path })
  })

  // Google's SDKs take the first one; the others are Google's, Vertex AI's and Cloudflare's addresses
  it.each([
    ["https://generativelanguage.googleapis.com", "/v1beta/models/m:generateContent"],
    ["https://generativelanguage.googleapis.com/", "/v1beta/models/m:generateContent"],
    ["https://generativelanguage.googleapis.com/v1beta", "/v1beta/models/m:generateContent"],
    ["https://generativelanguage.googleapis.com/v1alpha/", "/v1alpha/models/m:generateContent"],
    ["https://x.example/v1/projects/p/publishers/google", "/v1/projects/p/publishers/google/models/m:generateContent"],
    ["https://x.example/google-ai-studio", "/google-ai-studio/v1beta/models/m:generateContent"]
  ])("%s of Gemini", (baseUrl, path) => {
    const address = addressOf(endpoint(baseUrl, "gemini"), "/models/m:generateContent")
    assert.deepStrictEqual(address, { origin: new URL(baseUrl).origin, path })
  })
})

describe("a base URL", () => {
  it.each([
    ["https://api.openai.com/v1/chat/completions", "/chat/completions"],
    ["https://api.openai.com/v1/responses", "/responses"],
    ["https://api.anthropic.com/v1/messages/", "/messages/"],
    ["https://api.openai.com/v1/embeddings", "/embeddings"],
    ["https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", "/models/m:generateContent"],
    ["https://models.example/models/llama", undefined],
    ["https://api.anthropic.com/v1", undefined],
    ["https://gateway.example/team/chat-models/v1", undefined]
  ])("%s with the path of an operation is a mistake", (baseUrl, operation) => {
    const providers = new Map([["p", endpoint(baseUrl).provider]])
    const findings = findInconsistencies({ models: new Map(), providers })
    const message = `must end before '${operation}', the path of an operation, which the gateway adds`
    assert.deepStrictEqual(findings, operation === undefined ? [] : [{ path: ["providers", "p", "baseUrl"], message }])
  })
})
