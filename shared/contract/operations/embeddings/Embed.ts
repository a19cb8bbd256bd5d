/** POST /v2/embed: texts to vectors, in Cohere's format. */
import { Schema } from "effect"
import { atLeast, constant, field, integer, isPresent, JsonObject, ModelName, optional, tokens } from "../../Fields.ts"
import { embedOutline } from "../../outlines/Outlines.ts"
import type { Operation } from "../../Operation.ts"
import { translationHeader } from "../../ChatHeaders.ts"
import { maxDimensions } from "./Embeddings.ts"

const listOf = <S extends Schema.Constraint>(schema: S) => Schema.Array(schema).check(Schema.isBetweenLength(1, 2_048))

const Part = Schema.Union([
  Schema.Struct({ type: constant("text", "A text."), text: field(Schema.NonEmptyString, "The text.") }),
  Schema.Struct({
    type: constant("image_url", "A picture."),
    image_url: field(JsonObject, "The picture's data URL in `url`.")
  })
])

const given = ["texts", "images", "inputs"] as const

export const EmbedRequest = Schema.Struct({
  model: ModelName,
  input_type: field(
    Schema.NonEmptyString,
    "What the vectors are for: `search_document`, `search_query`, `classification`, `clustering` or `image`. Only some " +
      "models use it."
  ),
  texts: optional(listOf(Schema.NonEmptyString), "One text for each vector."),
  images: optional(listOf(Schema.String), "Pictures as data URLs, for models of Cohere that embed them."),
  inputs: optional(
    listOf(Schema.Struct({ content: field(listOf(Part), "Makes one vector.") })),
    "Texts, and for models of Cohere pictures, instead of `texts`."
  ),
  output_dimension: optional(integer(1, maxDimensions), "Length of the vectors. Default: the model's own."),
  embedding_types: optional(
    Schema.Array(Schema.String).check(Schema.isMinLength(1)),
    "Encodings of the vectors. All providers have `float` and `base64`, Cohere also `int8`, `uint8`, `binary` and `ubinary`.",
    ["float"]
  ),
  max_tokens: optional(atLeast(1), "Tokens of a text after which Cohere cuts it off."),
  truncate: optional(Schema.String, "Where Cohere shortens a text that is too long: `START`, `END` or `NONE`."),
  priority: optional(Schema.Int, "How early Cohere handles the request.")
}).check(
  Schema.makeFilter(
    (request) => given.some((name) => request[name]) ? undefined : { path: ["texts"], issue: "is required" },
    { toJsonSchema: () => ({ anyOf: given.map(isPresent) }) }
  )
)
export type EmbedRequest = typeof EmbedRequest.Type

export const embed = {
  name: "embed",
  summary: "Turn texts into vectors of several encodings",
  paths: ["/v2/embed"],
  workloads: ["embeddings"],
  dialect: "cohere",
  request: EmbedRequest,
  outline: embedOutline,
  response: Schema.Struct({
    id: field(Schema.String, "Unique per answer."),
    response_type: constant("embeddings_by_type", "The vectors are grouped by their encoding."),
    embeddings: field(
      Schema.Struct({
        float: field(Schema.optionalKey(Schema.Array(Schema.Array(Schema.Finite))), "Vectors as numbers."),
        base64: field(
          Schema.optionalKey(Schema.Array(Schema.String)),
          "Vectors as little-endian 32-bit floats in base64."
        )
      }),
      "One vector for each text, in each of the `embedding_types`."
    ),
    texts: field(Schema.optionalKey(Schema.Array(Schema.String)), "The request's texts."),
    meta: field(
      Schema.Struct({
        api_version: field(
          Schema.Struct({ version: field(Schema.String, "A number, as text.") }),
          "Version of the API that the answer follows."
        ),
        billed_units: field(
          Schema.Struct({ input_tokens: tokens("Tokens of the texts.") }),
          "What the request is billed by."
        )
      }),
      "Version and bill."
    )
  }),
  streams: () => false,
  headers: [translationHeader],
  description: "Every provider of embeddings serves this format. Only Cohere embeds pictures.",
  examples: {
    texts: {
      summary: "Several texts",
      model: "local-embedding",
      body: { texts: ["one", "two"], input_type: "search_document", output_dimension: 4 },
      answer: {
        id: "94a5386e-42f3-450d-9270-f049b94456d1",
        response_type: "embeddings_by_type",
        embeddings: { float: [[0, 0, 0, -1], [0, 0.6, 0, 0.8]] },
        texts: ["one", "two"],
        meta: { api_version: { version: "2" }, billed_units: { input_tokens: 2 } }
      }
    }
  }
} satisfies Operation
