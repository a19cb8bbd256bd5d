/** POST /v1/completions: continues prompts. */
import { Schema } from "effect"
import {
  AnsweringModel,
  atLeast,
  constant,
  EpochSeconds,
  field,
  integer,
  ModelName,
  optional,
  Texts
} from "../Fields.ts"
import { generationFields } from "./ChatCompletions.ts"
import { eventsOf, type Operation } from "../Operation.ts"
import { completionsOutline } from "../outlines/Outlines.ts"
import { TokenUsage } from "../TokenUsage.ts"
import { sessionHeaders, translationHeader } from "../ChatHeaders.ts"

/** Maximum number of texts for one prompt. */
const maxTexts = 128
/** Maximum number of texts in one answer. */
const maxChoices = 2_048

export const CompletionRequest = Schema.Struct({
  model: ModelName,
  prompt: Texts,
  max_tokens: optional(atLeast(0), "Maximum number of tokens per completion. 0 is useful with `echo`."),
  ...generationFields,
  n: optional(
    integer(1, maxTexts),
    `Texts for each prompt. At most ${maxChoices} texts for all prompts together.`,
    1
  ),
  best_of: optional(integer(1, maxTexts), "Texts generated for each prompt; the best `n` are returned. Default `n`."),
  suffix: optional(
    Schema.String,
    "Text after the insertion point: the model fills in what belongs between the prompt and this."
  ),
  echo: optional(Schema.Boolean, "Return the prompt before the text that continues it.", false)
}).check(Schema.makeFilter(({ n, prompt }) => {
  const prompts = typeof prompt === "string" ? 1 : prompt.length
  return (n ?? 1) * prompts <= maxChoices
    ? undefined
    : { path: ["n"], issue: `must be at most ${Math.floor(maxChoices / prompts)} for ${prompts} prompts` }
}))
export type CompletionRequest = typeof CompletionRequest.Type

export const Completion = Schema.Struct({
  id: field(Schema.String, "Unique per answer."),
  object: constant("text_completion", "An answer, or an event of one."),
  created: EpochSeconds,
  model: AnsweringModel,
  choices: field(
    Schema.Array(Schema.Struct({
      text: field(Schema.String, "Continues the prompt; with `echo`, begins with it."),
      index: field(Schema.Int, "Position of the prompt times `n`, plus the position among the prompt's texts."),
      logprobs: field(Schema.Null, "`null`, unless a provider adds log probabilities."),
      finish_reason: field(
        Schema.Literals(["stop", "length", "content_filter"]),
        "Why the text ended: at its end or a stop sequence, at the token limit, or by a content filter."
      )
    })),
    "`n` texts for each prompt."
  ),
  usage: field(TokenUsage, "Tokens that the request consumed."),
  system_fingerprint: field(Schema.optionalKey(Schema.String), "The provider's version of the model and its setup.")
})
export type Completion = typeof Completion.Type

const chunkHead = { id: "cmpl-88ea", object: "text_completion", created: 1795301087, model: "local-chat" }

export const completions = {
  name: "completions",
  summary: "Continue a text",
  paths: ["/v1/completions"],
  workloads: ["chat"],
  dialect: "openai",
  request: CompletionRequest,
  outline: completionsOutline,
  response: Completion,
  streams: (request) => request.stream === true,
  headers: [translationHeader, ...sessionHeaders],
  description: "The answer is JSON, or with `stream` server-sent events that end with `data: [DONE]`.",
  examples: {
    whole: {
      summary: "One text in JSON",
      model: "local-chat",
      body: { prompt: "Say: The lighthouse was built in 1871.", max_tokens: 20 },
      answer: {
        id: "cmpl-c7ff9f81b34548f7b1d1bc7993783fe3",
        object: "text_completion",
        created: 1795301087,
        model: "local-chat",
        choices: [{ text: "The lighthouse was built in 1871.", index: 0, logprobs: null, finish_reason: "stop" }],
        usage: { prompt_tokens: 14, completion_tokens: 9, total_tokens: 23 },
        system_fingerprint: "local-echo"
      }
    },
    several: {
      summary: "Several prompts at once",
      model: "local-chat",
      body: { prompt: ["The sea is wide.", "The lamp is lit."], max_tokens: 20, echo: true }
    },
    streamed: {
      summary: "The text in events",
      model: "local-chat",
      body: { prompt: "Say: The lighthouse was built in 1871.", stream: true },
      answer: eventsOf(
        { ...chunkHead, choices: [{ text: "The lighthouse", index: 0, logprobs: null, finish_reason: null }] },
        { ...chunkHead, choices: [{ text: "", index: 0, logprobs: null, finish_reason: "stop" }] }
      ) + "data: [DONE]\n\n"
    }
  }
} satisfies Operation
