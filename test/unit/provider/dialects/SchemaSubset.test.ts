/** JSON Schema keywords that a provider rejects reach the model as descriptions. */
import { assert, describe, it } from "@effect/vitest"
import { Losses } from "../../../../shared/provider/dialects/conversation/Losses.ts"
import {
  anthropicRules,
  cohereRules,
  fit,
  geminiRules,
  openAiRules,
  type SchemaRules
} from "../../../../shared/provider/dialects/fitting/SchemaSubset.ts"
import { chatCompletions } from "../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import * as Json from "../../../../shared/provider/json/Json.ts"
import { translate } from "../../../fixture/calls/Translated.ts"

const fitted = (schema: unknown, rules: SchemaRules) => {
  const losses = new Losses("ordinary", {})
  return { schema: fit(schema, rules, "format", losses), isLoose: losses.warnings.length > 0 }
}

const text = (more: object) => ({ type: "string", ...more })
const closed = { additionalProperties: false }

/** Right values: what `transformJSONSchema` of @anthropic-ai/sdk 1.14 returns, and the lists of the other vendors' pages. */
const table: ReadonlyArray<readonly [string, SchemaRules, given: object, right: object, isLoose: boolean]> = [
  [
    "a minimum",
    anthropicRules,
    { type: "integer", minimum: 1 },
    { type: "integer", description: "{minimum: 1}" },
    true
  ],
  [
    "a length beside a description",
    anthropicRules,
    text({ description: "A name.", maxLength: 5, minLength: 2 }),
    text({ description: "A name.\n\n{maxLength: 5, minLength: 2}" }),
    true
  ],
  [
    "two items at least",
    anthropicRules,
    { type: "array", items: text({ pattern: "^a" }), minItems: 2 },
    { type: "array", items: text({ description: "{pattern: \"^a\"}" }), description: "{minItems: 2}" },
    true
  ],
  ["one item at least", anthropicRules, { type: "array", minItems: 1 }, { type: "array", minItems: 1 }, false],
  ["a known format", anthropicRules, text({ format: "uuid" }), text({ format: "uuid" }), false],
  [
    "an unknown format",
    anthropicRules,
    text({ format: "binary" }),
    text({ description: "{format: \"binary\"}" }),
    true
  ],
  [
    "an alternative",
    anthropicRules,
    { oneOf: [text({ maxLength: 3 }), { type: "null" }] },
    { anyOf: [text({ description: "{maxLength: 3}" }), { type: "null" }] },
    true
  ],
  [
    "definitions",
    anthropicRules,
    { $ref: "#/$defs/a", description: "dropped", $defs: { a: { type: "number", multipleOf: 2 } } },
    { $ref: "#/$defs/a", $defs: { a: { type: "number", description: "{multipleOf: 2}" } } },
    true
  ],
  [
    "pydantic's reference with a description",
    openAiRules,
    { allOf: [{ $ref: "#/$defs/a" }], description: "An a." },
    { $ref: "#/$defs/a" },
    false
  ],
  [
    "objects at any depth",
    anthropicRules,
    { type: "object", properties: { minimum: { type: "object", properties: { a: { type: "number", maximum: 9 } } } } },
    {
      type: "object",
      properties: {
        minimum: {
          type: "object",
          properties: { a: { type: "number", description: "{maximum: 9}" } },
          ...closed
        }
      },
      ...closed
    },
    true
  ],
  [
    "zod's dialect and default",
    anthropicRules,
    text({ $schema: "x", default: "a" }),
    text({ description: "{default: \"a\"}" }),
    false
  ],
  [
    "a range",
    openAiRules,
    { type: "number", minimum: 1, maximum: 9 },
    { type: "number", minimum: 1, maximum: 9 },
    false
  ],
  ["a length", openAiRules, text({ maxLength: 9 }), text({ description: "{maxLength: 9}" }), true],
  ["unique items", openAiRules, { type: "array", uniqueItems: true }, {
    type: "array",
    description: "{uniqueItems: true}"
  }, true],
  ["an alternative of OpenAI", openAiRules, { oneOf: [text({})] }, { anyOf: [text({})] }, false],
  ["a constant", geminiRules, { const: "a" }, { enum: ["a"] }, false],
  ["an open range", geminiRules, { type: "number", exclusiveMinimum: 0 }, {
    type: "number",
    description: "{exclusiveMinimum: 0}"
  }, true],
  ["a range of Gemini", geminiRules, { type: "number", minimum: 0 }, { type: "number", minimum: 0 }, false],
  ["an e-mail address", geminiRules, text({ format: "email" }), text({ description: "{format: \"email\"}" }), true],
  [
    "a number of items",
    cohereRules,
    { type: "array", maxItems: 3 },
    { type: "array", description: "{maxItems: 3}" },
    true
  ],
  ["a pattern", cohereRules, text({ pattern: "a" }), text({ pattern: "a" }), false],
  ["what is no schema", anthropicRules, { anyOf: [true, 5] }, { anyOf: [true, 5] }, false]
]

describe("a schema", () => {
  it.each(table)("%s", (_, rules, given, right, isLoose) => {
    assert.deepStrictEqual(fitted(given, rules), { schema: right, isLoose })
  })

  it.each(table)("%s: stays the same when it is fitted again", (_, rules, given) => {
    const { schema } = fitted(given, rules)
    assert.deepStrictEqual(fitted(schema, rules), { schema, isLoose: false })
  })

  it("of a strict tool and of an answer is fitted, and named in a warning; one of another tool is not", () => {
    const schema = { type: "object", properties: { n: { type: "number", minimum: 1 } }, required: ["n"] }
    const tool = (name: string, strict?: boolean) => ({
      type: "function",
      function: { name, parameters: schema, ...strict === true ? { strict } : {} }
    })
    const { sent: [sent], warnings } = translate(chatCompletions, messagesProvider, {
      model: "alias",
      messages: [{ role: "user", content: "a" }],
      tools: [tool("strict", true), tool("free")],
      response_format: { type: "json_schema", json_schema: { name: "n", schema } }
    }, { options: {} })
    const { output_config: config, tools } = Json.fields(sent)
    const right = {
      type: "object",
      properties: { n: { type: "number", description: "{minimum: 1}" } },
      required: ["n"],
      additionalProperties: false
    }
    assert.deepStrictEqual(Json.list(tools).map((tool) => Json.fields(tool)["input_schema"]), [right, schema])
    assert.deepStrictEqual(Json.fields(Json.fields(config)["format"])["schema"], right)
    assert.deepStrictEqual(warnings.map((warning) => warning.split(" ")[0]), [
      "response_format.json_schema",
      "tools[0]"
    ])
  })
})
