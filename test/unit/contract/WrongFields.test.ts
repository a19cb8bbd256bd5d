/** A request with one invalid field gets 400 with that field in `param`; a valid request is accepted. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Headers } from "effect/http"
import * as IncomingBody from "../../../services/ingress/request/IncomingBody.ts"
import { chatCompletions } from "../../../shared/contract/operations/ChatCompletions.ts"
import { compaction } from "../../../shared/contract/operations/Compaction.ts"
import { completions } from "../../../shared/contract/operations/Completions.ts"
import { embeddings, engineEmbeddings } from "../../../shared/contract/operations/embeddings/Embeddings.ts"
import { responses } from "../../../shared/contract/operations/Responses.ts"
import { generateContent } from "../../../shared/contract/operations/GenerateContent.ts"
import { messages } from "../../../shared/contract/operations/Messages.ts"
import { inEitherSpelling } from "../../../shared/contract/http/FieldSpelling.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { reader } from "../../../shared/provider/call/RequestBody.ts"
import { rerank } from "../../../shared/contract/operations/Rerank.ts"

interface Table {
  readonly operation: Operation & { readonly request: { readonly fields: object } }
  /** The smallest accepted body. */
  readonly least: object
  /** Changes to it that are accepted. `undefined` removes a field. */
  readonly right: ReadonlyArray<object>
  /** Changes to it that are rejected, by the `param` of the error. */
  readonly wrong: Readonly<Record<string, ReadonlyArray<object>>>
}

const embeddingFields = {
  right: [
    { input: ["a"] },
    { input: Array(2_048).fill("a") },
    { encoding_format: "float" },
    { encoding_format: "base64" },
    { dimensions: 1 },
    { dimensions: 4_096 },
    { encoding_format: null, dimensions: null, user: null },
    { user: "someone", unheard_of: [1] }
  ],
  wrong: {
    input: [
      { input: undefined },
      { input: null },
      { input: "" },
      { input: [] },
      { input: Array(2_049).fill("a") },
      { input: 5 },
      { input: { text: "a" } }
    ],
    "input[0]": [{ input: [""] }, { input: [1, 2, 3] }, { input: [[1, 2], [3]] }, { input: [null] }],
    "input[2]": [{ input: ["a", "b", ""] }],
    encoding_format: [{ encoding_format: "int8" }, { encoding_format: 1 }],
    dimensions: [{ dimensions: 0 }, { dimensions: 4_097 }, { dimensions: 1.5 }, { dimensions: "8" }]
  }
}

const said = (...messages: ReadonlyArray<unknown>) => ({ messages })
const kept = (part: object) => said({ type: "message", role: "user", content: [part] })

const tables: ReadonlyArray<Table> = [
  {
    operation: chatCompletions,
    least: { model: "m", messages: [{ role: "user", content: "a" }] },
    right: [
      said({ type: "compaction", encrypted_content: "a" }, { role: "user", content: "a" }),
      kept({ type: "input_text", text: "a" }),
      said({ type: "message", role: "assistant", content: "a" }),
      said({ type: "unheard of", role: "system", content: "a" })
    ],
    wrong: {
      messages: [{ messages: undefined }, said(), { messages: "a" }],
      "messages[0]": [said("a"), said(null), said([])],
      "messages[0].role": [said({}), said({ content: "a" }), said({ role: "bot", content: "a" })],
      "messages[0].content": [
        said({ role: "user" }),
        said({ role: "user", content: 5 }),
        said({ type: "unheard of", role: "user", content: 5 })
      ],
      "messages[0].content[0].text": [kept({ type: "input_text" })],
      "messages[0].tool_call_id": [said({ role: "tool", content: "a" })],
      "messages[0].encrypted_content": [
        said({ type: "compaction" }),
        said({ type: "compaction", encrypted_content: "" })
      ],
      "messages[1].content": [said({ role: "user", content: "a" }, { role: "user" })],
      model: [{ model: undefined }, { model: "" }, { model: 5 }],
      temperature: [{ temperature: 2.1 }, { temperature: -0.1 }],
      top_p: [{ top_p: 1.1 }],
      stream: [{ stream: "yes" }],
      stream_options: [{ stream_options: true }],
      "stream_options.include_usage": [{ stream_options: { include_usage: "yes" } }],
      stop: [{ stop: 5 }],
      seed: [{ seed: 1.5 }],
      presence_penalty: [{ presence_penalty: 3 }],
      frequency_penalty: [{ frequency_penalty: -3 }],
      user: [{ user: 5 }],
      safety_identifier: [{ safety_identifier: 5 }],
      prompt_cache_key: [{ prompt_cache_key: 5 }],
      n: [{ n: 0 }],
      max_tokens: [{ max_tokens: 0 }],
      max_completion_tokens: [{ max_completion_tokens: "9" }],
      logit_bias: [{ logit_bias: [1] }],
      tools: [{ tools: {} }],
      "tools[0].function.name": [{ tools: [{ type: "function", function: {} }] }],
      tool_choice: [{ tool_choice: "some" }],
      parallel_tool_calls: [{ parallel_tool_calls: "no" }],
      "response_format.type": [{ response_format: { type: "xml" } }],
      "response_format.json_schema": [{ response_format: { type: "json_schema" } }],
      reasoning_effort: [{ reasoning_effort: "" }],
      modalities: [{ modalities: "text" }],
      "audio.voice": [{ audio: { voice: 5 } }]
    }
  },
  {
    operation: embeddings,
    least: { model: "m", input: "a" },
    right: embeddingFields.right,
    wrong: { model: [{ model: undefined }, { model: null }, { model: "" }, { model: 5 }], ...embeddingFields.wrong }
  },
  {
    operation: engineEmbeddings,
    least: { input: "a" },
    right: [{ model: "any" }, { model: null }, ...embeddingFields.right],
    wrong: { model: [{ model: 5 }], ...embeddingFields.wrong }
  },
  {
    operation: rerank,
    least: { model: "m", query: "q", documents: ["a"] },
    right: [
      { documents: "one document" },
      { documents: ["", { text: "" }, { text: "a", title: "b" }, { title: "b", year: 1 }] },
      { documents: Array(10_000).fill("a") },
      { top_n: 1 },
      { top_n: 1_000_000 },
      { return_documents: true },
      { top_n: null, return_documents: null, rank_fields: ["text"], max_tokens_per_doc: 5 }
    ],
    wrong: {
      model: [{ model: undefined }, { model: "" }, { model: ["m"] }],
      query: [{ query: undefined }, { query: null }, { query: "" }, { query: ["q"] }],
      documents: [
        { documents: undefined },
        { documents: null },
        { documents: "" },
        { documents: [] },
        { documents: { text: "a" } },
        { documents: Array(10_001).fill("a") }
      ],
      "documents[1]": [{ documents: ["a", 5] }, { documents: ["a", null] }, { documents: ["a", {}] }, {
        documents: ["a", ["b"]]
      }],
      rank_fields: [{ rank_fields: "title" }, { rank_fields: [] }],
      top_n: [{ top_n: 0 }, { top_n: -1 }, { top_n: 1.5 }, { top_n: "1" }],
      return_documents: [{ return_documents: "true" }, { return_documents: 1 }]
    }
  },
  {
    operation: completions,
    least: { model: "m", prompt: "a" },
    right: [
      { prompt: ["a", "b"] },
      { max_tokens: 0 },
      { temperature: 0, top_p: 0 },
      { temperature: 2, top_p: 1 },
      { n: 128 },
      { prompt: Array(16).fill("a"), n: 128 },
      { stream: true, stream_options: { include_usage: true } },
      { stop: "\n" },
      { stop: ["a", "b"] },
      { suffix: "", echo: true, seed: 7 },
      { max_tokens: null, temperature: null, top_p: null, n: null, stream: null, stop: null, suffix: null, echo: null },
      { best_of: 3, logprobs: 2, user: "someone" }
    ],
    wrong: {
      model: [{ model: undefined }, { model: "" }],
      prompt: [
        { prompt: undefined },
        { prompt: null },
        { prompt: "" },
        { prompt: [] },
        { prompt: 5 },
        { prompt: Array(2_049).fill("a") }
      ],
      "prompt[0]": [{ prompt: [1, 2] }, { prompt: [[1]] }, { prompt: [""] }],
      max_tokens: [{ max_tokens: -1 }, { max_tokens: 1.5 }, { max_tokens: "1" }],
      temperature: [{ temperature: -0.1 }, { temperature: 2.1 }, { temperature: "1" }],
      top_p: [{ top_p: -0.1 }, { top_p: 1.1 }, { top_p: "1" }],
      n: [{ n: 0 }, { n: 129 }, { n: 1.5 }, { n: "1" }, { prompt: Array(17).fill("a"), n: 128 }],
      best_of: [{ best_of: 0 }, { best_of: 129 }, { best_of: "1" }],
      stream: [{ stream: "true" }, { stream: 1 }],
      stream_options: [{ stream_options: true }],
      "stream_options.include_usage": [{ stream_options: { include_usage: 1 } }],
      stop: [{ stop: 5 }, { stop: {} }],
      "stop[1]": [{ stop: ["a", 5] }],
      suffix: [{ suffix: 5 }, { suffix: ["a"] }],
      echo: [{ echo: "true" }, { echo: 0 }],
      seed: [{ seed: 1.5 }, { seed: "1" }],
      presence_penalty: [{ presence_penalty: 2.1 }, { presence_penalty: "1" }],
      frequency_penalty: [{ frequency_penalty: -2.1 }],
      user: [{ user: 5 }]
    }
  },
  {
    operation: compaction,
    least: { model: "m" },
    right: [
      { input: "" },
      { input: [] },
      { input: [{ role: "user", content: "a" }, { role: "assistant", content: null }] },
      { input: [{ type: "message", id: "1", role: "developer", content: [{ type: "input_text", text: "a" }] }] },
      { input: [{ role: "user", content: [{ type: "text", text: "a" }, { type: "input_image", image_url: "b" }] }] },
      { input: [{ role: "tool", tool_call_id: "1", content: "a" }, { type: "reasoning", id: "2", summary: [] }] },
      { input: [{ type: "function_call", call_id: "1", name: "f", arguments: "{}" }] },
      { input: [{ type: "function_call_output", call_id: "1", output: "a" }] },
      { input: [{ type: "compaction", encrypted_content: "a" }] },
      { instructions: "", previous_response_id: "resp_1" },
      { input: null, instructions: null, previous_response_id: null, prompt_cache_key: "a" }
    ],
    wrong: {
      model: [{ model: undefined }, { model: "" }],
      input: [{ input: 5 }, { input: {} }],
      "input[0]": [{ input: [5] }, { input: ["a"] }],
      "input[0].role": [{ input: [{}] }, { input: [{ content: "a" }] }, { input: [{ role: "bot", content: "a" }] }],
      "input[0].type": [{ input: [{ type: 5 }] }],
      "input[1].content": [
        { input: [{ role: "user", content: "a" }, { role: "user" }] },
        { input: [{ role: "user", content: "a" }, { role: "user", content: 5 }] }
      ],
      "input[0].content[0].type": [{ input: [{ role: "user", content: [{ text: "a" }] }] }],
      "input[0].content[0].text": [{ input: [{ role: "user", content: [{ type: "input_text" }] }] }],
      "input[0].tool_calls[0].function": [
        { input: [{ role: "assistant", tool_calls: [{ id: "1", type: "function" }] }] }
      ],
      "input[0].encrypted_content": [
        { input: [{ type: "compaction" }] },
        { input: [{ type: "compaction", encrypted_content: "" }] }
      ],
      "input[0].arguments": [{ input: [{ type: "function_call", name: "f" }] }],
      "input[0].output": [{ input: [{ type: "function_call_output", call_id: "1" }] }],
      instructions: [{ instructions: 5 }],
      previous_response_id: [{ previous_response_id: 5 }]
    }
  },
  {
    operation: messages,
    least: { model: "m", max_tokens: 1, messages: [{ role: "user", content: "a" }] },
    right: [
      { messages: [{ role: "user", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }] }] },
      { system: [{ type: "text", text: "a" }], temperature: 1, top_k: 5, stream: true, stop_sequences: ["a"] },
      { thinking: { type: "enabled", budget_tokens: 1_024 }, tool_choice: { type: "tool", name: "f" } },
      { tools: [{ name: "f", input_schema: { type: "object" } }, { type: "web_search_20250305", name: "web_search" }] },
      { tool_choice: { type: "auto", disable_parallel_tool_use: true }, output_config: { effort: "max" } },
      { thinking: { type: "adaptive", display: "omitted" } },
      {
        messages: [{
          role: "assistant",
          content: [{ type: "server_tool_use", id: "s", name: "web_search", input: {} }]
        }]
      },
      { speed: "fast", service_tier: "auto", container: { id: "c" }, metadata: { user_id: "u" }, unheard_of: 1 }
    ],
    wrong: {
      model: [{ model: undefined }, { model: "" }, { model: 5 }],
      messages: [{ messages: undefined }, { messages: [] }, { messages: "a" }],
      thread: [{ thread: "create" }],
      compaction: [{ compaction: true }],
      "messages[0].role": [{ messages: [{ role: "critic", content: "a" }] }],
      "messages[0].content": [{ messages: [{ role: "user", content: 5 }] }, { messages: [{ role: "user" }] }],
      "messages[0].content[0].type": [{ messages: [{ role: "user", content: [{ type: "noise" }] }] }],
      "messages[0].content[0].text": [{ messages: [{ role: "user", content: [{ type: "text", text: 5 }] }] }],
      "messages[0].content[0].source.type": [
        { messages: [{ role: "user", content: [{ type: "image", source: { type: "file" } }] }] }
      ],
      "messages[0].content[0].source.data": [
        {
          messages: [{
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png" } }]
          }]
        }
      ],
      "messages[0].content[0].id": [{
        messages: [{ role: "user", content: [{ type: "tool_use", name: "f", input: {} }] }]
      }],
      "messages[0].content[0].tool_use_id": [{ messages: [{ role: "user", content: [{ type: "tool_result" }] }] }],
      system: [{ system: 5 }],
      cache_control: [{ cache_control: "on" }],
      inference_geo: [{ inference_geo: 5 }],
      max_tokens: [{ max_tokens: undefined }, { max_tokens: 0 }, { max_tokens: 1.5 }, { max_tokens: "9" }],
      temperature: [{ temperature: 1.1 }, { temperature: -0.1 }],
      top_p: [{ top_p: "1" }],
      top_k: [{ top_k: 1.5 }],
      stream: [{ stream: "yes" }],
      stop_sequences: [{ stop_sequences: "a" }],
      "stop_sequences[0]": [{ stop_sequences: [5] }],
      tools: [{ tools: {} }],
      "tools[0].name": [{ tools: [{ input_schema: {} }] }],
      "tools[0].input_schema": [{ tools: [{ name: "f", input_schema: "object" }] }],
      "tool_choice.type": [{ tool_choice: { type: "some" } }],
      "tool_choice.name": [{ tool_choice: { type: "tool" } }],
      "thinking.type": [{ thinking: { type: "deep" } }],
      "thinking.budget_tokens": [{ thinking: { type: "enabled" } }, {
        thinking: { type: "enabled", budget_tokens: 0 }
      }],
      context_management: [{ context_management: [] }],
      output_config: [{ output_config: "json" }],
      output_format: [{ output_format: "json" }],
      container: [{ container: 5 }],
      mcp_servers: [{ mcp_servers: {} }],
      "metadata.user_id": [{ metadata: { user_id: 5 } }],
      "output_config.effort": [{ output_config: { effort: "" } }],
      "tools[0].strict": [{ tools: [{ name: "f", input_schema: {}, strict: "yes" }] }],
      "tool_choice.disable_parallel_tool_use": [
        { tool_choice: { type: "any", disable_parallel_tool_use: "yes" } }
      ],
      speed: [{ speed: "slow" }],
      service_tier: [{ service_tier: "gold" }]
    }
  },
  {
    operation: responses,
    least: { model: "m", input: "a" },
    right: [
      { input: [{ role: "user", content: "a" }, { type: "web_search_call", id: "ws_1" }] },
      { input: [{ type: "custom_tool_call", call_id: "c", name: "f", input: "a" }], store: true },
      { tools: [{ type: "web_search" }, { type: "namespace", name: "n", tools: [] }], unheard_of: 1 }
    ],
    wrong: {
      model: [{ model: undefined }, { model: 5 }],
      input: [{ input: 5 }, { input: "" }],
      "input[0].role": [{ input: [{ role: "bot", content: "a" }] }, { input: [{}] }],
      "input[0].content": [{ input: [{ role: "user" }] }],
      "input[0].content[0].type": [{ input: [{ role: "user", content: [{ type: "text", text: "a" }] }] }],
      "input[0].call_id": [{ input: [{ type: "function_call", name: "f", arguments: "{}" }] }],
      "tools[0].type": [{ tools: [{ name: "f" }] }],
      "tools[0].name": [{ tools: [{ type: "function" }] }],
      tool_choice: [{ tool_choice: "maybe" }],
      "tool_choice.name": [{ tool_choice: { type: "custom" } }],
      "text.format.schema": [{ text: { format: { type: "json_schema", name: "a" } } }],
      max_output_tokens: [{ max_output_tokens: 0 }],
      background: [{ background: "yes" }],
      conversation: [{ conversation: "conv_1" }],
      instructions: [{ instructions: 5 }],
      stream: [{ stream: "yes" }],
      stream_options: [{ stream_options: 5 }],
      temperature: [{ temperature: 3 }],
      top_p: [{ top_p: 2 }],
      top_logprobs: [{ top_logprobs: -1 }],
      parallel_tool_calls: [{ parallel_tool_calls: "no" }],
      max_tool_calls: [{ max_tool_calls: 0 }],
      "reasoning.effort": [{ reasoning: { effort: 5 } }],
      include: [{ include: "all" }],
      truncation: [{ truncation: 5 }],
      metadata: [{ metadata: "a" }],
      user: [{ user: 5 }],
      safety_identifier: [{ safety_identifier: 5 }],
      prompt_cache_key: [{ prompt_cache_key: 5 }],
      service_tier: [{ service_tier: 5 }],
      store: [{ store: "no" }],
      previous_response_id: [{ previous_response_id: 5 }]
    }
  },
  {
    operation: generateContent,
    least: { contents: [{ parts: [{ text: "a" }] }] },
    right: [
      { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "aa" } }] }] },
      {
        generationConfig: {
          responseModalities: ["TEXT", "IMAGE"],
          imageConfig: { aspectRatio: "16:9", imageSize: "2K" }
        }
      },
      { tools: [{ functionDeclarations: [{ name: "f" }] }, { googleSearch: {} }], model: "models/m", unheard_of: 1 },
      { contents: [{ parts: [{ inline_data: { mime_type: "image/png", data: "aa" } }] }], generation_config: null }
    ],
    wrong: {
      model: [{ model: 5 }],
      contents: [{ contents: undefined }, { contents: [] }, { contents: "a" }],
      "contents[0].role": [{ contents: [{ role: "bot", parts: [{ text: "a" }] }] }],
      "contents[0].parts": [{ contents: [{}] }, { contents: [{ parts: [] }] }],
      "contents[0].parts[0].text": [{ contents: [{ parts: [{ text: 5 }] }] }],
      "contents[0].parts[0].inlineData.data": [{ contents: [{ parts: [{ inlineData: { mimeType: "image/png" } }] }] }],
      "contents[0].parts[0].functionCall.name": [{ contents: [{ parts: [{ functionCall: {} }] }] }],
      systemInstruction: [{ systemInstruction: "a" }],
      tools: [{ tools: {} }],
      "tools[0].functionDeclarations[0].name": [{ tools: [{ functionDeclarations: [{}] }] }],
      "toolConfig.functionCallingConfig.mode": [{ toolConfig: { functionCallingConfig: { mode: "MAYBE" } } }],
      safetySettings: [{ safetySettings: {} }],
      "generationConfig.temperature": [{ generationConfig: { temperature: 3 } }],
      "generationConfig.candidateCount": [{ generationConfig: { candidateCount: 0 } }],
      "generationConfig.maxOutputTokens": [
        { generationConfig: { maxOutputTokens: 0 } },
        { generation_config: { max_output_tokens: 0 } }
      ],
      generation_config: [{ generationConfig: {}, generation_config: {} }],
      "contents[0].parts[1].inlineData.mime_type": [{
        contents: [{ parts: [{ text: "a" }, { inlineData: { mime_type: "a", mimeType: "b", data: "aa" } }] }]
      }],
      "generationConfig.presencePenalty": [{ generationConfig: { presencePenalty: "1" } }],
      "generationConfig.frequencyPenalty": [{ generationConfig: { frequencyPenalty: "1" } }],
      "generationConfig.thinkingConfig.thinkingBudget": [{
        generationConfig: { thinkingConfig: { thinkingBudget: 1.5 } }
      }],
      "generationConfig.thinkingConfig.includeThoughts": [
        { generationConfig: { thinkingConfig: { includeThoughts: "yes" } } }
      ],
      "generationConfig.stopSequences": [{ generationConfig: { stopSequences: "a" } }],
      "generationConfig.responseModalities[0]": [{ generationConfig: { responseModalities: ["SMELL"] } }],
      "generationConfig.imageConfig.aspectRatio": [{ generationConfig: { imageConfig: { aspectRatio: "wide" } } }],
      "generationConfig.imageConfig.imageSize": [{ generationConfig: { imageConfig: { imageSize: "9K" } } }]
    }
  }
]

/** The decoding in ingress, and then that of a worker that translates the request. */
const decode = (operation: Operation, body: object) => {
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  const spelt = operation.dialect === "gemini" ? inEitherSpelling(operation.request) : operation.request
  return Effect.result(
    Effect.andThen(
      IncomingBody.decode(operation, Headers.empty, bytes),
      Effect.asVoid(reader(spelt)({ body: bytes }))
    )
  )
}

/** An error in terms of JSON, not of a validator. */
const plain = /^(is required|must (be|hold|not) (?!.*(undefined|something else|RegExp| null)))/

/** The start of a change, as a test name. */
const shown = (change: object): string =>
  JSON.stringify(change, (_, value: unknown) => value === undefined ? "(left out)" : value).slice(0, 80)

describe.each(tables.map((table) => [table.operation.name, table] as const))("%s", (_, table) => {
  const { least, operation, right, wrong } = table

  it.effect.each([{}, ...right].map((change) => [shown(change), change] as const))(
    "accepts %s",
    ([, change]) =>
      Effect.gen(function*() {
        const result = yield* decode(operation, { ...least, ...change })
        assert.isTrue(Result.isSuccess(result), JSON.stringify(result))
      })
  )

  const wrongs = Object.entries(wrong).flatMap(([param, changes]) =>
    changes.map((change) => [param, shown(change), change] as const)
  )
  it.effect.each(wrongs)("names %s for a request with %s", ([param, , change]) =>
    Effect.gen(function*() {
      const result = yield* decode(operation, { ...least, ...change })
      if (Result.isSuccess(result)) return assert.fail("it was accepted")
      assert.deepInclude(result.failure, { _tag: "InvalidRequest", param, code: "invalid_value" })
      assert.isTrue(result.failure.message.startsWith(`${param}: `))
      assert.match(result.failure.message.slice(param.length + 2), plain)
    }))

  it("covers every field of the request", () => {
    const fields = Object.keys(operation.request.fields)
    const tried = new Set(Object.keys(wrong).map((param) => param.split(/[.[]/)[0]))
    assert.deepStrictEqual(fields.filter((field) => !tried.has(field)), [])
  })
})

/** Complete error messages, with bounds. */
const whole: ReadonlyArray<readonly [Operation, object, message: string]> = [
  [
    messages,
    { thinking: { type: "deep" } },
    "thinking.type: must be \"enabled\", \"disabled\", \"adaptive\" or \"between_tools\""
  ],
  [completions, { prompt: "" }, "prompt: must be a non-empty string or an array of 1 to 2048 items"],
  [completions, { n: 0 }, "n: must be a whole number from 1 to 128"],
  [completions, { n: "many" }, "n: must be a number"],
  [completions, { prompt: Array(17).fill("a"), n: 128 }, "n: must be at most 120 for 17 prompts"],
  [embeddings, { dimensions: null, encoding_format: 1 }, "encoding_format: must be \"float\" or \"base64\""]
]

it.effect.each(whole.map(([operation, change, message]) => [message, operation, change] as const))(
  "the message is: %s",
  ([message, operation, change]) =>
    Effect.gen(function*() {
      const least = tables.find((table) => table.operation === operation)?.least
      const result = yield* decode(operation, { ...least, ...change })
      assert.strictEqual(Result.isFailure(result) ? result.failure.message : "it was accepted", message)
    })
)
