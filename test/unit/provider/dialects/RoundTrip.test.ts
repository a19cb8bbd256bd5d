/**
 * Every field of a chat request between each client's dialect and each provider's, and every part of an answer on its way back.
 * No field is dropped silently. This test generates the tables of `shared/provider/dialects/README.md`.
 */
import { assert, describe, it } from "@effect/vitest"
import { Schema, String } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ChatCompletionRequest } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { CompletionRequest } from "../../../../shared/contract/operations/Completions.ts"
import { GenerateContentRequest } from "../../../../shared/contract/operations/GenerateContent.ts"
import { ResponsesRequest } from "../../../../shared/contract/operations/Responses.ts"
import { responses } from "../../../../shared/provider/dialects/responses/Responses.ts"
import { responsesProvider } from "../../../../shared/provider/dialects/responses/ResponsesProvider.ts"
import { MessagesRequest } from "../../../../shared/contract/operations/Messages.ts"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { completions } from "../../../../shared/provider/dialects/openai/Completions.ts"
import { cohereProvider } from "../../../../shared/provider/dialects/cohere/CohereProvider.ts"
import type {
  AnswerIdentity,
  ClientDialect,
  ProviderDialect
} from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import { generateContent } from "../../../../shared/provider/dialects/gemini/GenerateContent.ts"
import { generateContentProvider } from "../../../../shared/provider/dialects/gemini/GenerateContentProvider.ts"
import type { Fate } from "../../../../shared/provider/dialects/conversation/Losses.ts"
import { messages } from "../../../../shared/provider/dialects/anthropic/Messages.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import type { ModelEvent } from "../../../../shared/provider/dialects/conversation/ModelEvent.ts"
import * as Signature from "../../../../shared/provider/dialects/conversation/Signature.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const file = join(import.meta.dirname, "../../../../shared/provider/dialects/README.md")
const command = "WRITE_TABLES=1 npm test -- test/unit/provider/dialects/RoundTrip.test.ts"

// Requests

/** A field of a request, and two requests that differ in that field only. */
interface Row {
  readonly field: string
  readonly without: object
  readonly given: object
}

interface Client {
  readonly title: string
  /** The provider whose dialect the client speaks. */
  readonly own: string
  readonly dialect: ClientDialect<never>
  readonly schema: { readonly fields: object }
  readonly rows: ReadonlyArray<Row>
}

const png = "iVBORw0KGgo="
const pdf = "JVBERi0xLjQ="
const wav = "UklGRg=="
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const closed = { ...parameters, additionalProperties: false }
const signed = (origin: Signature.Origin, dialect: Signature.Origin) =>
  Signature.toClient({ origin, value: "c2lnbmVk" }, dialect)

const row = (base: object) => (field: string, added: object, more: object = {}): Row => ({
  field,
  without: { ...base, ...more },
  given: { ...base, ...more, ...added }
})

/** One row per field that stands alone. */
const plain = (base: object) => (fields: object): ReadonlyArray<Row> =>
  Object.entries(fields).map(([field, value]) => row(base)(field, { [field]: value }))

const chatRows = (() => {
  const hello = { role: "user", content: "Hello" }
  const base = { model: "m", messages: [hello] }
  const part = (field: string, ...content: ReadonlyArray<object>) =>
    row(base)(field, { messages: [{ role: "user", content: [{ type: "text", text: "Hello" }, ...content] }] }, {
      messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }]
    })
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{\"city\":\"Oslo\"}" } }
  const asked = [hello, { role: "assistant", content: null, tool_calls: [call] }]
  const answered = [...asked, { role: "tool", tool_call_id: "call_1", content: "7 degrees" }]
  const assistant = (field: string, more: object) =>
    row(base)(field, { messages: [hello, { role: "assistant", content: "Hi", ...more }, hello] }, {
      messages: [hello, { role: "assistant", content: "Hi" }, hello]
    })
  const tools = { tools: [{ type: "function", function: { name: "f", description: "A tool", parameters } }] }
  const strict = {
    tools: [{ type: "function", function: { name: "f", description: "A tool", parameters, strict: true } }]
  }
  const schema = (more: object) => ({
    response_format: { type: "json_schema", json_schema: { name: "a", schema: closed, ...more } }
  })
  return [
    row(base)("messages[].role: system", { messages: [{ role: "system", content: "Be brief" }, hello] }),
    row(base)("messages[].role: developer", { messages: [{ role: "developer", content: "Be brief" }, hello] }),
    row(base)("messages[].role: system, after the first turn", {
      messages: [hello, { role: "system", content: "Be brief" }, hello]
    }),
    row(base)("messages[].name", { messages: [{ ...hello, name: "Ada" }] }),
    part("messages[].content[].text", { type: "text", text: "World" }),
    part("messages[].content[].image_url, data", {
      type: "image_url",
      image_url: { url: `data:image/png;base64,${png}` }
    }),
    part("messages[].content[].image_url, address", {
      type: "image_url",
      image_url: { url: "https://example.com/a.png" }
    }),
    row(base)("messages[].content[].image_url.detail", {
      messages: [{
        role: "user",
        content: [{ type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } }]
      }]
    }, {
      messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }] }]
    }),
    row(base)("messages[].content[].cache_control", {
      messages: [{ role: "user", content: [{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }] }]
    }, { messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }] }),
    row(base)("messages[].cache_control", {
      messages: [{ role: "user", content: "Hello", cache_control: { type: "ephemeral" } }]
    }, { messages: [{ role: "user", content: "Hello" }] }),
    row(base)("tools[].cache_control", { tools: [{ ...tools.tools[0], cache_control: { type: "ephemeral" } }] }, tools),
    part("messages[].content[].input_audio", { type: "input_audio", input_audio: { data: wav, format: "wav" } }),
    part("messages[].content[].file, PDF", {
      type: "file",
      file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` }
    }),
    part("messages[].content[].file, text", {
      type: "file",
      file: { filename: "a.txt", file_data: `data:text/plain;base64,${Buffer.from("Hello").toString("base64")}` }
    }),
    part("messages[].content[].file.file_id", { type: "file", file: { file_id: "file-1" } }),
    part("messages[].content[].video_url", { type: "video_url", video_url: { url: "https://example.com/a.mp4" } }),
    row(base)("messages[].tool_calls", { messages: [...asked, hello] }),
    row(base)("messages[].tool_call_id", { messages: answered }, { messages: asked }),
    assistant("messages[].refusal", { refusal: "I will not" }),
    assistant("messages[].reasoning_content", { reasoning_content: "Hm" }),
    assistant("messages[].reasoning_details, of Anthropic", {
      reasoning_details: [{ type: "reasoning.text", text: "Hm", signature: signed("anthropic", "openai") }]
    }),
    assistant("messages[].reasoning_details, of Gemini", {
      reasoning_details: [{ type: "reasoning.text", text: "Hm", signature: signed("gemini", "openai") }]
    }),
    assistant("messages[].audio", { audio: { id: "audio_1" } }),
    assistant("messages[].function_call", { function_call: { name: "f", arguments: "{}" } }),
    row(base)("messages[] sealed by another service", {
      messages: [{ type: "compaction", encrypted_content: "sealed" }, hello]
    }),
    ...plain(base)({
      temperature: 0.5,
      top_p: 0.9,
      n: 2,
      stop: ["END"],
      max_tokens: 100,
      max_completion_tokens: 100,
      presence_penalty: 1,
      frequency_penalty: 1,
      seed: 7,
      reasoning_effort: "high",
      user: "ada"
    }),
    row(base)("temperature, above 1", { temperature: 1.5 }),
    row(base)("tools", tools),
    row(base)("tools[].function.strict", strict, tools),
    row(base)("tool_choice: none", { tool_choice: "none" }, tools),
    row(base)("tool_choice: required", { tool_choice: "required" }, tools),
    row(base)("tool_choice, a function", { tool_choice: { type: "function", function: { name: "f" } } }, tools),
    row(base)("tools[].custom", { tools: [...tools.tools, { type: "custom", custom: { name: "g" } }] }, tools),
    row(base)("tools[], of the provider", { tools: [...tools.tools, { type: "web_search" }] }, tools),
    row(base)("tool_choice: allowed_tools", {
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] }
      }
    }, { ...tools, tool_choice: "auto" }),
    row(base)("parallel_tool_calls: false", { parallel_tool_calls: false }, tools),
    row(base)("response_format: json_object", { response_format: { type: "json_object" } }),
    row(base)("response_format: json_schema", schema({ strict: true })),
    row(base)("modalities: image", { modalities: ["text", "image"] }),
    row(base)("modalities: audio", { modalities: ["text", "audio"] }),
    ...plain(base)({
      audio: { voice: "alloy", format: "wav" },
      logit_bias: { 50256: -100 },
      logprobs: true,
      top_logprobs: 3,
      functions: [{ name: "f" }],
      function_call: "auto",
      web_search_options: { search_context_size: "low" },
      metadata: { team: "search" },
      prediction: { type: "content", content: "Hello" },
      prompt_cache_key: "k",
      moderation: { model: "m" },
      safety_identifier: "s",
      service_tier: "flex",
      store: true,
      verbosity: "low",
      "any other field": 1
    })
  ]
})()

const completionRows = (() => {
  const base = { model: "m", prompt: "Once" }
  return [
    row(base)("prompt, a list", { prompt: ["Once", "Twice"] }),
    row(base)("echo", { echo: true }),
    row(base)("suffix", { suffix: "The end." }),
    ...plain(base)({
      max_tokens: 100,
      temperature: 0.5,
      top_p: 0.9,
      n: 2,
      stop: ["END"],
      seed: 7,
      presence_penalty: 1,
      frequency_penalty: 1,
      user: "ada",
      best_of: 2,
      logit_bias: { 50256: -100 },
      logprobs: 2,
      "any other field": 1
    })
  ]
})()

const messageRows = (() => {
  const hello = { role: "user", content: "Hello" }
  const base = { model: "m", max_tokens: 4_096, messages: [hello] }
  const block = (field: string, ...content: ReadonlyArray<object>) =>
    row(base)(field, { messages: [{ role: "user", content: [{ type: "text", text: "Hello" }, ...content] }] }, {
      messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }]
    })
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
  const use = { type: "tool_use", id: "toolu_1", name: "f", input: { city: "Oslo" } }
  const asked = [hello, { role: "assistant", content: [use] }]
  const result = (more: object) => [
    ...asked,
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "7 degrees", ...more }] }
  ]
  const assistant = (field: string, ...blocks: ReadonlyArray<object>) =>
    row(base)(field, {
      messages: [hello, { role: "assistant", content: [...blocks, { type: "text", text: "Hi" }] }, hello]
    }, { messages: [hello, { role: "assistant", content: [{ type: "text", text: "Hi" }] }, hello] })
  const tools = { tools: [{ name: "f", description: "A tool", input_schema: parameters }] }
  const closedTool = { name: "f", description: "A tool", input_schema: closed }
  return [
    row(base)("system", { system: "Be brief" }),
    row(base)("system[]", { system: [{ type: "text", text: "Be brief" }, { type: "text", text: "Be kind" }] }),
    row(base)("system[].cache_control", {
      system: [{ type: "text", text: "Be brief", cache_control: { type: "ephemeral" } }]
    }, { system: [{ type: "text", text: "Be brief" }] }),
    block("messages[].content[].text", { type: "text", text: "World" }),
    block("messages[].content[].image, base64", image),
    block("messages[].content[].image, url", {
      type: "image",
      source: { type: "url", url: "https://example.com/a.png" }
    }),
    block("messages[].content[].document, PDF", {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: pdf }
    }),
    block("messages[].content[].document, text", {
      type: "document",
      source: { type: "text", media_type: "text/plain", data: "A long text" }
    }),
    block("messages[].content[].document, file_id", { type: "document", source: { type: "file", file_id: "file_1" } }),
    row(base)("messages[].content[].citations", {
      messages: [{
        role: "user",
        content: [{
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "A" },
          citations: { enabled: true }
        }]
      }]
    }, {
      messages: [{
        role: "user",
        content: [{ type: "document", source: { type: "text", media_type: "text/plain", data: "A" } }]
      }]
    }),
    row(base)("messages[].content[].cache_control", {
      messages: [{ role: "user", content: [{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }] }]
    }, { messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }] }),
    row(base)("messages[].content[].tool_use", { messages: [...asked, hello] }),
    row(base)("messages[].content[].tool_result", { messages: result({}) }, { messages: asked }),
    row(base)("messages[].content[].tool_result.is_error", { messages: result({ is_error: true }) }, {
      messages: result({})
    }),
    row(base)("messages[].content[].tool_result.content[].image", {
      messages: result({ content: [{ type: "text", text: "7 degrees" }, image] })
    }, { messages: result({ content: [{ type: "text", text: "7 degrees" }] }) }),
    row(base)("messages[].content[].tool_result.content[].search_result", {
      messages: result({
        content: [
          { type: "text", text: "7 degrees" },
          { type: "search_result", source: "kb/7", title: "Oslo", content: [{ type: "text", text: "7 degrees" }] }
        ]
      })
    }, { messages: result({ content: [{ type: "text", text: "7 degrees" }] }) }),
    row(base)("messages[].content[].tool_result.content[].tool_reference", {
      messages: result({ content: [{ type: "text", text: "f" }, { type: "tool_reference", tool_name: "f" }] })
    }, { messages: result({ content: [{ type: "text", text: "f" }] }) }),
    assistant("messages[].content[].thinking, of an OpenAI-compatible provider", {
      type: "thinking",
      thinking: "Hm",
      signature: signed("openai", "anthropic")
    }),
    assistant("messages[].content[].thinking, of Gemini", {
      type: "thinking",
      thinking: "Hm",
      signature: signed("gemini", "anthropic")
    }),
    assistant("messages[].content[].thinking, of Anthropic", { type: "thinking", thinking: "Hm", signature: "c2ln" }),
    assistant("messages[].content[].redacted_thinking", { type: "redacted_thinking", data: "c2ln" }),
    assistant("messages[].content[].server_tool_use", {
      type: "server_tool_use",
      id: "srvtoolu_1",
      name: "web_search",
      input: { query: "bees" }
    }),
    ...plain(base)({ max_tokens: 100, temperature: 0.5, top_p: 0.9, top_k: 40, stop_sequences: ["END"] }),
    row(base)("tools", tools),
    row(base)("tools[].strict", { tools: [{ ...closedTool, strict: true }] }, { tools: [closedTool] }),
    row(base)("tools[].strict, with an open schema", { tools: [{ ...tools.tools[0], strict: true }] }, tools),
    row(base)("tools[].cache_control", { tools: [{ ...tools.tools[0], cache_control: { type: "ephemeral" } }] }, tools),
    row(base)("tools[], of the provider", { tools: [{ type: "web_search_20250305", name: "web_search" }] }),
    row(base)("tool_choice: none", { tool_choice: { type: "none" } }, tools),
    row(base)("tool_choice: any", { tool_choice: { type: "any" } }, tools),
    row(base)("tool_choice: tool", { tool_choice: { type: "tool", name: "f" } }, tools),
    row(base)(
      "tool_choice.disable_parallel_tool_use",
      { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      tools
    ),
    row(base)("thinking: enabled", { thinking: { type: "enabled", budget_tokens: 2_048 } }),
    row(base)("thinking: adaptive", { thinking: { type: "adaptive" } }),
    row(base)("thinking: disabled", { thinking: { type: "disabled" } }),
    row(base)("thinking.display", { thinking: { type: "adaptive", display: "omitted" } }, {
      thinking: { type: "adaptive" }
    }),
    row(base)("output_config.effort", { output_config: { effort: "high" } }),
    row(base)("output_config.format", { output_config: { format: { type: "json_schema", schema: closed } } }),
    row(base)("output_format", { output_format: { type: "json_schema", schema: closed } }),
    row(base)("metadata.user_id", { metadata: { user_id: "ada" } }),
    ...plain(base)({
      cache_control: { type: "ephemeral" },
      compaction: { type: "summarize" },
      thread: { type: "create" },
      container: "container_1",
      context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
      inference_geo: "us",
      mcp_servers: [{ type: "url", url: "https://example.com", name: "m" }],
      service_tier: "auto",
      speed: "fast",
      "any other field": 1
    })
  ]
})()

const contentRows = (() => {
  const hello = { role: "user", parts: [{ text: "Hello" }] }
  const base = { contents: [hello] }
  const part = (field: string, ...parts: ReadonlyArray<object>) =>
    row(base)(field, { contents: [{ role: "user", parts: [{ text: "Hello" }, ...parts] }] })
  const named = (field: string, file: object) =>
    row(base)(`contents[].parts[].${field}.displayName`, {
      contents: [{ role: "user", parts: [{ [field]: { ...file, displayName: "A picture" } }] }]
    }, { contents: [{ role: "user", parts: [{ [field]: file }] }] })
  const model = (field: string, parts: ReadonlyArray<object>, without: ReadonlyArray<object> = [{ text: "Hi" }]) =>
    row(base)(field, { contents: [hello, { role: "model", parts }, hello] }, {
      contents: [hello, { role: "model", parts: without }, hello]
    })
  const call = { functionCall: { id: "c1", name: "f", args: { city: "Oslo" } } }
  const asked = [hello, { role: "model", parts: [call] }]
  const response = (response: object, more: object = {}) => [
    ...asked,
    { role: "user", parts: [{ functionResponse: { id: "c1", name: "f", response, ...more } }] }
  ]
  const config = (field: string, generationConfig: object, without: object = {}) =>
    row(base)(`generationConfig.${field}`, { generationConfig: { ...without, ...generationConfig } }, {
      generationConfig: without
    })
  const configs = (fields: object) => Object.entries(fields).map(([field, value]) => config(field, { [field]: value }))
  const tools = {
    tools: [{
      functionDeclarations: [
        { name: "f", description: "A tool", parametersJsonSchema: parameters },
        { name: "g", parameters: { type: "OBJECT", properties: { zone: { type: "STRING", nullable: true } } } }
      ]
    }]
  }
  const calling = (field: string, functionCallingConfig: object, without: object = {}) =>
    row(base)(`toolConfig.functionCallingConfig.${field}`, { toolConfig: { functionCallingConfig } }, {
      ...tools,
      toolConfig: { functionCallingConfig: without }
    })
  return [
    row(base)("systemInstruction", { systemInstruction: { parts: [{ text: "Be brief" }] } }),
    part("contents[].parts[].text", { text: "World" }),
    part("contents[].parts[].inlineData, picture", { inlineData: { mimeType: "image/png", data: png } }),
    part("contents[].parts[].inlineData, PDF", { inlineData: { mimeType: "application/pdf", data: pdf } }),
    part("contents[].parts[].inlineData, sound", { inlineData: { mimeType: "audio/wav", data: wav } }),
    part("contents[].parts[].inlineData, video", { inlineData: { mimeType: "video/mp4", data: "AAAA" } }),
    part("contents[].parts[].fileData, address of a picture", {
      fileData: { mimeType: "image/png", fileUri: "https://example.com/a.png" }
    }),
    named("inlineData", { mimeType: "image/png", data: png }),
    named("fileData", { mimeType: "image/png", fileUri: "https://example.com/a.png" }),
    part("contents[].parts[].fileData, gs:", {
      fileData: { mimeType: "application/pdf", fileUri: "gs://bucket/a.pdf" }
    }),
    part("contents[].parts[].videoMetadata", { text: "Hello", videoMetadata: { fps: 1 } }),
    part("contents[].parts[].executableCode", { executableCode: { language: "PYTHON", code: "1" } }),
    part("contents[].parts[].codeExecutionResult", { codeExecutionResult: { outcome: "OUTCOME_OK" } }),
    row(base)("contents[].parts[].functionCall", { contents: [...asked, hello] }),
    row(base)("contents[].parts[].functionResponse", { contents: response({ output: "7" }) }, { contents: asked }),
    row(base)("contents[].parts[].functionResponse.response.error", { contents: response({ error: "no" }) }, {
      contents: response({ output: "no" })
    }),
    row(base)("contents[].parts[].functionResponse.parts", {
      contents: response({ output: "7" }, { parts: [{ inlineData: { mimeType: "image/png", data: png } }] })
    }, { contents: response({ output: "7" }) }),
    model("contents[].parts[].thought, of an OpenAI-compatible provider", [
      { text: "Hm", thought: true, thoughtSignature: signed("openai", "gemini") },
      { text: "Hi" }
    ]),
    model("contents[].parts[].thought, of Anthropic", [
      { text: "Hm", thought: true, thoughtSignature: signed("anthropic", "gemini") },
      { text: "Hi" }
    ]),
    model("contents[].parts[].thoughtSignature, of Gemini", [{ text: "Hi", thoughtSignature: "c2ln" }]),
    row(base)("tools", tools),
    row(base)("tools[].googleSearch", { tools: [{ googleSearch: {} }] }),
    row(base)("tools[].codeExecution", { tools: [{ codeExecution: {} }] }),
    calling("mode: ANY", { mode: "ANY" }),
    calling("mode: NONE", { mode: "NONE" }),
    row(base)("toolConfig.functionCallingConfig.mode: VALIDATED", {
      toolConfig: { functionCallingConfig: { mode: "VALIDATED" } }
    }, { tools: [{ functionDeclarations: [{ name: "f", description: "A tool", parametersJsonSchema: closed }] }] }),
    calling("mode: VALIDATED, with an open schema", { mode: "VALIDATED" }),
    calling("allowedFunctionNames", { mode: "ANY", allowedFunctionNames: ["g"] }, { mode: "ANY" }),
    ...configs({
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      candidateCount: 2,
      maxOutputTokens: 100,
      stopSequences: ["END"],
      seed: 7,
      presencePenalty: 1,
      frequencyPenalty: 1,
      responseMimeType: "application/json"
    }),
    config("temperature, above 1", { temperature: 1.5 }),
    config("responseMimeType, another", { responseMimeType: "text/x.enum" }),
    config("responseJsonSchema", { responseJsonSchema: closed }, { responseMimeType: "application/json" }),
    config("responseSchema", { responseSchema: { type: "OBJECT", properties: {} } }, {
      responseMimeType: "application/json"
    }),
    config("responseModalities: IMAGE", { responseModalities: ["TEXT", "IMAGE"] }),
    config("responseModalities: AUDIO", { responseModalities: ["AUDIO"] }),
    config("thinkingConfig.thinkingBudget", { thinkingConfig: { thinkingBudget: 2_048 } }),
    config("thinkingConfig.thinkingBudget: 0", { thinkingConfig: { thinkingBudget: 0 } }),
    config("thinkingConfig.thinkingLevel", { thinkingConfig: { thinkingLevel: "LOW" } }),
    config("thinkingConfig.includeThoughts", { thinkingConfig: { includeThoughts: true } }),
    ...configs({
      imageConfig: { aspectRatio: "16:9" },
      speechConfig: { languageCode: "en-US" },
      responseLogprobs: true,
      logprobs: 3,
      mediaResolution: "MEDIA_RESOLUTION_LOW"
    }),
    ...plain(base)({
      safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
      continuationToken: "t",
      cachedContent: "cachedContents/1",
      "any other field": 1
    })
  ]
})()

const responseRows = (() => {
  const hello = { role: "user", content: "Hello" }
  const base = { model: "m", input: [hello] }
  const part = (field: string, ...content: ReadonlyArray<object>) =>
    row(base)(field, { input: [{ role: "user", content: [{ type: "input_text", text: "Hello" }, ...content] }] }, {
      input: [{ role: "user", content: [{ type: "input_text", text: "Hello" }] }]
    })
  const call = { type: "function_call", call_id: "call_1", name: "f", arguments: "{\"city\":\"Oslo\"}" }
  const custom = { type: "custom_tool_call", call_id: "call_1", name: "f", input: "Oslo" }
  const said = { role: "assistant", content: "Hi" }
  const item = (field: string, ...items: ReadonlyArray<object>) =>
    row(base)(field, { input: [hello, ...items, said, hello] }, { input: [hello, said, hello] })
  const output = (type: string, of: object, output: unknown) =>
    row(base)(`input[].${type}`, { input: [hello, of, { type, call_id: "call_1", output }] }, { input: [hello, of] })
  const tool = { type: "function", name: "f", description: "A tool", parameters }
  const tools = { tools: [tool] }
  const two = { tools: [tool, { ...tool, name: "g" }] }
  const added = (field: string, another: object) => row(base)(field, { tools: [tool, another] }, tools)
  const format = { type: "json_schema", name: "a", schema: closed }
  const thought = (of: Signature.Origin) => ({
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Hm" }],
    encrypted_content: signed(of, "responses")
  })
  const reasoning = (origin: string, of: Signature.Origin) => item(`input[].reasoning, of ${origin}`, thought(of))
  return [
    ...plain({ model: "m", input: "Hi" })({ input: "Hello" }),
    ...plain(base)({ instructions: "Be brief" }),
    item("input[].role: system", { role: "system", content: "Be brief" }),
    item("input[].role: developer", { role: "developer", content: "Be brief" }),
    item("input[].phase", { ...said, phase: "commentary" }),
    part("input[].content[].input_text", { type: "input_text", text: "World" }),
    part("input[].content[].input_image, data", { type: "input_image", image_url: `data:image/png;base64,${png}` }),
    part("input[].content[].input_image, address", { type: "input_image", image_url: "https://example.com/a.png" }),
    part("input[].content[].input_image.file_id", { type: "input_image", file_id: "file-1" }),
    part("input[].content[].input_file, PDF", {
      type: "input_file",
      filename: "a.pdf",
      file_data: `data:application/pdf;base64,${pdf}`
    }),
    part("input[].content[].input_file.file_url", { type: "input_file", file_url: "https://example.com/a.pdf" }),
    part("input[].content[].input_file.file_id", { type: "input_file", file_id: "file-1" }),
    part("input[].content[].input_audio", { type: "input_audio", input_audio: { data: wav, format: "wav" } }),
    part("input[].content[].refusal", { type: "refusal", refusal: "I will not" }),
    item("input[].function_call", call, { type: "function_call_output", call_id: "call_1", output: "7" }),
    output("function_call_output", call, "7 degrees"),
    item("input[].custom_tool_call", custom, { type: "custom_tool_call_output", call_id: "call_1", output: "7" }),
    output("custom_tool_call_output", custom, "7 degrees"),
    reasoning("a provider of responses", "responses"),
    reasoning("a provider of chat completions", "openai"),
    reasoning("Anthropic", "anthropic"),
    reasoning("Gemini", "gemini"),
    row(base)("input[].reasoning.content, besides a summary", {
      input: [hello, { ...thought("openai"), content: [{ type: "reasoning_text", text: "Hm, bees" }] }, said, hello]
    }, { input: [hello, thought("openai"), said, hello] }),
    item("input[].image_generation_call", { type: "image_generation_call", id: "ig_1", result: png }),
    item("input[].compaction, sealed by another service", { type: "compaction", encrypted_content: "sealed" }),
    item("input[].additional_tools", { type: "additional_tools", tools: [tool] }),
    item("input[].web_search_call, and other calls of tools of the provider", { type: "web_search_call", id: "ws_1" }),
    item("input[].tool_search_call", { type: "tool_search_call", arguments: {} }),
    ...plain(base)(tools),
    added("tools[].custom", { type: "custom", name: "g" }),
    added("tools[].custom, with a grammar", {
      type: "custom",
      name: "g",
      format: { type: "grammar", syntax: "lark", definition: "start: WORD" }
    }),
    added("tools[].namespace", { type: "namespace", name: "n", description: "", tools: [{ ...tool, name: "g" }] }),
    added("tools[].web_search, and other tools of the provider", { type: "web_search" }),
    added("tools[].tool_search", { type: "tool_search" }),
    row(base)("tools[].strict", { tools: [{ ...tool, parameters: closed, strict: true }] }, {
      tools: [{ ...tool, parameters: closed }]
    }),
    row(base)("tool_choice: none", { tool_choice: "none" }, tools),
    row(base)("tool_choice: required", { tool_choice: "required" }, tools),
    row(base)("tool_choice: a function", { tool_choice: { type: "function", name: "f" } }, tools),
    row(base)("tool_choice: allowed_tools", {
      tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] }
    }, two),
    row(base)("tool_choice: a tool of the provider", { tool_choice: { type: "web_search" } }, tools),
    row(base)("parallel_tool_calls: false", { parallel_tool_calls: false }, tools),
    row(base)("text.format: json_object", { text: { format: { type: "json_object" } } }),
    row(base)("text.format: json_schema", { text: { format } }),
    row(base)("text.verbosity", { text: { verbosity: "low" } }),
    row(base)("reasoning.effort", { reasoning: { effort: "low" } }),
    row(base)("reasoning.summary", { reasoning: { summary: "auto" } }),
    row(base)("include: anything else", { include: ["message.output_text.logprobs"] }),
    row(base)("truncation: auto", { truncation: "auto" }),
    ...plain(base)({
      max_output_tokens: 100,
      max_tool_calls: 3,
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 2,
      metadata: { a: "b" },
      moderation: { model: "m" },
      user: "u",
      safety_identifier: "u",
      prompt_cache_key: "key",
      prompt: { id: "pmpt_1" },
      service_tier: "flex",
      previous_response_id: "resp_1",
      "any other field": 1
    })
  ]
})()

const clients: ReadonlyArray<Client> = [
  {
    title: "Chat completions",
    own: "openai",
    dialect: chatCompletions as unknown as ClientDialect<never>,
    schema: ChatCompletionRequest,
    rows: chatRows
  },
  {
    title: "Completions",
    own: "openai",
    dialect: completions as unknown as ClientDialect<never>,
    schema: CompletionRequest,
    rows: completionRows
  },
  {
    title: "Messages",
    own: "anthropic",
    dialect: messages as unknown as ClientDialect<never>,
    schema: MessagesRequest,
    rows: messageRows
  },
  {
    title: "Responses",
    own: "openai, responses",
    dialect: responses as unknown as ClientDialect<never>,
    schema: ResponsesRequest,
    rows: responseRows
  },
  {
    title: "generateContent",
    own: "gemini",
    dialect: generateContent as unknown as ClientDialect<never>,
    schema: GenerateContentRequest,
    rows: contentRows
  }
]

const providers: Readonly<Record<string, ProviderDialect<object>>> = {
  openai: chatCompletionsProvider,
  "openai, responses": responsesProvider,
  anthropic: messagesProvider,
  gemini: generateContentProvider,
  cohere: cohereProvider
}

const identity: AnswerIdentity = {
  id: "0123456789abcdef",
  created: 1_700_000_000,
  model: "alias",
  fingerprint: undefined
}
const usage = { type: "usage", usage: { inputTokens: 3, outputTokens: 2 } } as const
const finish = { type: "finish", choice: 0, reason: "stop" } as const

const outcomeOf = ({ dialect }: Client, provider: ProviderDialect<object>, body: object) => {
  const { refusal, request, sent, times, warnings } = translate(dialect, provider, body, { options: {} })
  const answer = dialect.encoder(request, identity).body([{ type: "text", choice: 0, delta: "a" }, finish, usage])
  // everything that affects the provider or the answer
  return { difference: JSON.stringify({ sent, times, answer }), warnings, refusal }
}

/** `undefined` if the field was dropped silently. */
const fateOf = (client: Client, provider: ProviderDialect<object>, { given, without }: Row): string | undefined => {
  const before = outcomeOf(client, provider, without)
  assert.isUndefined(before.refusal, JSON.stringify(without))
  const after = outcomeOf(client, provider, given)
  if (after.refusal !== undefined) return "refused"
  const warnings = after.warnings.filter((warning) => !before.warnings.includes(warning))
  if (warnings.length === 0) return after.difference === before.difference ? undefined : "carried"
  const what = warnings.map((warning) => warning.replace(/^\S+ (?:field\) )?/, ""))
  return what.every((text) => text === "is not carried over") ? "warning" : `warning: ${[...new Set(what)].join(", ")}`
}

describe.each(clients.map((client) => [client.title, client] as const))(
  "%s: no field is dropped silently",
  (_, client) => {
    for (const [name, provider] of Object.entries(providers)) {
      if (name === client.own) continue
      it.each(client.rows.map((row) => [row.field, row] as const))(`%s, to ${name}`, (_, row) => {
        assert.isDefined(fateOf(client, provider, row))
      })
    }

    it("the table has every field of the API", () => {
      const known = new Set([...Object.keys(client.schema.fields), ...Object.keys(client.dialect.fates as object)])
      for (const field of ["model", "stream", "stream_options", "conversation", "background"]) known.delete(field)
      // the gateway stores responses itself
      if (client.title === "Responses") known.delete("store")
      const named = new Set(client.rows.map(({ field }) => /^\w+/.exec(field)?.[0]))
      // a field in both spellings has one row
      const missing = [...known].filter((field) => !named.has(field) && !named.has(String.snakeToCamel(field)))
      assert.deepStrictEqual(missing, [])
    })

    it("every field whose loss would change the answer is rejected by name", () => {
      const mistakes: Array<string> = []
      for (const provider of Object.values(providers)) {
        for (const { field, given } of client.rows) {
          const { refusal } = outcomeOf(client, provider, given)
          // the table writes a list as `messages[]`; the error names an element
          const param = refusal?.param?.replaceAll(/\[\d+\]/g, "[]") ?? ""
          const root = /^\w+/.exec(field)?.[0] ?? ""
          if (refusal !== undefined && !param.startsWith(root)) mistakes.push(`${field}: ${refusal.param}`)
          if (refusal !== undefined && !refusal.message.startsWith(`${refusal.param}: `)) mistakes.push(refusal.message)
        }
      }
      assert.deepStrictEqual(mistakes, [])
    })
  }
)

describe("the declared fates of fields", () => {
  it("are known to the translation", () => {
    const check = (fate: Fate): void => {
      if (typeof fate === "string") assert.include(["carried", "hint", "meaning", "tool"], fate)
      else Object.values(fate).forEach((inner: Fate) => check(inner))
    }
    for (const { dialect } of clients) check(dialect.fates)
  })

  it("are losses in strict translation, except carried fields", () => {
    for (const client of clients) {
      for (const [name, provider] of Object.entries(providers)) {
        if (name === client.own) continue
        for (const { given } of client.rows) {
          const ordinary = outcomeOf(client, provider, given)
          const strict = translate(client.dialect, provider, given, { mode: "strict", options: {} })
          const isLost = ordinary.refusal !== undefined || ordinary.warnings.length > 0
          assert.strictEqual(strict.refusal !== undefined, isLost, JSON.stringify(given))
          assert.deepStrictEqual(strict.warnings, [])
        }
      }
    }
  })
})

// Answers

const text: ModelEvent = { type: "text", choice: 0, delta: "Hi" }
const ended: ReadonlyArray<ModelEvent> = [finish, usage]
const call = (call: number): ReadonlyArray<ModelEvent> => [
  { type: "toolCall", choice: 0, call, id: `call_${call}`, name: "f" },
  { type: "toolArguments", choice: 0, call, delta: "{\"city\":\"Oslo\"}" }
]
const counted = (more: object): ModelEvent => ({ type: "usage", usage: { ...usage.usage, ...more } })

/** A part of an answer, and two answers that differ in that part only. */
const parts: ReadonlyArray<
  readonly [part: string, without: ReadonlyArray<ModelEvent>, given: ReadonlyArray<ModelEvent>]
> = [
  ["text", ended, [text, ...ended]],
  ["refusal", ended, [{ type: "refusal", choice: 0, delta: "No" }, ...ended]],
  ["reasoning", [text, ...ended], [{ type: "reasoning", choice: 0, delta: "Hm" }, text, ...ended]],
  [
    "its signature",
    [{ type: "reasoning", choice: 0, delta: "Hm" }, text, ...ended],
    [
      { type: "reasoning", choice: 0, delta: "Hm" },
      { type: "signature", choice: 0, signature: { origin: "anthropic", value: "c2ln" } },
      text,
      ...ended
    ]
  ],
  [
    "redacted reasoning",
    [text, ...ended],
    [
      { type: "signature", choice: 0, signature: { origin: "anthropic", value: "c2ln", redacted: true } },
      text,
      ...ended
    ]
  ],
  ["tool call", [text, ...ended], [text, ...call(0), ...ended]],
  ["parallel tool calls", [text, ...call(0), ...ended], [text, ...call(0), ...call(1), ...ended]],
  ["picture", [text, ...ended], [text, { type: "media", choice: 0, mediaType: "image/png", data: png }, ...ended]],
  ["end by the limit", [text, ...ended], [text, { ...finish, reason: "length" }, usage]],
  ["end by the filter", [text, ...ended], [text, { ...finish, reason: "content_filter" }, usage]],
  ["which stop sequence", [text, ...ended], [text, { ...finish, stopSequence: "END" }, usage]],
  ["tokens", [text, finish], [text, ...ended]],
  ["of these, read from the cache", [text, ...ended], [text, finish, counted({ cachedTokens: 1 })]],
  ["of these, written to the cache", [text, ...ended], [text, finish, counted({ cacheWriteTokens: 1 })]],
  ["of these, for reasoning", [text, ...ended], [text, finish, counted({ reasoningTokens: 1 })]],
  ["of these, by kind", [text, ...ended], [text, finish, counted({ inputTextTokens: 1, outputAudioTokens: 1 })]],
  ["of these, estimated", [text, ...ended], [text, finish, counted({ estimatedTokens: 1 })]]
]

const stream_options = { include_usage: true }

const answerRequests: Readonly<Record<string, unknown>> = {
  "Chat completions": { model: "m", messages: [{ role: "user", content: "Hello" }], n: 2, stream_options },
  Completions: { model: "m", prompt: "Once", n: 2, stream_options },
  Messages: { model: "m", max_tokens: 100, messages: [{ role: "user", content: "Hello" }] },
  Responses: { model: "m", input: "Hello", include: ["reasoning.encrypted_content"] },
  generateContent: { contents: [{ parts: [{ text: "Hello" }] }] }
}

const hasPlace = ({ dialect, title }: Client, without: ReadonlyArray<ModelEvent>, given: ReadonlyArray<ModelEvent>) => {
  const request = Schema.decodeUnknownSync(dialect.request)(answerRequests[title])
  const body = (events: ReadonlyArray<ModelEvent>) => JSON.stringify(dialect.encoder(request, identity).body(events))
  const frames = (events: ReadonlyArray<ModelEvent>) => {
    const encoder = dialect.encoder(request, identity)
    return events.map((event) => encoder.frames(event)).join("") + encoder.lastFrames()
  }
  const whole = body(without) !== body(given)
  assert.strictEqual(frames(without) !== frames(given), whole, `${title}: a stream differs from a whole answer`)
  return whole
}

// Tables

const tableOf = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n")

const english = new Intl.ListFormat("en")
const code = (name: string): string => `\`${name}\``
const listOf = (fields: ReadonlyArray<string>): string => fields.map(code).join(", ")

/** Fields with the same result at all other providers are in lists, the rest in a table. */
const requestTable = (client: Client): string => {
  const others = Object.keys(providers).filter((name) => name !== client.own)
  const rows = client.rows.map((row) => ({
    field: row.field,
    fates: others.map((name) => fateOf(client, providers[name]!, row) ?? "dropped")
  }))
  const lists = ["carried", "refused", "warning"]
  const alike = (fates: ReadonlyArray<string>, fate: string) => fates.every((each) => each === fate)
  return `### ${client.title}\n\nRelayed to \`${client.own}\`. To ${english.format(others.map(code))}:\n\n` +
    lists.map((fate) =>
      `* **${fate}:** ${listOf(rows.filter(({ fates }) => alike(fates, fate)).map(({ field }) => field))}`
    ).join("\n") + "\n\n" + tableOf(
      ["other fields", ...others.map((name) => `to \`${name}\``)],
      rows.filter(({ fates }) => !lists.some((fate) => alike(fates, fate)))
        .map(({ fates, field }) => [`\`${field}\``, ...fates])
    )
}

const readme = (): string =>
  `# Chat dialects

If client and provider speak the same dialect, the gateway relays the bytes. It translates any other pair through the canonical conversation
(\`Conversation.ts\`) and the canonical events of an answer (\`ModelEvent.ts\`), which the built-in engine uses directly. A
dialect has four parts: requests from clients (\`MessagesRequest.ts\`), answers to clients (\`MessagesAnswer.ts\`), requests to
providers (\`MessagesProviderRequest.ts\`) and answers of providers (\`MessagesProviderAnswer.ts\`). \`Messages.ts\` and
\`MessagesProvider.ts\` combine them. The protocol \`openai\` has two dialects of providers: chat completions, and responses
(the option \`apis\` in the catalogue). Cohere's is a dialect of providers only.

No field is dropped silently:

* **carried:** the provider gets it.
* **warning:** a hint was lost: \`x-translation-warnings\` in the answer names it and says what happened.
* **refused:** without it the answer would mean something else: 400 with the field's name.

\`x-translation: strict\` in the request refuses every loss.

* If the provider gives only one choice per call, several choices become parallel calls, at most eight. With a \`seed\`
  each further choice gets the next higher seed, since the same one would make them equal.
* Signatures of reasoning go back only to a provider of the dialect they come from. Clients of another dialect get them wrapped
  (\`Signature.ts\`), in chat completions as \`reasoning_details\`, and must send them back with the message. OpenAI's and Google's go
  back only to the same account (a provider with its key): a mark before the signature identifies it. For others the reasoning is
  left out with a warning. Clients of Gemini's dialect get Gemini's signatures unmarked. Clients of messages get no signature
  of a text at the end of an answer: Gemini does not require it back, and they take the last block as the answer.
* A relayed body of messages keeps its messages of the role \`system\`, except for the generations of Claude that refuse them and
  targets with the option \`laterSystem: false\`: there they join \`system\`. One with a \`thread\` is refused unless its provider is
  Anthropic or has the option \`threads: true\`.
* In the responses dialect, a tool of the provider that the target does not have is left out with a warning, unless
  \`tool_choice\` requires it. A custom tool becomes a function with one string argument; a namespace becomes a prefix of its
  tools' names. Their calls come back in the client's form (\`ResponsesTools.ts\`).
* Web sources that a provider cites for its text reach clients of every dialect but text completions,
  unless they arrive after the client's dialect has ended that text. Sources without an address, such as documents of the
  request, have no counterpart in other dialects.
* Fields of requests in Google's format may be in camelCase or snake_case, as in Google's API. Arguments, results and schemas of functions
  keep their names.
* The gateway fetches pictures and files at a URL if the provider does not, from public addresses only.

\`test/unit/provider/dialects/RoundTrip.test.ts\` generates the rest and fails if it is out of date. To update:
\`${command}\`

## Requests

${clients.map(requestTable).join("\n\n")}

## Answers

Parts of an answer that each client's dialect can express, whatever the provider.

${
    tableOf(
      ["part", ...clients.map(({ title }) => title)],
      parts.map(([part, without, given]) => [
        part,
        ...clients.map((client) => hasPlace(client, without, given) ? "carried" : "no place")
      ])
    )
  }
`

describe("the tables in the dialects' README", () => {
  it("are up to date", () => {
    const now = readme()
    if (process.env["WRITE_TABLES"] === "1") writeFileSync(file, now)
    assert.strictEqual(readFileSync(file, "utf8"), now, `the tables are not up to date; rewrite them: ${command}`)
  })
})
