/** The events in which servers of the responses dialect send an answer: what clients read is the same, and never twice. */
import { assert, describe, it } from "@effect/vitest"
import { responsesProvider } from "../../../../shared/provider/dialects/responses/ResponsesProvider.ts"

const begin = (item: object, output_index = 0): object => ({ type: "response.output_item.added", output_index, item })
const end = (item: object, output_index = 0): object => ({ type: "response.output_item.done", output_index, item })
const of = (type: string, more: object): object => ({
  type: `response.${type}`,
  output_index: 0,
  content_index: 0,
  ...more
})
const completed = (...output: ReadonlyArray<object>): object => ({
  type: "response.completed",
  response: { id: "r", status: "completed", output }
})
const empty = { id: "m", type: "message", role: "assistant", content: [] }
const message = { ...empty, content: [{ type: "output_text", text: "Hi" }] }
const asked = { id: "f", type: "function_call", call_id: "c", name: "f", arguments: "" }
const call = { ...asked, arguments: "{\"a\":1}" }
const args = (type: string, more: object) => of(`function_call_arguments.${type}`, { item_id: "f", ...more })
const text = (type: string, more: object) => of(`output_text.${type}`, { item_id: "m", ...more })
const summary = (summary_index: number) => ({
  type: "response.reasoning_summary_text.done",
  output_index: 0,
  item_id: "s",
  summary_index,
  text: `${summary_index}`
})

/** OpenAI's reference has all events; proxies and other servers leave some of them out. */
const rows: ReadonlyArray<readonly [string, ReadonlyArray<object>, string]> = [
  [
    "all events",
    [begin(empty), text("delta", { delta: "H" }), text("delta", { delta: "i" }), text("done", { text: "Hi" })]
      .concat(end(message), completed(message)),
    "Hi"
  ],
  ["no deltas", [begin(empty), text("done", { text: "Hi" }), end(message), completed(message)], "Hi"],
  ["only the text's end", [begin(empty), text("done", { text: "Hi" }), completed()], "Hi"],
  ["only the item's end", [end(message), completed()], "Hi"],
  ["only the response", [completed(message)], "Hi"],
  ["the item's start and the response", [begin(empty), completed(message)], "Hi"],
  ["deltas of an item without a start", [text("delta", { delta: "Hi" }), end(message), completed(message)], "Hi"],
  ["another id in the response", [
    { ...begin(empty), output_index: undefined },
    { ...text("delta", { delta: "Hi" }), output_index: undefined },
    completed({ ...message, id: "other" })
  ], "Hi"],
  [
    "two parts without deltas",
    [begin(empty), text("done", { text: "Hi" })].concat(
      text("done", { text: " you", content_index: 1 }),
      completed()
    ),
    "Hi you"
  ],
  ["a refusal's end", [begin(empty), of("refusal.done", { item_id: "m", refusal: "No" }), completed()], "No"],
  ["two summaries without deltas", [
    begin({ id: "s", type: "reasoning", summary: [] }),
    summary(0),
    summary(1),
    completed()
  ], "01"],
  ["a call in all events", [
    begin(asked),
    args("delta", { delta: call.arguments }),
    args("done", { arguments: call.arguments }),
    end(call),
    completed(call)
  ], "f{\"a\":1}"],
  ["a call's arguments under another number", [
    begin(asked),
    { ...args("delta", { delta: call.arguments }), output_index: 4, item_id: "x" },
    { ...args("done", { arguments: call.arguments }), output_index: 4, item_id: "x" },
    completed()
  ], "f{\"a\":1}"],
  [
    "only the end of a call's arguments",
    [begin(asked), args("done", { arguments: call.arguments }), completed()],
    "f{\"a\":1}"
  ],
  ["a call only in the response", [completed(call)], "f{\"a\":1}"],
  ["a text by its events, a call in the response", [
    begin(empty),
    text("delta", { delta: "Hi" }),
    begin(asked, 1),
    completed(message, call)
  ], "Hif{\"a\":1}"]
]

describe("an answer of the responses dialect", () => {
  it.each(rows)("with %s", (_, frames, right) => {
    const decoder = responsesProvider.decoder()
    const said = frames.flatMap((frame) => decoder.frame(frame) ?? assert.fail("malformed")).map((event) =>
      event.type === "toolCall" ? event.name : "delta" in event ? event.delta : ""
    )
    assert.strictEqual(said.join("").trim().replaceAll("\n", ""), right)
    assert.isTrue(decoder.isComplete)
  })
})
