/** POST /v1/moderations: says what kinds of harm texts and pictures contain. */
import { Schema } from "effect"
import { AnsweringModel, constant, field, optional } from "../Fields.ts"
import { moderationsOutline } from "../outlines/Outlines.ts"
import type { Operation } from "../Operation.ts"

/** The text or picture of a multimodal input. */
const Part = Schema.Union([
  Schema.Struct({
    type: constant("text", "A text."),
    text: field(Schema.String, "The text.")
  }),
  Schema.Struct({
    type: constant("image_url", "A picture."),
    image_url: field(
      Schema.Struct({ url: field(Schema.NonEmptyString, "An http(s) URL or a data URL.") }),
      "Where the picture is."
    )
  })
])

const several = <S extends Schema.Constraint>(item: S) => Schema.Array(item).check(Schema.isMinLength(1))

/** OpenAI's default. */
const defaultModel = "omni-moderation-latest"

export const ModerationRequest = Schema.Struct({
  model: optional(Schema.NonEmptyString, "Model to use, as listed by `GET /v1/models`.", defaultModel),
  input: field(
    Schema.Union([Schema.String, several(Schema.String), several(Part)]),
    "A text, several texts, each with a result of its own, or texts and pictures that are classified together."
  )
})

const byCategory = <S extends Schema.Constraint>(value: S, description: string) =>
  field(Schema.Record(Schema.String, value), description)

const ModerationResponse = Schema.Struct({
  id: field(Schema.String, "Unique per answer."),
  model: AnsweringModel,
  results: field(
    Schema.Array(Schema.Struct({
      flagged: field(Schema.Boolean, "Whether any category applies."),
      categories: byCategory(Schema.NullOr(Schema.Boolean), "Whether each category applies."),
      category_scores: byCategory(Schema.Finite, "0 to 1 for each category; higher is more certain."),
      category_applied_input_types: field(
        Schema.optionalKey(Schema.Record(Schema.String, Schema.Array(Schema.String))),
        "The kinds of input that each category was found in: `text`, `image`."
      )
    })),
    "One for each text, or for all parts together."
  )
})

export const moderations = {
  name: "moderations",
  summary: "Classify harmful content",
  paths: ["/v1/moderations"],
  workloads: ["chat"],
  dialect: "openai",
  isFree: true,
  needsProvider: true,
  defaultModel,
  request: ModerationRequest,
  outline: moderationsOutline,
  response: ModerationResponse,
  streams: () => false,
  description:
    "Needs a model of a provider with the protocol `openai`; no built-in engine has it. The provider's categories are passed " +
    "on. It counts no tokens and costs nothing, as with OpenAI.",
  examples: {
    text: {
      summary: "A text",
      model: "omni-moderation-latest",
      body: { input: "The lighthouse keeper keeps bees." },
      answer: {
        id: "modr-5f2c",
        model: "omni-moderation-latest",
        results: [{
          flagged: false,
          categories: { harassment: false, violence: false },
          category_scores: { harassment: 0.00002, violence: 0.00048 },
          category_applied_input_types: { harassment: ["text"], violence: ["text"] }
        }]
      }
    },
    parts: {
      summary: "A text and a picture together",
      model: "omni-moderation-latest",
      body: {
        input: [
          { type: "text", text: "Is this a lighthouse?" },
          { type: "image_url", image_url: { url: "https://example.com/lighthouse.png" } }
        ]
      },
      answer: {
        id: "modr-8a01",
        model: "omni-moderation-latest",
        results: [{
          flagged: false,
          categories: { harassment: false, violence: false },
          category_scores: { harassment: 0.00001, violence: 0.00031 },
          category_applied_input_types: { harassment: ["text"], violence: ["text", "image"] }
        }]
      }
    }
  }
} satisfies Operation
