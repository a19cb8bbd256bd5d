/**
 * POST /v1/responses/input_tokens, POST /v1/messages/count_tokens and POST /v1beta/models/{model}:countTokens: count the tokens of a
 * request without sending it to the model.
 */
import { Schema, Struct } from "effect"
import { constant, field, isPresent, optional, tokens } from "../Fields.ts"
import type { Operation } from "../Operation.ts"
import { countedContentsOutline } from "../outlines/Outlines.ts"
import { sessionHeaders, translationHeader } from "../ChatHeaders.ts"
import { generateContent, GenerateContentRequest } from "./GenerateContent.ts"
import { messages, MessagesRequest } from "./Messages.ts"
import { responses, ResponsesRequest } from "./Responses.ts"

const counted =
  "Counted by the provider if it offers that, otherwise estimated by a tokenizer: then the response has the header " +
  "`x-gateway-token-count: estimated`. Costs nothing."

export const ResponsesCountRequest = Schema.Struct(
  Struct.pick(ResponsesRequest.fields, [
    ...["model", "input", "instructions", "previous_response_id", "conversation", "tools", "tool_choice"] as const,
    ...["parallel_tool_calls", "reasoning", "text", "truncation"] as const
  ])
)
export type ResponsesCountRequest = typeof ResponsesCountRequest.Type

export const responsesCount = {
  ...responses,
  name: "responses.input_tokens",
  summary: "Count the tokens of items",
  paths: ["/v1/responses/input_tokens"],
  dialect: "openai",
  records: "reads",
  isFree: true,
  request: ResponsesCountRequest,
  response: Schema.Struct({
    object: constant("response.input_tokens", "A count of tokens."),
    input_tokens: tokens("Tokens of the request, including the conversation of `previous_response_id`.")
  }),
  streams: () => false,
  description: counted,
  examples: {
    counted: {
      summary: "A text",
      model: "local-chat",
      body: { input: "The lighthouse was built in 1871." },
      answer: { object: "response.input_tokens", input_tokens: 9 }
    }
  }
} satisfies Operation

export const MessagesCountRequest = Schema.Struct(
  Struct.pick(MessagesRequest.fields, [
    ...["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format"] as const,
    "cache_control"
  ])
)
export type MessagesCountRequest = typeof MessagesCountRequest.Type

export const messagesCount = {
  ...messages,
  name: "messages.count_tokens",
  summary: "Count the tokens of messages",
  paths: ["/v1/messages/count_tokens"],
  isFree: true,
  request: MessagesCountRequest,
  response: Schema.Struct({ input_tokens: tokens("Tokens of the request.") }),
  streams: () => false,
  headers: ["anthropic-beta", translationHeader, ...sessionHeaders],
  description: counted,
  examples: {
    counted: {
      summary: "A message",
      model: "local-chat",
      body: { messages: [{ role: "user", content: "The lighthouse was built in 1871." }] },
      answer: { input_tokens: 9 }
    }
  }
} satisfies Operation

const { contents, model } = GenerateContentRequest.fields

export const CountTokensRequest = Schema.Struct({
  model,
  contents: field(Schema.optionalKey(contents), "The conversation, if nothing else of a request is to be counted."),
  generateContentRequest: optional(
    GenerateContentRequest,
    "A whole request. Replaces `contents`."
  )
}).check(
  Schema.makeFilter(
    ({ contents, generateContentRequest }) =>
      contents ?? generateContentRequest ? undefined : { path: ["contents"], issue: "is required" },
    { toJsonSchema: () => ({ anyOf: [isPresent("contents"), isPresent("generateContentRequest")] }) }
  )
)
export type CountTokensRequest = typeof CountTokensRequest.Type

export const countTokens = {
  ...generateContent,
  name: "countTokens",
  summary: "Count the tokens of parts",
  paths: ["/v1beta/models/{model}:countTokens", "/v1/models/{model}:countTokens"],
  workloads: ["chat"],
  isFree: true,
  request: CountTokensRequest,
  outline: countedContentsOutline,
  response: Schema.Struct({ totalTokens: tokens("Tokens of the request.") }),
  description: counted,
  examples: {
    counted: {
      summary: "A text",
      model: "local-chat",
      body: { contents: [{ role: "user", parts: [{ text: "The lighthouse was built in 1871." }] }] },
      answer: { totalTokens: 9 }
    }
  }
} satisfies Operation
