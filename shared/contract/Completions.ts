/** POST /v1/completions: prompts and the texts that continue them. */
import { Schema } from "effect"
import { between, optional } from "./Fields.ts"
import { TokenUsage } from "./ChatCompletions.ts"
import type { Operation } from "./Operation.ts"
import { translationHeader } from "./Translation.ts"

const integer = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Prompts in one request. */
const maxPrompts = 2_048
/** Texts for one prompt. */
const maxTexts = 128
/** Texts in one answer. */
const maxChoices = 2_048

export const CompletionRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  /** One text or several, none of them empty. Token arrays are not taken: what they mean depends on the model. */
  prompt: Schema.Union([
    Schema.NonEmptyString,
    Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, maxPrompts))
  ]),
  /** 0 is of use with `echo`. */
  max_tokens: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
  temperature: optional(between(0, 2)),
  top_p: optional(between(0, 1)),
  /** Texts for each prompt. Default 1. */
  n: optional(integer(1, maxTexts)),
  stream: optional(Schema.Boolean),
  stream_options: optional(Schema.Struct({ include_usage: optional(Schema.Boolean) })),
  stop: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  /** What comes after the text that is asked for: the text is to fit between the prompt and this. */
  suffix: optional(Schema.String),
  /** Puts the prompt before the text that continues it. Default false. */
  echo: optional(Schema.Boolean),
  seed: optional(Schema.Int),
  presence_penalty: optional(between(-2, 2)),
  frequency_penalty: optional(between(-2, 2)),
  user: optional(Schema.String)
}).check(Schema.makeFilter(({ n, prompt }) =>
  (n ?? 1) * (typeof prompt === "string" ? 1 : prompt.length) <= maxChoices
    ? undefined
    : { path: ["n"], issue: `Expected at most ${maxChoices} for all prompts together` }
))
export type CompletionRequest = typeof CompletionRequest.Type

export const Completion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("text_completion"),
  /** Seconds since the epoch. */
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(Schema.Struct({
    text: Schema.String,
    /** The number of the prompt times `n`, plus the number of the text for it. */
    index: Schema.Int,
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
  headers: [translationHeader]
} satisfies Operation
