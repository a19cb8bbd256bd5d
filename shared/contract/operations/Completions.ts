/** POST /v1/completions: prompts and the texts that continue them. */
import { Schema } from "effect"
import { atLeast, between, integer, ModelName, optional } from "../Fields.ts"
import { TokenUsage } from "./ChatCompletions.ts"
import type { Operation } from "../Operation.ts"
import { translationHeader } from "../Translation.ts"

/** Prompts in one request. */
const maxPrompts = 2_048
/** Texts for one prompt. */
const maxTexts = 128
/** Texts in one answer. */
const maxChoices = 2_048

export const CompletionRequest = Schema.Struct({
  model: ModelName,
  prompt: Schema.Union([
    Schema.NonEmptyString,
    Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, maxPrompts))
  ]).annotateKey({
    description:
      "One text or several, none of them empty. Token arrays are not taken: what they mean depends on the model."
  }),
  max_tokens: optional(atLeast(0)).annotateKey({
    description: "The most tokens of each text. 0 is of use with `echo`."
  }),
  temperature: optional(between(0, 2)).annotateKey({
    description: "How freely the model chooses its words: 0 is the most likely ones. Default 1."
  }),
  top_p: optional(between(0, 1)).annotateKey({
    description: "Choose only among the most likely tokens whose probabilities add up to this. Default 1."
  }),
  n: optional(integer(1, maxTexts)).annotateKey({
    description: `Texts for each prompt. Default 1. At most ${maxChoices} texts for all prompts together.`
  }),
  best_of: optional(integer(1, maxTexts)).annotateKey({
    description: "Texts that the model makes for each prompt, of which the best `n` are the answer. Default `n`."
  }),
  stream: optional(Schema.Boolean).annotateKey({
    description: "Send the texts as server-sent events while they are made. Default false."
  }),
  stream_options: optional(Schema.Struct({
    include_usage: optional(Schema.Boolean).annotateKey({
      description: "Send the usage as the last event before the end."
    })
  })),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])).annotateKey({
    description: "A text ends before any of these."
  }),
  suffix: optional(Schema.String).annotateKey({
    description: "What comes after the text that is asked for: the text is to fit between the prompt and this."
  }),
  echo: optional(Schema.Boolean).annotateKey({
    description: "Puts the prompt before the text that continues it. Default false."
  }),
  seed: optional(Schema.Int).annotateKey({
    description: "The same seed and request give the same text where the model can do that."
  }),
  presence_penalty: optional(between(-2, 2)).annotateKey({
    description: "Above 0: fewer words that have come before. Default 0."
  }),
  frequency_penalty: optional(between(-2, 2)).annotateKey({
    description: "Above 0: fewer words the more often they have come. Default 0."
  }),
  user: optional(Schema.String).annotateKey({ description: "Who asks, as the client tells its users apart." })
}).check(Schema.makeFilter(({ n, prompt }) => {
  const prompts = typeof prompt === "string" ? 1 : prompt.length
  return (n ?? 1) * prompts <= maxChoices
    ? undefined
    : { path: ["n"], issue: `must be at most ${Math.floor(maxChoices / prompts)} for ${prompts} prompts` }
}))
export type CompletionRequest = typeof CompletionRequest.Type

export const Completion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("text_completion"),
  created: Schema.Int.annotateKey({ description: "Seconds since the epoch." }),
  model: Schema.String,
  choices: Schema.Array(Schema.Struct({
    text: Schema.String,
    index: Schema.Int.annotateKey({
      description: "The number of the prompt times `n`, plus the number of the text for it."
    }),
    logprobs: Schema.Null,
    finish_reason: Schema.Literals(["stop", "length", "content_filter"])
  })),
  usage: TokenUsage,
  system_fingerprint: Schema.optionalKey(Schema.String)
})
export type Completion = typeof Completion.Type

export const completions = {
  name: "completions",
  summary: "Continue a text",
  paths: ["/v1/completions"],
  workloads: ["chat"],
  dialect: "openai",
  request: CompletionRequest,
  response: Completion,
  streams: (request) => request.stream === true,
  headers: [translationHeader],
  description: "The texts come whole, or with `stream` as server-sent events that end with `data: [DONE]`.",
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
      answer: [
        "data: {\"id\":\"cmpl-88ea\",\"object\":\"text_completion\",\"created\":1795301087,\"model\":\"local-chat\"," +
        "\"choices\":[{\"text\":\"The lighthouse\",\"index\":0,\"logprobs\":null,\"finish_reason\":null}]}",
        "data: {\"id\":\"cmpl-88ea\",\"object\":\"text_completion\",\"created\":1795301087,\"model\":\"local-chat\"," +
        "\"choices\":[{\"text\":\"\",\"index\":0,\"logprobs\":null,\"finish_reason\":\"stop\"}]}",
        "data: [DONE]\n\n"
      ].join("\n\n")
    }
  }
} satisfies Operation
