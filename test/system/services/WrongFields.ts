/** Every field of a chat request: one request with all of them, and wrong values for each. */

/** A valid request. */
export const everyField = {
  model: "free-chat",
  messages: [
    { role: "system", content: "Be brief.", name: "boss" },
    {
      role: "user",
      content: [
        { type: "text", text: "What is the weather in Paris?" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
        { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
        { type: "file", file: { filename: "a.txt", file_data: "AAAA" } },
        { type: "video_url", video_url: { url: "https://example.com/a.mp4" } }
      ]
    },
    {
      role: "assistant",
      content: null,
      reasoning_content: "I must ask.",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: "{}" } }]
    },
    { role: "tool", content: "sunny", tool_call_id: "call_1" },
    { role: "user", content: "Thanks. And in Rome?" }
  ],
  temperature: 1,
  top_p: 1,
  n: 1,
  stream: false,
  stop: ["END"],
  max_tokens: 64,
  max_completion_tokens: 64,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: { 50256: -100 },
  user: "u",
  tools: [{
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather",
      parameters: { type: "object", properties: { city: { type: "string" } } }
    }
  }],
  tool_choice: "auto",
  parallel_tool_calls: true,
  response_format: { type: "text" },
  seed: 1,
  reasoning_effort: "low",
  modalities: ["text"],
  audio: { voice: "alloy", format: "wav" }
}

const inMessage = (more: object) => ({ messages: [{ role: "user", content: "hi", ...more }] })
const inPart = (part: unknown) => inMessage({ content: [part] })
const inTool = (more: object) => ({ tools: [{ type: "function", function: { name: "f", ...more } }] })
const inCall = (more: object) =>
  inMessage({
    role: "assistant",
    tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" }, ...more }]
  })

const message = "messages[0]"
const part = "messages[0].content[0]"
const call = "messages[0].tool_calls[0]"

/** The path of a field, and fields of a request in which only that one is wrong. */
export const wrongFields: ReadonlyArray<readonly [param: string, fields: object]> = [
  ["model", { model: 1 }],
  ["safety_identifier", { safety_identifier: 1 }],
  ["model", { model: "" }],
  ["model", { model: null }],
  ["messages", { messages: "hi" }],
  ["messages", { messages: [] }],
  ["messages", { messages: null }],
  ["messages[0]", { messages: ["hi"] }],
  ["messages[1]", { messages: [{ role: "user", content: "hi" }, null] }],
  [`${message}.role`, { messages: [{ content: "hi" }] }],
  [`${message}.role`, inMessage({ role: "robot" })],
  [`${message}.content`, inMessage({ content: 1 })],
  [`${message}.content`, inMessage({ content: null })],
  [`${message}.content`, { messages: [{ role: "user" }] }],
  [part, inPart("hi")],
  [`${part}.type`, inPart({})],
  [`${part}.type`, inPart({ type: "hologram" })],
  [`${part}.type`, inPart({ type: null, text: "hi" })],
  [`${part}.text`, inPart({ type: "text" })],
  [`${part}.text`, inPart({ type: "text", text: 1 })],
  [`${part}.image_url`, inPart({ type: "image_url", image_url: "https://example.com" })],
  [`${part}.image_url.url`, inPart({ type: "image_url", image_url: { url: "" } })],
  [`${part}.image_url.detail`, inPart({ type: "image_url", image_url: { url: "a", detail: "fine" } })],
  [`${part}.input_audio.data`, inPart({ type: "input_audio", input_audio: { format: "wav" } })],
  [`${part}.input_audio.format`, inPart({ type: "input_audio", input_audio: { data: "a", format: "ogg" } })],
  [`${part}.file`, inPart({ type: "file" })],
  [`${part}.file.filename`, inPart({ type: "file", file: { filename: 1 } })],
  [`${part}.file.file_data`, inPart({ type: "file", file: { file_data: 1 } })],
  [`${part}.file.file_id`, inPart({ type: "file", file: { file_id: 1 } })],
  [`${part}.video_url.url`, inPart({ type: "video_url", video_url: { url: 1 } })],
  [`${part}.refusal`, inPart({ type: "refusal" })],
  [`${message}.name`, inMessage({ name: 1 })],
  [`${message}.cache_control`, inMessage({ cache_control: 1 })],
  [`${message}.tool_calls`, inMessage({ tool_calls: {} })],
  [`${call}.id`, inCall({ id: 1 })],
  [`${call}.type`, inCall({ type: 7 })],
  [`${call}.function.name`, inCall({ function: { arguments: "{}" } })],
  [`${call}.function.arguments`, inCall({ function: { name: "f", arguments: {} } })],
  [`${message}.tool_call_id`, inMessage({ tool_call_id: 1 })],
  [`${message}.tool_call_id`, inMessage({ role: "tool" })],
  [`${message}.reasoning_content`, inMessage({ reasoning_content: [] })],
  [`${message}.reasoning_details`, inMessage({ reasoning_details: "I must ask." })],
  [`${message}.reasoning_details[0]`, inMessage({ reasoning_details: ["I must ask."] })],
  [`${message}.refusal`, inMessage({ refusal: 1 })],
  ["temperature", { temperature: 2.1 }],
  ["temperature", { temperature: "1" }],
  ["top_p", { top_p: -0.1 }],
  ["n", { n: 0 }],
  ["n", { n: 1.5 }],
  ["stream", { stream: "true" }],
  ["stream_options", { stream_options: true }],
  ["stream_options.include_usage", { stream_options: { include_usage: 1 } }],
  ["stop", { stop: 1 }],
  ["stop[1]", { stop: ["a", 1] }],
  ["max_tokens", { max_tokens: 0 }],
  ["max_completion_tokens", { max_completion_tokens: 0.5 }],
  ["presence_penalty", { presence_penalty: 2.5 }],
  ["frequency_penalty", { frequency_penalty: -2.5 }],
  ["logit_bias", { logit_bias: [] }],
  ["user", { user: 1 }],
  ["prompt_cache_key", { prompt_cache_key: 1 }],
  ["tools", { tools: {} }],
  ["tools[0]", { tools: ["f"] }],
  ["tools[0].type", { tools: [{ type: 7, function: { name: "f" } }] }],
  ["tools[0].function", { tools: [{ type: "function" }] }],
  ["tools[0].function.name", inTool({ name: "" })],
  ["tools[0].function.description", inTool({ description: 1 })],
  ["tools[0].function.parameters", inTool({ parameters: "{}" })],
  ["tools[0].function.strict", inTool({ strict: "yes" })],
  ["parallel_tool_calls", { parallel_tool_calls: "no" }],
  ["tool_choice", { tool_choice: "any" }],
  ["tool_choice", { tool_choice: 1 }],
  ["tool_choice.type", { tool_choice: { type: 1 } }],
  ["tool_choice.type", { tool_choice: {} }],
  ["tool_choice.function", { tool_choice: { type: "function" } }],
  ["tool_choice.function.name", { tool_choice: { type: "function", function: { name: "" } } }],
  ["response_format", { response_format: "json" }],
  ["response_format.type", { response_format: {} }],
  ["response_format.type", { response_format: { type: "xml" } }],
  ["response_format.json_schema", { response_format: { type: "json_schema" } }],
  ["response_format.json_schema", { response_format: { type: "json_schema", json_schema: [] } }],
  ["seed", { seed: 0.5 }],
  ["reasoning_effort", { reasoning_effort: "" }],
  ["modalities", { modalities: "text" }],
  ["modalities[0]", { modalities: [1] }],
  ["audio", { audio: "alloy" }],
  ["audio.voice", { audio: { voice: 1 } }],
  ["audio.format", { audio: { format: 1 } }]
]
