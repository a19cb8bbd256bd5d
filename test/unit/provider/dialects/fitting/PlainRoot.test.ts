/** Parameters of tools with alternatives at their root, which OpenAI and Anthropic refuse. */
import { assert, describe, it } from "@effect/vitest"
import { messagesProvider } from "../../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import { Losses } from "../../../../../shared/provider/dialects/conversation/Losses.ts"
import { withPlainRoot } from "../../../../../shared/provider/dialects/fitting/PlainRoot.ts"
import { chatCompletions } from "../../../../../shared/provider/dialects/openai/ChatCompletions.ts"
import { chatCompletionsProvider } from "../../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { responsesProvider } from "../../../../../shared/provider/dialects/responses/ResponsesProvider.ts"
import { translate } from "../../../../fixture/calls/Translated.ts"

const text = { type: "string" }
const kind = (name: string) => ({ const: name })
const object = (properties: object, ...required: ReadonlyArray<string>) => ({ type: "object", properties, required })
const a = object({ kind: kind("a"), x: text }, "kind", "x")
const b = object({ kind: kind("b"), y: text }, "kind")
const both = { kind: { anyOf: [kind("a"), kind("b")] }, x: text, y: text }

/** Right values: an object that accepts whatever the schema accepts. The providers' errors are quoted in `PlainRoot.ts`. */
const table: ReadonlyArray<readonly [string, given: unknown, right: object]> = [
  ["anyOf", { anyOf: [a, b] }, { type: "object", properties: both, required: ["kind"] }],
  ["oneOf beside a type", { type: "object", oneOf: [a, b] }, { type: "object", properties: both, required: ["kind"] }],
  ["allOf", { allOf: [a, object({ y: text }, "y")] }, {
    type: "object",
    properties: { kind: kind("a"), x: text, y: text },
    required: ["kind", "x", "y"]
  }],
  ["references", { $defs: { A: a, B: b }, oneOf: [{ $ref: "#/$defs/A" }, { $ref: "#/$defs/B" }] }, {
    $defs: { A: a, B: b },
    type: "object",
    properties: both,
    required: ["kind"]
  }],
  ["alternatives of required fields", {
    ...object({ x: text, y: text }),
    anyOf: [{ required: ["x"] }, { required: ["y"] }]
  }, object({ x: text, y: text })],
  ["fields beside alternatives", { ...object({ z: text }, "z"), anyOf: [a] }, {
    type: "object",
    properties: { z: text, kind: kind("a"), x: text },
    required: ["z", "kind", "x"]
  }],
  ["not", { ...object({ x: text }, "x"), not: { required: ["y"] } }, object({ x: text }, "x")],
  ["alternatives that are no schemas", { anyOf: [true, 7] }, { type: "object", properties: {} }]
]

const fitted = (schema: unknown) => {
  const losses = new Losses("ordinary", {})
  return { schema: withPlainRoot(schema, "tools[0]", losses), warnings: losses.warnings }
}

describe("parameters with alternatives at their root", () => {
  it.each(table)("become one object: %s", (_, given, right) => {
    const { schema, warnings } = fitted(given)
    const { description, required, ...rest } = schema as Record<string, unknown>
    assert.deepStrictEqual({ ...rest, ...(required === undefined ? {} : { required }) }, right)
    assert.match(String(description), /^\{(?:anyOf|oneOf|allOf|not): .+\}$/s)
    assert.lengthOf(warnings, 1)
  })

  it.each([a, { ...a, properties: { x: { anyOf: [text, { type: "null" }] } } }, undefined, true])(
    "are not those with alternatives elsewhere: %j",
    (schema) => assert.deepStrictEqual(fitted(schema), { schema, warnings: [] })
  )

  it.each([true, false])("never reach OpenAI or Anthropic, if strict is %s", (strict) => {
    const body = {
      model: "alias",
      messages: [{ role: "user", content: "a" }],
      tools: [{ type: "function", function: { name: "f", strict, parameters: { anyOf: [a, b] } } }]
    }
    const options = { options: {} }
    for (
      const { sent, refusal } of [
        translate(chatCompletions, chatCompletionsProvider, body, options),
        translate(chatCompletions, responsesProvider, body, options),
        translate(chatCompletions, messagesProvider, body, options)
      ]
    ) {
      assert.isUndefined(refusal)
      assert.match(JSON.stringify(sent), /"(?:parameters|input_schema)":\{"type":"object","properties":/)
    }
  })
})
