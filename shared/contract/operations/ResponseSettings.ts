/** The settings of a request that its response repeats, with their defaults. */
import type { ResponsesRequest } from "./Responses.ts"

export const settingsOf = (request: ResponsesRequest): object => ({
  background: false,
  frequency_penalty: 0,
  instructions: request.instructions ?? null,
  max_output_tokens: request.max_output_tokens ?? null,
  max_tool_calls: request.max_tool_calls ?? null,
  metadata: request.metadata ?? {},
  parallel_tool_calls: request.parallel_tool_calls ?? true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: request.prompt_cache_key ?? null,
  reasoning: { effort: null, summary: null, ...request.reasoning },
  safety_identifier: request.safety_identifier ?? null,
  service_tier: request.service_tier ?? "default",
  store: request.store ?? true,
  temperature: request.temperature ?? 1,
  text: { ...request.text, format: toFormat(request.text?.format) },
  tool_choice: request.tool_choice ?? "auto",
  tools: (request.tools ?? []).map((tool) =>
    tool.type === "function" ? { description: null, parameters: null, strict: true, ...tool } : tool
  ),
  top_logprobs: 0,
  top_p: request.top_p ?? 1,
  truncation: request.truncation ?? "disabled",
  user: request.user ?? null
})

const toFormat = (format: NonNullable<ResponsesRequest["text"]>["format"]): object =>
  format?.type === "json_schema" ? { description: null, strict: false, ...format } : format ?? { type: "text" }
