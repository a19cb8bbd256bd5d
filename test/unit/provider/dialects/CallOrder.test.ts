/** The pieces of tool calls in every order in which servers send id, name, number and arguments. */
import { assert, describe, it } from "@effect/vitest"
import { messagesProvider } from "../../../../shared/provider/dialects/anthropic/MessagesProvider.ts"
import type { AnswerDecoder } from "../../../../shared/provider/dialects/conversation/Dialect.ts"
import { chatCompletionsProvider } from "../../../../shared/provider/dialects/openai/ChatCompletionsProvider.ts"
import { responsesProvider } from "../../../../shared/provider/dialects/responses/ResponsesProvider.ts"

/** The calls of an answer in the order of their events, as `id name arguments`; "malformed" or "cut" if there is no answer. */
const callsIn = (decoder: AnswerDecoder, frames: ReadonlyArray<object>): ReadonlyArray<string> | string => {
  const calls: Array<string> = []
  const ids: Array<string> = []
  for (const frame of frames) {
    const events = decoder.frame(frame)
    if (events === undefined) return "malformed"
    take(events)
  }
  if (!decoder.isComplete) return "cut"
  take(decoder.last())
  return calls.map((call, index) => `${ids[index]} ${call}`)

  function take(events: ReturnType<AnswerDecoder["last"]>) {
    for (const event of events) {
      if (event.type === "toolCall") {
        assert.strictEqual(event.call, calls.length)
        ids.push(event.id.length > 8 ? "new" : event.id)
        calls.push(`${event.name} `)
      }
      if (event.type === "toolArguments") {
        // those of the last call only: calls cannot overlap
        assert.strictEqual(event.call, calls.length - 1)
        calls[event.call] += event.delta
      }
    }
  }
}

interface Piece {
  readonly index?: number | null
  readonly id?: string | null
  readonly name?: string | null
  readonly args?: string | object
}

const chat = (...pieces: ReadonlyArray<Piece | ReadonlyArray<Piece> | string>) => [
  ...pieces.map((piece) => {
    if (typeof piece === "string") return { choices: [{ index: 0, delta: { content: piece } }] }
    const tool_calls = [piece].flat().map((each) => {
      const { args, id, index, name } = each as Piece
      return { index, id, type: "function", function: { name, arguments: args } }
    })
    return { choices: [{ index: 0, delta: { tool_calls } }] }
  }),
  { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }
]

const one = ["a f {\"x\":1}"]
const two = ["a f {\"x\":1}", "b g {\"y\":2}"]

const orders: ReadonlyArray<readonly [string, ReadonlyArray<object>, ReadonlyArray<string> | string]> = [
  // OpenAI's reference: id and name first, then arguments by number
  [
    "as documented",
    chat({ index: 0, id: "a", name: "f", args: "" }, { index: 0, args: "{\"x\":" }, { index: 0, args: "1}" }),
    one
  ],
  ["all at once", chat({ index: 0, id: "a", name: "f", args: "{\"x\":1}" }), one],
  ["the name after the id", chat({ index: 0, id: "a" }, { index: 0, name: "f" }, { index: 0, args: "{\"x\":1}" }), one],
  [
    "the name empty at first",
    chat({ index: 0, id: "a", name: "", args: "" }, { index: 0, name: "f", args: "{\"x\":1}" }),
    one
  ],
  [
    "the name null at first",
    chat({ index: 0, id: "a", name: null }, { index: 0, name: "f" }, { index: 0, args: "{\"x\":1}" }),
    one
  ],
  [
    "the name after some arguments",
    chat({ index: 0, id: "a", args: "{\"x\":" }, { index: 0, name: "f", args: "1}" }),
    one
  ],
  ["the name last", chat({ index: 0, args: "{\"x\":1}" }, { index: 0, id: "a", name: "f" }), one],
  ["the id last", chat({ index: 0, name: "f" }, { index: 0, args: "{\"x\":1}" }, { index: 0, id: "a" }), [
    "new f {\"x\":1}"
  ]],
  ["no id", chat({ index: 0, name: "f", args: "{\"x\":1}" }), ["new f {\"x\":1}"]],
  [
    "an empty id in later pieces",
    chat({ index: 0, id: "a", name: "f" }, { index: 0, id: "", name: "", args: "{\"x\":1}" }),
    one
  ],
  // servers that repeat what they know in every piece
  [
    "id and name in every piece",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":" }, { index: 0, id: "a", name: "f", args: "1}" }),
    one
  ],
  [
    "id and name in every piece without numbers",
    chat({ id: "a", name: "f", args: "{\"x\":" }, { id: "a", name: "f", args: "1}" }),
    one
  ],
  ["the name in every piece", chat({ name: "f", args: "{\"x\":" }, { name: "f", args: "1}" }), ["new f {\"x\":1}"]],
  ["another id in every piece", chat({ index: 0, id: "a", name: "f" }, { index: 0, id: "z", args: "{\"x\":1}" }), one],
  // servers that number otherwise, or not at all
  ["numbers from 1", chat({ index: 1, id: "a", name: "f" }, { index: 1, args: "{\"x\":1}" }), one],
  [
    "no number",
    chat({ id: "a", name: "f" }, { args: "{\"x\":" }, { args: "1}" }, { id: "b", name: "g", args: "{\"y\":2}" }),
    two
  ],
  ["null as the number", chat({ index: null, id: "a", name: "f" }, { index: null, args: "{\"x\":1}" }), one],
  [
    "the same number for all",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":1}" }, { index: 0, id: "b", name: "g", args: "{\"y\":2}" }),
    two
  ],
  [
    "arguments under another number",
    chat({ index: 0, id: "a", name: "f" }, { index: 1, args: "{\"x\":" }, { index: 1, args: "1}" }),
    one
  ],
  ["arguments without a number", chat({ index: 0, id: "a", name: "f" }, { args: "{\"x\":1}" }), one],
  ["arguments by id", chat({ index: 0, id: "a", name: "f" }, { id: "a", args: "{\"x\":1}" }), one],
  // several calls
  [
    "two calls in one piece",
    chat([{ index: 0, id: "a", name: "f", args: "{\"x\":1}" }, { index: 1, id: "b", name: "g", args: "{\"y\":2}" }]),
    two
  ],
  [
    "interleaved",
    chat(
      { index: 0, id: "a", name: "f", args: "{\"x\":" },
      { index: 1, id: "b", name: "g", args: "{\"y\"" },
      { index: 0, args: "1}" },
      { index: 1, args: ":2}" }
    ),
    two
  ],
  [
    "both names first",
    chat(
      [{ index: 0, id: "a", name: "f", args: "" }, { index: 1, id: "b", name: "g", args: "" }],
      { index: 1, args: "{\"y\":2}" },
      { index: 0, args: "{\"x\":1}" }
    ),
    two
  ],
  [
    "the second name late",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":1}" }, { index: 1, id: "b" }, "text", {
      index: 1,
      name: "g",
      args: "{\"y\":2}"
    }),
    two
  ],
  ["no arguments", chat({ index: 0, id: "a", name: "f" }, { index: 1, id: "b", name: "g", args: "{\"y\":2}" }), [
    "a f ",
    "b g {\"y\":2}"
  ]],
  ["an object as the arguments", chat({ index: 0, id: "a", name: "f", args: { x: 1 } }), one],
  [
    "text between the pieces",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":" }, "text", { index: 0, args: "1}" }),
    one
  ],
  [
    "an empty piece at the end",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":1}" }, { index: 0, name: "", args: "" }, { index: 1, args: "" }),
    one
  ],
  ["the older form", [
    { choices: [{ index: 0, delta: { function_call: { name: "f", arguments: "" } } }] },
    { choices: [{ index: 0, delta: { function_call: { arguments: "{\"x\":1}" } }, finish_reason: "function_call" }] }
  ], ["new f {\"x\":1}"]],
  ["no name at all", chat({ index: 0, id: "a", args: "{\"x\":1}" }), "cut"],
  // servers that send the whole call again when it is complete
  [
    "the whole call again",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":" }, { index: 0, args: "1}" }, {
      index: 0,
      id: "a",
      name: "f",
      args: "{\"x\":1}"
    }),
    one
  ],
  [
    "the whole call again, without a number",
    chat({ id: "a", name: "f", args: "{\"x\":1}" }, { id: "a", name: "f", args: "{\"x\":1}" }),
    one
  ],
  [
    "the whole call again, after a text",
    chat({ index: 0, id: "a", name: "f", args: "{\"x\":1}" }, "text", { index: 0, id: "a", args: "{\"x\":1}" }),
    one
  ],
  [
    "both calls again",
    chat(
      { index: 0, id: "a", name: "f", args: "{\"x\":1}" },
      { index: 1, id: "b", name: "g", args: "{\"y\":2}" },
      [{ index: 0, id: "a", name: "f", args: "{\"x\":1}" }, { index: 1, id: "b", name: "g", args: "{\"y\":2}" }]
    ),
    two
  ],
  [
    "other arguments behind whole ones",
    chat({ index: 0, id: "a", name: "f", args: "{}" }, { index: 0, args: "{\"x\":1}" }),
    "malformed"
  ],
  [
    "further arguments after the end",
    chat({ index: 0, id: "a", name: "f", args: "{}" }, "text", { index: 0, args: "{\"x\":1}" }),
    "malformed"
  ]
]

describe("the pieces of a call in chat completions", () => {
  it.each(orders)("%s", (_, frames, expected) => {
    assert.deepStrictEqual(callsIn(chatCompletionsProvider.decoder(), frames), expected)
  })
})

const started = (index: number, id: string, type = "tool_use") => ({
  type: "content_block_start",
  index,
  content_block: { type, id, name: "f", input: {} }
})
const json = (index: number, partial_json: string) => ({
  type: "content_block_delta",
  index,
  delta: { type: "input_json_delta", partial_json }
})
const stop = { type: "message_delta", delta: { stop_reason: "tool_use" } }

describe("the arguments of a call in messages", () => {
  it.each([
    ["as documented", [started(0, "a"), json(0, "{\"x\":"), json(0, "1}"), stop], one],
    ["under the index of no block", [started(1, "a"), json(0, "{\"x\":1}"), stop], one],
    ["without an index", [started(0, "a"), { ...json(0, "{\"x\":1}"), index: undefined }, stop], one],
    ["of a tool that the provider runs", [started(0, "a", "server_tool_use"), json(0, "{\"q\":1}"), stop], []],
    ["before any call", [json(0, "{\"x\":1}"), stop], "malformed"],
    ["without the block's end", [started(0, "a"), stop], ["a f {}"]]
  ])("%s", (_, frames, expected) => {
    assert.deepStrictEqual(callsIn(messagesProvider.decoder(), frames), expected)
  })
})

const added = (output_index: number, more: object = {}) => ({
  type: "response.output_item.added",
  output_index,
  item: { type: "function_call", id: "i", call_id: "a", name: "f", ...more }
})
const delta = (more: object) => ({ type: "response.function_call_arguments.delta", delta: "{\"x\":1}", ...more })
const item = { type: "function_call", id: "i", call_id: "a", name: "f", arguments: "{\"x\":1}" }
const ended = (output_index: number) => ({ type: "response.output_item.done", output_index, item })
const completed = { type: "response.completed", response: { status: "completed" } }

describe("the arguments of a call in responses", () => {
  it.each([
    ["as documented", [added(0), delta({ output_index: 0, item_id: "i" }), ended(0), completed], one],
    ["by the id of the item", [added(1), delta({ output_index: 0, item_id: "i" }), ended(1), completed], one],
    ["under the index of no item", [added(1), delta({ output_index: 0 }), ended(1), completed], one],
    ["only at the end", [added(0), ended(0), completed], one],
    ["in an item without a start", [ended(0), completed], one],
    ["in an item that ends under another index", [added(0), delta({ output_index: 0 }), ended(1), completed], one],
    ["before any call", [delta({ output_index: 0 }), completed], "malformed"]
  ])("%s", (_, frames, expected) => {
    assert.deepStrictEqual(callsIn(responsesProvider.decoder(), frames), expected)
  })
})
