/**
 * Programs of `services/ingress/tools.md` that need a desktop, a browser or a database: with the page's settings, the requests that
 * their source sends are answered, over a provider of their own dialect and of another. The other programs run in the long tests.
 */
import { assert, describe, it } from "@effect/vitest"
import { parse } from "yaml"
import { blocksFor, programs } from "../fixture/client/programs/ToolsPage.ts"
import { tools } from "../fixture/client/programs/Tools.ts"
import { chatProviders } from "../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway(chatProviders())

/** The text of a section's first block. */
type Settings = string

/** A request with what it is made of. */
interface Replay {
  readonly section: string
  readonly what: string
  /** The file that builds the request in the program's repository. */
  readonly source: string
  readonly url: (settings: Settings) => string
  readonly headers: (settings: Settings) => Record<string, string>
  /** Without it, the request is a GET for the list of models. */
  readonly body?: (model: string) => object
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] }
const readFile = { name: "read_file", description: "Reads a file", parameters }
const called = { id: "call_1", type: "function", function: { name: "read_file", arguments: "{\"path\":\"a.txt\"}" } }

const openWebUi = (settings: Settings) => {
  const variables = new Map(settings.trim().split("\n").map((line) => [line.split("=")[0], line.split("=")[1] ?? ""]))
  return { base: variables.get("OPENAI_API_BASE_URL") ?? "", key: variables.get("OPENAI_API_KEY") ?? "" }
}

const libreChat = (settings: Settings) => {
  interface Config {
    readonly endpoints: { readonly custom: ReadonlyArray<{ readonly baseURL: string; readonly apiKey: string }> }
  }
  const [endpoint] = (parse(settings) as Config).endpoints.custom
  return { base: endpoint?.baseURL ?? "", key: endpoint?.apiKey ?? "" }
}

const vsCode = (settings: Settings) => {
  interface Provider {
    readonly apiKey: string
    readonly models: ReadonlyArray<{ readonly url: string }>
  }
  const [provider] = JSON.parse(settings) as ReadonlyArray<Provider>
  const [model] = provider?.models ?? []
  return { url: model?.url ?? "", key: provider?.apiKey ?? "" }
}
/** The headers of every request of VS Code. */
const vsCodeHeaders = {
  "x-request-id": "7d3a0b52-93a1-4f2a-8a56-0d4c83a3a3a0",
  "openai-intent": "conversation-agent",
  "x-github-api-version": "2026-01-09",
  "x-interaction-type": "conversation-agent",
  "x-agent-task-id": "7d3a0b52-93a1-4f2a-8a56-0d4c83a3a3a0"
}
const byok = "microsoft/vscode: extensions/copilot/src/extension/byok/node/openAIEndpoint.ts"

const zed = (settings: Settings): string => {
  interface Config {
    readonly language_models: { readonly openai_compatible: { readonly gateway: { readonly api_url: string } } }
  }
  return (JSON.parse(settings) as Config).language_models.openai_compatible.gateway.api_url
}

const replays: ReadonlyArray<Replay> = [
  {
    section: "Open WebUI",
    what: "the list of models",
    source: "open-webui/open-webui: backend/open_webui/routers/openai.py, send_get_request",
    url: (settings) => `${openWebUi(settings).base}/models`,
    headers: (settings) => bearer(openWebUi(settings).key)
  },
  {
    section: "Open WebUI",
    what: "a message",
    source: "open-webui/open-webui: backend/open_webui/routers/openai.py, generate_chat_completion",
    url: (settings) => `${openWebUi(settings).base}/chat/completions`,
    headers: (settings) => bearer(openWebUi(settings).key),
    body: (model) => ({
      stream: true,
      model,
      messages: [{ role: "user", content: "Which fruit is it?" }],
      stream_options: { include_usage: true }
    })
  },
  {
    section: "Open WebUI",
    what: "a chat's title",
    source: "open-webui/open-webui: backend/open_webui/routers/tasks.py, generate_title",
    url: (settings) => `${openWebUi(settings).base}/chat/completions`,
    headers: (settings) => bearer(openWebUi(settings).key),
    body: (model) => ({
      model,
      messages: [{ role: "user", content: "### Task:\nGenerate a title." }],
      stream: false,
      max_completion_tokens: 1_000
    })
  },
  {
    section: "LibreChat",
    what: "the list of models",
    source: "danny-avila/LibreChat: packages/api/src/endpoints/models.ts, fetchModels",
    url: (settings) => `${libreChat(settings).base}/models`,
    headers: (settings) => bearer(libreChat(settings).key)
  },
  {
    section: "LibreChat",
    what: "a message",
    source: "danny-avila/LibreChat: packages/api/src/endpoints/openai/llm.ts, with @langchain/openai's ChatOpenAI",
    url: (settings) => `${libreChat(settings).base}/chat/completions`,
    headers: (settings) => bearer(libreChat(settings).key),
    body: (model) => ({
      model,
      user: "665f1f77bcf86cd799439011",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Which fruit is it?" }] }
      ]
    })
  },
  {
    section: "GitHub Copilot in VS Code",
    what: "a message of an agent",
    source: `${byok}, createCapiRequestBody and interceptBody`,
    url: (settings) => vsCode(settings).url,
    headers: (settings) => ({ ...vsCodeHeaders, ...bearer(vsCode(settings).key) }),
    body: (model) => ({
      messages: [
        { role: "system", content: "You are a programming assistant." },
        { role: "user", content: "Which fruit is it?" },
        // the reasoning of the answer before, by getCompletionsCallback
        { role: "assistant", content: "", tool_calls: [called], cot_id: "thinking_0", cot_summary: "A file." },
        { role: "tool", content: "quince", tool_call_id: "call_1" }
      ],
      model,
      temperature: 0,
      top_p: 1,
      n: 1,
      stream: true,
      stream_options: { include_usage: true },
      tools: [{ type: "function", function: readFile }]
    })
  },
  {
    section: "GitHub Copilot in VS Code",
    what: "a message of an agent with apiType responses",
    source: `${byok} and customEndpointProvider.ts; platform/endpoint/node/responsesApi.ts, createResponsesRequestBody`,
    url: (settings) => vsCode(settings).url.replace("/chat/completions", "/responses"),
    headers: (settings) => ({ ...vsCodeHeaders, ...bearer(vsCode(settings).key) }),
    body: (model) => ({
      model,
      input: [
        { role: "system", content: [{ type: "input_text", text: "You are a programming assistant." }] },
        { role: "user", content: [{ type: "input_text", text: "Which fruit is it?" }] }
      ],
      stream: true,
      tools: [{ ...readFile, type: "function", strict: false }],
      max_output_tokens: 16_000,
      truncation: "disabled",
      // for a model with `thinking` and `supportsReasoningEffort`
      reasoning: { summary: "off", effort: "medium" },
      include: ["reasoning.encrypted_content"]
    })
  },
  {
    section: "GitHub Copilot in VS Code",
    what: "a message of an agent with apiType messages",
    source: `${byok} and customEndpointProvider.ts; platform/endpoint/node/messagesApi.ts, createMessagesRequestBody`,
    url: (settings) => vsCode(settings).url.replace("/chat/completions", "/messages"),
    headers: (settings) => ({
      ...vsCodeHeaders,
      "x-api-key": vsCode(settings).key,
      "anthropic-version": "2023-06-01",
      "anthropic-beta": "interleaved-thinking-2025-05-14"
    }),
    body: (model) => ({
      model,
      messages: [{
        role: "user",
        content: [{ type: "text", text: "Which fruit is it?", cache_control: { type: "ephemeral" } }]
      }],
      system: [{ type: "text", text: "You are a programming assistant.", cache_control: { type: "ephemeral" } }],
      stream: true,
      tools: [{
        name: "read_file",
        description: "Reads a file",
        input_schema: parameters,
        cache_control: { type: "ephemeral" }
      }],
      max_tokens: 16_000,
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: "high" }
    })
  },
  {
    section: "Zed",
    what: "a message of an agent",
    source: "zed-industries/zed: crates/open_ai/src/open_ai.rs, Request",
    url: (settings) => `${zed(settings)}/chat/completions`,
    headers: () => bearer(shared().key),
    body: (model) => ({
      model,
      messages: [
        { role: "system", content: "You are a programming assistant." },
        { role: "user", content: "Which fruit is it?" },
        { role: "assistant", content: null, tool_calls: [called] },
        { role: "tool", content: "quince", tool_call_id: "call_1" }
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_completion_tokens: 32_000,
      tool_choice: "auto",
      parallel_tool_calls: true,
      tools: [{ type: "function", function: readFile }],
      prompt_cache_key: "7d3a0b52-93a1-4f2a-8a56-0d4c83a3a3a0"
    })
  }
]

const models = ["on-openai", "on-responses", "on-anthropic"]

describe.each(models)("with %s", (model) => {
  it.for(replays)("$section gets $what", async ({ body, headers, section, url }) => {
    const gateway = shared()
    gateway.provider.say({ reasoning: "A fruit.", text: "It is a quince." })
    const [block] = blocksFor(section, { url: gateway.url, key: gateway.key, model })
    const settings = block?.text ?? ""
    const answer = await fetch(url(settings), {
      headers: { "content-type": "application/json", ...headers(settings) },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body(model)) })
    })
    const text = await answer.text()
    assert.strictEqual(answer.status, 200, text)
    assert.include(text, body === undefined ? `"${model}"` : "quince.")
    assert.notInclude(text, "\"error\":{")
  })
})

describe("the page", () => {
  it("has no program whose settings are not tested", () => {
    const tested = new Set([...tools, ...replays].map(({ section }) => section))
    assert.sameMembers([...tested], [...programs.keys()])
  })
})
