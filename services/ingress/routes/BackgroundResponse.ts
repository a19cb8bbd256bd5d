/** A response in the background as clients see it before it is complete: the settings of its request, and its status. */
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"

/** The settings that every response repeats, with their defaults. */
const defaults = {
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "default",
  store: true,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null
}

const settingsIn = (body: Uint8Array): object => {
  const request = JSON.parse(Buffer.from(body).toString()) as Readonly<Record<string, unknown>>
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, request[name] ?? value]))
}

/** `body`: of the request, which is known to decode. */
export const view = ({ created, ended, error, id, model, status }: TaskRecord, body: Uint8Array): object => {
  const fields = error === null ? null : ErrorEnvelope.toFields(error)
  return {
    id,
    object: "response",
    created_at: Math.floor(created / 1_000),
    completed_at: status === "completed" && ended !== null ? Math.floor(ended / 1_000) : null,
    status,
    background: true,
    incomplete_details: null,
    error: fields === null ? null : { code: fields.code ?? "server_error", message: fields.message },
    model,
    output: [],
    usage: null,
    ...settingsIn(body)
  }
}
