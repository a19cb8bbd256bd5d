/** The built-in chat engine's JSON, which is valid for the schema, and its tool calls. How it words them is its own affair. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, JsonSchema, Result, Schema, SchemaRepresentation, Stream } from "effect"
import { LocalChat } from "../../../services/chat/LocalChat.ts"
import { InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Conversation, ToolDefinition } from "../../../shared/provider/dialects/conversation/Conversation.ts"
import {
  assistant,
  callsOf,
  conversation,
  finishes,
  textOf,
  toolResult,
  turn
} from "../../fixture/calls/Conversations.ts"

const ask = (request: Conversation) =>
  Stream.unwrap(Effect.map(LocalChat, (engine) => engine.answer(request, {}))).pipe(
    Stream.runCollect,
    Effect.provide(LocalChat.layer)
  )
const parse = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Unknown))

/** The values of all choices. */
const fill = (schema: unknown, text: string, more: Partial<Conversation> = {}) =>
  Effect.map(
    ask(conversation([turn("user", text)], { format: { type: "jsonSchema", schema }, ...more })),
    (events) => Array.from({ length: more.choices ?? 1 }, (_, choice) => parse(textOf(events, choice)))
  )

/** Effect's own implementation of JSON Schema, which shares no code with this engine. */
const validator = (schema: JsonSchema.JsonSchema): (value: unknown) => boolean => {
  const document = JsonSchema.fromSchemaDraft2020_12(schema)
  const imported = SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "apply" }) as Schema.Codec<unknown>
  const decode = Schema.decodeUnknownExit(imported, { onExcessProperty: "error" })
  return (value) => Exit.isSuccess(decode(value))
}

const object = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})
const text =
  "Anna is 30 years old and lives in Paris. Her email is anna@example.org, score: 7.5. Tags: red, green, blue."

describe("a JSON schema", () => {
  const schemas: Record<string, JsonSchema.JsonSchema> = {
    "plain types": object({
      s: { type: "string" },
      n: { type: "number" },
      i: { type: "integer" },
      b: { type: "boolean" },
      z: { type: "null" }
    }),
    "a list of types": object({ unit: { type: ["string", "null"] }, size: { type: ["null", "integer"], minimum: 3 } }),
    "enum and const": object({ kind: { const: "report" }, mood: { enum: ["glad", "sad"] }, level: { enum: [3, 5] } }),
    "bounded numbers": object({
      a: { type: "integer", minimum: 10, maximum: 12 },
      b: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
      c: { type: "integer", multipleOf: 7, minimum: 50 },
      d: { type: "number", maximum: -3.5 },
      e: { type: "integer", exclusiveMinimum: 4, maximum: 5 }
    }),
    "bounded strings": object({
      a: { type: "string", minLength: 300 },
      b: { type: "string", maxLength: 3 },
      c: { type: "string", minLength: 8, maxLength: 8 },
      d: { type: "string", maxLength: 0 }
    }),
    "bounded lists": object({
      a: { type: "array", items: { type: "string" }, minItems: 5 },
      b: { type: "array", items: { type: "integer" }, maxItems: 0 },
      c: { type: "array", items: { enum: ["x", "y", "z"] }, minItems: 3, uniqueItems: true },
      d: {
        type: "array",
        items: { type: "number", minimum: 0, maximum: 1 },
        minItems: 2,
        maxItems: 2,
        uniqueItems: true
      }
    }),
    "tuples": { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], items: false, minItems: 2 },
    "nested objects": object({
      person: object({ name: { type: "string" }, home: object({ city: { type: "string" } }) })
    }),
    "optional properties": object({ name: { type: "string" }, nick: { type: "string", minLength: 3 } }, ["name"]),
    "anyOf": object({ value: { anyOf: [{ type: "integer", maximum: 3 }, { type: "null" }] } }),
    "oneOf": { oneOf: [{ type: "integer", maximum: 3 }, { type: "string", maxLength: 5 }] },
    "a tagged union": {
      anyOf: [
        object({ type: { const: "cat" }, lives: { type: "integer" } }),
        object({ type: { const: "dog" }, tricks: { type: "array", items: { type: "string" } } })
      ]
    },
    "allOf": {
      allOf: [
        { type: "object", properties: { a: { type: "integer", minimum: 3 } }, required: ["a"] },
        { type: "object", properties: { a: { maximum: 4 }, b: { type: "string" } }, required: ["b"] }
      ]
    },
    "references": {
      ...object({ from: { $ref: "#/$defs/place" }, to: { $ref: "#/$defs/place" } }),
      $defs: { place: object({ city: { type: "string" } }) }
    },
    "a linked list": {
      $ref: "#/$defs/node",
      $defs: {
        node: object({ value: { type: "number" }, next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } })
      }
    },
    "a tree": {
      $ref: "#/$defs/node",
      $defs: {
        node: object({ name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/node" } } })
      }
    },
    "a tree of expressions": {
      $ref: "#/$defs/e",
      $defs: {
        e: {
          anyOf: [object({ op: { enum: ["+", "*"] }, left: { $ref: "#/$defs/e" }, right: { $ref: "#/$defs/e" } }), {
            type: "number"
          }]
        }
      }
    },
    "a map": { type: "object", additionalProperties: { type: "integer", minimum: 4 }, minProperties: 2 },
    "names from the object prototype": object({ constructor: { type: "string" }, toString: { type: "integer" } })
  }
  for (const [name, schema] of Object.entries(schemas)) {
    it.effect(`with ${name} is obeyed`, () =>
      Effect.gen(function*() {
        const isValid = validator(schema)
        for (const said of [text, "", "What?"]) {
          for (const value of yield* fill(schema, said, { choices: 3 })) {
            assert.isTrue(isValid(value), JSON.stringify(value))
          }
        }
      }))
  }

  it.effect.prop("of any shape is obeyed", [Schema.Int, Schema.Int], ([shape, seed]) =>
    Effect.gen(function*() {
      const schema = anySchema(draws(shape), 4)
      const [value] = yield* fill(schema, text, { seed })
      assert.isTrue(validator(schema)(value), `${JSON.stringify(schema)} ${JSON.stringify(value)}`)
    }), { arbitrary: { runs: 100 } })

  it.effect("in Gemini's format or of an older draft is obeyed too", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* fill({
          type: "OBJECT",
          properties: {
            age: { type: "INTEGER", minimum: "31" },
            none: { type: "BOOLEAN", nullable: true },
            many: { type: "ARRAY", items: { type: "NUMBER" }, minItems: "2" }
          },
          required: ["age", "many", "none"]
        }, "No numbers here"),
        [{ age: 31, none: null, many: [0, 1] }]
      )
      assert.deepStrictEqual(
        yield* fill({
          type: "object",
          properties: {
            a: { $ref: "#/definitions/odd~1name" },
            b: { type: "array", prefixItems: [{ type: "boolean" }], items: false, minItems: 1 }
          },
          required: ["a", "b"],
          definitions: { "odd/name": { type: "number", exclusiveMinimum: 2, maximum: 3 } }
        }, "No numbers here"),
        [{ a: 3, b: [false] }]
      )
    }))

  it.effect("is filled from the text, with each number once", () =>
    Effect.gen(function*() {
      const schema = object({
        age: { type: "integer" },
        mood: { enum: ["sad", "glad"] },
        score: { type: "number" }
      })
      const said = "I am 30, glad, and anna@example.org, since 1990-05-01. Score: 7.5."
      assert.deepStrictEqual(yield* fill(schema, said), [
        { age: 30, mood: "glad", score: 7.5 }
      ])
    }))

  it.effect("that this engine cannot satisfy is rejected, with the path", () =>
    Effect.gen(function*() {
      const refusal = (schema: unknown) =>
        Effect.map(Effect.flip(fill(schema, "Hello")), (error) => {
          assert.strictEqual((error as InvalidRequest).param, "response_format")
          return error.message
        })
      const inner = (schema: unknown) => object({ list: { type: "array", minItems: 1, items: object({ a: schema }) } })
      assert.include(yield* refusal(inner({ type: "string", format: "email" })), "at list[0].a of the format email")
      assert.include(yield* refusal(inner({ type: "string", pattern: "^a$" })), "at list[0].a with a pattern")
      assert.include(yield* refusal(inner({ type: "integer", minimum: 3, maximum: 2 })), "at list[0].a")
      assert.include(yield* refusal(inner({ enum: [] })), "at list[0].a")
      assert.include(yield* refusal({ $ref: "#/$defs/none" }), "refers to #/$defs/none, which is not there")
      assert.include(
        yield* refusal({ $ref: "#/$defs/a", $defs: { a: object({ a: { $ref: "#/$defs/a" } }) } }),
        "without an end"
      )
      assert.include(yield* refusal(object({ a: { not: {} } })), "keyword not at a")
      assert.include(yield* refusal({ type: "object", patternProperties: { "^a": {} } }), "keyword patternProperties")
      assert.include(yield* refusal(false), "allows no value")
    }))

  it.effect("of exponential cost gets a bounded value or is rejected at once", () =>
    Effect.gen(function*() {
      const doubling = (join: "allOf" | "anyOf") =>
        Object.fromEntries(Array.from({ length: 40 }, (_, i) => [
          `d${i}`,
          i === 39 ? { type: "string" } : { [join]: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }
        ]))
      const lists = {
        type: "array",
        minItems: 1e9,
        items: { type: "array", minItems: 1e9, items: { type: "string", minLength: 1e9 } }
      }
      const patterns = ["^(?=(a+)+$)b", "a{100000}", "(((a{30}){30}){30}){30}", "(.*a){25}", "(a)\\1", "["]
      for (
        const schema of [
          { $ref: "#/$defs/d0", $defs: doubling("allOf") },
          { $ref: "#/$defs/d0", $defs: doubling("anyOf") },
          { $ref: "#" },
          lists,
          { type: "object", minProperties: 1e9 },
          object(Object.fromEntries(patterns.map((pattern, i) => [`p${i}`, { type: "string", pattern }]))),
          { enum: Array.from({ length: 5_000 }, (_, i) => `value ${i}`) },
          Array.from({ length: 20_000 }).reduce((inner) => ({ type: "array", minItems: 1, items: inner }), {}),
          false,
          null
        ]
      ) {
        const filled = yield* Effect.result(fill(schema, text))
        if (Result.isFailure(filled)) assert.instanceOf(filled.failure, InvalidRequest)
        else assert.isBelow(JSON.stringify(filled.success).length, 200_000)
      }
    }))
})

it.effect("the JSON format without a schema gives an object", () =>
  Effect.gen(function*() {
    const events = yield* ask(conversation([turn("user", "Answer in JSON.")], { format: { type: "json" } }))
    assert.isObject(parse(textOf(events)))
  }))

describe("tools", () => {
  const weather: ToolDefinition = {
    name: "get_weather",
    description: "Get the current weather in a given location",
    parameters: object({ location: { type: "string" }, unit: { type: "string", enum: ["celsius", "fahrenheit"] } }, [
      "location"
    ])
  }
  const order: ToolDefinition = {
    name: "lookup_order",
    description: "Finds an order",
    parameters: object({ order_id: { type: "integer" } })
  }
  const flight: ToolDefinition = {
    name: "bookFlight",
    description: undefined,
    parameters: object({ origin: { type: "string" }, destination: { type: "string" }, seats: { type: "integer" } })
  }
  const tools = [weather, order, flight]
  const calls = (text: string, more: Partial<Conversation> = {}) =>
    Effect.map(
      ask(conversation([turn("user", text)], { tools, ...more })),
      (events) => callsOf(events).map((call) => [call.name, parse(call.arguments)])
    )

  it.effect("are called if the user names them, with valid arguments", () =>
    Effect.gen(function*() {
      const isValid = validator(weather.parameters as JsonSchema.JsonSchema)
      for (const said of ["What's the weather in Paris?", "how is the weather in new york, in fahrenheit?"]) {
        const [[name, values] = [], ...others] = yield* calls(said)
        assert.deepStrictEqual([name, others], ["get_weather", []])
        assert.isTrue(isValid(values), JSON.stringify(values))
      }
      assert.deepStrictEqual((yield* calls("Please book a flight")).map(([name]) => name), ["bookFlight"])
    }))

  it.effect("are called one at a time, the first that the user names first, with an id for each choice", () =>
    Effect.gen(function*() {
      const events = yield* ask(
        conversation([turn("user", "Use lookup_order for 1234, then get_weather for Tokyo.")], { tools, choices: 2 })
      )
      const both = [callsOf(events, 0), callsOf(events, 1)]
      for (const made of both) assert.deepStrictEqual(made.map(({ name }) => name), ["lookup_order"])
      assert.strictEqual(new Set(both.flat().map(({ id }) => id)).size, 2)
      assert.deepStrictEqual(finishes(events).map(({ reason }) => reason), ["tool_calls", "tool_calls"])
    }))

  // what agents send: https://docs.claude.com/en/docs/claude-code/settings#tools-available-to-claude, Codex's and Cline's tools
  const agentTools = [
    "Bash",
    "Read",
    "Write",
    "Task",
    "TodoWrite",
    "WebFetch",
    "execute_command",
    "write_file",
    "mcp__git__log"
  ]
  const reminder = "<system-reminder>\nUse Bash, or TodoWrite.\n</system-reminder>"
  const said: ReadonlyArray<readonly [texts: ReadonlyArray<string>, called: string | undefined]> = [
    [["Hello, which tools do you have?"], undefined],
    [["Write a poem about the bashful keeper's task"], "Write"],
    [["write a poem, then do the next task and read it"], undefined],
    [["Put the file on my todo list"], undefined],
    [["Use Bash, Read and Write, all at once"], "Bash"],
    [["Please execute command ls"], "execute_command"],
    [["Call mcp__git__log for this repository"], "mcp__git__log"],
    [[reminder, "Hello"], undefined],
    [["Hello", reminder], undefined],
    [["Use Bash", reminder, "No, rather Read the page"], "Read"],
    [[`${reminder} Hello`], undefined]
  ]
  it.effect.each(said)(
    "of an agent are called only if the user's last text names them: %j",
    ([texts, called]) =>
      Effect.gen(function*() {
        const tools = agentTools.map((name) => ({ name, description: "Runs", parameters: object({}) }))
        const content = texts.map((text) => ({ type: "text" as const, text }))
        const events = yield* ask(conversation([{ role: "user", content, toolCalls: [] }], { tools }))
        assert.deepStrictEqual(callsOf(events).map(({ name }) => name), called === undefined ? [] : [called])
      })
  )

  it.effect("are not called with invented arguments", () =>
    Effect.gen(function*() {
      const parameters = object({ id: { type: "string", format: "uuid" } })
      const tools = [{ name: "erase", description: undefined, parameters, path: "tools[0]" }]
      const error = yield* Effect.flip(calls("go", { tools, toolChoice: { type: "required" } }))
      assert.strictEqual((error as InvalidRequest).param, "tools[0]")
      assert.include(error.message, "at id of the format uuid")
    }))

  it.effect("are not called if the user asks for something else, or the request forbids them", () =>
    Effect.gen(function*() {
      for (
        const text of ["Tell me a joke", "Hello"]
      ) {
        assert.deepStrictEqual(yield* calls(text), [])
      }
      assert.deepStrictEqual(yield* calls("What's the weather in Paris?", { toolChoice: { type: "none" } }), [])
    }))

  it.effect("are called if the request requires a certain call, whatever the user says", () =>
    Effect.gen(function*() {
      const joke = "Tell me a joke"
      assert.lengthOf(yield* calls(joke, { toolChoice: { type: "required" }, tools: [order] }), 1)
      const error = yield* Effect.flip(calls(joke, { toolChoice: { type: "required" } }))
      assert.include(error.message, "names none of the tools")
      const [[name, values] = []] = yield* calls("Where is order 77?", {
        toolChoice: { type: "tool", name: weather.name }
      })
      assert.strictEqual(name, weather.name)
      assert.isTrue(validator(weather.parameters as JsonSchema.JsonSchema)(values))
    }))

  it.effect("get arguments that their schema allows, or none", () =>
    Effect.gen(function*() {
      for (const parameters of [undefined, null, {}, { type: "object" }, { type: "string" }, true]) {
        const made = yield* calls("go", {
          tools: [{ name: "go", description: undefined, parameters }],
          toolChoice: { type: "required" }
        })
        assert.deepStrictEqual(made, [["go", {}]])
      }
    }))

  it.effect("are called once; then the engine answers with their results and calls the next tool", () =>
    Effect.gen(function*() {
      const called = (id: string, name: string) => assistant("", { id, name, arguments: "{}" })
      const turns = [
        turn("user", "Use get_weather for Tokyo and lookup_order for 1234."),
        called("c1", "get_weather"),
        toolResult("c1", "Sunny, 21 degrees")
      ]
      const first = yield* ask(conversation(turns, { tools }))
      assert.deepStrictEqual(callsOf(first).map(({ name }) => name), ["lookup_order"])
      const second = yield* ask(conversation([...turns, called("c2", "lookup_order"), toolResult("c2", "")], { tools }))
      assert.deepStrictEqual(callsOf(second), [])
      assert.include(textOf(second), "Sunny, 21 degrees")
    }))
})

/** A repeatable sequence of integers below a bound. */
const draws = (seed: number) => {
  let state = (seed | 0) || 1
  return (below: number): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

const fields = ["name", "age", "city", "tags", "answer", "score", "active", "email", "when", "notes"]

const anySchema = (draw: (below: number) => number, depth: number): JsonSchema.JsonSchema => {
  const inner = () => anySchema(draw, depth - 1)
  switch (draw(depth === 0 ? 6 : 10)) {
    case 0:
      return {
        type: "string",
        ...[{}, { minLength: draw(30) }, { maxLength: draw(9) }, { minLength: 3, maxLength: 7 }][draw(4)]
      }
    case 1:
      return {
        type: "integer",
        ...[{}, { minimum: draw(99) - 50 }, { maximum: draw(99) - 50 }, {
          multipleOf: 1 + draw(7),
          minimum: draw(50)
        }][draw(4)]
      }
    case 2:
      return {
        type: "number",
        ...[{}, { exclusiveMinimum: draw(9) }, { exclusiveMinimum: 0, exclusiveMaximum: 1 }, {
          multipleOf: 0.5,
          minimum: 0.2
        }][draw(4)]
      }
    case 3:
      return { type: ["string", "null"] }
    case 4:
      return { enum: [["red", "green"], ["a", 1, null], [true]][draw(3)] }
    case 5:
      return { type: "boolean" }
    case 6:
      return { anyOf: [inner(), inner()] }
    case 7:
      return { type: "array", items: inner(), ...[{}, { minItems: draw(5) }, { maxItems: draw(4) }][draw(3)] }
    default: {
      const names = fields.filter(() => draw(3) === 0)
      return object(Object.fromEntries(names.map((name) => [name, inner()])), names.filter(() => draw(2) === 0))
    }
  }
}
