/** Streams of equal text in the format of each chat API, as the mock provider sends them: a piece per event. */

/** The chat APIs, by the names of their providers in the catalogue. */
export const apis = ["responses", "anthropic", "gemini", "mock"] as const
export type Api = typeof apis[number]

const text = "lorem ipsum dolor sit amet, "
const model = "bench"

const event = (type: string, fields: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
const data = (fields: object): string => `data: ${JSON.stringify(fields)}\n\n`

const times = <A>(count: number, make: () => A): Array<A> => Array.from({ length: count }, make)

const ofResponses = (count: number): ReadonlyArray<string> => {
  let sequence_number = 0
  const next = (type: string, fields: object) => event(type, { sequence_number: sequence_number++, ...fields })
  const id = `msg_${"0".repeat(48)}`
  const whole = text.repeat(count)
  const part = { type: "output_text", annotations: [], logprobs: [] }
  const message = { id, type: "message", role: "assistant" }
  const response = {
    id: `resp_${"0".repeat(48)}`,
    object: "response",
    created_at: 1_700_000_000,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
    usage: null,
    metadata: {}
  }
  const at = { item_id: id, output_index: 0, content_index: 0 }
  const item = { ...message, status: "completed", content: [{ ...part, text: whole }] }
  return [
    next("response.created", { response }),
    next("response.in_progress", { response }),
    next("response.output_item.added", { output_index: 0, item: { ...message, status: "in_progress", content: [] } }),
    next("response.content_part.added", { ...at, part: { ...part, text: "" } }),
    ...times(
      count,
      () => next("response.output_text.delta", { ...at, delta: text, logprobs: [], obfuscation: "kLmNo" })
    ),
    next("response.output_text.done", { ...at, text: whole, logprobs: [] }),
    next("response.content_part.done", { ...at, part: { ...part, text: whole } }),
    next("response.output_item.done", { output_index: 0, item }),
    next("response.completed", {
      response: {
        ...response,
        status: "completed",
        output: [item],
        usage: {
          input_tokens: 12,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: count,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 12 + count
        }
      }
    })
  ]
}

const ofAnthropic = (count: number): ReadonlyArray<string> => [
  event("message_start", {
    message: {
      id: "msg_bench",
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 12, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 }
    }
  }),
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ...times(count, () => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
  event("content_block_stop", { index: 0 }),
  event("message_delta", {
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: count }
  }),
  event("message_stop", {})
]

const ofGemini = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) =>
    data({
      candidates: [{
        content: { parts: [{ text }], role: "model" },
        ...(index === count - 1 ? { finishReason: "STOP" } : {}),
        index: 0
      }],
      usageMetadata: { promptTokenCount: 12, candidatesTokenCount: index + 1, totalTokenCount: 13 + index },
      modelVersion: model,
      responseId: "bench"
    }))

const ofChat = (count: number): ReadonlyArray<string> => {
  const chunk = { id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model }
  const choice = (delta: object, finish_reason: string | null) =>
    data({ ...chunk, choices: [{ index: 0, delta, finish_reason }] })
  const usage = { prompt_tokens: 12, completion_tokens: count, total_tokens: 12 + count }
  return [
    choice({ role: "assistant", content: "" }, null),
    ...times(count, () => choice({ content: text }, null)),
    choice({}, "stop"),
    data({ ...chunk, choices: [], usage }),
    "data: [DONE]\n\n"
  ]
}

const makers: Readonly<Record<Api, (count: number) => ReadonlyArray<string>>> = {
  responses: ofResponses,
  anthropic: ofAnthropic,
  gemini: ofGemini,
  mock: ofChat
}

/** The model whose stream has `pieces` pieces of text, one every 5 ms or all at once. */
export const modelOf = (api: Api, pieces: number, isPaced: boolean): string =>
  `${api}-${isPaced ? "paced" : "burst"}-${pieces}`

const made = new Map<string, { readonly events: ReadonlyArray<Buffer>; readonly isPaced: boolean }>()

/** The stream of a model that `modelOf` names; `undefined` for other models. */
export const streamOf = (model: string) => {
  const [, api, pace, pieces] = /^(\w+)-(paced|burst)-(\d+)$/.exec(model) ?? []
  if (api === undefined) return undefined
  const stream = made.get(model) ??
    { events: makers[api as Api](Number(pieces)).map((one) => Buffer.from(one)), isPaced: pace === "paced" }
  made.set(model, stream)
  return stream
}
